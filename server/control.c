/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of control clients. See control.h. */
#include "server/control.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/sizing/sizes.h"
#include "common/tls/tls_io.h"
#include "server/report.h"
#include "server/samples.h"
#include "server/tables/handover.h"
#include "server/shard/shard.h"

#define IDLE_S 600.
#define REFUSE_S 2.
#define PUBLISH_S 1.
/* A watcher that has not read a sample for this long is gone. */
#define WATCH_S 120.
/* Maximum number of requests in a row that a client may send without waiting for the answers. */
#define BURST_MAX 16
/* When all sessions are taken, a session without a request for this long may be ended for a new client. */
#define IDLE_LEAST_NS (3 * NS_PER_S)
/* The same for a session with a mark, whose client is silent while it measures: performance_test for 480 s at most. */
#define MARKED_IDLE_LEAST_NS (500 * NS_PER_S)
#define CROWD_LOG_NS (10 * NS_PER_S)
#define PUBLISH_LOG_NS (10 * NS_PER_S)

enum session_state {
	SESSION_SERVED,		/* reads a request or writes an answer; ends IDLE_S after the last request */
	SESSION_WAITS,		/* waits until the shards have published, for PUBLISH_S at most */
	SESSION_WATCHES,	/* writes a sample at each interval; ends WATCH_S after the last one that was written */
	SESSION_REFUSED,	/* writes a REFUSE, then waits for the client to close; both within REFUSE_S */
};

struct session {
	TAILQ_ENTRY(session) entry;
	struct control *control;
	enum session_state state;
	struct tls_io io;
	struct addr peer;
	bool of_this_machine;		/* the peer's address is the server's own */
	uint32_t seat;			/* its seat among the control sessions (handover.h) */
	ev_timer deadline;
	uint64_t state_ns;		/* when the state began; SESSION_SERVED: when the last request was answered */
	struct frame_control request;	/* the request being answered */
	uint64_t publish_wanted;	/* SESSION_WAITS: the publish_wanted that the shards have to reach */
	unsigned burst;			/* requests in a row that had arrived before the previous one was answered */
	unsigned answered_at;		/* loop turn (ev_iteration) of its last answer */
	ev_timer next_turn;		/* serves the requests that had to wait for the next turn */
	struct report_mark *mark;	/* NULL before the first MARK */
	ev_timer sample;		/* SESSION_WATCHES: when the next sample is due */
	uint64_t skipped;		/* samples not sent, mostly because the client had not read the one before */
};

struct control {
	struct server *server;
	struct ev_loop *loop;
	TAILQ_HEAD(session_list, session) sessions;
	bool stopped;
	struct samples samples;
	uint64_t crowd_log_ns;		/* earliest time of the next log line about an evicted session */
	uint64_t publish_log_ns;	/* earliest time of the next log line about an unpublished shard */
	uint64_t memory_log_ns;		/* earliest time of the next log line about a report that failed */
};

static void set_state(struct session *x, enum session_state state)
{
	static const double deadlines_s[] = {
		[SESSION_SERVED] = IDLE_S, [SESSION_WAITS] = PUBLISH_S, [SESSION_WATCHES] = WATCH_S,
		[SESSION_REFUSED] = REFUSE_S,
	};

	x->state = state;
	x->state_ns = clock_now_ns();
	ev_timer_stop(x->control->loop, &x->deadline);
	ev_timer_set(&x->deadline, deadlines_s[state], 0.);
	ev_timer_start(x->control->loop, &x->deadline);
}

static void free_mark(struct session *x)
{
	x->control->server->marks_bytes -= report_mark_bytes(x->mark);
	report_mark_free(x->mark);
	x->mark = NULL;
}

/* Sets the mark that the session's later figures count from. 0; -ENOMEM; -ENOSPC: all marks together are too large. */
static int set_mark(struct session *x)
{
	struct server *server = x->control->server;
	int ret;

	free_mark(x);
	ret = report_mark_new(server, &x->mark);
	server->marks_bytes += report_mark_bytes(x->mark);
	if (ret || server->marks_bytes <= HELD_MARKS_BYTES)
		return ret;
	free_mark(x);
	return -ENOSPC;
}

