/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/worker/connector.c and clients.c: which client connects next, and what happens to clients whose
 * connections fail, park or close. Connections are fakes in this file. */
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/options.h"
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/wire/psn.h"
#include "loadgen/striping/lanes.h"
#include "loadgen/traffic/open_loop.h"
#include "loadgen/worker/churn.h"
#include "loadgen/worker/clients.h"

#define CLIENTS 40
#define PSN_EXCHANGE_NS 5	/* of each connection */

/* The parts of a connection that the connector uses. */
struct client_conn {
	struct client_head head;
	enum stage parked;
	bool open, closing;
	uint32_t psn;
	struct client_conn *before;	/* whose TLS connection it goes on with */
	bool keeps_tls;
};

static struct rig {
	struct worker_stats stats;
	struct traffic traffic;
	struct connector connector;
	struct client_conn conns[4 * CLIENTS];
	uint32_t made;		/* connections made */
	uint32_t free;		/* connections that may still be made */
	uint32_t went_on;	/* parked connections that were released */
	uint32_t back;		/* clients that came back after leaving */
	struct psn_registry *psns;
	struct lanes lanes;
} rig;

struct client_conn *client_connect_after(struct client_ctx *ctx, struct client_conn *before, uint64_t intended_ns,
					 void *user)
{
	struct client_conn *c = &rig.conns[rig.made];

	(void)ctx;
	(void)intended_ns;
	if (!rig.free)
		return NULL;
	assert_in_range(rig.made, 0, N_ELEMENTS(rig.conns) - 1);
	rig.made++;
	rig.free--;
	*c = (struct client_conn){ .head = { .user = user, .grant.credits = 100 }, .parked = STAGE_TIMED,
				   .open = true, .before = before };
	return c;
}

void client_keep_tls(struct client_conn *c)
{
	c->keeps_tls = true;
}

void client_end_tls(struct client_conn *c)
{
	c->keeps_tls = false;
}

void client_set_number(struct client_conn *c, uint32_t number)
{
	c->head.number = number;
}

void client_go_on(struct client_conn *c)
{
	rig.went_on++;
	c->parked = STAGE_TIMED;
}

enum stage client_parked_before(const struct client_conn *c)
{
	return c->parked;
}

void client_close(struct client_conn *c)
{
	c->closing = true;
}

void client_fail(struct client_conn *c, enum fail_kind kind, int code)
{
	(void)kind;
	(void)code;
	c->closing = true;
}

void client_get_info(const struct client_conn *c, struct client_info *out)
{
	static const uint64_t stages[STAGE_TIMED] = { [STAGE_PSN_EXCHANGE] = PSN_EXCHANGE_NS };

	*out = (struct client_info){ .stage_ns = stages, .words = "", .client_psn = c->psn,
				     .psn_redraws = c->psn / 100 };
}

const struct dev *client_dev(const struct client_ctx *ctx)
{
	(void)ctx;
	return NULL;
}

void client_use_session(struct client_conn *c, struct tls_session **session)
{
	(void)c;
	(void)session;
}

void client_use_window(struct client_conn *c, const struct frame_window *window)
{
	(void)window;
	fail_msg("connection %u has a window", (unsigned)(c - rig.conns));
}

void client_send(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t bytes)
{
	(void)h;
	fail_msg("connection %u sends buffer %u (%u bytes)", (unsigned)(c - rig.conns), buf, bytes);
}

void client_push(struct client_conn *c, const struct msg_push *push, uint64_t sequence)
{
	(void)push;
	(void)sequence;
	fail_msg("connection %u asks for a push", (unsigned)(c - rig.conns));
}

int client_rma(struct client_conn *c, struct rc_rma *ops, uint32_t n)
{
	(void)ops;
	fail_msg("connection %u posts %u requests", (unsigned)(c - rig.conns), n);
	return 0;
}

uint32_t client_rma_room(const struct client_conn *c)
{
	(void)c;
	return 0;
}

