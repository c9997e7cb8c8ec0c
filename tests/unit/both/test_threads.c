/* SPDX-License-Identifier: BSD-2-Clause */
/* Server and load generator in one process, over the fakes' wire, each with all its threads: shards, main thread and
 * registrar; workers, and the main thread that gives them orders. Made for ThreadSanitizer (make SAN=thread
 * check-unit): clients connect, send, read and write memory, leave and come back, while control sessions ask for
 * statistics, certificates are read again, and in the end the server is told to stop. */
#include "tests/unit/helpers/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/hist/hist.h"
#include "common/rdma/registrar.h"
#include "common/tls/tls.h"
#include "common/wire/fail_table.h"
#include "common/wire/frame.h"
#include "common/wire/psn.h"
#include "loadgen/ramp/crew.h"
#include "loadgen/traffic/workload.h"
#include "server/certificates.h"
#include "server/config/limits.h"
#include "server/control.h"
#include "server/shard/shard.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/certs.h"
#include "tests/unit/helpers/options.h"

#define SHARDS 3
#define WAIT_S 60
#define MESSAGES 5000	/* of a step, at least */

static struct certs certs;

static struct {
	struct server_config cfg;
	struct server server;
	struct shard *shards[SHARDS];
	struct control *control;
	struct certificates *certificates;
	ev_async wake, quit;
	pthread_t main;
} srv;

static void on_wake(struct ev_loop *loop, ev_async *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
	control_wake(srv.control);
}

