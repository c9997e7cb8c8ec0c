/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/striping/lanes.c and lane.c: which connection gets which request, which completion ends an
 * operation, and what happens to the parts of a lane that is lost. Connections, memory and the counting of operations
 * are fakes in this file. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "common/rdma/arena.h"
#include "common/wire/msg.h"
#include "loadgen/traffic/payload.h"
#include "loadgen/striping/lane.h"
#include "loadgen/striping/lanes.h"

#define RAILS 4
#define POSTED_MAX 256

/* A request posted on a connection. */
struct posted {
	enum { POSTED_WRITE, POSTED_READ, POSTED_SEND, POSTED_PUSH, POSTED_IMM } what;
	uint64_t at, bytes;	/* within the region */
	uint64_t sequence;
	bool asks;
};

/* The parts of a connection that lanes use. */
struct client_conn {
	struct client_head head;
	struct frame_window window;
};

static struct rig {
	struct loadgen_config cfg;
	struct workload workload;
	struct lane_plan plan[WORKLOAD_STREAMS_MAX];
	struct traffic traffic;
	struct lanes lanes;
	struct wclient client;
	struct client_conn conn[RAILS];
	struct posted posted[RAILS][POSTED_MAX];
	uint32_t n[RAILS];
	uint32_t room;			/* free requests of each connection */
	int breaks;			/* rail whose next request breaks its connection; -1: none */
	uint32_t doorbells;
	uint32_t failed;		/* connections that were ended */
	uint32_t ended[WORKLOAD_STREAMS_MAX], checked, wrong;
	struct stream_times times[WORKLOAD_STREAMS_MAX][128];
	uint64_t now_ns;
} rig;

static uint8_t texts[1 << 20], landed[1 << 20];

static uint32_t rail_of(const struct client_conn *c)
{
	return (uint32_t)(c - rig.conn);
}

static void note(const struct client_conn *c, struct posted p)
{
	uint32_t rail = rail_of(c);

	assert_in_range(rig.n[rail], 0, POSTED_MAX - 1);
	rig.posted[rail][rig.n[rail]++] = p;
}

void client_fail(struct client_conn *c, enum fail_kind kind, int code)
{
	(void)kind;
	(void)code;
	rig.failed++;
	lanes_lose(&rig.client, rail_of(c));
}

uint32_t client_rma_room(const struct client_conn *c)
{
	(void)c;
	return rig.room;
}

int client_rma(struct client_conn *c, struct rc_rma *ops, uint32_t n)
{
	if (rig.breaks == (int)rail_of(c)) {
		rig.breaks = -1;
		client_fail(c, FAIL_WC_STATUS, 0);
		return 0;
	}
	rig.doorbells++;
	for (; n--; ops++) {
		bool tells = ops->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

		c->head.in_flight += tells;
		note(c, (struct posted){ .what = ops->opcode == IBV_WR_RDMA_READ ? POSTED_READ : tells ? POSTED_IMM :
					 POSTED_WRITE,
					 .at = ops->remote_addr, .bytes = ops->bytes, .sequence = tells ? ops->imm :
					 0 });
	}
	return 0;
}

void client_send(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t bytes)
{
	(void)buf;
	c->head.in_flight++;
	note(c, (struct posted){ .what = POSTED_SEND, .bytes = bytes - MSG_HEADER_BYTES, .sequence = h->sequence,
				 .asks = h->flags & MSG_FLAG_ACK });
}

void client_push(struct client_conn *c, const struct msg_push *push, uint64_t sequence)
{
	c->head.in_flight++;
	note(c, (struct posted){ .what = POSTED_PUSH, .at = push->region_offset, .bytes = push->bytes,
				 .sequence = sequence });
}

void client_use_window(struct client_conn *c, const struct frame_window *window)
{
	c->window = *window;
}

uint32_t ep_buf_get(struct ep *ep)
{
	(void)ep;
	return 0;
}

uint8_t *ep_buf(const struct ep *ep, uint32_t buf)
{
	(void)ep;
	(void)buf;
	return landed;
}

uint8_t *arena_at(const struct arena *a, size_t offset)
{
	(void)a;
	return landed + offset;
}

uint32_t arena_lkey(const struct arena *a, uint32_t n)
{
	(void)a;
	return n;
}

