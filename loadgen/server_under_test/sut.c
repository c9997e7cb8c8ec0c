/* SPDX-License-Identifier: BSD-2-Clause */
/* The server under test. See sut.h. */
#include "loadgen/server_under_test/sut.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>

#include "client/control.h"
#include "client/resolve.h"
#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "loadgen/server_under_test/needs.h"
#include "loadgen/server_under_test/server_proc.h"

#define CONTROL_TIMEOUT_NS (30 * NS_PER_S)	/* longest wait for an answer */
/* How long to try to restore a broken session; shorter if the connection is refused, because then the server has
 * probably ended. At least as long as clients try to come back (--reconnect). */
#define PATIENCE_NS (30 * NS_PER_S)
#define PATIENCE_REFUSED_NS (2 * NS_PER_S)
/* Longest pause between two tries (client/backoff.h); the first is immediate. Short: a step waits for its reports. */
#define PAUSE_MAX_NS (2 * NS_PER_S)

static void on_proc_ready(void *arg, const struct addr *tls, uint32_t n)
{
	struct sut *s = arg;

	/* The server has as many rails as the generator, because both have the same --device. */
	memcpy(s->addrs, tls, n * sizeof(tls[0]));
	if (s->cfg->keep) {
		memcpy(s->cfg->keep->addrs, tls, n * sizeof(tls[0]));
		s->cfg->keep->n_rails = n;
	}
	s->events->on_ready(s->arg);
}

static void repeat_in(struct sut *s, uint64_t ns);

static void on_proc_exit(void *arg, int status)
{
	struct sut *s = arg;
	char text[256];

	s->gone = true;
	/* Retry at once: there is no server to wait for. */
	if (ev_is_active(&s->retry))
		repeat_in(s, 0);
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "the server was killed by signal %d", WTERMSIG(status));
	else if (!path_last_line(s->log, text, sizeof(text)))
		snprintf(text, sizeof(text), "the server ended with status %d", WEXITSTATUS(status));
	if (s->told_to_stop && status)
		log_warn("the server ended with status %d; see %s", status, s->log);
	s->events->on_exit(s->arg, text);
}

static const struct server_proc_events proc_events = { .on_ready = on_proc_ready, .on_exit = on_proc_exit };

/* Frees a kept server that ended or never became ready: it cannot serve another run. */
static void give_back(struct sut *s, struct sut_keep *k)
{
	if (!s->proc || (!s->gone && k->n_rails))
		return;
	server_proc_free(k->proc);
	k->proc = NULL;
	k->n_rails = 0;
}

void sut_clear(struct sut *s)
{
	sut_disconnect(s);
	ev_timer_stop(s->loop, &s->attach);
	if (s->cfg->keep)
		give_back(s, s->cfg->keep);
	else
		server_proc_free(s->proc);
	s->proc = NULL;
	s->told_to_stop = s->gone = false;
	json_decref(s->baseline);
	s->baseline = NULL;
}

static void on_attach(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct sut *s = w->data;

	(void)loop;
	(void)revents;
	memcpy(s->addrs, s->cfg->keep->addrs, sizeof(s->addrs));
	s->events->on_ready(s->arg);
}

/* Attaches to the kept server if it runs already, otherwise starts it. */
static int start_kept(struct sut *s, struct sut_keep *k, char *err, size_t err_size)
{
	int ret;

	snprintf(s->log, sizeof(s->log), "%s", k->log);
	if (k->proc) {
		server_proc_pass(k->proc, &proc_events, s);
		s->proc = k->proc;
		ev_timer_start(s->loop, &s->attach);
		return 0;
	}
	ret = server_proc_start(k->args.v, k->log, s->loop, &proc_events, s, &k->proc, err, err_size);
	s->proc = ret ? NULL : k->proc;
	return ret;
}

