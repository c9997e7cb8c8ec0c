/* Starting a server of our own and the workers. See launch.h. */
#include "loadgen/ramp/launch.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "client/resolve.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/rdma/pump.h"
#include "loadgen/traffic/workload.h"
#include "loadgen/ramp/ramp.h"
#include "loadgen/ramp/server_proc.h"
#include "loadgen/traffic/worker.h"

#define ARGS_MAX 64
#define NUMBER_MAX 24
#define SESSION_TIMEOUT_S 30
#define HANDSHAKES_MAX 65536
#define HANDSHAKES_SPARE 64
#define READS 16		/* READs and atomics a connection may have outstanding, as far as both devices allow */

struct args {
	char *v[ARGS_MAX];
	int n;
	char numbers[ARGS_MAX][NUMBER_MAX];
};

static void add_text(struct args *a, const char *option, const char *value)
{
	a->v[a->n++] = (char *)option;
	a->v[a->n++] = (char *)value;
	a->v[a->n] = NULL;
}

static void add_number(struct args *a, const char *option, unsigned long long value)
{
	snprintf(a->numbers[a->n], NUMBER_MAX, "%llu", value);
	add_text(a, option, a->numbers[a->n]);
}

static void add_microseconds(struct args *a, const char *option, uint64_t ns)
{
	snprintf(a->numbers[a->n], NUMBER_MAX, "%lluus", (unsigned long long)(ns / NS_PER_US));
	add_text(a, option, a->numbers[a->n]);
}

/* All clients of a step are in one stage at once, so TLS sessions are open for all, and wait for the last. The
 * kernel spreads them over the shards by hash: a share, and six standard deviations. */
static void add_patience(struct args *a, const struct loadgen_config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double shards = c->server_threads ? (double)c->server_threads : cpus > 0 ? (double)cpus : 1;
	double share = (double)c->clients / shards;
	uint64_t most = MIN(c->clients + HANDSHAKES_SPARE, HANDSHAKES_MAX);

	add_number(a, "--max-handshakes", MIN((uint64_t)(share + 6 * sqrt(share)) + HANDSHAKES_SPARE, most));
	add_number(a, "--handshake-timeout", LAUNCH_PHASED_TIMEOUT_S);
}

/* The same as ours. */
static void add_tuning(struct args *a, const struct loadgen_config *c)
{
	const struct tuning *t = &c->tuning;

	add_text(a, "--inline", t->inline_text);
	add_number(a, "--post-list", t->post_list);
	add_number(a, "--signal-every", t->signal_every);
	add_text(a, "--path-mtu", tuning_mtu_names[t->path_mtu]);
	if (t->srq_depth)
		add_number(a, "--srq-depth", t->srq_depth);
	if (t->cq_depth)
		add_number(a, "--cq-depth", t->cq_depth);
	if (t->realtime)
		a->v[a->n++] = (char *)"--realtime";
}

static void make_args(const struct loadgen_config *c, char *program, struct args *a)
{
	struct workload_needs needs = { 0 };

	a->n = 0;
	a->v[a->n++] = program;
	add_number(a, "--tls-port", 0);
	add_number(a, "--rdma-port", 0);
	/* Some may still be leaving when the next ones come; with churn, all of them. */
	add_number(a, "--max-clients", c->clients + (c->churn_per_s ? c->clients : c->clients / 10) + 16);
	c->wl->needs(c, &needs);
	add_number(a, "--credits", needs.credits);
	add_number(a, "--message-size", needs.message_bytes);
	add_number(a, "--region-size", needs.region_bytes);
	/* Sessions of clients that gave up expire before the check of the pools does. */
	add_number(a, "--session-timeout", c->phased ? LAUNCH_PHASED_TIMEOUT_S : SESSION_TIMEOUT_S);
	add_text(a, "--tls-resume", c->tls_resume ? "on" : "off");
	if (needs.window)
		add_text(a, "--windows", "on");
	if (c->phased)
		add_patience(a, c);
	add_text(a, "--poll", poll_mode_names[c->poll]);
	add_microseconds(a, "--spin", c->spin_ns);
	add_tuning(a, c);
	add_text(a, "--log-level", log_level_names[c->log_level]);
	if (c->server_threads)
		add_number(a, "--threads", c->server_threads);
	if (c->device)
		add_text(a, "--device", c->device);
	if (c->verify)
		a->v[a->n++] = (char *)"--verify";
	a->v[a->n] = NULL;
}