bool client_seal(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t offset, uint32_t bytes)
{
	(void)h;
	(void)offset;
	client_send(c, h, buf, bytes);
	return false;
}

void client_post(struct client_conn *c, uint32_t buf, uint32_t bytes, bool asks)
{
	(void)asks;
	client_send(c, NULL, buf, bytes);
}

void client_ping(struct client_conn *c, uint32_t buf, uint32_t bytes, uint32_t number)
{
	(void)number;
	client_send(c, NULL, buf, bytes);
}

static void on_back(struct churn *churn, struct wclient *wc)
{
	(void)churn;
	wc->away = false;
	counter_take(&rig.stats.away);
	rig.back++;
}

static int tear_down(void **state)
{
	(void)state;
	ev_loop_destroy(rig.connector.loop);
	lanes_release(&rig.lanes);
	traffic_release(&rig.traffic);
	worker_stats_release(&rig.stats);
	psn_registry_free(rig.psns);
	memset(&rig, 0, sizeof(rig));
	return 0;
}

/* Begins a step of CLIENTS clients on one rail, with these additional options. */
static void begin(const char *arguments, enum stage upto)
{
	options_taken(arguments);
	rig.free = 4 * CLIENTS;
	rig.traffic = (struct traffic){ .cfg = &options, .workload = options.wl, .stats = &rig.stats, .n_rails = 1,
					.n_lanes = loadgen_n_lanes(&options), .n_workers = 1, .n_clients = CLIENTS };
	options.wl->needs(&options, &rig.traffic.memory.needs);
	assert_int_equal(worker_stats_init(&rig.stats), 0);
	assert_int_equal(traffic_init(&rig.traffic), 0);
	assert_int_equal(lanes_init(&rig.lanes, &rig.traffic), 0);
	rig.connector = (struct connector){ .cfg = &options, .traffic = &rig.traffic, .stats = &rig.stats, .n_rails = 1,
					    .loop = ev_loop_new(EVFLAG_AUTO), .on_back = on_back };
	rig.connector.rails[0].connector = &rig.connector;
	connector_init(&rig.connector);
	connector_begin_step(&rig.connector, CLIENTS, CLIENTS, upto, false);
}

static void *rail(void)
{
	return &rig.connector.rails[0];
}

static struct wclient *client_of(uint32_t conn)
{
	return client_user(&rig.conns[conn]);
}

static void goes_live(uint32_t conn)
{
	clients_ops.on_live(rail(), &rig.conns[conn]);
}

static void closes(uint32_t conn, enum fail_kind kind, int code)
{
	const struct fail f = { .kind = kind, .stage = STAGE_TLS_HANDSHAKE, .code = code };

	rig.conns[conn].open = false;
	clients_ops.on_closed(rail(), &rig.conns[conn], &f);
}

static void parks(uint32_t conn, enum stage stage)
{
	assert_false(clients_ops.may_enter(rail(), &rig.conns[conn], stage));
	rig.conns[conn].parked = stage;
}

static void all_go_live(void)
{
	for (uint32_t i = 0; i < rig.made; i++)
		if (rig.conns[i].open && client_of(i)->state == WCLIENT_CONNECTING)
			goes_live(i);
}

#define assert_counts(connecting_, live_, waiting_, parked_, failed_) \
	do { \
		assert_int_equal(counter_get(&rig.stats.connecting), connecting_); \
		assert_int_equal(counter_get(&rig.stats.live), live_); \
		assert_int_equal(counter_get(&rig.stats.waiting), waiting_); \
		assert_int_equal(counter_get(&rig.stats.parked), parked_); \
		assert_int_equal(counter_get(&rig.stats.failed), failed_); \
	} while (0)

