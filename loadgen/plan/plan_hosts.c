/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines both hosts before a run. See plan_hosts.h. */
#include "loadgen/plan/plan_hosts.h"

#include <errno.h>
#include <ifaddrs.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include <ev.h>

#include "client/client.h"
#include "common/base/json_at.h"
#include "common/host/cgroup.h"
#include "common/host/place.h"
#include "common/host/res.h"
#include "common/host/sample.h"
#include "common/port/port.h"
#include "common/rdma/dev.h"
#include "loadgen/ramp/crew.h"
#include "loadgen/server_under_test/needs.h"
#include "loadgen/server_under_test/sut.h"
#include "loadgen/traffic/payload.h"
#include "loadgen/traffic/workload.h"

#define SETTING_MAX 4294967295.	/* no server setting is larger */
#define THREADS_MAX 256		/* --threads of rdma_server */
#define CREDITS_MAX 128		/* --credits */

/* Reads a limit: null means no limit, and a missing value is unknown. */
static double limit_at(const json_t *o, const char *path)
{
	const json_t *v = json_at(o, path);

	return json_is_null(v) ? INFINITY : json_number_at(o, path);
}

void hosts_read(const json_t *environment, struct estimate_host *out)
{
	const json_t *limits = json_at(environment, "rdma_device.limits");

	*out = (struct estimate_host){
		.driver = memory_driver_of(json_text_at(environment, "rdma_device.driver")),
		.max_qp = json_number_at(limits, "max_qp"),
		.max_qp_wr = json_number_at(limits, "max_qp_wr"),
		.max_cq = json_number_at(limits, "max_cq"),
		.max_cqe = json_number_at(limits, "max_cqe"),
		.max_mr = json_number_at(limits, "max_mr"),
		.max_mw = json_number_at(limits, "max_mw"),
		.max_srq_wr = json_number_at(limits, "max_srq_wr"),
		.nofile = limit_at(environment, "rlimits.nofile.soft"),
		.memlock = limit_at(environment, "rlimits.memlock.soft"),
		.memory_bytes = res_memory_of(environment),
		.available_bytes = NAN,
		.kernel_bytes = NAN,
		.tasks = res_tasks_of(environment),
		.cpus = res_cpus_of(environment),
		.line_bits_per_s = NAN,
		.ports = res_port_range(environment),
		.ports_resting = 0,
	};
}

/* Number of files that either program opens to watch the port, and the speed of its line. */
static void look_at_port(const struct dev *d, double *files, double *line_bits_per_s)
{
	const struct port_id id = { .device = d->name, .number = d->port_num, .addr = d->addr,
				    .software = dev_is_software(d) };
	const char *source;
	struct port *port;
	json_t *reading;

	*files = *line_bits_per_s = NAN;
	if (port_open("/sys", &id, &port))
		return;
	*files = port_files(port);
	reading = port_read(port);
	*line_bits_per_s = port_line_bits_per_s(reading, &source);
	json_decref(reading);
	port_close(port);
}

/* Speed of the network interface that has the address; NAN: not known. */
static double line_of_address(const struct addr *local)
{
	struct ifaddrs *all, *i;
	double bits_per_s = NAN;

	if (getifaddrs(&all))
		return NAN;
	for (i = all; i; i = i->ifa_next) {
		struct addr a;

		if (i->ifa_addr && !addr_from_sockaddr(i->ifa_addr, &a) && addr_same_host(&a, local))
			bits_per_s = port_netdev_bits_per_s(PLACE_SYS, i->ifa_name);
	}
	freeifaddrs(all);
	return bits_per_s;
}

static int describe_device(const struct addr *local, const char *name, json_t **out, double *files, double *line,
			   char *err, size_t err_size)
{
	struct dev dev;
	int ret = dev_open(local, name, false, &dev, err, err_size);

	if (ret)
		return ret;
	*out = dev_json(&dev);
	look_at_port(&dev, files, line);
	dev_close(&dev);
	return 0;
}

/* The address that clients connect from: that of the device, or the source address of the route to the server. */
static int local_address(const struct loadgen_config *cfg, const struct addr *server, struct addr *out, char *err,
			 size_t err_size)
{
	const char *device = cfg->devices.n ? cfg->devices.name[0] : NULL;
	int ret;

	if (!cfg->server)
		return dev_local_addr(device, out, err, err_size);
	ret = dev_source_addr(server, out);
	if (ret)
		snprintf(err, err_size, "no route to --server %s: %s", cfg->servers.name[0], strerror(-ret));
	return ret;
}

/* Reads the figures that change from moment to moment. */
static void measure_own(struct estimate_host *h)
{
	uint64_t available, kernel, sockets;

	h->available_bytes = res_machine_available_bytes(&available) ? NAN : (double)available;
	h->kernel_bytes = res_machine_kernel_bytes(&kernel) ? NAN : (double)kernel;
	h->ports_resting = res_tcp_sockets(&sockets) ? 0 : (double)sockets;
}

