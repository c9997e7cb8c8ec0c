/* The run's state machine. See ramp.h.
 *
 * ramp_enter is the only writer of `phase`; each phase ends by an event (orders fulfilled, a report, a
 * timer) or by its deadline, and names what it waits for.
 */
#include "loadgen/ramp.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/hist.h"
#include "common/log.h"
#include "loadgen/launch.h"
#include "loadgen/ramp_util.h"
#include "loadgen/report.h"
#include "loadgen/server_proc.h"
#include "loadgen/verdict.h"
#include "loadgen/worker.h"

#define TICK_S 0.25
#define CONTROL_TIMEOUT_NS (30 * NS_PER_S)
/* Long phases ask now and then, because the server closes a silent control session after 600 s. */
#define KEEPALIVE_NS (120 * NS_PER_S)
/* How long the server may count fewer clients than there are. */
#define COUNT_PATIENCE_NS (5 * NS_PER_S)
/* Clients that leave and come back do so now and then, or the measurement ends. */
#define CYCLE_PATIENCE_NS (60 * NS_PER_S)

#define NAME(phase, text) [RAMP_##phase] = text
const char *const ramp_phase_names[] = {
	NAME(SERVER, "starting server"), NAME(INFO, "asking server"), NAME(MARK, "marking"),
	NAME(CONNECT, "connecting"),
	NAME(COUNT, "counting"), NAME(START, "starting traffic"), NAME(WARMUP, "warming up"),
	NAME(MEASURE, "measuring"), NAME(DRAIN, "draining"), NAME(DISCONNECT, "disconnecting"),
	NAME(RESTORE, "checking pools"), NAME(STOP, "stopping server"), NAME(DONE, "done"),
};
static_assert(sizeof(ramp_phase_names) / sizeof(ramp_phase_names[0]) == RAMP_N, "a name per phase");

static void ramp_enter(struct ramp *r, enum ramp_phase phase);

static uint64_t step_timeout_ns(const struct ramp *r)
{
	if (r->cfg->step_timeout_ns)
		return r->cfg->step_timeout_ns;
	return 60 * NS_PER_S + r->step->target * 25 * NS_PER_MS;
}

/* The time a phase may take; 0: it has none. */
static uint64_t deadline_of(const struct ramp *r, enum ramp_phase phase)
{
	switch (phase) {
	case RAMP_SERVER: return 60 * NS_PER_S;
	case RAMP_INFO:
	case RAMP_MARK:
	case RAMP_COUNT: return 2 * CONTROL_TIMEOUT_NS;
	case RAMP_CONNECT: return step_timeout_ns(r);
	case RAMP_START: return 60 * NS_PER_S;
	case RAMP_WARMUP: return r->cfg->warmup_ns + 1;
	case RAMP_MEASURE: return r->cfg->cycles ? 0 : r->cfg->duration_ns;
	case RAMP_DRAIN: return 15 * NS_PER_S;
	case RAMP_DISCONNECT: return 120 * NS_PER_S;
	case RAMP_RESTORE: return 40 * NS_PER_S;	/* above the session timeout of a server by default */
	case RAMP_STOP: return 20 * NS_PER_S;
	case RAMP_DONE:
	case RAMP_N: break;
	}
	return 0;
}

static void stop_because(struct ramp *r, enum stop_reason reason, const char *detail)
{
	if (r->stopping)
		return;
	r->stopping = true;
	r->stop_reason = reason;
	snprintf(r->stop_detail, sizeof(r->stop_detail), "%s", detail);
}

static void take_moment(struct ramp *r, struct step_moment *m)
{
	m->now_ns = clock_now_ns();
	if (res_usage_self(&m->generator) || res_machine_cpu(&m->machine))
		log_warn("cannot read this process's resources");
	m->net_bytes = RAMP_SUM(r, bytes_sent) + RAMP_SUM(r, bytes_received);
	for (uint32_t i = 0; i < r->n_workers; i++)
		m->worker_cpu_ns[i] = counter_get(&worker_stats(r->workers[i])->cpu_ns);
}

/* --- steps --- */

