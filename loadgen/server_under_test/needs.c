/* SPDX-License-Identifier: BSD-2-Clause */
/* Derives what a run needs of its server. See needs.h. */
#include "loadgen/server_under_test/needs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/host/place.h"
#include "common/host/res.h"
#include "common/rdma/pump.h"
#include "loadgen/traffic/workload.h"

#define SESSION_TIMEOUT_S 30
#define HANDSHAKES_MAX 65536
#define HANDSHAKES_SPARE 64

static void add_text(struct needs_args *a, const char *option, const char *value)
{
	a->v[a->n++] = (char *)option;
	a->v[a->n++] = (char *)value;
	a->v[a->n] = NULL;
}

static void add_number(struct needs_args *a, const char *option, unsigned long long value)
{
	snprintf(a->numbers[a->n], NEEDS_NUMBER_MAX, "%llu", value);
	add_text(a, option, a->numbers[a->n]);
}

static void add_microseconds(struct needs_args *a, const char *option, uint64_t ns)
{
	snprintf(a->numbers[a->n], NEEDS_NUMBER_MAX, "%lluus", (unsigned long long)(ns / NS_PER_US));
	add_text(a, option, a->numbers[a->n]);
}

/* Shards per rail, as rdma_server computes them. */
static uint64_t shards_of(const struct loadgen_config *c)
{
	return c->server_threads ? c->server_threads : place_threads();
}

/* With --phased all clients of a step are in the same stage at once, so the server holds a TLS session for each of them
 * until the last one arrives. */
static uint64_t phased_handshakes(const struct loadgen_config *c)
{
	uint64_t share = (uint64_t)sizes_share((double)c->clients, (double)shards_of(c));

	return MIN(share + HANDSHAKES_SPARE, HANDSHAKES_MAX);
}

/* Passes the generator's data path settings to the server. */
static void add_tuning(struct needs_args *a, const struct loadgen_config *c)
{
	const struct tuning *t = &c->tuning;

	add_microseconds(a, "--ack-timeout", t->ack_timeout_ns);
	add_number(a, "--retry-count", t->retry_count);
	add_number(a, "--rnr-retry", t->rnr_retry);
	add_microseconds(a, "--rnr-timer", t->rnr_timer_ns);
	if (t->fabric.has_traffic_class)
		add_number(a, "--traffic-class", t->fabric.traffic_class);
	if (t->fabric.has_service_level)
		add_number(a, "--service-level", t->fabric.service_level);
	if (t->fabric.has_gid_index)
		add_number(a, "--gid-index", t->fabric.gid_index);
	add_text(a, "--inline", t->inline_text);
	add_number(a, "--post-list", t->post_list);
	add_text(a, "--relaxed-ordering", tuning_relaxed_names[t->relaxed_ordering]);
	add_number(a, "--signal-every", t->signal_every);
	add_text(a, "--path-mtu", tuning_mtu_names[t->path_mtu]);
	if (t->srq_depth)
		add_number(a, "--srq-depth", t->srq_depth);
	if (t->cq_depth)
		add_number(a, "--cq-depth", t->cq_depth);
	if (c->server_cpus[0])
		add_text(a, "--cpu-list", c->server_cpus);
	else
		add_text(a, "--numa", tuning_numa_names[t->numa]);
	if (t->realtime)
		a->v[a->n++] = (char *)"--realtime";
}

/* Number of clients to allow beyond the run's own: clients that leave still count while the next ones connect; with
 * --churn all may leave. Regions take memory at start, so those of extra clients may take a quarter of the
 * machine's. */
static uint64_t spare_clients(const struct loadgen_config *c, uint64_t region_bytes)
{
	uint64_t spare = (c->churn_per_s ? c->clients : c->clients / 10) + 16;
	uint64_t room = res_machine_memory_bytes() / 4 / MAX(region_bytes * loadgen_n_lanes(c), 1);

	return MIN(spare, MAX(room, 1));
}