static int look_here(struct hosts *h, const struct addr *server, char *err, size_t err_size)
{
	const struct loadgen_config *cfg = h->cfg;
	bool rdma = cfg->transport == TRANSPORT_RDMA;
	json_t *device = rdma ? NULL : json_null(), *environment;
	struct addr local = { 0 };
	struct cgroup group;
	double files = 0, line = NAN, cpus;
	int ret = rdma || cfg->server ? local_address(cfg, server, &local, err, err_size) : 0;

	if (!ret && rdma)
		ret = describe_device(&local, cfg->devices.n ? cfg->devices.name[0] : NULL, &device, &files, &line,
				      err, err_size);
	else if (!ret && cfg->server)
		line = line_of_address(&local);
	if (ret)
		return ret;
	h->same_machine = !cfg->server || addr_same_host(&local, server);
	/* Raise the limits first, because the programs do so too. */
	res_raise_nofile();
	res_raise_memlock();
	environment = res_environment_json();
	if (json_object_set_new(environment, "rdma_device", device)) {
		snprintf(err, err_size, "this machine is out of memory");
		json_decref(environment);
		return -ENOMEM;
	}
	hosts_read(environment, &h->generator_host);
	json_decref(environment);
	measure_own(&h->generator_host);
	cpus = place_cpus();
	if (cpus > 0)
		h->generator_host.cpus = cpus;
	h->generator_host.line_bits_per_s = h->same_machine ? NAN : line;
	cgroup_find("", &group);
	h->generator_host.port_fds = files;
	h->generator_host.sampler_fds = cfg->sample_interval_ns ? SAMPLE_FILES + cgroup_n_files(&group) : 0;
	return 0;
}

struct question {
	struct hosts *hosts;
	struct sut sut;
	char *err;
	size_t err_size;
};

static void on_report(void *arg, enum control_what what, uint32_t number, json_t *report)
{
	struct question *q = arg;

	(void)number;
	if (what == CONTROL_INFO) {
		q->hosts->info = json_incref(report);
		sut_ask(&q->sut, CONTROL_STATS, 0);
	} else {
		q->hosts->stats = json_incref(report);
		ev_break(q->sut.loop, EVBREAK_ALL);
	}
}

static void on_lost(void *arg, const char *why)
{
	struct question *q = arg;

	snprintf(q->err, q->err_size, "the server could not be asked: %s", why);
	ev_break(q->sut.loop, EVBREAK_ALL);
}

static const struct sut_events sut_events = { .on_report = on_report, .on_lost = on_lost };

static int question_ask(struct question *q)
{
	int ret = sut_connect(&q->sut, q->err, q->err_size);

	if (ret)
		return ret;
	sut_ask(&q->sut, CONTROL_INFO, 0);
	ev_run(q->sut.loop, 0);
	return q->hosts->stats ? 0 : -ENOTCONN;
}

static void read_server(struct hosts *h)
{
	const char *source;

	hosts_read(json_at(h->info, "environment"), &h->server_host);
	if (!h->same_machine)
		h->server_host.line_bits_per_s =
			port_line_bits_per_s(json_array_get(json_at(h->stats, "network.ports"), 0), &source);
	/* A running server has checked and pinned its memory already; its settings bound what clients add. */
	h->server_host.memlock = INFINITY;
	h->server_host.kernel_bytes = json_number_at(h->stats, "resources.machine_kernel_bytes");
	h->server_host.available_bytes = h->same_machine ? h->generator_host.available_bytes :
					 json_number_at(h->stats, "resources.machine_available_bytes");
}

void hosts_take_reports(struct hosts *h, json_t *info, json_t *stats)
{
	h->info = json_incref(info);
	h->stats = json_incref(stats);
	read_server(h);
}

int hosts_look(const struct loadgen_config *cfg, bool ask, struct hosts *out, char *err, size_t err_size)
{
	struct question q = { .hosts = out, .err = err, .err_size = err_size };
	int ret;

	*out = (struct hosts){ .cfg = cfg };
	measured_init(&out->measured);
	snprintf(err, err_size, "this machine is out of memory");
	sut_init(&q.sut, cfg, NULL, "", ev_default_loop(EVFLAG_AUTO), &sut_events, &q);
	ret = q.sut.loop ? sut_find(&q.sut, err, err_size) : -ENOMEM;
	if (!ret)
		ret = look_here(out, &q.sut.addrs[0], err, err_size);
	if (!ret && cfg->server && ask) {
		ret = question_ask(&q);
		if (!ret)
			read_server(out);
	} else if (!ret) {
		out->server_host = out->generator_host;
	}
	if (q.sut.loop)
		sut_clear(&q.sut);
	if (ret)
		hosts_free(out);
	return ret;
}

void hosts_free(struct hosts *h)
{
	json_decref(h->info);
	json_decref(h->stats);
}

/* A setting from the report of a server, capped at SETTING_MAX. */
static uint64_t whole(const json_t *o, const char *path, uint64_t otherwise)
{
	double v = json_number_at(o, path);

	return v >= 0 ? (uint64_t)fmin(v, SETTING_MAX) : otherwise;
}