static void begin_step(struct ramp *r)
{
	uint32_t target = (uint32_t)r->cfg->steps.v[r->step_index];

	if (step_new(target, r->repetition, &r->step)) {
		stop_because(r, STOP_GENERATOR_FAILED, "this machine is out of memory");
		ramp_enter(r, RAMP_STOP);
		return;
	}
	r->step->baseline = json_incref(r->baseline);
	results_event(r->results, "step_start", json_pack("{s:i, s:i}", "clients", target, "repetition",
							  r->repetition));
	ramp_enter(r, RAMP_MARK);
}

static void write_histograms(struct ramp *r)
{
	struct step *s = r->step;
	char name[64];
	double connect_s = (double)(r->step_start_ns - r->run_start_ns) / 1e9;
	double measure_s = (double)(s->begin.now_ns - r->run_start_ns) / 1e9;

	snprintf(name, sizeof(name), "step-%05u-%u-connect", s->target, s->repetition);
	if (results_histogram(r->results, name, s->total, connect_s, (double)s->connect_wall_ns / 1e9))
		log_warn("cannot write %s", results_path(r->results, name));
	snprintf(name, sizeof(name), "step-%05u-%u-response", s->target, s->repetition);
	if (s->measured && results_histogram(r->results, name, s->response, measure_s, s->measured_s))
		log_warn("cannot write %s", results_path(r->results, name));
}

static void end_step(struct ramp *r)
{
	struct step *s = r->step;
	enum stop_reason reason;
	char text[256];

	/* Else the workers still hold the figures of the step before. */
	if (s->started)
		step_collect(s, r->workers, r->n_workers, r->cfg);
	reason = stop_judge_step(s, text, sizeof(text));
	if (reason != STOP_NOT)
		stop_because(r, reason, text);
	json_array_append_new(r->steps, step_json(s, r->cfg, r->workers, r->n_workers));
	json_array_append_new(r->rows, report_row(s));
	if (s->started && !(r->stopping && r->stop_reason == STOP_ABORTED))
		verdict_add_step(r->verdict, s);
	write_histograms(r);
	results_event(r->results, "step_end", json_pack("{s:i, s:i, s:i, s:i}", "clients", s->target,
		"held", s->connected_held, "failed", s->failed, "dropped", s->dropped));
	step_free(s);
	r->step = NULL;
	if (r->repetition++ == r->cfg->repeat) {
		r->repetition = 1;
		r->step_index++;
	}
	if (!r->stopping && r->step_index == r->cfg->steps.n)
		stop_because(r, STOP_MAX_REACHED, "");
	for (size_t i = r->step_index; r->stopping && i < r->cfg->steps.n; i++)
		if (i > r->step_index || r->repetition == 1)
			verdict_add_not_reached(r->verdict, (uint32_t)r->cfg->steps.v[i]);
	if (r->stopping)
		ramp_enter(r, RAMP_STOP);
	else
		begin_step(r);
}

/* --- phases --- */

static uint64_t interval_ns(const struct ramp *r)
{
	uint64_t ns = r->cfg->cycles ? NS_PER_S : r->cfg->duration_ns / 20;

	return ns < 250 * NS_PER_MS ? 250 * NS_PER_MS : ns;
}

static enum stage last_stage(const struct ramp *r)
{
	return r->cfg->workload == WORKLOAD_CONNECT ? STAGE_RDMA_CONNECT : STAGE_FIRST_REPLY;
}

static void enter_connect(struct ramp *r)
{
	r->step_start_ns = r->barrier_ns = clock_now_ns();
	r->step->started = true;
	r->upto = r->cfg->phased ? STAGE_TCP_CONNECT : last_stage(r);
	ramp_order_all(r, ORDER_CONNECT);
}

/* With --phased: all are at the barrier. True if they were let into the next stage. */
static bool enter_next_stage(struct ramp *r)
{
	uint64_t now = clock_now_ns();

	if (r->cfg->phased)
		r->step->phase_ns[r->upto] = now - r->barrier_ns;
	if (r->upto == last_stage(r) || r->stopping)
		return false;
	r->upto++;
	r->barrier_ns = now;
	ramp_order_all(r, ORDER_STAGE);
	return true;
}