void needs_of_server(const struct loadgen_config *c, struct sizes_server *out)
{
	struct workload_needs needs = { 0 };

	c->wl->needs(c, &needs);
	*out = (struct sizes_server){
		.rails = c->n_rails,
		.threads = shards_of(c),
		.max_clients = MIN((c->clients + spare_clients(c, needs.region_bytes)) * c->qps, NEEDS_CLIENTS_MAX),
		.credits = needs.credits,
		.message_bytes = needs.message_bytes,
		.region_bytes = needs.region_bytes,
		.max_handshakes = c->phased ? phased_handshakes(c) : NEEDS_HANDSHAKES_DEFAULT,
		.srq_depth = c->tuning.srq_depth,
		.cq_depth = c->tuning.cq_depth,
		.transport_mask = 1u << c->transport,
		.windows = needs.window,
		.zerocopy = c->tcp_text && strstr(c->tcp_text, "zerocopy"),
	};
}

/* Adds the options for sizes: a server with larger sizes also serves runs that need less. */
static void add_sizes(struct needs_args *a)
{
	a->n = a->n_fixed;
	add_number(a, "--max-clients", a->size.max_clients);
	add_number(a, "--credits", a->size.credits);
	add_number(a, "--message-size", a->size.message_bytes);
	add_number(a, "--region-size", a->size.region_bytes);
	add_text(a, "--windows", a->size.windows ? "on" : "off");
	add_text(a, "--tls-resume", a->tls_resume ? "on" : "off");
}

void needs_args(const struct loadgen_config *c, char *program, struct needs_args *a)
{
	needs_of_server(c, &a->size);
	a->tls_resume = c->tls_resume;
	a->n = 0;
	a->v[a->n++] = program;
	add_number(a, "--tls-port", 0);
	add_number(a, "--rdma-port", 0);
	add_text(a, "--transports", transport_names[c->transport]);
	/* The server is for clients on this machine only. */
	if (c->transport != TRANSPORT_RDMA)
		add_text(a, "--bind", "127.0.0.1");
	if (c->tcp_text)
		add_text(a, "--tcp", c->tcp_text);
	/* Sessions of clients that gave up must expire before the deadline of the check of the pools. */
	add_number(a, "--session-timeout", c->phased ? NEEDS_PHASED_TIMEOUT_S : SESSION_TIMEOUT_S);
	if (c->phased) {
		add_number(a, "--max-handshakes", a->size.max_handshakes);
		add_number(a, "--handshake-timeout", NEEDS_PHASED_TIMEOUT_S);
	}
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
	a->n_fixed = a->n;
	add_sizes(a);
}

