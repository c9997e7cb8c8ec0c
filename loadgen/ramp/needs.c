/* What a run needs of its server. See needs.h. */
#include "loadgen/ramp/needs.h"

#include <math.h>
#include <stdio.h>
#include <sys/param.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/res.h"
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

/* With --phased all clients of a step are in one stage at once, so the server holds a TLS session for each of them
 * until the last has come. The kernel spreads them over the shards by hash: a share, and six standard deviations. */
static void add_patience(struct needs_args *a, const struct loadgen_config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double shards = c->server_threads ? (double)c->server_threads : cpus > 0 ? (double)cpus : 1;
	double share = (double)c->clients / shards;
	uint64_t most = MIN(c->clients + HANDSHAKES_SPARE, HANDSHAKES_MAX);

	add_number(a, "--max-handshakes", MIN((uint64_t)(share + 6 * sqrt(share)) + HANDSHAKES_SPARE, most));
	add_number(a, "--handshake-timeout", NEEDS_PHASED_TIMEOUT_S);
}

/* The server gets the generator's settings of the data path. */
static void add_tuning(struct needs_args *a, const struct loadgen_config *c)
{
	const struct tuning *t = &c->tuning;

	add_microseconds(a, "--ack-timeout", t->ack_timeout_ns);
	add_number(a, "--retry-count", t->retry_count);
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

/* Clients that leave are still counted while the next ones come; with churn, that may be all of them. The server refuses to
 * start without memory for the regions of all: those of clients that are leaving may take a quarter of this machine's. */
static uint64_t spare_clients(const struct loadgen_config *c, uint64_t region_bytes)
{
	uint64_t spare = (c->churn_per_s ? c->clients : c->clients / 10) + 16;
	uint64_t room = res_machine_memory_bytes() / 4 / MAX(region_bytes * c->n_rails, 1);

	return MIN(spare, MAX(room, 1));
}

void needs_args(const struct loadgen_config *c, char *program, struct needs_args *a)
{
	struct workload_needs needs = { 0 };

	c->wl->needs(c, &needs);
	a->n = 0;
	a->v[a->n++] = program;
	add_number(a, "--tls-port", 0);
	add_number(a, "--rdma-port", 0);
	add_number(a, "--max-clients", MIN(c->clients + spare_clients(c, needs.region_bytes), NEEDS_CLIENTS_MAX));
	add_number(a, "--credits", needs.credits);
	add_number(a, "--message-size", needs.message_bytes);
	add_number(a, "--region-size", needs.region_bytes);
	/* Sessions of clients that gave up must expire before the deadline of the check of the pools. */
	add_number(a, "--session-timeout", c->phased ? NEEDS_PHASED_TIMEOUT_S : SESSION_TIMEOUT_S);
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

bool needs_are_met(const struct loadgen_config *c, const json_t *info, char *text, size_t size)
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
	const json_t *config = json_object_get(info, "config");
	bool resumes = json_is_true(json_object_get(config, "tls_resume"));
	bool windows = json_is_true(json_object_get(config, "windows"));
	double shards = json_number_at(info, "config.threads"), all = (double)c->clients;
	double all_at_once = shards > 1 ? all + 6 * sqrt(all * shards) : all;

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
		snprintf(text, size, "the workload has the server write to its clients' memory, which it does "
			 "not do with its --windows off");
	else if (clients < (double)c->steps.v[0])
		snprintf(text, size, "the first step of %llu clients is more than the server's "
			 "--max-clients %.0f", (unsigned long long)c->steps.v[0], clients);
	else if (of_one_address > 0 && of_one_address < (double)c->steps.v[0])
		snprintf(text, size, "the first step of %llu clients is more than the server's "
			 "--max-per-address %.0f", (unsigned long long)c->steps.v[0], of_one_address);
	else if (c->phased && handshakes < all)
		snprintf(text, size, "--phased has %.0f TLS connections open at once, which is more than "
			 "the server's --max-handshakes allow (%.0f)", all, handshakes);
	else if (c->phased && handshakes < all_at_once)
		snprintf(text, size, "--phased has %.0f TLS connections open at once, which spread over the "
			 "server's shards by hash: its --max-handshakes must allow %.0f, and allow %.0f", all,
			 ceil(all_at_once), handshakes);
	else if (c->tls_resume && !resumes)
		snprintf(text, size, "--tls-resume: the server has --tls-resume off");
	return !text[0];
}