uint32_t arena_rkey(const struct arena *a, uint32_t n)
{
	(void)a;
	return 100 + n;
}

uint8_t *payload_text(const struct payload *p, uint32_t shift)
{
	(void)p;
	(void)shift;
	return texts;
}

uint32_t traffic_pattern(const struct traffic *t, const struct wclient *wc, uint64_t number)
{
	(void)t;
	(void)wc;
	return (uint32_t)number;
}

void traffic_begin(struct traffic *t, struct wclient *wc, unsigned stream)
{
	(void)t;
	wc->streams[stream].begun++;
}

void traffic_end(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	(void)t;
	wc->streams[stream].done += n;
	rig.ended[stream] += n;
}

uint64_t traffic_now_ns(struct traffic *t)
{
	(void)t;
	return rig.now_ns;
}

void traffic_checked(struct traffic *t, bool right)
{
	(void)t;
	rig.checked++;
	rig.wrong += !right;
}

static void plan_of(const struct loadgen_config *c, unsigned stream, struct lane_plan *out)
{
	(void)c;
	*out = rig.plan[stream];
}

static int tear_down(void **state)
{
	(void)state;
	lanes_release(&rig.lanes);
	memset(&rig, 0, sizeof(rig));
	return 0;
}

/* Begins with one client of one worker, with `qps` connections on each of `rails` rails. */
static void begin_qps(uint32_t rails, uint32_t qps, uint8_t streams, uint64_t bytes, struct lane_plan first,
		      struct lane_plan second)
{
	tear_down(NULL);
	rig.room = 1000;
	rig.breaks = -1;
	rig.plan[0] = first;
	rig.plan[1] = second;
	rig.workload = (struct workload){ .streams = streams, .plan = plan_of, .chunks = true };
	rig.cfg.inflight = 4;
	rig.cfg.chunk_bytes = 16 << 10;
	rig.cfg.stripe_min_bytes = 16 << 10;
	rig.cfg.wl = &rig.workload;
	rig.traffic.workload = &rig.workload;
	rig.traffic.cfg = &rig.cfg;
	rig.traffic.n_clients = 1;
	rig.client.traffic = &rig.traffic;
	rig.client.landing = landed;
	rig.traffic.clients = &rig.client;
	rig.traffic.n_rails = rails;
	rig.traffic.n_lanes = rails * qps;
	rig.traffic.bytes = bytes;
	rig.traffic.memory.needs.credits = 4;
	rig.traffic.memory.needs.landing_bytes = bytes;
	rig.traffic.memory.needs.landing_shared = true;
	rig.client.state = WCLIENT_LIVE;
	assert_int_equal(lanes_init(&rig.lanes, &rig.traffic), 0);
	for (uint32_t i = 0; i < rails * qps; i++) {
		rig.conn[i].head.grant.region_bytes = (uint32_t)(8 * bytes);
		lanes_add(&rig.client, i, &rig.conn[i]);
	}
}

static void begin(uint32_t rails, uint8_t streams, uint64_t bytes, struct lane_plan first, struct lane_plan second)
{
	begin_qps(rails, 1, streams, bytes, first, second);
}

static const struct lane_plan writes_and_tells = { .n = 1, .moves = { LANE_WRITE }, .tell = true };
static const struct lane_plan writes = { .n = 1, .moves = { LANE_WRITE } };
static const struct lane_plan reads = { .n = 1, .moves = { LANE_READ } };
static const struct lane_plan writes_and_reads = { .n = 2, .moves = { LANE_WRITE, LANE_READ } };
static const struct lane_plan sends = { .n = 1, .moves = { LANE_SEND } };
static const struct lane_plan pushes = { .n = 1, .moves = { LANE_PUSH } };
static const struct lane_plan writes_with_imm = { .n = 1, .moves = { LANE_WRITE }, .imm = true };
static const struct lane_plan writes_with_imm_and_reads = { .n = 2, .moves = { LANE_WRITE, LANE_READ }, .imm = true };
static const struct lane_plan none;

static void start(unsigned stream, uint32_t n)
{
	lanes_start(&rig.traffic, &rig.client, stream, n);
}

static void requests_end(uint32_t rail, uint32_t n)
{
	lanes_on_rma(&rig.traffic, &rig.client, rail, n);
}