TEST(start__as_many_as_the_window_takes__more_as_they_go_live)
{
	begin("", STAGE_FIRST_REPLY);
	assert_counts(8, 0, 0, 0, 0);
	goes_live(0);
	/* The window has grown by one, so one place is free. */
	assert_counts(9, 1, 0, 0, 0);
	assert_false(connector_is_done(&rig.connector));
	all_go_live();
	assert_counts(0, CLIENTS, 0, 0, 0);
	assert_true(connector_is_done(&rig.connector));
	assert_int_equal(rig.made, CLIENTS);
}

/* A server that does not prove itself, perhaps a third party named as a target, sees no further connection. */
TEST(unproved__three_in_a_row__no_other_connection_begins)
{
	begin("", STAGE_FIRST_REPLY);
	closes(0, FAIL_CERTIFICATE, 18);
	closes(1, FAIL_TLS, 0);
	assert_int_equal(rig.made, 10);
	assert_int_equal(counter_get(&rig.stats.unproved), 0);
	closes(2, FAIL_TLS, 40);
	assert_int_equal(counter_get(&rig.stats.unproved), 1);
	for (uint32_t i = 3; i < 10; i++)
		closes(i, FAIL_CERTIFICATE, 18);
	connector_more(&rig.connector);
	assert_int_equal(rig.made, 10);
	/* The next step starts again from zero. */
	worker_stats_reset(&rig.stats);
	connector_begin_step(&rig.connector, CLIENTS, CLIENTS, STAGE_FIRST_REPLY, false);
	assert_true(rig.made > 10);
	assert_int_equal(counter_get(&rig.stats.unproved), 0);
}

TEST(unproved__one_is_proved_in_between_or_others_time_out__go_on)
{
	begin("--connect-retries 0", STAGE_FIRST_REPLY);
	closes(0, FAIL_CERTIFICATE, 18);
	closes(1, FAIL_CERTIFICATE, 18);
	assert_true(clients_ops.may_enter(rail(), &rig.conns[2], STAGE_PSN_EXCHANGE));
	closes(3, FAIL_CERTIFICATE, 18);
	closes(4, FAIL_CERTIFICATE, 18);
	for (uint32_t i = 5; i < 8; i++)
		closes(i, FAIL_TIMEOUT, 0);
	assert_int_equal(counter_get(&rig.stats.unproved), 0);
	closes(8, FAIL_CERTIFICATE, 18);
	assert_int_equal(counter_get(&rig.stats.unproved), 1);
}

TEST(start__no_connection_object_is_free__goes_on_when_there_is)
{
	begin("--connect-concurrency 1", STAGE_FIRST_REPLY);
	rig.free = 0;
	goes_live(0);
	assert_counts(0, 1, 0, 0, 0);
	assert_false(connector_is_done(&rig.connector));
	rig.free = 1;
	connector_more(&rig.connector);
	assert_counts(1, 1, 0, 0, 0);
}

TEST(attempt__busy__waits_and_comes_first)
{
	struct wclient *wc;

	begin("--connect-concurrency 1", STAGE_FIRST_REPLY);
	wc = client_of(0);
	closes(0, FAIL_REFUSED, REFUSE_BUSY);
	assert_int_equal(wc->state, WCLIENT_WAITING);
	assert_int_equal(counter_get(&rig.stats.retries), 1);
	/* It is not due yet, so another client goes first. */
	assert_ptr_equal(client_of(1), &rig.traffic.clients[1]);
	wc->retry_at_ns = 0;
	goes_live(1);
	assert_ptr_equal(client_of(2), wc);
	assert_int_equal(wc->attempts, 2);
	goes_live(2);
	assert_int_equal(wc->state, WCLIENT_LIVE);
}

TEST(attempt__refused_for_good__failed_at_once)
{
	begin("--connect-concurrency 1", STAGE_FIRST_REPLY);
	closes(0, FAIL_CERTIFICATE, 1);
	assert_counts(1, 0, 0, 0, 1);
	assert_int_equal(rig.traffic.clients[0].state, WCLIENT_NONE);
	assert_int_equal(fail_table_total(&rig.stats.failures), 1);
}

