/* SPDX-License-Identifier: BSD-2-Clause */
/* Derives settings from performance_test's options and checks the options against each other. No I/O. See config.h. */
#include "loadgen/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/wire/frame.h"
#include "common/base/paths.h"
#include "common/host/place.h"
#include "common/metrics/exporter.h"
#include "common/rdma/dev.h"

#define CLIENTS_OF_HOST_MAX 100000
#define RATE_MAX UINT64_C(1000000000)
#define RATE_STEPS 8u
#define RATE_START 1000u	/* lowest rate of a search */
#define PRICE_MAX 1e6
#define WARMUP_ITERATIONS_DEFAULT UINT64_MAX	/* marks --warmup-iterations as not given */
#define TRANSPORT_AUTO TRANSPORT_N	/* the last choice of --transport */

static const uint64_t default_steps[] = { 10, 100, 500, 1000, 5000, 10000 };

void loadgen_config_defaults(struct loadgen_config *c)
{
	memset(c, 0, sizeof(*c));
	opts_defaults(&loadgen_options, c);
	c->threads = MIN(place_threads(), 8);
	c->warmup_iterations = WARMUP_ITERATIONS_DEFAULT;
	tuning_defaults(&c->tuning);
}

/* A search starts with few clients and doubles them. */
#define SEARCH_CLIENTS 10000
#define SEARCH_START 10

static void make_steps(struct loadgen_config *c)
{
	size_t n = sizeof(default_steps) / sizeof(default_steps[0]);

	for (size_t i = 0; i < n && default_steps[i] < c->clients; i++)
		c->steps.v[c->steps.n++] = default_steps[i];
	c->steps.v[c->steps.n++] = c->clients;
}

/* Determines the steps and the largest number of clients. */
static void choose_clients(struct loadgen_config *c, int argc, char **argv)
{
	if (c->find_capacity) {
		if (!opts_given(&loadgen_options, argc, argv, "clients"))
			c->clients = SEARCH_CLIENTS;
		c->steps.v[c->steps.n++] = MIN(c->clients, SEARCH_START);
		return;
	}
	/* A sweep already has several steps with one number of clients. */
	if (c->steps.n == 0 && loadgen_is_swept(c))
		c->steps.v[c->steps.n++] = c->clients;
	if (c->steps.n == 0)
		make_steps(c);
	c->clients = 0;
	for (size_t i = 0; i < c->steps.n; i++)
		c->clients = MAX(c->clients, c->steps.v[i]);
}

static int check_name(const char *name, char *err, size_t err_size)
{
	for (const char *p = name; *p; p++) {
		if (isalnum((unsigned char)*p) || strchr("._-", *p))
			continue;
		snprintf(err, err_size, "--name: '%s' is not allowed; allowed: letters, digits, '.', '_', '-'", name);
		return -EINVAL;
	}
	if (strlen(name) > 64) {
		snprintf(err, err_size, "--name: at most 64 characters are allowed");
		return -EINVAL;
	}
	return 0;
}

/* Fills in `count` rates from the first to the last in geometric progression, without duplicates from rounding. */
static void spread(struct opt_list *rates, uint64_t first, uint64_t last, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		double exact = (double)first * pow((double)last / (double)first, (double)i / (double)(count - 1));
		uint64_t rate = (uint64_t)llround(exact);

		if (rates->n == 0 || rate > rates->v[rates->n - 1])
			rates->v[rates->n++] = rate;
	}
}