int sut_start(struct sut *s, char *err, size_t err_size)
{
	char program[PATH_MAX];
	struct needs_args a;
	int ret;

	sut_clear(s);
	/* The development certificate names localhost, whatever the device's address is. */
	for (uint32_t i = 0; i < RAILS_MAX; i++)
		s->names[i] = "localhost";
	if (s->cfg->keep)
		return start_kept(s, s->cfg->keep, err, err_size);
	ret = path_beside_program("rdma_server", program, sizeof(program));
	if (ret) {
		snprintf(err, err_size, "cannot find rdma_server beside this program: %s", strerror(-ret));
		return ret;
	}
	needs_args(s->cfg, program, &a);
	return server_proc_start(a.v, s->log, s->loop, &proc_events, s, &s->proc, err, err_size);
}

int sut_find(struct sut *s, char *err, size_t err_size)
{
	const struct rail_names *hosts = &s->cfg->servers;
	int ret = 0;

	if (s->target) {
		s->names[0] = s->cfg->server_name ? s->cfg->server_name : s->target->host;
		return resolve_host(s->target->host, s->target->port, &s->addrs[0], err, err_size);
	}
	for (uint32_t i = 0; i < hosts->n && !ret; i++) {
		s->names[i] = s->cfg->server_name ? s->cfg->server_name : hosts->name[i];
		ret = resolve_host(hosts->name[i], (uint16_t)s->cfg->tls_port, &s->addrs[i], err, err_size);
	}
	return ret;
}

bool sut_stop(struct sut *s)
{
	if (!s->proc || s->gone || s->cfg->keep)
		return false;
	s->told_to_stop = true;
	server_proc_stop(s->proc);
	return true;
}

/* True if a session can fail with `f` although the server is healthy. */
static bool may_pass(const struct fail *f)
{
	return f->kind == FAIL_ERRNO || f->kind == FAIL_TLS || f->kind == FAIL_TIMEOUT || f->kind == FAIL_CLOSED ||
	       (f->kind == FAIL_REFUSED && (f->code == REFUSE_BUSY || f->code == REFUSE_NO_RESOURCES));
}

static void repeat_in(struct sut *s, uint64_t ns)
{
	ev_timer_stop(s->loop, &s->retry);
	ev_now_update(s->loop);
	ev_timer_set(&s->retry, (double)ns / 1e9, 0.);
	ev_timer_start(s->loop, &s->retry);
}

/* " at NAME" for warnings; "" with a single server. */
static const char *which(const struct sut *s, char *text, size_t size)
{
	const char *name = s->target ? s->target->name : s->cfg->server;

	snprintf(text, size, "%s%s", name ? " at " : "", name ? name : "");
	return text;
}

/* True if the failed request is repeated in a new session. A server that never answered is considered absent. */
static bool try_again(struct sut *s, const struct fail *f)
{
	bool refused = f->kind == FAIL_ERRNO && f->code == ECONNREFUSED;
	uint64_t patience_ns = MAX(refused ? PATIENCE_REFUSED_NS : PATIENCE_NS, s->cfg->reconnect_ns);
	uint64_t now = clock_now_ns(), at = now;
	char code[96], text[TARGET_NAME_BYTES + 8];

	if (s->gone || !s->last_report_ns || !may_pass(f))
		return false;
	if (!s->backoff.lost_ns) {
		log_warn("the control session%s broke at %s: %s; restoring it", which(s, text, sizeof(text)),
			 stage_names[f->stage], fail_code_text(f, code, sizeof(code)));
		backoff_begin(&s->backoff, now);
	} else if (!backoff_wait(&s->backoff, patience_ns, now, &at)) {
		return false;
	}
	/* A newer request of the same kind takes the place of this one. */
	if (!s->waiting[s->asked].wanted)
		s->waiting[s->asked].number = s->number;
	s->waiting[s->asked].wanted = true;
	repeat_in(s, MIN(at - now, PAUSE_MAX_NS));
	return true;
}

static void on_retry(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	sut_send_next(w->data);
}

/* False if the report comes from another server than the last one. INFO does not identify the server, so it passes. */
static bool is_same_server(struct sut *s, const json_t *report)
{
	double began_ns = json_number_at(report, "started_ns");
	bool same;

	if (isnan(began_ns))
		return true;
	same = s->server_began_ns == 0 || began_ns == s->server_began_ns;
	s->server_began_ns = began_ns;
	return same;
}