/* A bit for each transport that the server serves; all if it does not report them. */
static unsigned transports_of(const json_t *config)
{
	const json_t *names = json_at(config, "transports"), *name;
	unsigned mask = 0;
	size_t i;

	json_array_foreach(names, i, name)
		for (unsigned t = 0; t < TRANSPORT_N; t++)
			if (json_is_string(name) && strcmp(json_string_value(name), transport_names[t]) == 0)
				mask |= 1u << t;
	return names ? mask : TRANSPORTS_ALL;
}

static void server_that_runs(const struct hosts *h, struct estimate_server *s)
{
	const json_t *config = json_at(h->info, "config"), *now = json_at(h->stats, "resources");
	uint64_t rails = MAX(json_array_size(json_at(h->info, "rails")), 1),
		threads = MIN(MAX(whole(config, "threads", 1), 1), THREADS_MAX);

	*s = (struct estimate_server){
		.size = {
			.rails = MIN(rails, h->cfg->n_rails), .threads = threads,
			.max_clients = whole(config, "max_clients", 0),
			.credits = MIN(MAX(whole(config, "credits", 1), 1), CREDITS_MAX),
			.message_bytes = whole(config, "message_bytes", 0),
			.region_bytes = whole(config, "region_bytes", 0),
			/* INFO has the sums over all shards. */
			.max_handshakes = whole(config, "max_handshakes", 0) / (rails * threads),
			.srq_depth = whole(config, "receive_buffers", 0) / (rails * threads),
			.cq_depth = whole(config, "tuning.cq_depth", 0),
			.transport_mask = transports_of(config),
			.windows = json_is_true(json_at(config, "windows")),
			.zerocopy = json_number_at(config, "tcp.zerocopy_bytes") > 0,
		},
		.inline_bytes = MIN(whole(config, "message_bytes", 0),
				    whole(config, "tuning.inline_bytes", TUNING_INLINE_AUTO)),
		.max_per_address = whole(config, "max_per_address", 0),
		.clients = json_number_at(h->stats, "pools.admitted"),
		.fds = json_number_at(now, "fds"),
		.process_threads = json_number_at(now, "threads"),
		.rss_bytes = json_number_at(now, "rss_bytes"),
		.pinned_bytes = json_number_at(now, "pinned_bytes"),
		.qps = json_number_at(now, "qps"), .cqs = json_number_at(now, "cqs"), .mrs = json_number_at(now, "mrs"),
	};
}

static void server_of_our_own(const struct loadgen_config *c, struct estimate_server *s)
{
	*s = (struct estimate_server){
		.own = true, .fds = NAN, .process_threads = NAN, .rss_bytes = NAN, .pinned_bytes = NAN, .qps = NAN,
		.cqs = NAN, .mrs = NAN,
	};
	needs_of_server(c, &s->size);
	s->inline_bytes = MIN(s->size.message_bytes, c->tuning.inline_bytes);
}

static void generator_of(const struct loadgen_config *c, struct estimate_generator *g)
{
	struct workload_needs needs = { 0 };
	struct client_config client;

	c->wl->needs(c, &needs);
	crew_client_config(c, &client);
	*g = (struct estimate_generator){
		.rails = c->n_rails, .workers = c->threads, .client = client_sizes_wanted(&client),
		.inline_bytes = MIN(client.region ? MAX(client.message_bytes, client.buffer_bytes) :
				    client.message_bytes, client.inline_bytes),
		.region_bytes = (double)needs.region_bytes, .landing_bytes = (double)needs.landing_bytes,
		.landing_shared = needs.landing_shared,
		.text_bytes = needs.region_bytes ? (double)payload_bytes(c->message_bytes) : 0,
		.connecting = c->connect_concurrency, .phased = c->phased, .resting_per_s = (double)c->churn_per_s,
		.alone = loadgen_is_search(c) ? 0 : c->floor,
	};
}

/* Operations a second of all clients that the options ask for; NAN: a closed loop, or a search for the rate. */
static double planned_rate(const struct loadgen_config *c)
{
	if (c->rate_per_client)
		return (double)(c->rate_per_client * (c->active ? MIN(c->active, c->clients) : c->clients));
	return c->rates.n && !c->find_rate ? (double)c->rates.v[c->rates.n - 1] : NAN;
}

void hosts_fill(void *arg, uint64_t clients, struct estimate_in *out)
{
	const struct hosts *h = arg;
	struct loadgen_config c = *h->cfg;
	double rate;

	c.clients = clients;
	c.threads = MIN(c.threads, clients);
	*out = (struct estimate_in){ .clients = clients, .same_machine = h->same_machine,
				     .transport = (enum transport)c.transport,
				     .server_host = h->server_host, .generator_host = h->generator_host };
	generator_of(&c, &out->generator);
	rate = planned_rate(&c);
	if (isnan(rate))
		rate = h->measured.messages_per_s;
	out->load = (struct estimate_load){ rate * (double)c.message_bytes,
					    measured_cpus(&h->measured.server, rate, (double)c.churn_per_s),
					    measured_cpus(&h->measured.generator, rate, (double)c.churn_per_s) };
	out->generator.memory_floor_ratio = (double)c.memory_floor_percent / 100;
	if (h->info)
		server_that_runs(h, &out->server);
	else
		server_of_our_own(&c, &out->server);
}