static void goes_live_with(uint32_t conn, uint32_t psn, uint32_t of_server)
{
	rig.conns[conn].psn = psn;
	rig.conns[conn].head.grant.psn = of_server;
	goes_live(conn);
}

#define assert_psns(exchanged_, shared_, redrawn_, noted_) \
	do { \
		assert_int_equal(counter_get(&rig.stats.psns_exchanged), exchanged_); \
		assert_int_equal(counter_get(&rig.stats.psns_shared), shared_); \
		assert_int_equal(counter_get(&rig.stats.psns_redrawn), redrawn_); \
		assert_int_equal(psn_in_use(rig.psns), noted_); \
	} while (0)

TEST(psns__one_is_another_connections__found_in_either_direction)
{
	begin("--connect-concurrency 8", STAGE_FIRST_REPLY);
	assert_int_equal(psn_registry_new(&rig.psns), 0);
	rig.connector.rails[0].psns = rig.psns;
	goes_live_with(0, 1, 2);
	goes_live_with(1, 103, 204);
	assert_psns(4, 0, 1, 4);
	goes_live_with(2, 5, 1);
	assert_psns(6, 1, 1, 4);
	goes_live_with(3, 7, 7);
	assert_psns(8, 2, 1, 4);
	goes_live_with(4, 204, 103);
	assert_psns(10, 4, 3, 4);
}

/* PSNs of a connection that is gone may be used again. A connection that shared one has none to give back. */
TEST(psns__connection_ends__only_its_own_are_free_again)
{
	begin("--connect-concurrency 8", STAGE_FIRST_REPLY);
	assert_int_equal(psn_registry_new(&rig.psns), 0);
	rig.connector.rails[0].psns = rig.psns;
	goes_live_with(0, 1, 2);
	goes_live_with(1, 2, 3);
	closes(1, FAIL_WC_STATUS, 12);
	assert_psns(4, 1, 0, 2);
	closes(0, FAIL_WC_STATUS, 12);
	assert_psns(4, 1, 0, 0);
	goes_live_with(2, 1, 2);
	assert_psns(6, 1, 0, 2);
	closes(3, FAIL_PROTOCOL, PROTO_PSN_MISMATCH);
	assert_psns(6, 1, 0, 2);
	assert_int_equal(counter_get(&rig.stats.psn_mismatches), 1);
}

TEST(parked__all__go_on_in_their_order)
{
	begin("--phased --connect-concurrency 100", STAGE_TCP_CONNECT);
	for (uint32_t i = 0; i < rig.made; i++) {
		parks(i, STAGE_TLS_HANDSHAKE);
		connector_more(&rig.connector);
	}
	assert_counts(0, 0, 0, CLIENTS, 0);
	assert_true(connector_is_done(&rig.connector));
	connector_go_on(&rig.connector, STAGE_TLS_HANDSHAKE);
	assert_int_equal(rig.went_on, CLIENTS);
	assert_int_equal(client_of(0)->state, WCLIENT_CONNECTING);
	/* A connection that parks again waits for the next stage. */
	parks(0, STAGE_PSN_EXCHANGE);
	connector_more(&rig.connector);
	assert_int_equal(client_of(0)->state, WCLIENT_PARKED);
	assert_false(connector_is_done(&rig.connector));
}

TEST(parked__fails__the_others_go_on_without_it)
{
	begin("--phased --connect-concurrency 2", STAGE_TCP_CONNECT);
	parks(0, STAGE_TLS_HANDSHAKE);
	parks(1, STAGE_TLS_HANDSHAKE);
	connector_stop(&rig.connector, CONNECT_HOLD);
	closes(0, FAIL_CLOSED, 0);
	assert_int_equal(rig.traffic.clients[0].state, WCLIENT_NONE);
	assert_int_equal(counter_get(&rig.stats.failed), 1);
	connector_go_on(&rig.connector, STAGE_TLS_HANDSHAKE);
	assert_int_equal(client_of(1)->state, WCLIENT_CONNECTING);
	assert_int_equal(rig.went_on, 1);
}

