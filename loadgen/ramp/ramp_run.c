/* A run from its start to its end, and what happens to it from outside: reports of the server, ticks, signals, the
 * end of our server. What follows from them is for the state machine (ramp.c) to say. See ramp.h.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "loadgen/ramp/launch.h"
#include "loadgen/ramp/ramp_internal.h"
#include "loadgen/ramp/ramp_next.h"
#include "loadgen/ramp/ramp_util.h"
#include "loadgen/ramp/server_proc.h"
#include "loadgen/traffic/worker.h"
#include "loadgen/traffic/workload.h"

#define TICK_S 0.25
/* Long phases ask now and then, because the server closes a silent control session after 600 s. */
#define KEEPALIVE_NS (120 * NS_PER_S)
/* How long the server may count fewer clients than there are. */
#define COUNT_PATIENCE_NS (5 * NS_PER_S)
/* Clients that leave and come back do so now and then, or the measurement ends. */
#define CYCLE_PATIENCE_NS (60 * NS_PER_S)

/* --- reports --- */

static void on_stats(struct ramp *r, json_t *report)
{
	struct step *s = r->step;

	if (!s)
		return;
	if (r->asked_in != r->phase_number) {
		/* Asked in an earlier phase: no answer to what this one wants to know. */
		if (r->asked_phase == RAMP_MEASURE && !s->begin.server)
			s->begin.server = json_incref(report);
		ramp_ask(r, CONTROL_STATS);
		return;
	}
	switch (r->phase) {
	case RAMP_COUNT:
		s->server_connected = (int64_t)json_number_at(report, "clients.connected");
		json_decref(s->held);
		s->held = json_incref(report);
		/* A client without a first message is connected a moment before the server is told so. */
		r->report_arrived = s->server_connected >= (int64_t)s->connected_peak;
		if (!r->report_arrived && clock_now_ns() - r->phase_start_ns > COUNT_PATIENCE_NS)
			r->report_arrived = true;
		break;
	case RAMP_MEASURE:
		if (!s->begin.server)
			s->begin.server = json_incref(report);
		break;
	case RAMP_DRAIN:
		if (!s->end.server)
			s->end.server = json_incref(report);
		r->report_arrived = true;
		break;
	case RAMP_RESTORE:
		json_decref(s->after);
		s->after = json_incref(report);
		if (ramp_is_restored(r, report))
			ramp_end_step(r);
		return; /* else asked again at the next tick */
	case RAMP_SERVER:
	case RAMP_INFO:
	case RAMP_MARK:
	case RAMP_CONNECT:
	case RAMP_START:
	case RAMP_WARMUP:
	case RAMP_DISCONNECT:
	case RAMP_STOP:
	case RAMP_DONE:
	case RAMP_N:
		break;
	}
	ramp_advance(r);
}

static void on_lost(struct ramp *r, const struct fail *fail, const char *text)
{
	char code[96], detail[256];

	snprintf(detail, sizeof(detail), "control session failed at %s: %s%s%s (%s)",
		 stage_names[fail->stage], fail_code_text(fail, code, sizeof(code)), text[0] ? ": " : "",
		 text, fail_advice(fail));
	ramp_stop_because(r, STOP_SERVER_LOST, detail);
	r->report_arrived = true;
	if (r->phase == RAMP_INFO || r->phase == RAMP_SERVER) {
		ramp_enter(r, RAMP_STOP);
	} else if (r->phase == RAMP_RESTORE) {
		/* Nobody is left to say whether the pools came back. */
		r->step->leaked = true;
		ramp_end_step(r);
	} else if (r->phase == RAMP_WARMUP || r->phase == RAMP_MEASURE) {
		ramp_enter(r, RAMP_DRAIN);
	} else {
		ramp_advance(r);
	}
}