static void enter_measure(struct ramp *r)
{
	r->last_cycles = 0;
	r->last_cycle_ns = clock_now_ns();
	ramp_order_all(r, ORDER_MEASURE);
	take_moment(r, &r->step->begin);
	ramp_ask(r, CONTROL_STATS);
	ramp_begin_intervals(r);
}

static void enter_drain(struct ramp *r)
{
	struct step *s = r->step;

	if (s->begin.now_ns) {
		/* A rest too short to say anything would weigh as much as a whole interval. */
		if (clock_now_ns() - r->last_interval_ns >= interval_ns(r) / 2)
			ramp_end_interval(r);
		take_moment(r, &s->end);
	}
	ramp_order_all(r, ORDER_STOP);
	s->connected_held = (uint32_t)(RAMP_SUM(r, live) + RAMP_SUM(r, away));
	ramp_ask(r, CONTROL_STATS);
}

static void enter_stop(struct ramp *r)
{
	for (uint32_t i = 0; i < r->n_workers; i++)
		worker_give(r->workers[i], ORDER_QUIT, NULL);
	control_free(r->control);
	r->control = NULL;
	if (r->server && !r->server_lost)
		server_proc_stop(r->server);
	else
		ramp_enter(r, RAMP_DONE);
}

static void ramp_enter(struct ramp *r, enum ramp_phase phase)
{
	uint64_t deadline;

	if (r->phase != phase)
		results_event(r->results, "phase", json_pack("{s:s}", "phase", ramp_phase_names[phase]));
	deadline = deadline_of(r, phase);
	ev_timer_stop(r->loop, &r->deadline);
	ev_now_update(r->loop);
	if (deadline) {
		ev_timer_set(&r->deadline, (double)deadline / 1e9, 0.);
		ev_timer_start(r->loop, &r->deadline);
	}
	r->report_arrived = false;
	r->phase = phase;
	r->phase_number++;
	switch (phase) {
	case RAMP_MARK: ramp_ask(r, CONTROL_MARK); break;
	case RAMP_CONNECT: enter_connect(r); break;
	case RAMP_COUNT: ramp_ask(r, CONTROL_STATS); break;
	case RAMP_START: ramp_order_all(r, ORDER_TRAFFIC); break;
	case RAMP_MEASURE: enter_measure(r); break;
	case RAMP_DRAIN: enter_drain(r); break;
	case RAMP_DISCONNECT: ramp_order_all(r, ORDER_DISCONNECT); break;
	case RAMP_RESTORE: ramp_ask(r, CONTROL_STATS); break;
	case RAMP_STOP: enter_stop(r); break;
	case RAMP_DONE: ev_break(r->loop, EVBREAK_ALL); break;
	case RAMP_SERVER:
	case RAMP_INFO:
	case RAMP_WARMUP:
	case RAMP_N: break;
	}
	r->phase_start_ns = clock_now_ns();
}

/* Goes on when the running phase has all it waits for. */
static void advance(struct ramp *r)
{
	struct step *s = r->step;

	switch (r->phase) {
	case RAMP_MARK:
		if (r->report_arrived)
			ramp_enter(r, r->stopping ? RAMP_DISCONNECT : RAMP_CONNECT);
		break;
	case RAMP_CONNECT:
		if (!ramp_all_done(r) || enter_next_stage(r))
			return;
		s->connect_wall_ns = clock_now_ns() - r->step_start_ns;
		s->connected_peak = s->connected_held = (uint32_t)RAMP_SUM(r, live);
		results_event(r->results, "connected", json_pack("{s:i, s:I, s:I}", "clients", s->target,
			"connected", (json_int_t)RAMP_SUM(r, live), "failed", (json_int_t)RAMP_SUM(r, failed)));
		ramp_enter(r, r->stopping ? RAMP_DISCONNECT : RAMP_COUNT);
		break;
	case RAMP_COUNT:
		if (r->report_arrived)
			ramp_enter(r, s->connected_peak && !r->stopping ? RAMP_START : RAMP_DISCONNECT);
		break;
	case RAMP_START:
		if (ramp_all_done(r))
			ramp_enter(r, RAMP_WARMUP);
		break;
	case RAMP_DRAIN:
		if (!ramp_all_done(r) || !r->report_arrived)
			return;
		/* Who left on purpose is back by now, or lost. */
		s->connected_held = (uint32_t)RAMP_SUM(r, live);
		ramp_enter(r, RAMP_DISCONNECT);
		break;
	case RAMP_DISCONNECT:
		if (ramp_all_done(r))
			ramp_enter(r, RAMP_RESTORE);
		break;
	case RAMP_SERVER:
	case RAMP_INFO:
	case RAMP_WARMUP:
	case RAMP_MEASURE:
	case RAMP_RESTORE:
	case RAMP_STOP:
	case RAMP_DONE:
	case RAMP_N:
		break;
	}
}