static void on_quit(struct ev_loop *loop, ev_async *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

static void wake_main(void *arg)
{
	(void)arg;
	ev_async_send(ev_default_loop(0), &srv.wake);
}

static void *run_main(void *arg)
{
	ev_run(ev_default_loop(0), 0);
	return arg;
}

static void configure_server(void)
{
	struct server_config *c = &srv.cfg;

	memset(&srv, 0, sizeof(srv));
	server_config_defaults(c);
	c->threads = SHARDS;
	c->tls_port = 0;
	c->rdma_port = 0;
	c->max_clients = 64;
	c->credits = 16;
	c->message_bytes = 1024;
	c->region_bytes = 256 << 10;
	c->max_handshakes = 64;
	c->windows = true;
	c->verify = true;
	c->probe_interval_ns = 20 * NS_PER_MS;
	snprintf(c->cert_path, sizeof(c->cert_path), "%s", certs.server_cert);
	snprintf(c->key_path, sizeof(c->key_path), "%s", certs.server_key);
	snprintf(c->ca_path, sizeof(c->ca_path), "%s", certs.ca);
	assert_int_equal(addr_parse("127.0.0.1", 0, &c->rails[0].addr), 0);
}

static void start_server(void)
{
	struct server *s = &srv.server;
	struct ev_loop *loop = ev_default_loop(0);
	char err[400] = "";

	s->cfg = &srv.cfg;
	s->shards = srv.shards;
	s->wake_main = wake_main;
	s->started_ns = clock_now_ns();
	fake_dev(&s->devices[0]);
	ev_async_init(&srv.wake, on_wake);
	ev_async_start(loop, &srv.wake);
	ev_async_init(&srv.quit, on_quit);
	ev_async_start(loop, &srv.quit);
	assert_int_equal(psn_registry_new(&s->psns), 0);
	assert_int_equal(registrar_new(&s->registrar), 0);
	if (limits_derive(&srv.cfg, s->devices, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(certificates_new(s, loop, &srv.certificates), 0);
	assert_int_equal(control_new(s, loop, &srv.control), 0);
	if (certificates_begin(srv.certificates, err, sizeof(err)))
		fail_msg("%s", err);
	for (; s->n_shards < SHARDS; s->n_shards++)
		if (shard_new(s, s->n_shards, &srv.shards[s->n_shards], err, sizeof(err)))
			fail_msg("%s", err);
	certificates_end(srv.certificates);
	certificates_start(srv.certificates);
	for (uint32_t i = 0; i < SHARDS; i++)
		if (shard_start(srv.shards[i], err, sizeof(err)))
			fail_msg("%s", err);
	assert_int_equal(pthread_create(&srv.main, NULL, run_main, NULL), 0);
}

static void drain_server(void)
{
	for (uint32_t i = 0; i < SHARDS; i++)
		shard_drain(srv.shards[i]);
}

static void stop_server(void)
{
	struct ev_loop *loop = ev_default_loop(0);

	for (uint32_t i = 0; i < SHARDS; i++)
		assert_int_equal(shard_join(srv.shards[i]), 0);
	ev_async_send(loop, &srv.quit);
	pthread_join(srv.main, NULL);
	control_stop(srv.control);
	control_free(srv.control);
	certificates_free(srv.certificates);
	ev_async_stop(loop, &srv.wake);
	ev_async_stop(loop, &srv.quit);
}

static void free_server(void)
{
	for (uint32_t i = 0; i < SHARDS; i++)
		shard_free(srv.shards[i]);
	registrar_free(srv.server.registrar);
	psn_registry_free(srv.server.psns);
}

static uint64_t server_sum(size_t offset)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < SHARDS; i++)
		n += counter_get((const counter *)((const char *)&srv.shards[i]->stats + offset));
	return n;
}
#define SERVER_SUM(field) server_sum(offsetof(struct stats, field))

struct asker {
	pthread_t thread;
	atomic_bool ends;
	unsigned reports;
	atomic_uint reloads;	/* how often the server has read its certificates again, as its last report says */
};

/* Waits as `st` says. False: it is over. */
static bool wait_for(struct tls *t, enum tls_status st)
{
	struct pollfd p = { .fd = tls_fd(t), .events = st == TLS_WANT_WRITE ? POLLOUT : POLLIN };

	(void)!tls_flush(t);
	return st == TLS_MORE || ((st == TLS_WANT_READ || st == TLS_WANT_WRITE) && poll(&p, 1, WAIT_S * 1000) == 1);
}

static bool read_all(struct tls *t, uint8_t *buf, size_t n)
{
	for (size_t have = 0, got; have < n;) {
		enum tls_status st = tls_read(t, buf + have, n - have, &got);

		if (st == TLS_DONE)
			have += got;
		else if (!wait_for(t, st))
			return false;
	}
	return true;
}

static bool ask(struct asker *a, struct tls *t)
{
	static _Thread_local uint8_t buf[FRAME_REPORT_BYTES_MAX];
	struct frame_header h;
	json_t *report;
	size_t put;

	if (tls_write(t, buf, frame_encode_control(CONTROL_STATS, buf), &put) != TLS_DONE ||
	    !read_all(t, buf, FRAME_HEADER_BYTES) || frame_decode_header(buf, FRAME_REPORT_BYTES_MAX, &h) ||
	    h.type != FRAME_REPORT || !read_all(t, buf + FRAME_HEADER_BYTES, h.length - FRAME_HEADER_BYTES))
		return false;
	report = json_loadb((const char *)buf + FRAME_HEADER_BYTES, h.length - FRAME_HEADER_BYTES, 0, NULL);
	a->reloads = (unsigned)json_number_at(report, "certificates.reloads");
	json_decref(report);
	return true;
}

static struct tls *open_control(struct tls_ctx *ctx)
{
	struct addr to = srv.cfg.rails[0].addr;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	enum tls_status st;
	struct tls *t;

	addr_set_port(&to, srv.server.tls_port);
	assert_int_equal(connect(fd, (struct sockaddr *)&to.ss, to.len), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(tls_new(ctx, fd, "127.0.0.1", &t), 0);
	do
		st = tls_handshake(t);
	while (st != TLS_DONE && wait_for(t, st));
	return t;
}

/* Two questions in each session, again and again. */
static void *ask_all_the_time(void *arg)
{
	struct tls_config cfg = { .ca_file = certs.ca };
	struct asker *a = arg;
	struct tls_ctx *ctx;
	char err[300];

	if (tls_ctx_new(&cfg, &ctx, err, sizeof(err)))
		return NULL;
	while (!a->ends) {
		struct tls *t = open_control(ctx);

		for (int i = 0; i < 2; i++)
			a->reports += ask(a, t);
		tls_close_notify(t);
		tls_free(t);
	}
	tls_ctx_free(ctx);
	return NULL;
}

static struct crew crew;
static sem_t progress;

static void on_progress(void *arg)
{
	(void)arg;
	sem_post(&progress);
}

static void wait_for_crew(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_S;
	while (!crew_is_done(&crew))
		assert_int_equal(sem_timedwait(&progress, &end), 0);
}

static void order(enum worker_order what, const struct worker_task *task)
{
	crew_order(&crew, what, task, NULL);
	wait_for_crew();
}

/* Until what another thread does is looked at again. */
static void pause_briefly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2 * NS_PER_MS }, NULL);
}