static void end_session(struct session *x, enum close_reason reason)
{
	struct control *t = x->control;
	struct stats *st = &t->server->control_stats;

	counter_add(&st->closed[reason], 1);
	counter_set(&st->controls, counter_get(&st->controls) - 1);
	if (x->state == SESSION_WATCHES)
		samples_end(&t->samples);
	ev_timer_stop(t->loop, &x->sample);
	ev_timer_stop(t->loop, &x->next_turn);
	ev_timer_stop(t->loop, &x->deadline);
	tls_io_close(&x->io);
	free_mark(x);
	TAILQ_REMOVE(&t->sessions, x, entry);
	handover_session_ended(&t->server->handovers, x->seat);
	free(x);
}

static void fail_session(struct session *x, enum fail_kind kind, int code)
{
	struct fail f = { .stage = STAGE_PSN_EXCHANGE, .kind = kind, .code = code };
	char text[96], peer[ADDR_TEXT_MAX];

	fail_table_count(&x->control->server->control_stats.failures, &f);
	log_event(LOG_LVL_DEBUG, &(struct log_fields){
			  .peer = addr_text(&x->peer, peer), .stage = stage_names[f.stage],
			  .reason = fail_code_text(&f, text, sizeof(text)), .advice = fail_advice(&f) },
		  "control session of %s failed: %s (%s)", peer, text, fail_advice(&f));
	end_session(x, CLOSE_FAILED);
}

/* True if the client has left. A watching client may close its socket with an unread sample in it; its kernel then
 * sends RST (RFC 2525, 2.17), and the close_notify that the client sent before is lost. */
static bool has_left(const struct session *x)
{
	const struct fail *f = &x->io.failure;

	return f->kind == FAIL_CLOSED || (x->state == SESSION_WATCHES && f->kind == FAIL_ERRNO &&
					  (f->code == ECONNRESET || f->code == EPIPE));
}

/* True if the caller has to wait for the socket or the session is over; false to go on. */
static bool wait_or_end(struct session *x, enum tls_io_status st)
{
	if (st != TLS_IO_FAILED)
		return st == TLS_IO_WAIT;
	if (has_left(x))
		end_session(x, x->state == SESSION_REFUSED ? CLOSE_REFUSED : CLOSE_CONTROL_END);
	else
		fail_session(x, x->io.failure.kind, x->io.failure.code);
	return true;
}

/* Sends a refusal, whose frame of `bytes` bytes the caller has encoded in tls_io_frame. */
static void send_refusal(struct session *x, enum refuse_code code, size_t bytes)
{
	counter_add(&x->control->server->control_stats.refused[code], 1);
	tls_io_put(&x->io, bytes);
	set_state(x, SESSION_REFUSED);
}

static void refuse_session(struct session *x, enum refuse_code code, const char *text)
{
	send_refusal(x, code, frame_encode_refuse(code, text, tls_io_frame(&x->io)));
}

/* Puts header and text into one heap block, which is freed once it is written. 0 or -ENOMEM. */
static int put_report(struct session *x, const json_t *o)
{
	size_t n = json_dumpb(o, NULL, 0, JSON_COMPACT);
	uint8_t *frame;

	if (n == 0 || n > FRAME_REPORT_BYTES_MAX - FRAME_HEADER_BYTES)
		return -ENOMEM;
	frame = malloc(FRAME_HEADER_BYTES + n);
	if (!frame)
		return -ENOMEM;
	frame_encode_report_header((uint32_t)n, frame);
	if (json_dumpb(o, (char *)frame + FRAME_HEADER_BYTES, n, JSON_COMPACT) != n) {
		free(frame);
		return -ENOMEM;
	}
	tls_io_put_heap(&x->io, frame, FRAME_HEADER_BYTES + n);
	return 0;
}

