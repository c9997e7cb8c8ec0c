/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_server: starts the shards, says when it is ready, waits for a signal, drains. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ev.h>

#include "common/base/build_info.h"
#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/host/place.h"
#include "common/metrics/exporter.h"
#include "common/port/port.h"
#include "common/rdma/registrar.h"
#include "common/wire/psn.h"
#include "server/certificates.h"
#include "server/config/config.h"
#include "server/config/limits.h"
#include "server/control.h"
#include "server/metrics.h"
#include "server/report.h"
#include "server/sandbox.h"
#include "server/service.h"
#include "server/shard/shard.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

struct main_loop {
	struct server *server;
	ev_signal term, interrupt;
	ev_async wake;		/* sent by wake_main */
	struct control *control;
	struct certificates *certificates;
	struct service *service;
	struct exporter *exporter;	/* NULL: none */
	bool failed[RAILS_MAX];	/* rails that were given up */
	uint32_t n_failed;
	ev_timer stats;
	uint64_t last_messages;
};

static void on_signal(struct ev_loop *loop, ev_signal *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

static bool rail_has_failed(const struct server *server, uint32_t rail)
{
	uint32_t n = (uint32_t)server->cfg->threads;

	for (uint32_t i = rail * n; i < (rail + 1) * n; i++)
		if (shard_has_failed(server->shards[i]))
			return true;
	return false;
}

/* Stops all of the rail's shards: they use the same device, and a rail should serve fully or not at all. */
static void give_up_rail(struct main_loop *m, uint32_t rail)
{
	const struct server *server = m->server;
	uint32_t n = (uint32_t)server->cfg->threads;

	m->failed[rail] = true;
	m->n_failed++;
	if (server->cfg->n_rails == 1)
		log_error("a shard failed: stopping");
	else
		log_error("rail %u (%s) failed: %s", rail, server->devices[rail].name,
			  m->n_failed < server->cfg->n_rails ? "the other rails go on serving" :
			  "none is left: stopping");
	for (uint32_t i = rail * n; i < (rail + 1) * n; i++)
		shard_drain(server->shards[i]);
}

static void on_wake(struct ev_loop *loop, ev_async *w, int revents)
{
	struct main_loop *m = w->data;
	uint32_t rails = m->server->cfg->n_rails;

	(void)revents;
	for (uint32_t i = 0; i < rails; i++)
		if (!m->failed[i] && rail_has_failed(m->server, i))
			give_up_rail(m, i);
	if (m->n_failed == rails)
		ev_break(loop, EVBREAK_ALL);
	control_wake(m->control);
}

/* Called by shards, on their threads. */
static void wake_main(void *arg)
{
	struct main_loop *m = arg;

	ev_async_send(ev_default_loop(0), &m->wake);
}

static void on_stats(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct main_loop *m = w->data;
	uint64_t messages = report_sum(m->server, offsetof(struct stats, messages_in));
	uint64_t failures = fail_table_total(&m->server->control_stats.failures);

	(void)revents;
	for (uint32_t i = 0; i < m->server->n_shards; i++)
		failures += fail_table_total(&m->server->shards[i]->stats.failures);
	log_always("connected %llu, handshakes %llu, messages/s %.0f, failures %llu, QPs in use %llu",
		   (unsigned long long)report_sum(m->server, offsetof(struct stats, connected)),
		   (unsigned long long)report_sum(m->server, offsetof(struct stats, handshakes)),
		   (double)(messages - m->last_messages) / ((double)m->server->cfg->stats_interval_ns / 1e9),
		   (unsigned long long)failures,
		   (unsigned long long)report_sum(m->server, offsetof(struct stats, qps_in_use)));
	m->last_messages = messages;
	ev_timer_again(loop, w);
}

/* With --gid-index the rail's address is that of the GID entry; an address given with --bind must be the same. */
static int fit_rail(const struct server_config *cfg, struct server_rail *rail, struct dev *dev, char *err,
		    size_t err_size)
{
	char gid[ADDR_TEXT_MAX], named[ADDR_TEXT_MAX];
	int ret = dev_fit_fabric(dev, &cfg->tuning.fabric, err, err_size);

	if (!ret && cfg->bind && !addr_same_host(&dev->addr, &rail->addr)) {
		snprintf(err, err_size, "--gid-index: entry %u of device %s is %s, and --bind is %s; use only one",
			 cfg->tuning.fabric.gid_index, dev->name, addr_host_text(&dev->addr, gid),
			 addr_host_text(&rail->addr, named));
		ret = -EINVAL;
	}
	if (ret)
		dev_close(dev);
	else
		rail->addr = dev->addr;
	return ret;
}

/* Logs a line if --numa auto cannot place the threads of this device. */
static void say_unplaced(const struct dev *dev)
{
	int node = dev_numa_node(dev);
	cpu_set_t beside;

	if (node == PLACE_NO_NODE)
		log_info("--numa auto: device %s has no NUMA node, so its threads may run on any CPU", dev->name);
	else if (!place_cpus_beside(PLACE_SYS, node, &beside))
		log_info("--numa auto: this process may run on no CPU of NUMA node %d, where device %s is, so its "
			 "threads run on others", node, dev->name);
}

/* Finds and opens the device of rail `i`, which must differ from those of the rails before it. */
static int open_rail(struct server_config *cfg, uint32_t i, struct dev *devs, char *err, size_t err_size)
{
	struct server_rail *rail = &cfg->rails[i];
	const char *device = *rail->device ? rail->device : NULL;
	int ret = rail->addr.len ? 0 : dev_local_addr(device, &rail->addr, err, err_size);

	if (!ret)
		ret = dev_open(&rail->addr, device, server_config_connects(cfg, CONNECT_CM), &devs[i], err, err_size);
	if (!ret)
		ret = fit_rail(cfg, rail, &devs[i], err, err_size);
	for (uint32_t j = 0; j < i && !ret; j++)
		if (strcmp(devs[j].name, devs[i].name) == 0) {
			snprintf(err, err_size, "--bind: two addresses belong to device %s; each rail needs its own",
				 devs[i].name);
			dev_close(&devs[i]);
			ret = -EINVAL;
		}
	if (!ret && cfg->tuning.numa == TUNING_NUMA_AUTO)
		say_unplaced(&devs[i]);
	return ret;
}

static int prepare_without_rdma(struct server_config *cfg, char *err, size_t err_size)
{
	for (uint32_t i = 0; i < cfg->n_rails; i++)
		if (!cfg->rails[i].addr.len && addr_parse("0.0.0.0", 0, &cfg->rails[i].addr))
			return -EINVAL;
	return limits_derive(cfg, NULL, err, err_size);
}

/* Finds addresses and devices and derives the sizes, which must be known before a shard is made. */
static int prepare(struct server_config *cfg, struct dev devices[RAILS_MAX], char *err, size_t err_size)
{
	struct dev devs[RAILS_MAX];
	uint32_t n = 0;
	int ret = 0;

	if (!server_config_serves(cfg, TRANSPORT_RDMA))
		return prepare_without_rdma(cfg, err, err_size);
	while (n < cfg->n_rails && !ret) {
		ret = open_rail(cfg, n, devs, err, err_size);
		n += !ret;
	}
	if (!ret)
		ret = limits_derive(cfg, devs, err, err_size);
	for (uint32_t i = 0; i < n; i++) {
		devices[i] = devs[i];
		devices[i].ctx = NULL;
		devices[i].anchor = NULL;
		devices[i].channel = NULL;
		dev_close(&devs[i]);
	}
	return ret;
}

/* Opens the device counters now, before the sandbox forbids it and before clients use up the descriptors. */
static int open_ports(struct server *server)
{
	int ret = 0;

	for (uint32_t i = 0; i < server->cfg->n_rails && !ret && *server->devices[i].name; i++) {
		const struct dev *d = &server->devices[i];
		const struct port_id id = { .device = d->name, .number = d->port_num, .addr = d->addr,
					    .software = dev_is_software(d) };

		ret = port_open("/sys", &id, &server->ports[i]);
		server->n_ports += !ret;
	}
	return ret;
}

/* Each shard derives the keys of session tickets by itself, from a seed that is wiped afterwards. */
static int make_shards(struct main_loop *m, char *err, size_t err_size)
{
	struct server *server = m->server;
	int ret = certificates_begin(m->certificates, err, err_size);

	for (uint32_t i = 0; i < server_config_shards(server->cfg) && !ret; i++) {
		ret = shard_new(server, i, &server->shards[i], err, err_size);
		if (!ret)
			server->n_shards++;
	}
	certificates_end(m->certificates);
	if (!ret)
		certificates_start(m->certificates);
	return ret;
}

static int start_server(struct main_loop *m, char *err, size_t err_size)
{
	struct server *server = m->server;
	uint32_t n = server_config_shards(server->cfg);
	int ret;

	server->shards = calloc(n, sizeof(*server->shards));
	if (!server->shards || psn_registry_new(&server->psns) ||
	    (server->cfg->max_per_address && peers_new(n * server_config_addresses(server->cfg), &server->peers)) ||
	    service_new(server, ev_default_loop(0), &m->service) ||
	    certificates_new(server, ev_default_loop(0), &m->certificates) ||
	    control_new(server, ev_default_loop(0), &m->control) || open_ports(server)) {
		snprintf(err, err_size, "this machine is out of memory");
		return -ENOMEM;
	}
	ret = server->cfg->metrics ? exporter_new(ev_default_loop(0), &server->cfg->metrics_addr, metrics_text, server,
						  &m->exporter, err, err_size) : 0;
	if (ret)
		return ret;
	ret = server->cfg->region_bytes ? registrar_new(&server->registrar) : 0;
	if (ret) {
		snprintf(err, err_size, "cannot start a thread: %s; see the limits of processes and memory (ulimit -a)",
			 strerror(-ret));
		return ret;
	}
	ret = make_shards(m, err, err_size);
	for (uint32_t i = 0; i < n && !ret; i++)
		ret = shard_start(server->shards[i], err, err_size);
	return ret;
}

/* Sets the filter of system calls. Call it after everything that needs a call which the filter denies. */
static int enter_sandbox(const struct server_config *cfg, char *err, size_t err_size)
{
	int ret = cfg->seccomp ? sandbox_enter() : 0;

	if (ret)
		snprintf(err, err_size, "--seccomp on: no filter for system calls can be set here: %s", strerror(-ret));
	return ret;
}

/* Prints the line that says the server is ready and on which ports. False, with errno set, if that fails. */
static bool print_ready(const struct server *server, const struct exporter *exporter)
{
	const struct server_config *cfg = server->cfg;
	char text[ADDR_TEXT_MAX];

	printf("rdma_server ready: tls=");
	for (uint32_t i = 0; i < cfg->n_rails; i++) {
		struct addr tls = cfg->rails[i].addr;

		addr_set_port(&tls, server->tls_port);
		printf("%s%s", i ? "," : "", addr_text(&tls, text));
	}
	printf(" rdma_ports=");
	for (uint32_t i = 0; i < server->n_shards; i++)
		printf("%s%u", i ? "," : "", addr_port(&server->shards[i]->rdma_addr));
	printf(" device=");
	for (uint32_t i = 0; i < cfg->n_rails; i++)
		printf("%s%s", i ? "," : "", *server->devices[i].name ? server->devices[i].name : "none");
	printf(" shards=%u max_clients=%llu", server->n_shards, (unsigned long long)cfg->max_clients);
	if (exporter)
		printf(" metrics=%s", addr_text(exporter_addr(exporter), text));
	putchar('\n');
	return fflush(stdout) == 0 && !ferror(stdout);
}

static void stop_server(struct main_loop *m)
{
	struct server *server = m->server;

	for (uint32_t i = 0; i < server->n_shards; i++)
		shard_drain(server->shards[i]);
	if (m->control)
		control_stop(m->control);
}

/* Joins the shards' threads and frees everything; returns the first failure of a shard. */
static int finish(struct main_loop *m)
{
	struct server *server = m->server;
	int ret = 0;

	for (uint32_t i = 0; i < server->n_shards; i++) {
		int status = shard_join(server->shards[i]);

		if (status && !ret)
			ret = status;
	}
	exporter_free(m->exporter);
	control_free(m->control);
	certificates_free(m->certificates);
	service_free(m->service);
	for (uint32_t i = 0; i < server->n_shards; i++)
		shard_free(server->shards[i]);
	free(server->shards);
	registrar_free(server->registrar);
	psn_registry_free(server->psns);
	peers_free(server->peers);
	for (uint32_t i = 0; i < server->n_ports; i++)
		port_close(server->ports[i]);
	return ret;
}

/* Returns true after a signal or failure ended the loop; false at once if the ready line could not be written. */
static bool wait_for_signal(struct main_loop *m)
{
	struct ev_loop *loop = ev_default_loop(0);
	double interval_s = (double)m->server->cfg->stats_interval_ns / 1e9;

	ev_signal_init(&m->term, on_signal, SIGTERM);
	ev_signal_start(loop, &m->term);
	ev_signal_init(&m->interrupt, on_signal, SIGINT);
	ev_signal_start(loop, &m->interrupt);
	if (m->server->cfg->stats_interval_ns) {
		ev_timer_init(&m->stats, on_stats, interval_s, interval_s);
		m->stats.data = m;
		ev_timer_start(loop, &m->stats);
	}
	/* Warn only once the server serves: a server that cannot start must print a single line, which says why. */
	if (geteuid() == 0)
		log_warn("running as root, which is not needed: use a user that may open /dev/infiniband and lock "
			 "enough memory (ulimit -l)");
	if (!print_ready(m->server, m->exporter)) {
		log_error("cannot write the ready line to stdout: %s", strerror(errno));
		return false;
	}
	service_ready(m->service);
	ev_run(loop, 0);
	return true;
}

static int serve(struct server_config *cfg)
{
	struct server server = { .cfg = cfg, .started_ns = clock_now_ns() };
	struct main_loop m = { .server = &server };
	char err[512];
	bool served;
	int ret = prepare(cfg, server.devices, err, sizeof(err));

	ev_async_init(&m.wake, on_wake);
	m.wake.data = &m;
	ev_async_start(ev_default_loop(0), &m.wake);
	server.wake_main = wake_main;
	server.arg = &m;
	if (!ret)
		ret = start_server(&m, err, sizeof(err));
	if (!ret)
		ret = enter_sandbox(cfg, err, sizeof(err));
	if (ret) {
		log_error("%s", err);
		stop_server(&m);
		finish(&m);
		return EXIT_ENVIRONMENT;
	}
	served = wait_for_signal(&m);
	service_stopping(m.service);
	log_info("stopping: draining for at most %.1f s", (double)cfg->drain_timeout_ns / 1e9);
	stop_server(&m);
	ret = finish(&m);
	log_info("stopped");
	if (!served)
		return EXIT_ENVIRONMENT;
	return ret ? EXIT_FAILED : EXIT_OK;
}

/* Private keys and ticket keys stay in memory from start to end: keep them out of core files, and away from other
 * processes of the same user (prctl(2), PR_SET_DUMPABLE; ptrace(2)). */
static void protect_memory(const struct server_config *cfg)
{
	const struct rlimit none = { 0, 0 };

	if (!cfg->core_dumps && (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || setrlimit(RLIMIT_CORE, &none)))
		log_warn("cannot switch core dumps off: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct server_config cfg;
	char err[512];
	int first, status;

	server_config_defaults(&cfg);
	switch (opts_parse(&server_options, argc, argv, &cfg, &first, err, sizeof(err))) {
	case OPTS_HELP:
		opts_print_help(&server_options, first < argc ? argv[first] : NULL, stdout);
		return EXIT_OK;
	case OPTS_VERSION:
		printf("rdma_server %s\n", build_info_text());
		return EXIT_OK;
	case OPTS_ERROR:
		opts_print_error(&server_options, err, stderr);
		return EXIT_USAGE;
	case OPTS_OK:
		break;
	}
	if (first < argc) {
		fprintf(stderr, "rdma_server: %s: no operands are taken (see --help)\n", argv[first]);
		return EXIT_USAGE;
	}
	if (server_config_check(&cfg, err, sizeof(err))) {
		opts_print_error(&server_options, err, stderr);
		return EXIT_USAGE;
	}
	json_memory_watch();
	log_init("rdma_server", (enum log_level)cfg.log_level);
	log_set_format((enum log_format)cfg.log_format);
	signal(SIGPIPE, SIG_IGN);
	log_start();
	protect_memory(&cfg);
	status = serve(&cfg);
	log_stop();
	return status;
}