static void credit_comes(uint32_t rail, uint64_t sequence)
{
	rig.conn[rail].head.in_flight--;
	lanes_on_credit(&rig.traffic, &rig.client, rail, 1, sequence);
}

static const struct posted *at(uint32_t rail, uint32_t i)
{
	assert_true(i < rig.n[rail]);
	return &rig.posted[rail][i];
}

static void assert_posted(uint32_t rail, uint32_t i, int what, uint64_t offset, uint64_t bytes)
{
	const struct posted *p = at(rail, i);

	assert_int_equal(p->what, what);
	assert_int_equal(p->at, offset);
	assert_int_equal(p->bytes, bytes);
}

static void assert_counts(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	assert_int_equal(rig.n[0], a);
	assert_int_equal(rig.n[1], b);
	assert_int_equal(rig.n[2], c);
	assert_int_equal(rig.n[3], d);
}

TEST(write__told__ends_with_the_credit_and_not_before)
{
	begin(1, 1, 40000, writes_and_tells, none);
	start(0, 1);
	assert_int_equal(rig.n[0], 4);
	assert_posted(0, 0, POSTED_WRITE, 0, 16384);
	assert_posted(0, 1, POSTED_WRITE, 16384, 16384);
	assert_posted(0, 2, POSTED_WRITE, 32768, 7232);
	assert_posted(0, 3, POSTED_SEND, 0, 0);
	assert_true(at(0, 3)->asks);
	requests_end(0, 3);
	assert_int_equal(rig.ended[0], 0);
	credit_comes(0, at(0, 3)->sequence);
	assert_int_equal(rig.ended[0], 1);
	assert_int_equal(rig.failed, 0);
}

/* The server's answer and the completion of the last request may come in either order. */
TEST(write_imm__ends_with_the_credit_and_the_last_request)
{
	begin(1, 1, 40000, writes_with_imm, none);
	start(0, 2);
	assert_int_equal(rig.n[0], 6);
	assert_posted(0, 1, POSTED_WRITE, 16384, 16384);
	assert_posted(0, 2, POSTED_IMM, 32768, 7232);
	assert_posted(0, 5, POSTED_IMM, 40000 + 32768, 7232);
	requests_end(0, 3);
	assert_int_equal(rig.ended[0], 0);
	credit_comes(0, at(0, 2)->sequence);
	assert_int_equal(rig.ended[0], 1);
	credit_comes(0, at(0, 5)->sequence);
	assert_int_equal(rig.ended[0], 1);
	requests_end(0, 3);
	assert_int_equal(rig.ended[0], 2);
	assert_int_equal(rig.failed, 0);
}

/* All answers come before any completion, and all completions before the answers to the next operations. */
TEST(write_imm__answers_overtake_completions__each_operation_ends_once)
{
	begin(1, 1, 10000, writes_with_imm, none);
	start(0, 3);
	for (uint32_t i = 0; i < 3; i++)
		credit_comes(0, at(0, i)->sequence);
	assert_int_equal(rig.ended[0], 0);
	requests_end(0, 1);
	assert_int_equal(rig.ended[0], 1);
	requests_end(0, 2);
	assert_int_equal(rig.ended[0], 3);
	start(0, 2);
	requests_end(0, 2);
	assert_int_equal(rig.ended[0], 3);
	credit_comes(0, at(0, 3)->sequence);
	credit_comes(0, at(0, 4)->sequence);
	assert_int_equal(rig.ended[0], 5);
	assert_int_equal(rig.failed, 0);
}

TEST(write_imm__no_credit_left__waits_for_one)
{
	begin(1, 1, 10000, writes_with_imm, none);
	rig.traffic.memory.needs.credits = 2;
	start(0, 4);
	assert_int_equal(rig.n[0], 2);
	requests_end(0, 1);
	assert_int_equal(rig.n[0], 2);
	credit_comes(0, at(0, 0)->sequence);
	assert_int_equal(rig.n[0], 3);
}

TEST(write_imm__verified__read_back_before_it_ends)
{
	begin(1, 1, 10000, writes_with_imm_and_reads, none);
	rig.cfg.verify = true;
	start(0, 1);
	assert_posted(0, 0, POSTED_IMM, 0, 10000);
	assert_posted(0, 1, POSTED_READ, 0, 10000);
	credit_comes(0, at(0, 0)->sequence);
	requests_end(0, 1);
	assert_int_equal(rig.ended[0], 0);
	requests_end(0, 1);
	assert_int_equal(rig.ended[0], 1);
	assert_int_equal(rig.checked, 1);
}