/* What the workload needs and this server does not give is known before the first client comes. */
static void check_server(struct ramp *r)
{
	struct workload_needs needs = { 0 };
	double credits = json_number_at(r->info, "config.credits");
	double region = json_number_at(r->info, "config.region_bytes");
	double bytes = json_number_at(r->info, "config.message_bytes");
	double clients = json_number_at(r->info, "config.max_clients");
	/* It says what all of its rails allow. */
	size_t rails = json_array_size(json_object_get(r->info, "rails"));
	double handshakes = json_number_at(r->info, "config.max_handshakes") / (double)(rails ? rails : 1);
	const json_t *config = json_object_get(r->info, "config");
	bool resumes = json_is_true(json_object_get(config, "tls_resume"));
	bool windows = json_is_true(json_object_get(config, "windows"));
	double shards = json_number_at(r->info, "config.threads"), all = (double)r->cfg->clients;
	double all_at_once = shards > 1 ? all + 6 * sqrt(all * shards) : all;
	char text[224] = "";

	r->cfg->wl->needs(r->cfg, &needs);
	if (credits < (double)needs.credits)
		snprintf(text, sizeof(text), "%u %s in flight (--inflight) are more than the server's --credits %.0f",
			 needs.credits, r->cfg->coalesce > 1 ? "SENDs" : "messages", credits);
	else if (bytes < (double)needs.message_bytes)
		snprintf(text, sizeof(text), "%s of %u bytes are more than the server's --message-size %.0f",
			 r->cfg->coalesce > 1 ? "SENDs (--coalesce)" : "messages", needs.message_bytes, bytes);
	else if (region < (double)needs.region_bytes)
		snprintf(text, sizeof(text), "the workload needs a region of %llu bytes, more than the server's "
			 "--region-size %.0f", (unsigned long long)needs.region_bytes, region);
	else if (needs.window && !windows)
		snprintf(text, sizeof(text), "the workload has the server write to its clients' memory, which it does "
			 "not do with its --windows off");
	else if (clients < (double)r->cfg->steps.v[0])
		snprintf(text, sizeof(text), "the first step of %llu clients is more than the server's "
			 "--max-clients %.0f", (unsigned long long)r->cfg->steps.v[0], clients);
	else if (r->cfg->phased && handshakes < all)
		snprintf(text, sizeof(text), "--phased has %.0f TLS connections open at once, which is more than "
			 "the server's --max-handshakes allow (%.0f)", all, handshakes);
	else if (r->cfg->phased && handshakes < all_at_once)
		snprintf(text, sizeof(text), "--phased has %.0f TLS connections open at once, which spread over the "
			 "server's shards by hash: its --max-handshakes must allow %.0f, and allow %.0f", all,
			 ceil(all_at_once), handshakes);
	else if (r->cfg->tls_resume && !resumes)
		snprintf(text, sizeof(text), "--tls-resume: the server has --tls-resume off");
	if (!text[0])
		return;
	ramp_stop_because(r, STOP_ERROR_RATE, text);
	ramp_enter(r, RAMP_STOP);
}

static void on_report(void *arg, json_t *report, const struct fail *fail, const char *text)
{
	struct ramp *r = arg;

	if (!report) {
		on_lost(r, fail, text);
		return;
	}
	r->last_report_ns = clock_now_ns();
	if (r->asked == CONTROL_INFO) {
		json_decref(r->info);
		r->info = json_incref(report);
		check_server(r);
	} else if (r->phase >= RAMP_STOP) {
		return;
	} else if (!r->baseline) {
		r->baseline = json_incref(report);
		ramp_begin_step(r);
	} else if (r->asked == CONTROL_MARK) {
		r->report_arrived = true;
		ramp_advance(r);
	} else {
		on_stats(r, report);
	}
}

/* --- ticks, signals, server --- */

static void on_turn_end(struct ev_loop *loop, ev_prepare *w, int revents)
{
	(void)loop;
	(void)revents;
	ramp_send_next_question(w->data);
}

static bool cycles_are_done(struct ramp *r)
{
	uint64_t cycles = RAMP_SUM(r, cycles), now = clock_now_ns();

	if (cycles != r->last_cycles) {
		r->last_cycles = cycles;
		r->last_cycle_ns = now;
	}
	return cycles >= r->cfg->cycles || now - r->last_cycle_ns > CYCLE_PATIENCE_NS;
}

static bool nothing_left_to_measure(struct ramp *r)
{
	if (RAMP_SUM(r, live) + RAMP_SUM(r, away) == 0)
		return true;
	return r->phase == RAMP_MEASURE && r->cfg->cycles && cycles_are_done(r);
}

static void on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct ramp *r = w->data;

	(void)revents;
	if (r->phase == RAMP_MEASURE && clock_now_ns() - r->last_interval_ns >= ramp_interval_ns(r))
		ramp_end_interval(r);
	if ((r->phase == RAMP_WARMUP || r->phase == RAMP_MEASURE) && nothing_left_to_measure(r))
		ramp_enter(r, RAMP_DRAIN);
	if (r->control && !control_is_busy(r->control) &&
	    (r->phase == RAMP_RESTORE || r->phase == RAMP_COUNT || clock_now_ns() - r->last_report_ns > KEEPALIVE_NS))
		ramp_ask(r, CONTROL_STATS);
	ramp_sample(r);
	progress_show(r);
	ev_timer_again(loop, w);
}