static int put_answer(struct session *x)
{
	const struct server *server = x->control->server;
	json_t *o;
	int ret = 0;

	(void)json_memory_was_short();
	if (x->request.what == CONTROL_MARK)
		ret = set_mark(x);
	if (ret)
		return ret;
	o = x->request.what == CONTROL_INFO ? report_info(server) : report_stats(server, x->mark);
	/* A report with members missing would be wrong: send none. */
	ret = o && !json_memory_was_short() ? put_report(x, o) : -ENOMEM;
	json_decref(o);
	return ret;
}

static void answer(struct session *x)
{
	int ret;

	set_state(x, SESSION_SERVED);
	x->answered_at = ev_iteration(x->control->loop);
	ret = put_answer(x);
	if (ret == -ENOSPC) {
		refuse_session(x, REFUSE_NO_RESOURCES,
			       "the marks of control sessions have reached their memory limit: end other sessions");
	} else if (ret) {
		if (log_is_due(&x->control->memory_log_ns, NS_PER_S))
			log_warn("cannot make a report: this machine is out of memory");
		refuse_session(x, REFUSE_NO_RESOURCES, "out of memory");
	}
}

static bool all_have_published(const struct session *x)
{
	const struct server *server = x->control->server;

	for (uint32_t i = 0; i < server->n_shards; i++)
		if (!shard_has_published(server->shards[i], x->publish_wanted))
			return false;
	return true;
}

/* Sends a due sample, or skips it if the client has not read the last one: this bounds a slow reader's memory. */
static void put_sample(struct session *x)
{
	json_t *o = x->io.writing ? NULL : samples_take(&x->control->samples);

	if (!o || json_object_set_new(o, "skipped", json_integer((json_int_t)x->skipped)) || put_report(x, o))
		x->skipped++;
}

/* Writes what is pending. A watching client may send nothing more except the end of its session. */
static void serve_watcher(struct session *x)
{
	bool was_writing = x->io.writing;
	struct frame_header h;
	enum tls_io_status st;

	if (wait_or_end(x, tls_io_write(&x->io)))
		return;
	if (was_writing)
		set_state(x, SESSION_WATCHES);
	st = tls_io_read_header(&x->io, FRAME_FROM_CLIENT_MAX, &h);
	if (st == TLS_IO_DONE || x->io.done)
		fail_session(x, FAIL_PROTOCOL, PROTO_UNEXPECTED_FRAME);
	else
		(void)wait_or_end(x, st);
}

static void on_sample(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct session *x = w->data;

	(void)loop;
	(void)revents;
	put_sample(x);
	serve_watcher(x);
}

static void begin_watch(struct session *x)
{
	samples_begin(&x->control->samples);
	ev_now_update(x->control->loop);
	x->sample.repeat = x->request.interval_ms / 1e3;
	ev_timer_again(x->control->loop, &x->sample);
	set_state(x, SESSION_WATCHES);
	put_sample(x);
}

/* For STATS and MARK the shards publish first, so that the answer is no older than the request. INFO needs no shard. */
static void begin_answer(struct session *x)
{
	struct server *server = x->control->server;

	if (x->request.what == CONTROL_WATCH) {
		begin_watch(x);
		return;
	}
	if (x->request.what == CONTROL_INFO) {
		answer(x);
		return;
	}
	x->publish_wanted = atomic_fetch_add(&server->publish_wanted, 1) + 1;
	tls_io_watch(&x->io, 0);
	set_state(x, SESSION_WAITS);
	for (uint32_t i = 0; i < server->n_shards; i++)
		shard_ask_publish(server->shards[i]);
	if (all_have_published(x))
		answer(x);
}

