/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/ramp on several hosts: a run of this host; the test plays the other hosts. */
#include "tests/unit/loadgen/ramp/played_run.h"

#include "loadgen/cluster/cluster.h"
#include "loadgen/cluster/team.h"

#define HOSTS 3
#define NEWS_S 0.01		/* delay until the other hosts know what one did */
#define LOG_MAX 64

struct cluster {
	uint32_t rank;
	struct cluster_events events;
	void *arg;
};

struct news {
	ev_timer timer;
	char barrier[96];
	json_t *what;
	uint64_t in_ns;
	bool is_go;
};

static struct cluster fake;
static struct team team;
static struct news news[LOG_MAX];
static unsigned n_news;
static char arrived[LOG_MAX][96], gone[LOG_MAX][96];	/* by this host */
static unsigned n_arrived, n_gone;
static json_t *own_notes;		/* notes of this host, by barrier */
static json_t *last_said;
static char left_why[512];		/* why this host left, as told to the others; "": they were not told */
static const char *lost_at;		/* when this host arrives at this gate, host 2 is lost */
static const char *never_at;		/* the other hosts never arrive at this gate */
static unsigned n_put_out;		/* how often hosts were put out */
static char put_out_at[96], put_out_why[256];
static bool never_out;			/* hosts that are put out stay all the same */
/* For a member: what the leader does when this host has arrived. NULL: it opens the barrier. */
static void (*leader)(const char *barrier);

static void on_news(struct ev_loop *l, ev_timer *t, int revents)
{
	struct news *n = t->data;

	(void)l;
	(void)revents;
	if (n->is_go)
		fake.events.on_go(fake.arg, n->barrier, n->what, n->in_ns ? clock_now_ns() + n->in_ns : 0);
	else
		fake.events.on_all(fake.arg, n->barrier);
}

static void tell(const char *barrier, json_t *what, uint64_t in_ns, bool is_go)
{
	struct news *n = &news[n_news++];

	assert_true(n_news < LOG_MAX);
	snprintf(n->barrier, sizeof(n->barrier), "%s", barrier);
	n->what = what;
	n->in_ns = in_ns;
	n->is_go = is_go;
	call_in(NEWS_S, &n->timer, on_news, n);
}

static void on_loss(struct ev_loop *l, ev_timer *t, int revents)
{
	(void)l;
	(void)t;
	(void)revents;
	fake.events.on_lost(fake.arg, 2, "host 2 (c) is lost");
}

void cluster_arrive(struct cluster *c, const char *barrier, json_t *note)
{
	static ev_timer losing;

	assert_true(n_arrived < LOG_MAX);
	snprintf(arrived[n_arrived++], sizeof(arrived[0]), "%s", barrier);
	if (note)
		json_object_set_new(own_notes, barrier, note);
	if (lost_at && strstr(barrier, lost_at))
		call_in(NEWS_S, &losing, on_loss, NULL);
	else if (c->rank == 0 && !(never_at && strstr(barrier, never_at)))
		tell(barrier, NULL, 0, false);
	else if (c->rank != 0 && leader)
		leader(barrier);
	else if (c->rank != 0 && !strstr(barrier, "counted"))
		tell(barrier, json_pack("{s:b}", "traffic", true), 0, true);
}

void cluster_measure_clock(struct cluster *c, const char *barrier)
{
	cluster_arrive(c, barrier, NULL);
}

void cluster_go(struct cluster *c, const char *barrier, json_t *what, uint64_t in_ns)
{
	assert_int_equal(c->rank, 0);
	assert_true(n_gone < LOG_MAX);
	snprintf(gone[n_gone++], sizeof(gone[0]), "%s", barrier);
	tell(barrier, what, in_ns, true);
}

/* Every host is assumed to have done the same as this one. */
const json_t *cluster_note(const struct cluster *c, const char *barrier, uint32_t rank)
{
	(void)c;
	return rank == 2 && lost_at ? NULL : json_object_get(own_notes, barrier);
}

/* Like members.c: each absent host is lost, and the barrier no longer waits for it. */
void cluster_put_out_absent(struct cluster *c, const char *barrier, const char *why)
{
	(void)c;
	n_put_out++;
	snprintf(put_out_at, sizeof(put_out_at), "%s", barrier);
	snprintf(put_out_why, sizeof(put_out_why), "host c (rank 2) is put out of the run: %s", why);
	if (never_out)
		return;
	never_at = NULL;
	fake.events.on_lost(fake.arg, 2, put_out_why);
	tell(barrier, NULL, 0, false);
}