/* The client of this connection leaves, and will come back. */
static void leaves(uint32_t conn)
{
	client_of(conn)->away = true;
	counter_add(&rig.stats.away, 1);
	connector_set_state(&rig.connector, client_of(conn), WCLIENT_LEAVING);
	closes(conn, FAIL_NONE, 0);
}

TEST(leaves__comes_back_on_a_new_connection)
{
	struct wclient *wc;

	begin("--churn 1", STAGE_FIRST_REPLY);
	all_go_live();
	wc = client_of(0);
	leaves(0);
	assert_int_equal(wc->state, WCLIENT_CONNECTING);
	goes_live(CLIENTS);
	assert_int_equal(rig.back, 1);
	assert_int_equal(wc->state, WCLIENT_LIVE);
	/* A client that fails while it is away counts as dropped. */
	wc = client_of(1);
	leaves(1);
	closes(CLIENTS + 1, FAIL_CERTIFICATE, 1);
	assert_int_equal(counter_get(&rig.stats.dropped), 1);
	assert_int_equal(counter_get(&rig.stats.away), 0);
	assert_int_equal(wc->state, WCLIENT_NONE);
}

TEST(leave__more_than_may_connect__whoever_left_first_is_back_first)
{
	static const uint32_t order[] = { 7, 3, 39, 0, 12, 4, 38, 1 };
	const uint32_t n = N_ELEMENTS(order);

	begin("--churn 1 --connect-concurrency 1", STAGE_FIRST_REPLY);
	while (!connector_is_done(&rig.connector))
		all_go_live();
	pace_init(&rig.connector.pace, 1);
	for (uint32_t i = 0; i < n; i++)
		leaves(order[i]);
	assert_counts(1, CLIENTS - n, n - 1, 0, 0);
	/* Each client leaves again as soon as it is back, so the second round has the order of the first. */
	for (uint32_t i = 0; i < 2 * n; i++) {
		assert_ptr_equal(client_of(CLIENTS + i), client_of(order[i % n]));
		goes_live(CLIENTS + i);
		leaves(CLIENTS + i);
	}
	assert_int_equal(rig.back, 2 * n);
}

TEST(close__clients_that_wait_are_given_up__all_gone)
{
	begin("--connect-concurrency 3", STAGE_FIRST_REPLY);
	goes_live(0);
	closes(1, FAIL_REFUSED, REFUSE_BUSY);
	connector_stop(&rig.connector, CONNECT_CLOSE);
	clients_close(&rig.connector, 0, CLIENTS);
	assert_int_equal(counter_get(&rig.stats.waiting), 0);
	assert_int_equal(counter_get(&rig.stats.failed), 1);
	assert_true(clients_left(&rig.stats) > 0);
	for (uint32_t i = 0; i < rig.made; i++)
		if (rig.conns[i].open) {
			assert_true(rig.conns[i].closing);
			closes(i, FAIL_NONE, 0);
		}
	assert_int_equal(clients_left(&rig.stats), 0);
}

TEST(abandon__whoever_still_connects_times_out__and_nobody_begins)
{
	uint32_t made;

	begin("--connect-concurrency 2", STAGE_FIRST_REPLY);
	goes_live(0);
	made = rig.made;
	clients_abandon(&rig.connector);
	for (uint32_t i = 1; i < made; i++) {
		assert_true(rig.conns[i].closing);
		closes(i, FAIL_TIMEOUT, 0);
	}
	assert_false(rig.conns[0].closing);
	assert_int_equal(rig.made, made);
	assert_counts(0, 1, 0, 0, made - 1);
}

static struct churn churn;