static void on_progress(struct ev_loop *loop, ev_async *w, int revents)
{
	struct ramp *r = w->data;

	(void)loop;
	(void)revents;
	for (uint32_t i = 0; i < r->n_workers; i++) {
		if (!worker_is_broken(r->workers[i]))
			continue;
		ramp_stop_because(r, STOP_GENERATOR_FAILED, "the generator's RDMA device failed");
		ramp_enter(r, RAMP_STOP);
		return;
	}
	ramp_advance(r);
}

/* Called on a worker's thread. */
static void wake_main(void *arg)
{
	struct ramp *r = arg;

	ev_async_send(r->loop, &r->progress);
}

static void on_signal(struct ev_loop *loop, ev_signal *w, int revents)
{
	struct ramp *r = w->data;

	(void)loop;
	(void)revents;
	if (r->phase >= RAMP_STOP)
		return;
	if (r->stopping && r->stop_reason == STOP_ABORTED) {
		/* The second time: without waiting for anybody. */
		ramp_enter(r, RAMP_DONE);
		return;
	}
	r->stopping = false;
	ramp_stop_because(r, STOP_ABORTED, w->signum == SIGINT ? "interrupted" : "terminated");
	progress_clear(r);
	fprintf(stderr, "performance_test: %s: draining, results are kept\n", r->stop_detail);
	switch (r->phase) {
	case RAMP_SERVER:
	case RAMP_INFO:
		ramp_enter(r, RAMP_STOP);
		break;
	case RAMP_CONNECT:
		r->step->connected_peak = r->step->connected_held = (uint32_t)RAMP_SUM(r, live);
		ramp_enter(r, RAMP_DISCONNECT);
		break;
	case RAMP_MARK:
		ramp_enter(r, RAMP_DISCONNECT);
		break;
	case RAMP_START:
	case RAMP_WARMUP:
	case RAMP_MEASURE:
		ramp_enter(r, RAMP_DRAIN);
		break;
	case RAMP_COUNT:
	case RAMP_DRAIN:
	case RAMP_DISCONNECT:
	case RAMP_RESTORE:
	case RAMP_STOP:
	case RAMP_DONE:
	case RAMP_N:
		break;
	}
}

static int connect_to_server(struct ramp *r, char *err, size_t err_size)
{
	struct control_config control = { .server = r->server_addrs[0], .verify_name = launch_verify_name(r, 0),
					  .ca_file = r->cfg->ca_path, .cert_file = r->cfg->cert,
					  .key_file = r->cfg->key, .timeout_ns = RAMP_CONTROL_TIMEOUT_NS };
	int ret = control_new(&control, r->loop, on_report, r, &r->control, err, err_size);

	if (!ret)
		ret = launch_workers(r, wake_main, err, err_size);
	if (ret)
		return ret;
	ramp_enter(r, RAMP_INFO);
	ramp_ask(r, CONTROL_INFO);
	ramp_ask(r, CONTROL_STATS);
	return 0;
}

static void on_server_ready(void *arg, const struct addr *tls, uint32_t n)
{
	struct ramp *r = arg;
	char err[256];

	if (r->phase != RAMP_SERVER)
		return;
	/* As many as it was started with: --device is the same for both. */
	memcpy(r->server_addrs, tls, n * sizeof(tls[0]));
	if (connect_to_server(r, err, sizeof(err))) {
		ramp_stop_because(r, STOP_RESOURCE_EXHAUSTED, err);
		ramp_enter(r, RAMP_STOP);
	}
}

static void on_server_exit(void *arg, int status)
{
	struct ramp *r = arg;
	char text[256];

	r->server_lost = true;
	if (r->phase == RAMP_STOP) {
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			log_warn("the server ended with status %d; see %s", status,
				 results_path(r->results, "server.log"));
		ramp_enter(r, RAMP_DONE);
		return;
	}
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "the server was killed by signal %d", WTERMSIG(status));
	else if (launch_read_server_error(r, text, sizeof(text)))
		snprintf(text, sizeof(text), "the server ended with status %d", WEXITSTATUS(status));
	ramp_stop_because(r, STOP_SERVER_LOST, text);
	if (!r->step)
		ramp_enter(r, RAMP_STOP);
	else if (r->phase == RAMP_WARMUP || r->phase == RAMP_MEASURE || r->phase == RAMP_START)
		ramp_enter(r, RAMP_DRAIN);
}