void cluster_forget(struct cluster *c, const char *barrier)
{
	(void)c;
	(void)barrier;
}

void cluster_say(struct cluster *c, json_t *what)
{
	(void)c;
	json_decref(last_said);
	last_said = what;
}

void cluster_listen(struct cluster *c, const struct cluster_events *events, void *arg)
{
	c->events = *events;
	c->arg = arg;
}

uint32_t cluster_rank(const struct cluster *c)
{
	return c->rank;
}

uint32_t cluster_hosts(const struct cluster *c)
{
	(void)c;
	return HOSTS;
}

const json_t *cluster_about(const struct cluster *c, uint32_t rank)
{
	(void)c;
	(void)rank;
	return NULL;
}

int64_t cluster_clock_offset_ns(const struct cluster *c)
{
	(void)c;
	return 0;
}

uint64_t cluster_clock_error_ns(const struct cluster *c)
{
	(void)c;
	return 1000;
}

void cluster_leave(struct cluster *c, const char *why)
{
	(void)c;
	snprintf(left_why, sizeof(left_why), "%s", why ? why : "");
}

static int set_up_hosts(void **state, uint32_t rank)
{
	if (set_up(state))
		return -1;
	fake = (struct cluster){ .rank = rank };
	n_news = n_arrived = n_gone = 0;
	own_notes = json_object();
	last_said = NULL;
	left_why[0] = put_out_at[0] = '\0';
	n_put_out = 0;
	never_out = false;
	lost_at = never_at = NULL;
	leader = NULL;
	cfg.hosts = HOSTS;
	cfg.rank = rank;
	cfg.clients = 12;
	cfg.steps.v[0] = 12;
	cfg.team = &team;
	return team_init(&team, &fake, loop);
}

static int set_up_leader(void **state)
{
	return set_up_hosts(state, 0);
}

static int set_up_member(void **state)
{
	return set_up_hosts(state, 1);
}

static int tear_down_hosts(void **state)
{
	for (unsigned i = 0; i < n_news; i++) {
		ev_timer_stop(loop, &news[i].timer);
		json_decref(news[i].what);
	}
	team_clear(&team, NULL);
	json_decref(own_notes);
	json_decref(last_said);
	return tear_down(state);
}

static void assert_names(char (*names)[96], unsigned n, const char *const *want, unsigned n_want)
{
	for (unsigned i = 0; i < n && i < n_want; i++)
		assert_string_equal(names[i], want[i]);
	assert_int_equal(n, n_want);
}