/* Reads a request and begins its answer. Returns false if the caller has to wait or the session is over. */
static bool read_request(struct session *x)
{
	struct frame_header h;
	enum tls_io_status st = tls_io_read_header(&x->io, FRAME_FROM_CLIENT_MAX, &h);
	const char *why = "";

	if (st == TLS_IO_FAILED && x->io.failure.kind == FAIL_PROTOCOL) {
		refuse_session(x, REFUSE_BAD_REQUEST, "frame length: must be 8 to 64, reserved 0");
		return true;
	}
	if (st == TLS_IO_DONE)
		st = tls_io_read_frame(&x->io, &h);
	if (st == TLS_IO_WAIT)
		x->burst = 0;
	if (wait_or_end(x, st))
		return false;
	if (++x->burst > BURST_MAX) {
		fail_session(x, FAIL_PROTOCOL, PROTO_UNEXPECTED_FRAME);
		return false;
	}
	if (h.version != FRAME_VERSION)
		send_refusal(x, REFUSE_BAD_VERSION, frame_encode_bad_version(h.version, tls_io_frame(&x->io)));
	else if (h.type != FRAME_CONTROL)
		refuse_session(x, REFUSE_BAD_REQUEST, "unexpected frame: a control session takes only CONTROL");
	else if (frame_decode_control(x->io.frame, h.length, &x->request, &why))
		refuse_session(x, REFUSE_BAD_REQUEST, why);
	else
		begin_answer(x);
	return true;
}

/* True if the session has already had one answer in this turn of the loop. It then waits for the next turn: other
 * sessions, signals and samples come first, however many requests it sent at once. */
static bool waits_for_turn(struct session *x)
{
	struct ev_loop *loop = x->control->loop;

	if (x->answered_at != ev_iteration(loop))
		return false;
	ev_timer_stop(loop, &x->next_turn);
	ev_timer_set(&x->next_turn, 0., 0.);
	ev_timer_start(loop, &x->next_turn);
	return true;
}

/* Writes what is pending and reads requests, until it must wait for the socket, the shards or the next turn. */
static void serve(void *session)
{
	struct session *x = session;

	while (x->state == SESSION_SERVED)
		if (wait_or_end(x, tls_io_write(&x->io)) || waits_for_turn(x) || !read_request(x))
			return;
	if (x->state == SESSION_WATCHES)
		serve_watcher(x);
	else if (x->state == SESSION_REFUSED && !wait_or_end(x, tls_io_write(&x->io)) && tls_io_is_bye_answered(&x->io))
		end_session(x, CLOSE_REFUSED);
}

static void on_next_turn(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	serve(w->data);
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct session *x = w->data;

	(void)loop;
	(void)revents;
	switch (x->state) {
	case SESSION_SERVED:
		end_session(x, CLOSE_CONTROL_END);
		break;
	case SESSION_WAITS:
		if (log_is_due(&x->control->publish_log_ns, PUBLISH_LOG_NS))
			log_warn("a shard was too busy to give its current figures within %.0f s: the answer to %s has "
				 "older figures", PUBLISH_S, x->request.what == CONTROL_MARK ? "MARK" : "STATS");
		answer(x);
		serve(x);
		break;
	case SESSION_WATCHES:
		fail_session(x, FAIL_TIMEOUT, 0);
		break;
	case SESSION_REFUSED:
		end_session(x, CLOSE_REFUSED);
		break;
	}
}

static struct session *session_new(struct control *t, const struct handover *h, bool of_this_machine)
{
	struct session *x = calloc(1, sizeof(*x));
	struct stats *st = &t->server->control_stats;

	if (!x)
		return NULL;
	x->control = t;
	x->peer = h->peer;
	x->of_this_machine = of_this_machine;
	x->seat = h->seat;
	x->request = h->request;
	x->burst = 1;
	tls_io_init(&x->io, t->loop, serve, x, &st->tls_bytes_in, &st->tls_bytes_out);
	tls_io_adopt(&x->io, h->tls);
	ev_timer_init(&x->deadline, on_deadline, 0., 0.);
	x->deadline.data = x;
	ev_timer_init(&x->next_turn, on_next_turn, 0., 0.);
	x->next_turn.data = x;
	ev_timer_init(&x->sample, on_sample, 0., 0.);
	x->sample.data = x;
	TAILQ_INSERT_TAIL(&t->sessions, x, entry);
	counter_set(&st->controls, counter_get(&st->controls) + 1);
	return x;
}