/* Parses N, A-B or A-B:COUNT. */
static int parse_rate(struct loadgen_config *c, char *err, size_t err_size)
{
	uint64_t first, last = 0, count = RATE_STEPS;
	const char *text = c->rate_text;
	int end = 0, given = 0;

	if (!text && !c->find_rate)
		return 0;
	if (!text) {
		c->rates = (struct opt_list){ .n = 2, .v = { RATE_START, RATE_MAX } };
		return 0;
	}
	if (strspn(text, "0123456789-:") == strlen(text))
		given = sscanf(text, "%11" SCNu64 "%n-%11" SCNu64 "%n:%3" SCNu64 "%n", &first, &end, &last, &end,
			       &count, &end);
	if (given < 1 || text[end] || first < 1 || first > RATE_MAX ||
	    (given > 1 && (last <= first || last > RATE_MAX || count < 2 || count > OPT_LIST_MAX))) {
		snprintf(err, err_size,
			 "--rate: '%.64s' is not allowed; allowed: 1 to %llu, or A-B with A below B, or A-B:COUNT with "
			 "2 to %d steps", text, (unsigned long long)RATE_MAX, OPT_LIST_MAX);
		return -EINVAL;
	}
	if (given == 1)
		c->rates.v[c->rates.n++] = first;
	else
		spread(&c->rates, first, last, c->find_rate ? 2 : count);
	return 0;
}

/* Checks for contradictions that `needs` and `excludes` of the option table cannot express. */
static int check_together(const struct loadgen_config *c, char *err, size_t n)
{
	const struct { bool wrong; const char *text; } checks[] = {
		{ c->deal && c->targets.n < 2, "--deal: needs several --targets" },
		{ c->targets.n > 1 && c->devices.n > 1, "--targets: several cannot be combined with several devices" },
		{ c->from && !c->plan, "--from: only `performance_test plan` takes it" },
		{ c->lead && c->hosts < 2, "--lead: needs --hosts 2 or more" },
		{ c->n_rails > 1 && loadgen_has_hosts(c),
		  "--device, --server: several rails cannot be combined with several load hosts" },
		{ c->n_rails > 1 && (c->phased || c->churn_per_s || c->reconnect_ns),
		  "--device, --server: several rails cannot be combined with --phased, --churn or --reconnect" },
		{ c->sample_interval_ns && c->sample_interval_ns < FRAME_WATCH_MS_MIN * NS_PER_MS,
		  "--sample-interval: must be 0 or 0.1 to 60 s" },
		{ c->find_rate && (c->steps.n > 1 || c->sizes.n > 1),
		  "--find-rate: needs one number of clients and one --message-size" },
		{ c->find_rate && c->rate_text && !strchr(c->rate_text, '-'),
		  "--find-rate: needs --rate A-B, the lowest and the highest rate to try" },
		{ c->find_capacity && loadgen_is_swept(c), "--find-capacity: cannot be combined with several rates" },
		{ c->find_capacity && c->sizes.n > 1, "--find-capacity: needs one --message-size" },
		{ c->fell_back && loadgen_has_hosts(c),
		  "--transport auto: cannot be combined with several load hosts, which have to use the same transport; "
		  "give rdma, tcp or tls" },
		{ c->plan && c->qps > 1,
		  "--qps: `performance_test plan` does not take it; plan N times as many clients instead" },
		{ c->transport != TRANSPORT_RDMA && c->qps > 1,
		  "--qps: cannot be combined with --transport tcp or tls, which connect no queue pairs" },
		{ c->transport != TRANSPORT_RDMA && c->connect != CONNECT_CM,
		  "--connect oob: cannot be combined with --transport tcp or tls, which connect no queue pairs" },
		{ c->transport != TRANSPORT_RDMA && (c->device || c->n_rails > 1 || c->environment >= ENVIRONMENT_VM),
		  "--transport tcp, tls: cannot be combined with --device, several addresses of --server or "
		  "--environment vm or netns, which are for RDMA only" },
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i].wrong) {
			snprintf(err, n, "%s", checks[i].text);
			return -EINVAL;
		}
	return 0;
}

/* Refuses HOST:PORT. (An IPv6 address has at least two colons.) */
static int check_hosts(const struct rail_names *hosts, char *err, size_t err_size)
{
	for (uint32_t i = 0; i < hosts->n; i++) {
		const char *colon = strchr(hosts->name[i], ':');

		if (!colon || strchr(colon + 1, ':'))
			continue;
		snprintf(err, err_size,
			 "--server: '%.64s' is not allowed; allowed: names or addresses; give the port with "
			 "--tls-port", hosts->name[i]);
		return -EINVAL;
	}
	return 0;
}