static void start_generator(const char *arguments)
{
	struct sut_place server = { .addrs = { srv.cfg.rails[0].addr }, .names = { "127.0.0.1" } };
	char err[400];

	options_taken(arguments);
	snprintf(options.ca_path, sizeof(options.ca_path), "%s", certs.ca);
	addr_set_port(&server.addrs[0], srv.server.tls_port);
	memset(&crew, 0, sizeof(crew));
	if (crew_start(&crew, &options, &server, 1, on_progress, NULL, err, sizeof(err)))
		fail_msg("%s", err);
}

static void assert_nothing_failed(void)
{
	struct fail f;
	char text[200];
	uint64_t n;

	for (uint32_t i = 0; i < crew.n; i++)
		if (fail_table_top(&worker_stats(crew.workers[i])->failures, &f, &n))
			fail_msg("%llu clients: %s", (unsigned long long)n, fail_code_text(&f, text, sizeof(text)));
}

/* Until the workers have counted `n`. */
static void wait_for_count(size_t counter_offset, uint64_t n)
{
	uint64_t end = clock_now_ns() + WAIT_S * NS_PER_S;

	while (crew_sum(&crew, counter_offset) < n && clock_now_ns() < end)
		pause_briefly();
	assert_true(crew_sum(&crew, counter_offset) >= n);
}

/* A step of performance_test: connect, send, measure, stop, disconnect. */
static void run_step(uint32_t clients, uint64_t bytes)
{
	struct worker_task task = { .clients = clients, .active = clients, .bytes = bytes, .upto = STAGE_FIRST_REPLY };

	order(ORDER_CONNECT, &task);
	assert_nothing_failed();
	assert_int_equal(crew_live(&crew), clients);
	order(ORDER_TRAFFIC, &task);
	order(ORDER_MEASURE, &task);
	wait_for_count(offsetof(struct worker_stats, messages_measured), MESSAGES);
	if (options.churn_per_s)
		wait_for_count(offsetof(struct worker_stats, cycles), clients);
	order(ORDER_STOP, &task);
	assert_int_equal(crew_live(&crew), clients);
	order(ORDER_DISCONNECT, &task);
	assert_nothing_failed();
	assert_int_equal(crew_sum(&crew, offsetof(struct worker_stats, dropped)), 0);
	assert_int_equal(crew_sum(&crew, offsetof(struct worker_stats, corrupt)), 0);
}

/* With --iterations: until each client has ended so many operations. */
static void wait_for_iterations(uint64_t n)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_S;
	while (crew_iterations(&crew) < n)
		assert_int_equal(sem_timedwait(&progress, &end), 0);
}

/* Checks a worker: its kinds add up, and nobody waited behind others longer than --inflight allows. At a rate, an
 * operation is due whether or not the ones before have ended, so it may wait longer. */