TEST(write_imm__answer_to_another_or_twice__ends_the_connection)
{
	begin(1, 1, 10000, writes_with_imm, none);
	start(0, 2);
	credit_comes(0, at(0, 1)->sequence);
	assert_int_equal(rig.failed, 1);
	begin(1, 1, 10000, writes_with_imm, none);
	start(0, 1);
	credit_comes(0, at(0, 0)->sequence);
	credit_comes(0, at(0, 0)->sequence);
	assert_int_equal(rig.failed, 1);
}

TEST(read__ends_with_its_last_request)
{
	begin(1, 1, 40000, reads, none);
	start(0, 2);
	assert_int_equal(rig.n[0], 6);
	assert_int_equal(rig.doorbells, 1);
	assert_posted(0, 3, POSTED_READ, 40000, 16384);
	requests_end(0, 2);
	assert_int_equal(rig.ended[0], 0);
	requests_end(0, 3);
	assert_int_equal(rig.ended[0], 1);
	requests_end(0, 1);
	assert_int_equal(rig.ended[0], 2);
}

TEST(send__asks_now_and_then__ends_with_the_last_ones_credit)
{
	begin(1, 1, 100000, sends, none);
	start(0, 1);
	/* As many as there are credits; the second one asks for an acknowledgement. */
	assert_int_equal(rig.n[0], 4);
	assert_false(at(0, 0)->asks);
	assert_true(at(0, 1)->asks);
	assert_int_equal(at(0, 0)->bytes, 16384 - MSG_HEADER_BYTES);
	rig.conn[0].head.in_flight = 1;
	credit_comes(0, at(0, 1)->sequence);
	assert_int_equal(rig.n[0], 7);
	assert_int_equal(rig.ended[0], 0);
	assert_true(at(0, 6)->asks);
	assert_int_equal(at(0, 6)->sequence & 1, 1);
	credit_comes(0, at(0, 6)->sequence);
	assert_int_equal(rig.ended[0], 1);
}

TEST(verify__written_read_back_and_compared)
{
	begin(1, 1, 20000, writes_and_reads, none);
	rig.cfg.verify = true;
	memset(texts, 7, sizeof(texts));
	memset(landed, 7, sizeof(landed));
	start(0, 1);
	assert_int_equal(rig.n[0], 4);
	assert_posted(0, 2, POSTED_READ, 0, 16384);
	requests_end(0, 4);
	assert_int_equal(rig.checked, 1);
	assert_int_equal(rig.wrong, 0);
	landed[19999] ^= 1;
	start(0, 1);
	requests_end(0, 4);
	assert_int_equal(rig.checked, 2);
	assert_int_equal(rig.wrong, 1);
}

TEST(no_room__goes_on_when_there_is_some)
{
	begin(1, 1, 40000, writes_and_tells, none);
	rig.room = 1;
	start(0, 1);
	assert_int_equal(rig.n[0], 0);
	rig.room = 5;
	requests_end(0, 0);
	assert_int_equal(rig.n[0], 4);
	/* Without a credit, the message behind the last request is not posted either. */
	begin(1, 1, 10000, writes_and_tells, none);
	rig.conn[0].head.in_flight = 4;
	start(0, 1);
	assert_int_equal(rig.n[0], 1);
	rig.conn[0].head.in_flight = 3;
	requests_end(0, 1);
	assert_int_equal(rig.n[0], 2);
}

TEST(stripes__by_size__and_small_ones_take_turns)
{
	begin(RAILS, 1, 48 << 10, writes, none);
	start(0, 1);
	assert_counts(1, 1, 1, 0);
	assert_posted(0, 0, POSTED_WRITE, 0, 16384);
	assert_posted(1, 0, POSTED_WRITE, 16384, 16384);
	assert_posted(2, 0, POSTED_WRITE, 32768, 16384);
	start(0, 1);
	assert_counts(1, 2, 2, 1);
	assert_posted(1, 1, POSTED_WRITE, 48 << 10, 16384);
	begin(RAILS, 1, 32 << 10, writes, none);
	rig.cfg.stripe_min_bytes = 8 << 10;
	start(0, 1);
	assert_counts(1, 1, 1, 1);
	assert_posted(3, 0, POSTED_WRITE, 24576, 8192);
	begin(RAILS, 1, 100, writes, none);
	start(0, 4);
	assert_counts(1, 1, 1, 1);
	assert_posted(3, 0, POSTED_WRITE, 300, 100);
}