/* Makes all clients live; the real churn.c brings lost ones back. */
static void begin_live(const char *arguments)
{
	begin(arguments, STAGE_FIRST_REPLY);
	churn_init(&churn, &rig.connector);
	rig.connector.on_back = churn_on_back;
	rig.connector.churn = &churn;
	all_go_live();
	assert_counts(0, CLIENTS, 0, 0, 0);
}

static void is_lost(uint32_t conn)
{
	static const struct fail f = { .kind = FAIL_WC_STATUS, .stage = STAGE_TRAFFIC, .code = IBV_WC_RETRY_EXC_ERR };

	clients_ops.on_lost(rail(), &rig.conns[conn], &f);
	rig.conns[conn].open = false;
	clients_ops.on_closed(rail(), &rig.conns[conn], &f);
}

/* Ends the client's pause. */
static void pause_ends(struct wclient *wc)
{
	assert_int_equal(wc->state, WCLIENT_WAITING);
	wc->retry_at_ns = 0;
	connector_more(&rig.connector);
	assert_int_equal(wc->state, WCLIENT_CONNECTING);
}

#define assert_losses(outages_, away_, dropped_, failures_) \
	do { \
		assert_int_equal(counter_get(&rig.stats.outages), outages_); \
		assert_int_equal(counter_get(&rig.stats.away), away_); \
		assert_int_equal(counter_get(&rig.stats.dropped), dropped_); \
		assert_int_equal(fail_table_total(&rig.stats.failures), failures_); \
	} while (0)

TEST(lost__without_reconnect__dropped)
{
	begin_live("");
	is_lost(0);
	assert_losses(0, 0, 1, 1);
	assert_int_equal(client_of(0)->state, WCLIENT_NONE);
}

static void ends_drained(uint32_t conn)
{
	static const struct fail f = { .kind = FAIL_CLOSED, .stage = STAGE_TRAFFIC, .code = REFUSE_DRAINING };

	clients_ops.on_lost(rail(), &rig.conns[conn], &f);
	rig.conns[conn].open = false;
	clients_ops.on_closed(rail(), &rig.conns[conn], &f);
}

/* The client module itself ends the connection when everything in flight has ended. */
TEST(draining__client_is_lost_but_not_cut_off)
{
	begin_live("");
	clients_ops.on_draining(rail(), &rig.conns[0]);
	assert_false(rig.conns[0].closing);
	assert_int_equal(client_of(0)->state, WCLIENT_LOST);
	assert_losses(0, 0, 1, 0);
	ends_drained(0);
	assert_losses(0, 0, 1, 1);
	assert_int_equal(client_of(0)->state, WCLIENT_NONE);
}

TEST(draining__with_reconnect__comes_back)
{
	begin_live("--reconnect 60");
	clients_ops.on_draining(rail(), &rig.conns[0]);
	assert_losses(1, 1, 0, 0);
	ends_drained(0);
	assert_losses(1, 1, 0, 0);
	pause_ends(client_of(0));
	goes_live(CLIENTS);
	assert_losses(1, 0, 0, 0);
	assert_int_equal(client_of(0)->state, WCLIENT_LIVE);
}