int launch_server(struct ramp *r, const struct server_proc_events *events, char *err, size_t err_size)
{
	char program[PATH_MAX];
	struct args a;

	if (path_beside_program("rdma_server", program, sizeof(program))) {
		snprintf(err, err_size, "the path of rdma_server is too long");
		return -ENAMETOOLONG;
	}
	make_args(r->cfg, program, &a);
	/* The development certificate names localhost, whatever the device's address is. */
	r->verify_name = "localhost";
	return server_proc_start(a.v, results_path(r->results, "server.log"), r->loop, events, r, &r->server,
				 err, err_size);
}

const char *launch_verify_name(const struct ramp *r, uint32_t rail)
{
	if (r->verify_name)
		return r->verify_name;
	return r->cfg->server_name ? r->cfg->server_name : r->cfg->servers.name[rail];
}

int launch_find_server(struct ramp *r, char *err, size_t err_size)
{
	const struct rail_names *hosts = &r->cfg->servers;
	int ret = 0;

	for (uint32_t i = 0; i < hosts->n && !ret; i++)
		ret = resolve_host(hosts->name[i], (uint16_t)r->cfg->tls_port, &r->server_addrs[i], err, err_size);
	return ret;
}

int launch_workers(struct ramp *r, void (*on_progress)(void *arg), char *err, size_t err_size)
{
	const struct loadgen_config *c = r->cfg;
	uint32_t n = (uint32_t)c->threads;
	struct workload_needs needs = { 0 };
	struct worker_config wc = {
		.cfg = c,
		.n_workers = n,
		.on_progress = on_progress,
		.arg = r,
		.n_rails = c->n_rails,
		.client = { .ca_file = c->ca_path, .cert_file = c->cert, .key_file = c->key,
			    .verify = c->verify, .resume = c->tls_resume,
			    .post_list = (uint32_t)c->tuning.post_list,
			    .signal_every = (uint32_t)c->tuning.signal_every,
			    .cq_depth = (uint32_t)c->tuning.cq_depth, .srq_depth = (uint32_t)c->tuning.srq_depth,
			    .inline_bytes = c->tuning.inline_bytes, .path_mtu = tuning_mtu(&c->tuning),
			    .message_auth = c->message_auth, .no_first_message = c->wl->silent, .poll = c->poll, .spin_ns = c->spin_ns,
			    .max_conns = (uint32_t)((c->clients + n - 1) / n),
			    .stage_timeout_ns = c->timeout_ns },
	};

	for (uint32_t i = 0; i < c->n_rails; i++)
		wc.rails[i] = (struct worker_rail){ r->server_addrs[i], launch_verify_name(r, i),
						    c->devices.n ? c->devices.name[i] : NULL };
	c->wl->needs(c, &needs);
	wc.client.message_bytes = wc.client.buffer_bytes = needs.message_bytes;
	wc.client.depth = needs.credits;
	wc.client.region = needs.region_bytes > 0;
	wc.client.rma_depth = needs.rma_depth;
	wc.client.reads = READS;
	r->workers = calloc(n, sizeof(*r->workers));
	if (!r->workers) {
		snprintf(err, err_size, "this machine is out of memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		int ret;

		wc.index = i;
		ret = worker_new(&wc, &r->workers[i], err, err_size);
		if (ret)
			return ret;
		ret = worker_start(r->workers[i], err, err_size);
		if (ret) {
			worker_free(r->workers[i]);
			return ret;
		}
		r->n_workers++;
	}
	r->generator_dev = dev_json(worker_dev(r->workers[0]));
	return 0;
}

int launch_read_server_error(struct ramp *r, char *text, size_t size)
{
	FILE *f = fopen(results_path(r->results, "server.log"), "r");
	char line[256];

	text[0] = '\0';
	while (f && fgets(line, sizeof(line), f))
		if (line[0] != '\n')
			snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
	if (f)
		fclose(f);
	return text[0] ? 0 : -ENODATA;
}
