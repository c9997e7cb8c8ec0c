/* Starting a server of our own and the workers. See launch.h. */
#include "loadgen/launch.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "client/resolve.h"
#include "common/log.h"
#include "common/paths.h"
#include "common/pump.h"
#include "loadgen/ramp.h"
#include "loadgen/server_proc.h"
#include "loadgen/worker.h"

#define ARGS_MAX 40
#define NUMBER_MAX 24
#define SESSION_TIMEOUT_S 30
#define HANDSHAKES_MAX 65536
#define HANDSHAKES_SPARE 64

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

static void make_args(const struct loadgen_config *c, char *program, struct args *a)
{
	a->n = 0;
	a->v[a->n++] = program;
	add_number(a, "--tls-port", 0);
	add_number(a, "--rdma-port", 0);
	/* Some may still be leaving when the next ones come; with churn, all of them. */
	add_number(a, "--max-clients", c->clients + (c->churn_per_s ? c->clients : c->clients / 10) + 16);
	add_number(a, "--credits", c->inflight);
	add_number(a, "--message-size", c->message_bytes);
	add_number(a, "--region-size", 0);
	/* Sessions of clients that gave up expire before the check of the pools does. */
	add_number(a, "--session-timeout", c->phased ? LAUNCH_PHASED_TIMEOUT_S : SESSION_TIMEOUT_S);
	add_text(a, "--tls-resume", c->tls_resume ? "on" : "off");
	if (c->phased)
		add_patience(a, c);
	add_text(a, "--poll", poll_mode_names[c->poll]);
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

int launch_find_server(struct ramp *r, char *err, size_t err_size)
{
	r->verify_name = r->cfg->server_name ? r->cfg->server_name : r->cfg->server;
	return resolve_host(r->cfg->server, (uint16_t)r->cfg->tls_port, &r->server_addr, err, err_size);
}

int launch_workers(struct ramp *r, void (*on_progress)(void *arg), char *err, size_t err_size)
{
	const struct loadgen_config *c = r->cfg;
	uint32_t n = (uint32_t)c->threads;
	struct worker_config wc = {
		.cfg = c,
		.n_workers = n,
		.on_progress = on_progress,
		.arg = r,
		.client = { .server = r->server_addr, .verify_name = r->verify_name, .ca_file = c->ca_path,
			    .cert_file = c->cert, .key_file = c->key, .device = c->device,
			    .message_bytes = (uint32_t)c->message_bytes,
			    .buffer_bytes = (uint32_t)c->message_bytes, .depth = (uint32_t)c->inflight,
			    .verify = c->verify, .resume = c->tls_resume,
			    .no_first_message = c->workload == WORKLOAD_CONNECT, .poll = c->poll, .spin_ns = c->spin_ns,
			    .max_conns = (uint32_t)((c->clients + n - 1) / n),
			    .stage_timeout_ns = c->timeout_ns },
	};

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
		ret = worker_start(r->workers[i]);
		if (ret) {
			worker_free(r->workers[i]);
			snprintf(err, err_size, "cannot start a thread: %s", strerror(-ret));
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