TEST(queue_pairs__of_one_rail__operations_take_turns_undivided)
{
	begin_qps(1, 3, 1, 10000, writes, none);
	rig.cfg.stripe_min_bytes = 1;
	start(0, 4);
	assert_counts(2, 1, 1, 0);
	assert_posted(0, 0, POSTED_WRITE, 0, 10000);
	assert_posted(1, 0, POSTED_WRITE, 10000, 10000);
	assert_posted(2, 0, POSTED_WRITE, 20000, 10000);
	assert_posted(0, 1, POSTED_WRITE, 30000, 10000);
}

TEST(queue_pairs__of_two_rails__an_operation_has_a_part_on_each_rail)
{
	begin_qps(2, 2, 1, 32 << 10, writes, none);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(lanes_rail(&rig.traffic, i), i % 2);
	start(0, 1);
	assert_counts(1, 1, 0, 0);
	start(0, 1);
	assert_counts(1, 2, 1, 0);
	start(0, 2);
	assert_counts(2, 2, 2, 2);
}

TEST(queue_pairs__while_measuring__the_mean_time_of_each)
{
	static struct worker_stats stats;

	begin_qps(1, 2, 1, 10000, writes, none);
	rig.traffic.stats = &stats;
	rig.traffic.active = 1;
	rig.traffic.ring_mask = 7;
	rig.client.streams[0].times = rig.times[0];
	lanes_measure(&rig.traffic);
	start(0, 1);
	requests_end(0, 1);
	rig.traffic.measuring = true;
	start(0, 3);
	rig.now_ns = 100;
	requests_end(1, 1);
	rig.now_ns = 300;
	requests_end(0, 1);
	requests_end(1, 1);
	lanes_publish_times(&rig.traffic);
	assert_int_equal(counter_get(&stats.qp_times.n), 2);
	assert_int_equal(counter_get(&stats.qp_times.min), 200);
	assert_int_equal(counter_get(&stats.qp_times.max), 300);
	lanes_measure(&rig.traffic);
	lanes_publish_times(&rig.traffic);
	assert_int_equal(counter_get(&stats.qp_times.n), 0);
}

/* One lane of each rail, and both of a rail: only in the second case no operation is divided. */
TEST(queue_pairs__of_a_rail_that_is_lost__operations_are_not_divided_over_the_others)
{
	begin_qps(2, 2, 1, 32 << 10, writes, none);
	lanes_lose(&rig.client, 1);
	lanes_lose(&rig.client, 2);
	start(0, 1);
	assert_counts(1, 0, 0, 1);
	begin_qps(2, 2, 1, 32 << 10, writes, none);
	lanes_lose(&rig.client, 1);
	lanes_lose(&rig.client, 3);
	start(0, 1);
	assert_counts(2, 0, 0, 0);
	start(0, 1);
	assert_counts(2, 0, 2, 0);
}

TEST(operation__ends_when_all_parts_have__in_order)
{
	begin(2, 1, 32 << 10, reads, none);
	start(0, 2);
	/* The second operation is complete; the first is not. */
	requests_end(1, 2);
	assert_int_equal(rig.ended[0], 0);
	requests_end(0, 1);
	assert_int_equal(rig.ended[0], 1);
	requests_end(0, 1);
	assert_int_equal(rig.ended[0], 2);
}

TEST(streams__apart__each_with_its_own_answers)
{
	begin(2, 2, 32 << 10, writes, pushes);
	start(0, 1);
	start(1, 1);
	assert_counts(2, 2, 0, 0);
	assert_posted(0, 1, POSTED_PUSH, 4 * (32 << 10), 16384);
	lanes_on_pushed(&rig.traffic, &rig.client, 0, at(0, 1)->sequence, NULL, 0);
	assert_int_equal(rig.ended[1], 0);
	lanes_on_pushed(&rig.traffic, &rig.client, 1, at(1, 1)->sequence, NULL, 0);
	assert_int_equal(rig.ended[1], 1);
	assert_int_equal(rig.ended[0], 0);
	requests_end(0, 1);
	requests_end(1, 1);
	assert_int_equal(rig.ended[0], 1);
}