bool needs_are_met(const struct loadgen_config *c, const json_t *info, uint64_t first, uint64_t most, char *text,
		   size_t size)
{
	struct workload_needs needs = { 0 };
	double credits = json_number_at(info, "config.credits");
	double region = json_number_at(info, "config.region_bytes");
	double bytes = json_number_at(info, "config.message_bytes");
	double clients = json_number_at(info, "config.max_clients");
	double of_one_address = json_number_at(info, "config.max_per_address");
	/* INFO has the sum over all rails. */
	size_t rails = json_array_size(json_object_get(info, "rails"));
	double handshakes = json_number_at(info, "config.max_handshakes") / (double)(rails ? rails : 1);
	double buffers = json_number_at(info, "config.receive_buffers") / (double)(rails ? rails : 1);
	const json_t *config = json_object_get(info, "config");
	bool resumes = json_is_true(json_object_get(config, "tls_resume"));
	bool windows = json_is_true(json_object_get(config, "windows"));
	double shards = fmax(json_number_at(info, "config.threads"), 1), all = (double)most,
		at_first = (double)(first * c->qps);
	double all_at_once = shards * sizes_share(all, shards);
	char step[80];
	int n = snprintf(step, sizeof(step), "%llu clients", (unsigned long long)first);

	if (c->qps > 1)
		snprintf(step + n, sizeof(step) - (size_t)n, " with %llu queue pairs each", (unsigned long long)c->qps);
	text[0] = '\0';
	c->wl->needs(c, &needs);
	if (credits < (double)needs.credits)
		snprintf(text, size, "%u %s in flight (--inflight) are more than the server's --credits %.0f",
			 needs.credits, c->coalesce > 1 ? "SENDs" : "messages", credits);
	else if (bytes < (double)needs.message_bytes)
		snprintf(text, size, "%s of %u bytes are more than the server's --message-size %.0f",
			 c->coalesce > 1 ? "SENDs (--coalesce)" : "messages", needs.message_bytes, bytes);
	else if (region < (double)needs.region_bytes)
		snprintf(text, size, "the workload needs a region of %llu bytes, more than the server's "
			 "--region-size %.0f", (unsigned long long)needs.region_bytes, region);
	else if (needs.window && !windows)
		snprintf(text, size, "the workload has the server write to its clients' memory, but the server "
			 "runs with --windows off");
	else if (clients < at_first)
		snprintf(text, size, "the first step of %s is more than the server's --max-clients %.0f", step,
			 clients);
	else if (of_one_address > 0 && of_one_address < at_first)
		snprintf(text, size, "the first step of %s is more than the server's --max-per-address %.0f", step,
			 of_one_address);
	/* A server has fewer receive buffers than --credits per client if its device or an option limits them. */
	else if (buffers < at_first * needs.credits)
		snprintf(text, size,
			 "the first step of %s, with %u in flight on each, needs more receive buffers than the "
			 "server's %.0f (its --srq-depth, --cq-depth and --threads)", step, needs.credits, buffers);
	else if (c->phased && handshakes < all)
		snprintf(text, size, "--phased has %.0f TLS connections open at once, which is more than "
			 "the server's --max-handshakes allow (%.0f)", all, handshakes);
	else if (c->phased && handshakes < all_at_once)
		snprintf(text, size, "--phased has %.0f TLS connections open at once, which spread over the "
			 "server's shards by hash: its --max-handshakes must allow %.0f, but allow %.0f", all,
			 all_at_once, handshakes);
	else if (c->tls_resume && !resumes)
		snprintf(text, size, "--tls-resume: the server has --tls-resume off");
	return !text[0];
}

/* The first option that only one of the command lines has, or whose values differ; NULL: none. */
static const char *first_difference(const struct needs_args *a, const struct needs_args *b)
{
	const char *option = NULL;

	for (int i = 1; i < MAX(a->n_fixed, b->n_fixed); i++) {
		const char *word = i < a->n_fixed ? a->v[i] : b->v[i];

		if (strncmp(word, "--", 2) == 0)
			option = word;
		if (i >= MIN(a->n_fixed, b->n_fixed) || strcmp(a->v[i], b->v[i]) != 0)
			return option;
	}
	return NULL;
}

/* Memory of a server for regions and receive buffers. */
static double memory_of(const struct sizes_server *s)
{
	return (double)s->max_clients * ((double)s->region_bytes + (double)s->credits * (double)s->message_bytes);
}

const char *needs_join(struct needs_args *a, const struct needs_args *b, uint64_t memory_bytes)
{
	const char *apart = first_difference(a, b);
	struct sizes_server both = a->size;

	both.max_clients = MAX(a->size.max_clients, b->size.max_clients);
	both.credits = MAX(a->size.credits, b->size.credits);
	both.message_bytes = MAX(a->size.message_bytes, b->size.message_bytes);
	both.region_bytes = MAX(a->size.region_bytes, b->size.region_bytes);
	both.windows |= b->size.windows;
	if (!apart && memory_of(&both) > fmax(fmax(memory_of(&a->size), memory_of(&b->size)), (double)memory_bytes / 4))
		apart = "memory";
	if (apart)
		return apart;
	a->size = both;
	a->tls_resume |= b->tls_resume;
	add_sizes(a);
	return NULL;
}