static bool is_idle(const struct session *x, uint64_t now)
{
	return x->state == SESSION_SERVED && now - x->state_ns >= (x->mark ? MARKED_IDLE_LEAST_NS : IDLE_LEAST_NS);
}

/* The session that has been idle longest, including one whose client does not read; NULL if none is idle. */
static struct session *longest_idle(const struct control *t)
{
	uint64_t now = clock_now_ns();
	struct session *x, *longest = NULL;

	TAILQ_FOREACH(x, &t->sessions, entry)
		if (is_idle(x, now) &&
		    (!longest || x->state_ns < longest->state_ns))
			longest = x;
	return longest;
}

/* The newest session of a client on another machine; NULL if there is none. */
static struct session *newest_of_others(const struct control *t)
{
	struct session *x;

	TAILQ_FOREACH_REVERSE(x, &t->sessions, session_list, entry)
		if (!x->of_this_machine && x->state != SESSION_REFUSED)
			return x;
	return NULL;
}

static bool is_of_this_machine(const struct handover *h)
{
	struct addr here;

	return addr_of_socket(tls_fd(h->tls), &here) == 0 && addr_same_host(&here, &h->peer);
}

/* True if the new session may stay; if all sessions are taken, an idle one is ended to make room. For a client on the
 * server's own machine, such as an operator, the newest session of another machine may be ended instead. */
static bool has_room(struct control *t, bool of_this_machine)
{
	struct session *one;
	char peer[ADDR_TEXT_MAX];

	if (handover_sessions(&t->server->handovers) <= CONTROL_SESSIONS_MAX)
		return true;
	one = longest_idle(t);
	if (!one && of_this_machine)
		one = newest_of_others(t);
	if (!one)
		return false;
	if (log_is_due(&t->crowd_log_ns, CROWD_LOG_NS))
		log_event(LOG_LVL_WARN, &(struct log_fields){ .peer = addr_host_text(&one->peer, peer) },
			  "all %u control sessions are taken: ended a session of %s to make room for a client whose "
			  "address has none", CONTROL_SESSIONS_MAX, peer);
	tls_io_say_bye(&one->io);
	end_session(one, CLOSE_CROWDED_OUT);
	return true;
}

static void take_over(struct control *t, struct handover *h)
{
	bool of_this_machine = is_of_this_machine(h), room = has_room(t, of_this_machine);
	struct session *x = session_new(t, h, of_this_machine);

	if (!x) {
		log_warn("closed a new control session: this machine is out of memory");
		counter_add(&t->server->control_stats.closed[CLOSE_FAILED], 1);
		tls_free(h->tls);
		handover_session_ended(&t->server->handovers, h->seat);
	} else if (t->stopped) {
		end_session(x, CLOSE_DRAINING);
	} else if (!room) {
		refuse_session(x, REFUSE_BUSY, "too many control sessions");
		serve(x);
	} else {
		begin_answer(x);
		serve(x);
	}
	free(h);
}

static void take_over_all(struct control *t)
{
	struct handover *next, *h = handover_take(&t->server->handovers);

	for (; h; h = next) {
		next = h->next;
		take_over(t, h);
	}
}

void control_wake(struct control *t)
{
	struct session *next;

	take_over_all(t);
	for (struct session *x = TAILQ_FIRST(&t->sessions); x; x = next) {
		next = TAILQ_NEXT(x, entry);
		if (x->state == SESSION_WAITS && all_have_published(x)) {
			answer(x);
			serve(x);
		}
	}
}

int control_new(struct server *server, struct ev_loop *loop, struct control **out)
{
	struct control *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->server = server;
	t->loop = loop;
	t->samples.server = server;
	TAILQ_INIT(&t->sessions);
	*out = t;
	return 0;
}

void control_stop(struct control *t)
{
	struct session *x;

	t->stopped = true;
	while ((x = TAILQ_FIRST(&t->sessions))) {
		tls_io_say_bye(&x->io);
		end_session(x, CLOSE_DRAINING);
	}
}

void control_free(struct control *t)
{
	if (!t)
		return;
	control_stop(t);
	take_over_all(t);
	free(t);
}