static void assert_parts(const struct worker_stats *st)
{
	uint64_t of_kinds = 0, inflight = options.inflight;

	for (int k = 0; k < WORKLOAD_KINDS_MAX; k++) {
		assert_int_equal(hist_count(st->hists.kind_response[k]), counter_get(&st->kind_measured[k]));
		of_kinds += counter_get(&st->kind_measured[k]);
	}
	assert_int_equal(of_kinds, options.wl->kind_names[0] ? counter_get(&st->messages_measured) : 0);
	for (int k = 0; k < options.wl->streams; k++) {
		const struct worker_stream *s = &st->streams[k];

		assert_true(counter_get(&s->took_ns) > 0);
		if (!options.rates.n)
			assert_true(counter_get(&s->waited_ns) * inflight <= counter_get(&s->took_ns) * (inflight - 1));
		assert_int_equal(counter_get(&s->fair.min), 50);
		assert_int_equal(counter_get(&s->fair.max), 50);
		assert_int_equal(counter_get(&s->fair.n) * 50, counter_get(&s->fair.sum));
		if (options.wl->streams > 1)
			assert_int_equal(counter_get(&st->kind_measured[k]), counter_get(&s->fair.sum));
	}
}

static uint64_t bytes_moved(void)
{
	return CREW_SUM(&crew, bytes_sent) + CREW_SUM(&crew, bytes_received) + CREW_SUM(&crew, one_sided_bytes);
}

/* 5 operations of each client and stream that are not measured, and 50 that are. The crew has several steps. */
static void run_iterations(const char *arguments, uint32_t clients, uint64_t bytes)
{
	struct worker_task task = { .clients = clients, .active = clients, .bytes = bytes, .upto = STAGE_FIRST_REPLY };
	uint64_t streams, done_ns, moved;

	start_generator(arguments);
	task.rate = options.rates.v[0];
	streams = options.wl->streams;
	for (int steps = 0; steps < 2; steps++) {
		order(ORDER_CONNECT, &task);
		assert_int_equal(crew_live(&crew), clients);
		order(ORDER_TRAFFIC, &task);
		wait_for_iterations(5);
		assert_int_equal(CREW_SUM(&crew, messages), 5 * streams * clients);
		assert_int_equal(CREW_SUM(&crew, messages_measured), 0);
		order(ORDER_MEASURE, &task);
		wait_for_iterations(55);
		assert_int_equal(CREW_SUM(&crew, messages), 55 * streams * clients);
		assert_int_equal(CREW_SUM(&crew, messages_measured), 50 * streams * clients);
		done_ns = clock_now_ns();
		moved = bytes_moved();
		order(ORDER_STOP, &task);
		/* The main thread, told that all operations have ended, must read counters that include all of them. */
		assert_int_equal(bytes_moved(), moved);
		for (uint32_t i = 0; i < crew.n; i++)
			assert_parts(worker_stats(crew.workers[i]));
		/* The measured time ended with the last of them. */
		for (uint32_t i = 0; i < crew.n; i++)
			assert_in_range(counter_get(&worker_stats(crew.workers[i])->measure_end_ns), 1, done_ns);
		order(ORDER_DISCONNECT, &task);
		assert_nothing_failed();
		assert_int_equal(CREW_SUM(&crew, corrupt), 0);
	}
	crew_dismiss(&crew);
}

static void wait_for_a_reload(const struct asker *a)
{
	uint64_t end = clock_now_ns() + WAIT_S * NS_PER_S;

	while (a->reloads == 0 && clock_now_ns() < end)
		pause_briefly();
	assert_int_equal(a->reloads, 1);
}

/* Clients whose connection is over because the server said that it stops. */
static uint64_t told(void)
{
	uint64_t all = 0, n;
	struct fail f;

	for (uint32_t i = 0; i < crew.n; i++)
		if (fail_table_top(&worker_stats(crew.workers[i])->failures, &f, &n) && f.kind == FAIL_CLOSED &&
		    f.code == REFUSE_DRAINING)
			all += n;
	return all;
}

static void wait_for_goodbyes(uint32_t clients)
{
	uint64_t end = clock_now_ns() + WAIT_S * NS_PER_S;

	while (told() < clients && clock_now_ns() < end)
		pause_briefly();
	assert_int_equal(told(), clients);
	assert_int_equal(crew_live(&crew), 0);
}