/* Writes the CPUs as a list in their order, starting with index `first` and wrapping around. */
static void list_from(const uint16_t *cpus, uint32_t n, uint32_t first, char *out, size_t size)
{
	size_t used = 0;

	for (uint32_t i = 0; i < n && used < size; i++) {
		unsigned begin = cpus[(first + i) % n], last = begin;

		while (i + 1 < n && cpus[(first + i + 1) % n] == last + 1) {
			last++;
			i++;
		}
		used += (size_t)snprintf(out + used, size - used, last > begin ? "%s%u-%u" : "%s%u", used ? "," : "",
					 begin, last);
	}
}

/* Chooses the CPUs for our own server's threads: those of --server-cpu-list; else those of --cpu-list, beginning after
 * the workers' CPUs; without either option none. */
static int place_server(struct loadgen_config *c, char *err, size_t err_size)
{
	uint16_t cpus[TUNING_CPUS_MAX];
	uint32_t n;
	int ret;

	c->server_cpus[0] = '\0';
	if (c->server_cpu_list) {
		ret = tuning_read_cpus("server-cpu-list", c->server_cpu_list, cpus, &n, err, err_size);
		if (!ret)
			list_from(cpus, n, 0, c->server_cpus, sizeof(c->server_cpus));
		return ret;
	}
	if (c->tuning.n_cpus)
		list_from(c->tuning.cpus, c->tuning.n_cpus, (uint32_t)(c->threads % c->tuning.n_cpus), c->server_cpus,
			  sizeof(c->server_cpus));
	return 0;
}

/* Checks only the syntax: the servers of the run are checked later, as the leader may name them (run/meeting.h). */
static int check_allowed(const struct loadgen_config *c, char *err, size_t err_size)
{
	struct targets allowed;

	return c->allow_server ? targets_parse("allow-server", c->allow_server, 0, &allowed, err, err_size) : 0;
}

/* A single target becomes the server; with several, `servers` stays empty. */
static int split_targets(struct loadgen_config *c, char *err, size_t err_size)
{
	int ret;

	if (!c->targets_text)
		return 0;
	ret = targets_parse("targets", c->targets_text, (uint16_t)c->tls_port, &c->targets, err, err_size);
	if (ret)
		return ret;
	c->server = c->targets_text;
	if (c->targets.n > 1)
		return 0;
	c->tls_port = c->targets.v[0].port;
	memcpy(c->servers.name[0], c->targets.v[0].host, sizeof(c->servers.name[0]));
	c->servers.n = 1;
	return 0;
}

static int split_rails(struct loadgen_config *c, char *err, size_t err_size)
{
	int ret = 0;

	if (c->device)
		ret = rails_split("device", c->device, &c->devices, err, err_size);
	if (!ret && c->server && !c->targets_text)
		ret = rails_split("server", c->server, &c->servers, err, err_size);
	if (!ret && !c->targets_text)
		ret = check_hosts(&c->servers, err, err_size);
	if (!ret && c->devices.n && c->servers.n && c->devices.n != c->servers.n) {
		snprintf(err, err_size,
			 "--server and --device: give as many of one as of the other (%u and %u were given)",
			 c->servers.n, c->devices.n);
		ret = -EINVAL;
	}
	c->n_rails = MAX(MAX(c->devices.n, c->servers.n), 1);
	return ret;
}

/* True for --compare transport=tcp,tls: no run uses RDMA. */
static bool compares_sockets_alone(const struct loadgen_config *c)
{
	static const char key[] = "transport=";

	for (size_t i = 0; i < c->compare.n; i++)
		if (strncmp(c->compare.v[i], key, strlen(key)) == 0)
			return !strstr(c->compare.v[i], "rdma") && !strstr(c->compare.v[i], "auto");
	return false;
}