/* Operations that had not ended begin again with their numbers: each ends once, and none is left out. */
TEST(lost__in_the_midst_of_operations__back_with_those_that_had_not_ended)
{
	struct wclient *wc;
	uint64_t now = clock_now_ns();

	begin_live("--reconnect 60 --inflight 4");
	wc = client_of(0);
	wc->streams[0].begun = 9;
	wc->streams[0].done = 6;
	rig.traffic.in_flight = 3;
	rig.traffic.on = true;
	is_lost(0);
	rig.traffic.on = false;
	assert_losses(1, 1, 0, 0);
	assert_int_equal(fail_table_total(&rig.stats.retried), 1);
	assert_int_equal(wc->streams[0].begun, 6);
	assert_int_equal(wc->streams[0].done, 6);
	assert_int_equal(rig.traffic.in_flight, 0);
	assert_int_equal(counter_get(&rig.stats.repeated), 3);
	assert_int_equal(counter_get(&rig.stats.comebacks), 1);
	assert_true(wc->retry_at_ns >= now + 50 * NS_PER_MS);
	assert_true(wc->retry_at_ns <= clock_now_ns() + 100 * NS_PER_MS);
	pause_ends(wc);
	assert_int_equal(wc->streams[0].begun, 6);
	goes_live(CLIENTS);
	assert_losses(1, 0, 0, 0);
	assert_int_equal(wc->state, WCLIENT_LIVE);
	assert_int_equal(hist_count(rig.stats.hists.outage_ns), 1);
	assert_int_equal(hist_count(rig.stats.hists.away_ns), 0);
	assert_true(wc->backoff.lost_ns == 0);
	/* The next ordinary connection begins at 0, as all do. */
	connector_reset_client(wc);
	assert_int_equal(wc->streams[0].done, 0);
}

/* In the open loop, operations keep their due times. */
TEST(lost__open_loop__due_as_before)
{
	struct stream_times times[4] = { { .due_ns = 111 }, { .due_ns = 222 }, { .due_ns = 333 }, { .due_ns = 444 } };
	struct wclient *wc;
	char err[200];

	begin_live("--reconnect 60 --inflight 4 --rate 100");
	assert_int_equal(open_loop_new(&rig.traffic, rig.connector.loop, &rig.traffic.open_loop, err, sizeof(err)), 0);
	wc = client_of(0);
	memcpy(wc->streams[0].times, times, sizeof(times));
	wc->streams[0].begun = 8;
	wc->streams[0].done = 6;
	wc->due_ns = 555;
	rig.traffic.in_flight = 2;
	is_lost(0);
	assert_true(wc->due_ns == 333);
	open_loop_free(rig.traffic.open_loop);
}

TEST(lost__attempts_fail__longer_pauses_until_the_limit)
{
	struct wclient *wc;
	uint64_t before = 0;

	begin_live("--reconnect 60");
	wc = client_of(0);
	is_lost(0);
	for (uint32_t i = 0; i < 6; i++) {
		uint64_t pause = wc->retry_at_ns - clock_now_ns();

		assert_true(pause > before / 2);
		before = pause;
		pause_ends(wc);
		closes(CLIENTS + i, FAIL_ERRNO, ECONNREFUSED);
	}
	assert_losses(1, 1, 0, 0);
	assert_int_equal(counter_get(&rig.stats.retries), 6);
	wc->backoff.lost_ns -= 61 * NS_PER_S;
	pause_ends(wc);
	closes(CLIENTS + 6, FAIL_ERRNO, ECONNREFUSED);
	assert_losses(1, 0, 1, 1);
	assert_int_equal(wc->state, WCLIENT_NONE);
	assert_true(wc->backoff.lost_ns == 0);
}

TEST(lost__server_is_another_now__dropped_at_once)
{
	struct wclient *wc;

	begin_live("--reconnect 60");
	wc = client_of(0);
	is_lost(0);
	pause_ends(wc);
	closes(CLIENTS, FAIL_CERTIFICATE, 19);
	assert_losses(1, 0, 1, 1);
}

/* Clients that are due sooner do not wait for the others. */
TEST(lost__several__tried_in_the_order_of_their_pauses)
{
	uint64_t last = 0;
	struct wclient *wc;

	begin_live("--reconnect 60");
	for (uint32_t i = 0; i < 10; i++)
		is_lost(i);
	TAILQ_FOREACH(wc, &rig.connector.retry, link) {
		assert_true(wc->retry_at_ns >= last);
		last = wc->retry_at_ns;
	}
	assert_losses(10, 10, 0, 0);
}