/* Handles a server that answers in place of one that ended. False if that ends the run: without --reconnect all clients
 * are lost. */
static bool go_on_with_another(struct sut *s)
{
	char text[TARGET_NAME_BYTES + 8];

	if (!s->cfg->reconnect_ns)
		return false;
	log_warn("the server%s ended, and another one answers in its place: the run goes on with that one "
		 "(--reconnect)",
		 which(s, text, sizeof(text)));
	s->restarts++;
	json_decref(s->baseline);
	s->baseline = NULL;
	return true;
}

/* True if no client holds resources of the server, as after its start. */
static bool is_without_clients(const json_t *report)
{
	static const char *const gauges[] = { "clients.connected", "clients.handshakes", "clients.closing",
					      "pools.sessions",
		"pools.regions_in_use", "pools.admitted", "pools.qp.in_use" };

	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		if (json_number_at(report, gauges[i]) != 0)
			return false;
	return json_number_at(report, "pools.buffers.posted") + json_number_at(report, "pools.buffers.free") ==
	       json_number_at(report, "pools.buffers.total");
}

static void note_session_is_back(struct sut *s)
{
	char text[TARGET_NAME_BYTES + 8];

	if (!s->backoff.lost_ns)
		return;
	s->reconnects++;
	log_warn("the control session%s was restored after %.1f s; the run goes on", which(s, text, sizeof(text)),
		 (double)backoff_end(&s->backoff, clock_now_ns()) / 1e9);
}

static void on_answer(void *arg, json_t *report, const struct fail *fail, const char *text)
{
	struct sut *s = arg;
	char code[96], name[TARGET_NAME_BYTES + 8], why[512];

	if (!report && try_again(s, fail))
		return;
	if (!report) {
		snprintf(why, sizeof(why), "the control session with the server%s failed at %s: %s%s%s (%s)",
			 s->target ? "" : which(s, name, sizeof(name)), stage_names[fail->stage],
			 fail_code_text(fail, code, sizeof(code)), text[0] ? ": " : "", text, fail_advice(fail));
		s->events->on_lost(s->arg, why);
		return;
	}
	note_session_is_back(s);
	s->last_report_ns = clock_now_ns();
	if (!is_same_server(s, report) && !go_on_with_another(s)) {
		s->events->on_lost(s->arg, "the server ended, and another one answers in its place");
		return;
	}
	if (s->asked == CONTROL_STATS && !s->baseline && (!s->restarts || is_without_clients(report)))
		s->baseline = json_incref(report);
	s->events->on_report(s->arg, s->asked, s->number, report);
}

struct control_config sut_control_config(const struct sut *s, uint32_t rail)
{
	return (struct control_config){ .server = s->addrs[rail], .verify_name = s->names[rail],
					.ca_file = s->cfg->ca_path, .cert_file = s->cfg->cert, .key_file = s->cfg->key,
					.crl_file = s->cfg->crl,
					.timeout_ns = CONTROL_TIMEOUT_NS };
}

int sut_connect(struct sut *s, char *err, size_t err_size)
{
	struct control_config control = sut_control_config(s, 0);

	return control_new(&control, s->loop, on_answer, s, &s->control, err, err_size);
}

void sut_disconnect(struct sut *s)
{
	ev_timer_stop(s->loop, &s->retry);
	control_free(s->control);
	s->control = NULL;
	memset(s->waiting, 0, sizeof(s->waiting));
	s->last_report_ns = s->backoff.lost_ns = 0;
	s->server_began_ns = 0;
}

void sut_send_next(struct sut *s)
{
	static const enum control_what order[] = { CONTROL_INFO, CONTROL_MARK, CONTROL_STATS };

	for (size_t i = 0; i < 3 && sut_is_idle(s); i++) {
		if (!s->waiting[order[i]].wanted)
			continue;
		s->asked = order[i];
		s->number = s->waiting[order[i]].number;
		s->waiting[order[i]].wanted = !control_request(s->control, order[i]);
	}
}