static void on_phase_deadline(struct ramp *r)
{
	switch (r->phase) {
	case RAMP_SERVER:
		stop_because(r, STOP_SERVER_LOST, "the server did not become ready within 60 s");
		ramp_enter(r, RAMP_STOP);
		break;
	case RAMP_INFO:
		stop_because(r, STOP_SERVER_LOST, "the server did not answer the control session");
		ramp_enter(r, RAMP_STOP);
		break;
	case RAMP_MARK:
		ramp_enter(r, RAMP_CONNECT);
		break;
	case RAMP_CONNECT:
		r->step->step_timeout = true;
		r->step->connect_wall_ns = clock_now_ns() - r->step_start_ns;
		r->step->connected_peak = r->step->connected_held = (uint32_t)RAMP_SUM(r, live);
		ramp_order_all(r, ORDER_ABANDON);
		ramp_enter(r, RAMP_DISCONNECT);
		break;
	case RAMP_COUNT:
		ramp_enter(r, RAMP_START);
		break;
	case RAMP_WARMUP:
		ramp_enter(r, RAMP_MEASURE);
		break;
	case RAMP_START:
	case RAMP_MEASURE:
		ramp_enter(r, RAMP_DRAIN);
		break;
	case RAMP_DRAIN:
		if (!ramp_all_done(r)) {
			r->step->stuck = true;
			ramp_order_all(r, ORDER_ABANDON);
		}
		ramp_enter(r, RAMP_DISCONNECT);
		break;
	case RAMP_DISCONNECT:
		stop_because(r, STOP_GENERATOR_FAILED, "clients did not disconnect within 120 s");
		ramp_enter(r, RAMP_RESTORE);
		break;
	case RAMP_RESTORE:
		r->step->leaked = true;
		end_step(r);
		break;
	case RAMP_STOP:
		log_warn("the server did not stop in time: killing it");
		ramp_enter(r, RAMP_DONE);
		break;
	case RAMP_DONE:
	case RAMP_N:
		break;
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	on_phase_deadline(w->data);
}

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
		s->server_connected = (int64_t)step_report_number(report, "clients.connected");
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
			end_step(r);
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
	advance(r);
}

static void on_lost(struct ramp *r, const struct fail *fail, const char *text)
{
	char code[96], detail[256];

	snprintf(detail, sizeof(detail), "control session failed at %s: %s%s%s (%s)",
		 stage_names[fail->stage], fail_code_text(fail, code, sizeof(code)), text[0] ? ": " : "",
		 text, fail_advice(fail));
	stop_because(r, STOP_SERVER_LOST, detail);
	r->report_arrived = true;
	if (r->phase == RAMP_INFO || r->phase == RAMP_SERVER) {
		ramp_enter(r, RAMP_STOP);
	} else if (r->phase == RAMP_RESTORE) {
		/* Nobody is left to say whether the pools came back. */
		r->step->leaked = true;
		end_step(r);
	} else if (r->phase == RAMP_WARMUP || r->phase == RAMP_MEASURE) {
		ramp_enter(r, RAMP_DRAIN);
	} else {
		advance(r);
	}
}