static int set_up(void **state)
{
	(void)state;
	fake_reset();
	fake_cm.wire = true;
	sem_init(&progress, 0, 0);
	configure_server();
	start_server();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	drain_server();
	stop_server();
	assert_int_equal(SERVER_SUM(closed[CLOSE_FAILED]), 0);
	free_server();
	sem_destroy(&progress);
	fake_check();
	return 0;
}

static void run(const char *arguments, uint32_t clients, uint64_t bytes)
{
	struct asker askers[2] = { { 0 } };

	start_generator(arguments);
	for (size_t i = 0; i < N_ELEMENTS(askers); i++)
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_all_the_time, &askers[i]), 0);
	run_step(clients, bytes);
	kill(getpid(), SIGHUP);
	run_step(clients, bytes);
	wait_for_a_reload(&askers[0]);
	crew_dismiss(&crew);
	for (size_t i = 0; i < N_ELEMENTS(askers); i++) {
		askers[i].ends = true;
		pthread_join(askers[i].thread, NULL);
		assert_true(askers[i].reports > 0);
	}
	assert_int_equal(SERVER_SUM(messages_corrupt), 0);
}

TEST(echo__two_steps__every_byte_back)
{
	run("--clients 12 --threads 2 --workload echo --message-size 1000 --verify", 12, 1000);
	assert_true(SERVER_SUM(messages_in) > 24);
}

TEST(one_way__while_clients_come_and_go__all_counted)
{
	run("--clients 12 --threads 3 --workload small --inflight 16 --message-size 64 --verify --churn 100 "
	    "--tls-resume", 12, 64);
	assert_true(SERVER_SUM(established) > 24);
}

TEST(mixed__reads_writes_and_atomics__every_byte_as_written)
{
	run("--clients 8 --threads 2 --workload mixed --message-size 64 --mix 1:1:1 --verify", 8, 64);
}

TEST(duplex__pushes__every_byte_as_sent)
{
	run("--clients 6 --threads 2 --workload duplex --message-size 1000 --verify", 6, 1000);
}

TEST(iterations__any_workload__so_many_of_each_client)
{
	run_iterations("--clients 5 --threads 2 --workload echo --inflight 3 --verify --iterations 50", 5, 64);
	run_iterations("--clients 5 --threads 2 --workload small --inflight 16 --iterations 50", 5, 64);
	run_iterations("--clients 4 --threads 2 --workload mixed --mix 1:1:1 --verify --iterations 50", 4, 64);
	run_iterations("--clients 4 --threads 2 --workload duplex --message-size 100 --iterations 50", 4, 100);
	run_iterations("--clients 4 --threads 2 --workload large --operation write-imm --inflight 2 --message-size "
		       "100000 --chunk 16k --iterations 50", 4, 100000);
	run_iterations("--clients 4 --threads 2 --workload large --operation write-imm --verify --message-size 100000 "
		       "--chunk 16k --iterations 50", 4, 100000);
	run_iterations("--clients 4 --threads 2 --workload pingpong --rate 4000 --iterations 50", 4, 64);
}

TEST(drain__while_clients_send__all_told)
{
	struct worker_task task = { .clients = 12, .active = 12, .bytes = 64, .upto = STAGE_FIRST_REPLY };

	start_generator("--clients 12 --threads 2 --workload echo --message-size 64 --verify");
	order(ORDER_CONNECT, &task);
	order(ORDER_TRAFFIC, &task);
	drain_server();
	wait_for_goodbyes(12);
	order(ORDER_STOP, &task);
	order(ORDER_DISCONNECT, &task);
	crew_dismiss(&crew);
}

static int group_set_up(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);	/* as main does */
	log_init("threads", getenv("RIG_DEBUG") ? LOG_LVL_DEBUG : LOG_LVL_ERROR);
	return certs_make(&certs);
}

static int group_tear_down(void **state)
{
	(void)state;
	certs_remove(&certs);
	return 0;
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(group_set_up, group_tear_down)