void sut_ask(struct sut *s, enum control_what what, uint32_t number)
{
	s->waiting[what].wanted = true;
	s->waiting[what].number = number;
	sut_send_next(s);
}

bool sut_is_idle(const struct sut *s)
{
	return s->control && !control_is_busy(s->control) && !ev_is_active(&s->retry);
}

bool sut_is_restored(const struct sut *s, const json_t *now)
{
	static const char *const used[] = { "clients.connected", "clients.handshakes", "clients.closing",
					    "pools.sessions",
		"pools.regions_in_use", "pools.admitted", "pools.qp.in_use" };
	static const char *const left[] = { "pools.buffers.posted", "pools.buffers.free" };
	double resting = json_number_at(now, "pools.qp.quarantined");
	double held = json_number_at(now, "pools.qp.in_use");

	if (!s->baseline)
		return false;
	/* Each probe of a search must start with the server in the same state, so without quarantined queue pairs. */
	if (loadgen_is_search(s->cfg) && resting > 0)
		return false;
	/* Churn made the pool of queue pairs grow, and it must shrink again. It may end smaller than in the baseline,
	 * if queue pairs of earlier clients were in quarantine at that time. */
	if (s->cfg->churn_per_s &&
	    !(json_number_at(now, "pools.qp.exist") <= json_number_at(s->baseline, "pools.qp.exist")))
		return false;
	/* Use may be below the baseline, which may include a session that had just broken and has expired since. */
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		if (!(json_number_at(now, used[i]) <= json_number_at(s->baseline, used[i])))
			return false;
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		if (!(json_number_at(now, left[i]) >= json_number_at(s->baseline, left[i])))
			return false;
	/* Two PSNs for each queue pair in use or in quarantine; connections over sockets have none. */
	return json_number_at(now, "pools.psns_in_use") == 2 * (resting + held);
}

void sut_init(struct sut *s, const struct loadgen_config *cfg, const struct target *target, const char *log,
	      struct ev_loop *loop, const struct sut_events *events, void *arg)
{
	*s = (struct sut){ .cfg = cfg, .target = target, .loop = loop, .events = events, .arg = arg };
	ev_timer_init(&s->retry, on_retry, 0., 0.);
	s->retry.data = s;
	ev_timer_init(&s->attach, on_attach, 0., 0.);
	s->attach.data = s;
	snprintf(s->log, sizeof(s->log), "%s", log);
}

int sut_keep_init(struct sut_keep *k, const struct loadgen_config *cfg, const char *log)
{
	*k = (struct sut_keep){ .proc = NULL };
	if (path_beside_program("rdma_server", k->program, sizeof(k->program)) ||
	    snprintf(k->log, sizeof(k->log), "%s", log) >= (int)sizeof(k->log))
		return -ENAMETOOLONG;
	needs_args(cfg, k->program, &k->args);
	return 0;
}

static void on_nothing(void *arg, const struct addr *tls, uint32_t n)
{
	(void)arg;
	(void)tls;
	(void)n;
}

static void on_kept_exit(void *arg, int status)
{
	struct sut_keep *k = arg;

	if (status)
		log_warn("the server ended with status %d; see %s", status, k->log);
	ev_break(ev_default_loop(0), EVBREAK_ALL);
}

static void on_kept_late(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)w;
	(void)revents;
	log_warn("the server did not stop in time: killing it");
	ev_break(loop, EVBREAK_ALL);
}

void sut_keep_end(struct sut_keep *k)
{
	static const struct server_proc_events ending = { .on_ready = on_nothing, .on_exit = on_kept_exit };
	struct ev_loop *loop = ev_default_loop(0);
	ev_timer late;

	if (!k->proc)
		return;
	server_proc_pass(k->proc, &ending, k);
	server_proc_stop(k->proc);
	ev_now_update(loop);
	ev_timer_init(&late, on_kept_late, 20., 0.);
	ev_timer_start(loop, &late);
	ev_run(loop, 0);
	ev_timer_stop(loop, &late);
	server_proc_free(k->proc);
	k->proc = NULL;
	k->n_rails = 0;
}