/* Falls back to TCP only with --transport auto. */
static void choose_transport(struct loadgen_config *c)
{
	if (c->transport == TRANSPORT_RDMA && compares_sockets_alone(c))
		c->transport = TRANSPORT_TCP;
	if (c->transport != TRANSPORT_AUTO)
		return;
	c->fell_back = dev_count() == 0;
	c->transport = c->fell_back ? TRANSPORT_TCP : TRANSPORT_RDMA;
}

/* At most one worker for each client, but at least one for each server, because a worker loads only one. */
static void choose_threads(struct loadgen_config *c, int argc, char **argv)
{
	uint64_t asked = c->threads, targets = loadgen_n_targets(c);

	c->threads = MIN(asked, (c->clients + c->hosts - 1) / c->hosts);
	c->threads_raised = c->threads < targets;
	if (asked < targets && opts_given(&loadgen_options, argc, argv, "threads"))
		c->threads_asked = asked;
	c->threads = MAX(c->threads, targets);
}

/* A decimal number above 0, without sign or exponent. */
static int parse_price(struct loadgen_config *c, char *err, size_t err_size)
{
	const char *text = c->price_text;
	char *end;

	if (!text)
		return 0;
	c->cpu_hour_price = strtod(text, &end);
	if (*end == '\0' && strspn(text, "0123456789.") == strlen(text) && c->cpu_hour_price > 0 &&
	    c->cpu_hour_price <= PRICE_MAX)
		return 0;
	snprintf(err, err_size, "--price: '%s' is not allowed; allowed: a number above 0, at most %.0f, such as 0.04",
		 text, PRICE_MAX);
	return -EINVAL;
}

int loadgen_config_check(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
{
	int ret;

	choose_transport(c);
	ret = split_targets(c, err, err_size);
	if (!ret)
		ret = split_rails(c, err, err_size);
	if (!ret)
		ret = parse_rate(c, err, err_size);
	if (!ret)
		ret = check_together(c, err, err_size);
	if (!ret)
		ret = check_allowed(c, err, err_size);
	if (!ret && c->name)
		ret = check_name(c->name, err, err_size);
	if (!ret)
		ret = tuning_check(&c->tuning, err, err_size);
	if (!ret)
		ret = tcp_parse(c->tcp_text, &c->sock.tcp, err, err_size);
	if (!ret)
		ret = c->slo_text ? slo_parse(c->slo_text, &c->slo, err, err_size) : 0;
	if (!ret)
		ret = parse_price(c, err, err_size);
	if (!ret && c->metrics)
		ret = exporter_parse(c->metrics, &c->metrics_addr, err, err_size);
	if (ret)
		return ret;
	choose_clients(c, argc, argv);
	if (c->warmup_iterations == WARMUP_ITERATIONS_DEFAULT)
		c->warmup_iterations = c->iterations ? MAX(c->iterations / 10, 1) : 0;
	if (c->clients > c->hosts * CLIENTS_OF_HOST_MAX) {
		snprintf(err, err_size, "--clients: at most %d are allowed on each host", CLIENTS_OF_HOST_MAX);
		return -EINVAL;
	}
	choose_threads(c, argc, argv);
	ret = place_server(c, err, err_size);
	if (ret)
		return ret;
	if (c->name)
		snprintf(c->name_text, sizeof(c->name_text), "%s", c->name);
	else
		snprintf(c->name_text, sizeof(c->name_text), "clients-%llu", (unsigned long long)c->clients);
	if (!c->ca)
		ret = path_of_certificate("ca.pem", c->ca_path, sizeof(c->ca_path));
	else if (snprintf(c->ca_path, sizeof(c->ca_path), "%s", c->ca) >= PATH_MAX)
		ret = -EINVAL;
	if (ret)
		snprintf(err, err_size, "--ca: the path is too long");
	return ret;
}