TEST(lost__step_ends_before_it_is_back__given_up)
{
	begin_live("--reconnect 60");
	is_lost(0);
	connector_stop(&rig.connector, CONNECT_CLOSE);
	clients_close(&rig.connector, 0, CLIENTS);
	assert_losses(1, 0, 1, 0);
	is_lost(1);
	assert_losses(1, 0, 2, 1);
}

/* A client that was leaving already counts as away, and comes back all the same. */
TEST(lost__while_it_leaves__back)
{
	struct wclient *wc;

	begin_live("--reconnect 60 --churn 1");
	wc = client_of(0);
	wc->away = true;
	counter_add(&rig.stats.away, 1);
	connector_set_state(&rig.connector, wc, WCLIENT_LEAVING);
	is_lost(0);
	assert_losses(1, 1, 0, 0);
	pause_ends(wc);
	goes_live(CLIENTS);
	assert_losses(1, 0, 0, 0);
	assert_int_equal(hist_count(rig.stats.hists.outage_ns), 1);
}

/* The client has a queue pair after the other; then it is live. */
static void begin_queue_pairs(void)
{
	begin("--workload large --qps 3 --connect-concurrency 1", STAGE_FIRST_REPLY);
	assert_int_equal(psn_registry_new(&rig.psns), 0);
	rig.connector.rails[0].psns = rig.psns;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(rig.made, i + 1);
		assert_ptr_equal(client_of(i), &rig.traffic.clients[0]);
		assert_int_equal(client_number(&rig.conns[i]), i);
		assert_int_equal(rig.conns[i].keeps_tls, i < 2);
		assert_counts(1, 0, 0, 0, 0);
		goes_live_with(i, 10 + i, 20 + i);
	}
	assert_counts(1, 1, 0, 0, 0);
}

TEST(queue_pairs__of_a_client__made_in_turn_with_one_tls_connection)
{
	struct hist *const *stages = rig.stats.hists.stages[HANDSHAKE_FULL];

	begin_queue_pairs();
	assert_null(rig.conns[0].before);
	assert_ptr_equal(rig.conns[1].before, &rig.conns[0]);
	assert_ptr_equal(rig.conns[2].before, &rig.conns[1]);
	assert_false(rig.conns[0].keeps_tls);
	assert_false(rig.conns[1].keeps_tls);
	assert_int_equal(hist_count(stages[STAGE_TLS_HANDSHAKE]), 1);
	/* Its times are recorded once: sums over its connections. */
	assert_int_equal(hist_count(stages[STAGE_PSN_EXCHANGE]), 1);
	assert_int_equal(hist_max(stages[STAGE_PSN_EXCHANGE]), 3 * PSN_EXCHANGE_NS);
	assert_int_equal(hist_count(rig.stats.hists.total[HANDSHAKE_FULL]), 1);
	/* The next client begins with a TLS connection of its own. */
	assert_ptr_equal(client_of(3), &rig.traffic.clients[1]);
	assert_null(rig.conns[3].before);
}

TEST(queue_pairs__one_is_lost__its_client_goes_on_with_the_others)
{
	const struct fail f = { .kind = FAIL_WC_STATUS, .stage = STAGE_TRAFFIC, .code = 12 };

	begin_queue_pairs();
	assert_int_equal(psn_in_use(rig.psns), 6);
	rig.connector.rails[0].told = true;	/* no line in the log, which would name the device */
	clients_ops.on_lost(rail(), &rig.conns[1], &f);
	assert_int_equal(psn_in_use(rig.psns), 4);
	rig.conns[1].open = false;
	clients_ops.on_closed(rail(), &rig.conns[1], &f);
	assert_int_equal(psn_in_use(rig.psns), 4);
	assert_int_equal(counter_get(&rig.stats.rails_dropped), 1);
	assert_int_equal(client_of(0)->state, WCLIENT_LIVE);
	assert_int_equal(lanes_alive(client_of(0)), 2);
}

TEST_EACH(NULL, tear_down)