#define ASSERT_NAMES(names, n, ...) \
	assert_names(names, n, (const char *const[]){ __VA_ARGS__ }, \
		     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

#define LEADER_TEST(f) TEST_WITH(f, set_up_leader, tear_down_hosts)

LEADER_TEST(leader__one_step__gates_in_order_and_hosts_added_up)
{
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	ASSERT_NAMES(arrived, n_arrived, "r1/s0/met", "r1/s1/ready", "r1/s1/connected", "r1/s1/warm", "r1/s1/measured",
		     "r1/s1/counted");
	ASSERT_NAMES(gone, n_gone, "r1/s0/info", "r1/s1/step", "r1/s1/ready", "r1/s1/connected", "r1/s1/warm",
		     "r1/s1/measured", "r1/s0/end");
	assert_int_equal(json_number_at(step(), "target_clients"), 12);
	assert_int_equal(json_number_at(step(), "connected_held"), 12);
	/* Each worker of this host has 2 clients and 1,000 messages. */
	assert_int_equal(told_clients, 2);
	assert_int_equal(json_number_at(step(), "response_ns.count"), 2000 * HOSTS);
}

LEADER_TEST(leader__host_is_lost_while_connecting__named_and_the_run_ends)
{
	cfg.steps.n = 2;
	cfg.steps.v[1] = 12;
	lost_at = "/connected";
	run();
	assert_int_equal(oc.stop_reason, STOP_HOST_LOST);
	assert_string_equal(oc.stop_detail, "host 2 (c) is lost");
	assert_int_equal(json_array_size(oc.steps), 1);
}

/* A host that keeps its lease but is silent must be put out by name `within_s` after this host came to the gate. */
static void assert_silent_host_is_put_out(const char *gate, unsigned within_s)
{
	char barrier[96], why[256];
	uint64_t begun = clock_now_ns();

	never_at = gate;
	cfg.step_timeout_ns = 10 * NS_PER_S;
	run();
	snprintf(barrier, sizeof(barrier), "r1/s%u/%s", strcmp(gate, "met") ? 1 : 0, gate);
	snprintf(why, sizeof(why), "host c (rank 2) is put out of the run: it did not arrive at the gate \"%s\" within "
				   "%u s", gate, within_s);
	assert_int_equal(n_put_out, 1);
	assert_string_equal(put_out_at, barrier);
	assert_string_equal(oc.stop_detail, why);
	assert_int_equal(oc.stop_reason, STOP_HOST_LOST);
	assert_true(clock_now_ns() - begun < (within_s + 60) * NS_PER_S);
	assert_string_equal(gone[n_gone - 1], "r1/s0/end");
}

LEADER_TEST(leader__host_is_silent_before_the_first_step__put_out_by_name)
{
	assert_silent_host_is_put_out("met", 60 + 120 + 60);
}

LEADER_TEST(leader__host_is_silent_while_connecting__put_out_by_name)
{
	assert_silent_host_is_put_out("connected", 10 + 60);
}

LEADER_TEST(leader__host_is_silent_while_warming_up__put_out_by_name)
{
	assert_silent_host_is_put_out("warm", 60 + 60);
}

/* 15 s for what is in flight here, and as much for the other hosts after their measured time. */
LEADER_TEST(leader__host_is_silent_while_measuring__put_out_by_name)
{
	assert_silent_host_is_put_out("measured", 15 + 15 + 60);
}

LEADER_TEST(leader__host_is_silent_when_it_should_hand_in__put_out_by_name)
{
	assert_silent_host_is_put_out("counted", 15 + 120 + 60);
}

LEADER_TEST(leader__host_cannot_be_put_out__ends_without_the_others)
{
	never_at = "connected";
	never_out = true;
	cfg.step_timeout_ns = 10 * NS_PER_S;
	run();
	assert_string_equal(oc.stop_detail,
			    "hosts that did not arrive at the gate \"connected\" could not be put out of the run");
	assert_true(team_is_over(&team));
}

/* Clients that are still waiting when --step-timeout is over are abandoned. */
static void connects_late(struct worker *w, enum worker_order order)
{
	if (order == ORDER_CONNECT)
		w->given++;
	if (order == ORDER_ABANDON)
		fulfil(w);
}

/* If this host skipped the gate, the others would wait there until they gave it up, or were put out by it. */
LEADER_TEST(leader__clients_are_not_connected_in_time__all_pass_the_gate_without_traffic)
{
	cfg.step_timeout_ns = 10 * NS_PER_S;
	on_order = connects_late;
	run();
	ASSERT_NAMES(arrived, n_arrived, "r1/s0/met", "r1/s1/ready", "r1/s1/connected", "r1/s1/measured",
		     "r1/s1/counted");
	assert_int_equal(json_number_at(json_object_get(own_notes, "r1/s1/connected"), "late"), 1);
	assert_int_equal(n_put_out, 0);
	assert_int_equal(oc.stop_reason, STOP_STEP_TIMEOUT);
}

static int steps_left;

static void announce(unsigned number)
{
	char name[96];

	snprintf(name, sizeof(name), "r1/s%u/step", number);
	tell(name, json_pack("{s:[i], s:i, s:i, s:i}", "clients", 12, "bytes", 64, "repetition", 1, "rate", 0), 0,
	     true);
}

static void lead_steps(const char *barrier)
{
	static unsigned number;

	if (!strstr(barrier, "counted")) {
		tell(barrier, json_pack("{s:b}", "traffic", true), 0, true);
		return;
	}
	number = (unsigned)atoi(strchr(barrier, 's') + 1);
	if (--steps_left > 0)
		announce(number + 1);
	else
		tell("r1/s0/end", json_pack("{s:s, s:s}", "reason", "max_reached", "detail", ""), 0, true);
}

static void begin_as_member(void)
{
	leader = lead_steps;
	tell("r1/s0/info", json_pack("{s:[{}]}", "servers"), 0, true);
	announce(1);
}

#define MEMBER_TEST(f) TEST_WITH(f, set_up_member, tear_down_hosts)

MEMBER_TEST(member__two_steps__hands_in_both_and_asks_no_server)
{
	steps_left = 2;
	begin_as_member();
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(n_stats, 0);
	ASSERT_NAMES(arrived, n_arrived, "r1/s0/met", "r1/s1/ready", "r1/s1/connected", "r1/s1/warm", "r1/s1/measured",
		     "r1/s1/counted",
		     "r1/s2/ready", "r1/s2/connected", "r1/s2/warm", "r1/s2/measured", "r1/s2/counted");
	assert_int_equal(json_number_at(json_object_get(own_notes, "r1/s1/connected"), "connected"), 4);
}

MEMBER_TEST(member__leader_cuts_the_step_short__leaves_and_waits_for_the_end)
{
	steps_left = 1;
	cfg.duration_ns = 600 * NS_PER_S;
	begin_as_member();
	tell("r1/s1/cut", json_pack("{s:s, s:s}", "reason", "server_lost", "detail", "gone"), 0, true);
	news[n_news - 1].timer.repeat = 0;
	ev_timer_stop(loop, &news[n_news - 1].timer);
	call_in(0.4, &news[n_news - 1].timer, on_news, &news[n_news - 1]);
	run();
	assert_string_equal(arrived[n_arrived - 1], "r1/s1/counted");
	assert_string_equal(arrived[n_arrived - 2], "r1/s1/measured");
}

static void out_soon(struct ev_loop *l, ev_timer *t, int revents)
{
	(void)l;
	(void)t;
	(void)revents;
	fake.events.on_out(fake.arg, "the leader (a) is lost");
}

MEMBER_TEST(member__leader_is_lost__ends_with_what_it_has)
{
	ev_timer out;

	steps_left = 1;
	begin_as_member();
	call_in(0.15, &out, out_soon, NULL);
	cfg.duration_ns = 2 * NS_PER_S;
	run();
	assert_int_equal(oc.stop_reason, STOP_HOST_LOST);
	assert_string_equal(oc.stop_detail, "the leader (a) is lost");
}

static void assert_step_refused(json_t *figures, const char *why)
{
	tell("r1/s0/info", json_object(), 0, true);
	tell("r1/s1/step", figures, 0, true);
	run();
	assert_int_equal(oc.stop_reason, STOP_HOST_LOST);
	assert_int_equal(json_array_size(oc.steps), 0);
	assert_int_equal(told_clients, 0);
	assert_string_equal(oc.stop_detail, why);
	/* The others name this host and repeat what it said. */
	assert_string_equal(left_why, why);
	assert_true(team_is_over(&team));
}

MEMBER_TEST(member__more_clients_than_the_options_have__refused_and_all_hear_why)
{
	assert_step_refused(json_pack("{s:[i], s:i, s:i, s:i}", "clients", 13, "bytes", 64, "repetition", 1, "rate", 0),
			    "the leader's step does not say how many of --clients each server gets");
}

/* This host's workers have memory for only half of the clients on each server. */
MEMBER_TEST(member__all_clients_on_one_of_two_servers__refused_and_all_hear_why)
{
	char err[256];

	assert_int_equal(targets_parse("targets", "127.0.0.1,127.0.0.1:7472", 7471, &cfg.targets, err, sizeof(err)), 0);
	cfg.server = "127.0.0.1,127.0.0.1:7472";
	assert_step_refused(json_pack("{s:[i, i], s:i, s:i, s:i}", "clients", 12, 0, "bytes", 64, "repetition", 1,
				      "rate", 0),
			    "the leader's step gives a server more clients than --deal allows");
}

/* The message has no room for header and checksum: the remaining length would wrap around. */
MEMBER_TEST(member__message_below_the_workloads_minimum__refused_and_all_hear_why)
{
	cfg.verify = true;
	assert_step_refused(json_pack("{s:[i], s:i, s:i, s:i}", "clients", 12, "bytes", 1, "repetition", 1, "rate", 0),
			    "--message-size: 1 is not allowed with --workload echo --verify; allowed: 20 to 1048576");
}

MEMBER_TEST(member__rate_that_is_no_number__refused)
{
	assert_step_refused(json_pack("{s:[i], s:i, s:i, s:s}", "clients", 12, "bytes", 64, "repetition", 1, "rate",
				      "0"),
			    "--rate: 18446744073709551615 operations a second is none of the rates given with the "
			    "options");
}

MEMBER_TEST(member__server_is_not_proved__one_connection_and_no_client)
{
	static const char why[] = "the server 127.0.0.1 at 127.0.0.1:7471 is not proved by this host's --ca: "
				  "tls_handshake: certificate:18";

	steps_left = 1;
	begin_as_member();
	unproved = (struct fail){ .stage = STAGE_TLS_HANDSHAKE, .kind = FAIL_CERTIFICATE, .code = 18 };
	run();
	assert_int_equal(n_requests, 1);
	assert_int_equal(told_clients, 0);
	assert_int_equal(n_arrived, 0);
	assert_int_equal(oc.stop_reason, STOP_HOST_LOST);
	assert_memory_equal(left_why, why, sizeof(why) - 1);
}

/* Even a server that is too busy for a request has shown its certificate. */
MEMBER_TEST(member__server_refuses_the_question__proved)
{
	steps_left = 1;
	begin_as_member();
	unproved = (struct fail){ .stage = STAGE_PSN_EXCHANGE, .kind = FAIL_REFUSED, .code = REFUSE_BUSY };
	run();
	assert_int_equal(n_requests, 1);
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_string_equal(left_why, "");
}

static void proves_nothing(struct worker *w, enum worker_order order)
{
	if (order == ORDER_CONNECT) {
		counter_set(&w->stats.unproved, 1);
		counter_set(&w->stats.fulfilled, 0);	/* it connects no other client, so it never ends by itself */
	}
}

MEMBER_TEST(member__server_fails_three_times_in_a_row__step_ends_here_and_all_hear_why)
{
	static const char why[] = "the server did not prove its identity in 3 TLS handshakes in a row, and this host "
				  "loads only servers that its --ca verifies";

	steps_left = 1;
	cfg.step_timeout_ns = 600 * NS_PER_S;
	on_order = proves_nothing;
	begin_as_member();
	run();
	assert_string_equal(json_text_at(last_said, "wish"), why);
	ASSERT_NAMES(arrived, n_arrived, "r1/s0/met", "r1/s1/ready", "r1/s1/measured", "r1/s1/counted");
}

/* The gate from which the leader is silent, although it keeps its lease. */
static const char *silent_at;

static void lead_until_silent(const char *barrier)
{
	if (!strstr(barrier, silent_at))
		lead_steps(barrier);
}

static void assert_leader_is_given_up(const char *gate, const char *why)
{
	uint64_t begun = clock_now_ns();

	silent_at = gate;
	steps_left = 2;
	begin_as_member();
	leader = lead_until_silent;
	cfg.step_timeout_ns = 10 * NS_PER_S;
	run();
	assert_int_equal(oc.stop_reason, STOP_HOST_LOST);
	assert_string_equal(oc.stop_detail, why);
	assert_string_equal(left_why, why);
	assert_true(clock_now_ns() - begun < 600 * NS_PER_S);
}

MEMBER_TEST(member__leader_is_silent_at_a_gate__given_up)
{
	assert_leader_is_given_up("connected",
				  "host  (rank 0) did not let the run pass the gate \"connected\" within 250 s");
}

MEMBER_TEST(member__leader_is_silent_after_measuring__given_up)
{
	assert_leader_is_given_up("measured",
				  "host  (rank 0) did not let the run pass the gate \"measured\" within 271 s");
}

MEMBER_TEST(member__leader_is_silent_after_a_step__given_up)
{
	assert_leader_is_given_up("counted", "host  (rank 0), which leads the run, said nothing for 300 s");
}

static ev_timer talking;
static unsigned n_words;

static void on_word(struct ev_loop *l, ev_timer *t, int revents)
{
	json_t *what = json_pack("{s:i}", "hosts", 3);

	(void)revents;
	fake.events.on_said(fake.arg, 0, what);
	json_decref(what);
	if (--n_words)
		call_in(100, &talking, on_word, NULL);
	else
		ev_timer_stop(l, t);
}

/* A leader whose own step takes long reports that once a second. */
MEMBER_TEST(member__leader_says_how_it_goes__waited_for)
{
	uint64_t begun = clock_now_ns();

	n_words = 10;
	call_in(100, &talking, on_word, NULL);
	run();
	assert_string_equal(oc.stop_detail, "host  (rank 0), which leads the run, said nothing for 300 s");
	assert_in_range((clock_now_ns() - begun) / NS_PER_S, 1300, 1310);
}

MEMBER_TEST(member__leader_never_says_the_end__waiting_for_it_ends)
{
	uint64_t begun = clock_now_ns();

	assert_null(team_wait(&team, 0, "exit"));
	assert_string_equal(left_why, "host  (rank 0), which leads the run, said nothing for 300 s");
	assert_true(team_is_over(&team));
	assert_in_range((clock_now_ns() - begun) / NS_PER_S, 300, 310);
}