TEST(lane_lost__its_parts_begin_anew_on_the_others)
{
	begin(2, 1, 64 << 10, writes_and_tells, none);
	start(0, 2);
	assert_counts(6, 6, 0, 0);
	/* One of its parts is done; the state of the other one is unknown. */
	credit_comes(1, at(1, 2)->sequence);
	lanes_lose(&rig.client, 1);
	assert_int_equal(lanes_alive(&rig.client), 1);
	assert_counts(9, 6, 0, 0);
	assert_posted(0, 6, POSTED_WRITE, at(1, 3)->at, 16384);
	credit_comes(0, at(0, 2)->sequence);
	assert_int_equal(rig.ended[0], 1);
	credit_comes(0, at(0, 5)->sequence);
	assert_int_equal(rig.ended[0], 1);
	credit_comes(0, at(0, 8)->sequence);
	assert_int_equal(rig.ended[0], 2);
	/* A new operation uses only the rails that are left. */
	start(0, 1);
	assert_counts(14, 6, 0, 0);
	lanes_lose(&rig.client, 0);
	assert_int_equal(lanes_alive(&rig.client), 0);
	assert_null(lanes_conn(&rig.client));
}

TEST(client_leaves__what_was_begun_is_posted)
{
	begin(1, 1, 100000, sends, none);
	start(0, 1);
	rig.client.state = WCLIENT_LEAVING;
	rig.conn[0].head.in_flight = 1;
	credit_comes(0, at(0, 1)->sequence);
	assert_int_equal(rig.n[0], 7);
}

TEST(connection_breaks_while_it_is_posted_to__nothing_is_lost)
{
	begin(2, 1, 64 << 10, reads, none);
	rig.breaks = 0;
	start(0, 1);
	assert_int_equal(rig.failed, 1);
	assert_counts(0, 4, 0, 0);
	requests_end(1, 4);
	assert_int_equal(rig.ended[0], 1);
}

TEST(window__the_clients_landing_memory_on_each_rail)
{
	begin(2, 2, 1000, writes, pushes);
	lanes_use_window(&rig.client, 1, &rig.conn[1]);
	assert_int_equal(rig.conn[1].window.bytes, 0);
	rig.traffic.memory.needs.window = true;
	lanes_use_window(&rig.client, 1, &rig.conn[1]);
	assert_int_equal(rig.conn[1].window.bytes, 1000);
	assert_int_equal(rig.conn[1].window.rkey, 101);
	assert_int_equal(rig.conn[1].window.addr, (uintptr_t)landed);
}

TEST(answer__to_nothing_or_to_another__ends_the_connection)
{
	begin(1, 1, 10000, writes_and_tells, none);
	lanes_on_credit(&rig.traffic, &rig.client, 0, 1, 1);
	assert_int_equal(rig.failed, 1);
	begin(1, 1, 10000, writes_and_tells, none);
	start(0, 2);
	lanes_on_credit(&rig.traffic, &rig.client, 0, 1, at(0, 3)->sequence);
	assert_int_equal(rig.failed, 1);
	assert_int_equal(rig.ended[0], 0);
	/* A credit for the last message arrives before that message was posted. */
	begin(1, 1, 100000, sends, none);
	start(0, 1);
	lanes_on_credit(&rig.traffic, &rig.client, 0, 1, at(0, 0)->sequence | 1);
	assert_int_equal(rig.failed, 1);
	assert_int_equal(rig.ended[0], 0);
	begin(1, 2, 10000, writes, pushes);
	lanes_on_pushed(&rig.traffic, &rig.client, 0, 0, NULL, 0);
	assert_int_equal(rig.failed, 1);
	begin(1, 2, 10000, writes, pushes);
	start(1, 2);
	lanes_on_pushed(&rig.traffic, &rig.client, 0, at(0, 1)->sequence, NULL, 0);
	assert_int_equal(rig.failed, 1);
	assert_int_equal(rig.ended[1], 0);
}

TEST_EACH(NULL, tear_down)