/* Some may wait for orders yet. */
static void free_workers(struct ramp *r)
{
	for (uint32_t i = 0; i < r->n_workers; i++)
		worker_give(r->workers[i], ORDER_QUIT, NULL);
	for (uint32_t i = 0; i < r->n_workers; i++)
		worker_free(r->workers[i]);
	free(r->workers);
	r->workers = NULL;
	r->n_workers = 0;
}

static const struct server_proc_events server_events = {
	.on_ready = on_server_ready,
	.on_exit = on_server_exit,
};

void ramp_restart_server(struct ramp *r)
{
	char err[256];

	free_workers(r);
	control_free(r->control);
	r->control = NULL;
	memset(r->report_wanted, 0, sizeof(r->report_wanted));
	server_proc_free(r->server);
	r->server = NULL;
	r->server_lost = false;
	json_decref(r->baseline);
	json_decref(r->generator_dev);
	r->baseline = r->generator_dev = NULL;
	progress_clear(r);
	log_warn("%s: starting another one for the next step", r->stop_detail);
	ramp_enter(r, RAMP_SERVER);
	if (launch_server(r, &server_events, err, sizeof(err))) {
		ramp_stop_because(r, STOP_SERVER_LOST, err);
		ramp_enter(r, RAMP_STOP);
	}
}

static void start_watchers(struct ramp *r)
{
	ev_init(&r->deadline, ramp_on_deadline);
	r->deadline.data = r;
	ev_timer_init(&r->tick, on_tick, TICK_S, TICK_S);
	r->tick.data = r;
	ev_timer_start(r->loop, &r->tick);
	ev_async_init(&r->progress, on_progress);
	r->progress.data = r;
	ev_async_start(r->loop, &r->progress);
	ev_signal_init(&r->interrupt, on_signal, SIGINT);
	r->interrupt.data = r;
	ev_signal_start(r->loop, &r->interrupt);
	ev_signal_init(&r->terminate, on_signal, SIGTERM);
	r->terminate.data = r;
	ev_signal_start(r->loop, &r->terminate);
	ev_prepare_init(&r->turn_end, on_turn_end);
	r->turn_end.data = r;
	ev_prepare_start(r->loop, &r->turn_end);
}

static int start(struct ramp *r, char *err, size_t err_size)
{
	if (!r->cfg->server) {
		ramp_enter(r, RAMP_SERVER);
		return launch_server(r, &server_events, err, err_size);
	}
	if (launch_find_server(r, err, err_size))
		return -EHOSTUNREACH;
	return connect_to_server(r, err, err_size);
}

static void stop_watchers(struct ramp *r)
{
	ev_timer_stop(r->loop, &r->deadline);
	ev_timer_stop(r->loop, &r->tick);
	ev_async_stop(r->loop, &r->progress);
	ev_signal_stop(r->loop, &r->interrupt);
	ev_signal_stop(r->loop, &r->terminate);
	ev_prepare_stop(r->loop, &r->turn_end);
}

static void clean_up(struct ramp *r)
{
	stop_watchers(r);
	free_workers(r);
	control_free(r->control);
	server_proc_free(r->server);
	step_free(r->step);
	hist_free(r->now);
	hist_free(r->before);
	hist_free(r->interval);
	json_decref(r->baseline);
}

int ramp_run(struct ramp *r, char *err, size_t err_size)
{
	int ret;

	r->loop = ev_default_loop(0);
	r->phase = RAMP_N;
	r->run_start_ns = clock_now_ns();
	r->steps = json_array();
	r->verdict = json_array();
	r->rows = json_array();
	ramp_next_init(r);
	snprintf(err, err_size, "this machine is out of memory");
	ret = hist_new(&r->now);
	if (!ret)
		ret = hist_new(&r->before);
	if (!ret)
		ret = hist_new(&r->interval);
	if (!ret) {
		start_watchers(r);
		ret = start(r, err, err_size);
	}
	if (!ret) {
		ev_run(r->loop, 0);
		progress_clear(r);
	}
	clean_up(r);
	return ret;
}