/* What the workload needs and this server does not give is known before the first client comes. */
static void check_server(struct ramp *r)
{
	double credits = step_report_number(r->info, "config.credits");
	double bytes = step_report_number(r->info, "config.message_bytes");
	double clients = step_report_number(r->info, "config.max_clients");
	double handshakes = step_report_number(r->info, "config.max_handshakes");
	bool resumes = json_is_true(json_object_get(json_object_get(r->info, "config"), "tls_resume"));
	char text[160] = "";

	if (credits < (double)r->cfg->inflight)
		snprintf(text, sizeof(text), "--inflight %llu is more than the server's --credits %.0f",
			 (unsigned long long)r->cfg->inflight, credits);
	else if (bytes < (double)r->cfg->message_bytes)
		snprintf(text, sizeof(text), "--message-size %llu is more than the server's --message-size %.0f",
			 (unsigned long long)r->cfg->message_bytes, bytes);
	else if (clients < (double)r->cfg->steps.v[0])
		snprintf(text, sizeof(text), "the first step of %llu clients is more than the server's "
			 "--max-clients %.0f", (unsigned long long)r->cfg->steps.v[0], clients);
	else if (r->cfg->phased && handshakes < (double)r->cfg->clients)
		snprintf(text, sizeof(text), "--phased has %llu TLS connections open at once, which is more than "
			 "the server's --max-handshakes allow (%.0f)", (unsigned long long)r->cfg->clients,
			 handshakes);
	else if (r->cfg->tls_resume && !resumes)
		snprintf(text, sizeof(text), "--tls-resume: the server has --tls-resume off");
	if (!text[0])
		return;
	stop_because(r, STOP_ERROR_RATE, text);
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
		r->info = json_incref(report);
		check_server(r);
	} else if (r->phase >= RAMP_STOP) {
		return;
	} else if (!r->baseline) {
		r->baseline = json_incref(report);
		begin_step(r);
	} else if (r->asked == CONTROL_MARK) {
		r->report_arrived = true;
		advance(r);
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
	if (r->phase == RAMP_MEASURE && clock_now_ns() - r->last_interval_ns >= interval_ns(r))
		ramp_end_interval(r);
	if ((r->phase == RAMP_WARMUP || r->phase == RAMP_MEASURE) && nothing_left_to_measure(r))
		ramp_enter(r, RAMP_DRAIN);
	if (r->control && !control_is_busy(r->control) &&
	    (r->phase == RAMP_RESTORE || r->phase == RAMP_COUNT || clock_now_ns() - r->last_report_ns > KEEPALIVE_NS))
		ramp_ask(r, CONTROL_STATS);
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
		stop_because(r, STOP_GENERATOR_FAILED, "the generator's RDMA device failed");
		ramp_enter(r, RAMP_STOP);
		return;
	}
	advance(r);
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
	stop_because(r, STOP_ABORTED, w->signum == SIGINT ? "interrupted" : "terminated");
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
	struct control_config control = { .server = r->server_addr, .verify_name = r->verify_name,
					  .ca_file = r->cfg->ca_path, .cert_file = r->cfg->cert,
					  .key_file = r->cfg->key, .timeout_ns = CONTROL_TIMEOUT_NS };
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

static void on_server_ready(void *arg, const struct addr *tls)
{
	struct ramp *r = arg;
	char err[256];

	if (r->phase != RAMP_SERVER)
		return;
	r->server_addr = *tls;
	if (connect_to_server(r, err, sizeof(err))) {
		stop_because(r, STOP_RESOURCE_EXHAUSTED, err);
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
	stop_because(r, STOP_SERVER_LOST, text);
	if (!r->step)
		ramp_enter(r, RAMP_STOP);
	else if (r->phase == RAMP_WARMUP || r->phase == RAMP_MEASURE || r->phase == RAMP_START)
		ramp_enter(r, RAMP_DRAIN);
}

static const struct server_proc_events server_events = {
	.on_ready = on_server_ready,
	.on_exit = on_server_exit,
};

static void start_watchers(struct ramp *r)
{
	ev_init(&r->deadline, on_deadline);
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

static void clean_up(struct ramp *r)
{
	for (uint32_t i = 0; i < r->n_workers; i++)
		worker_free(r->workers[i]);
	free(r->workers);
	r->workers = NULL;
	r->n_workers = 0;
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
	r->repetition = 1;
	r->run_start_ns = clock_now_ns();
	r->steps = json_array();
	r->verdict = json_array();
	r->rows = json_array();
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
	/* Aborted in the middle of a step, or the run could not start: the workers still wait. */
	for (uint32_t i = 0; i < r->n_workers; i++)
		worker_give(r->workers[i], ORDER_QUIT, NULL);
	clean_up(r);
	return ret;
}
