/* SPDX-License-Identifier: BSD-2-Clause */
/* See meeting.h. */
#include "loadgen/run/meeting.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/build_info.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "client/resolve.h"
#include "common/base/addr.h"
#include "common/base/utf8.h"
#include "common/host/res.h"
#include "common/rdma/dev.h"
#include "loadgen/cluster/etcd/etcd_proc.h"
#include "loadgen/output/run_json.h"
#include "loadgen/run/shared_options.h"

/* The options given to this host; with `whole` also the default of --threads, so that all hosts have the same. */
static json_t *options_json(const struct opts_spec *spec, const struct loadgen_config *cfg, int argc, char **argv,
			    bool whole)
{
	json_t *a = shared_options(spec, argc, argv);
	char number[32];

	if (!a || !whole)
		return a;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)cfg->threads);
	if (!opts_given(spec, argc, argv, "threads"))
		json_array_append_new(a, json_pack("[s, s]", "threads", number));
	return a;
}

static json_t *about_json(const struct opts_spec *spec, const struct loadgen_config *cfg, int argc, char **argv)
{
	char name[256] = "";
	json_t *build = build_info_json(), *environment = res_environment_json();

	if (gethostname(name, sizeof(name) - 1))
		snprintf(name, sizeof(name), "host");
	return json_pack("{s:s, s:b, s:b, s:o, s:o, s:i, s:o, s:o}", "name", name, "joins", cfg->join != NULL,
			 "has_etcd", (int)cfg->lead,
			 "build", build, "environment", environment, "schema_version", 2, "options",
			 options_json(spec, cfg, argc, argv, false),
			 "resolved", options_json(spec, cfg, argc, argv, true));
}

static bool same_text(const json_t *leader, const json_t *member, const char *path, const char *what, char *why,
		      size_t size)
{
	const char *a = json_text_at(leader, path), *b = json_text_at(member, path);

	if (a && b && strcmp(a, b) == 0)
		return true;
	snprintf(why, size, "%s is %.64s on the joining host and %.64s on the leader", what, b ? b : "unknown",
		 a ? a : "unknown");
	return false;
}

static bool check(void *arg, const json_t *leader, const json_t *member, char *why, size_t size)
{
	bool all = !json_is_true(json_object_get(member, "joins"));

	(void)arg;
	if (json_number_at(leader, "schema_version") != json_number_at(member, "schema_version")) {
		snprintf(why, size, "the version of run.json differs from the leader's");
		return false;
	}
	return same_text(leader, member, "build.version", "rampart's version", why, size) &&
	       same_text(leader, member, "build.git_commit", "rampart's commit", why, size) &&
	       shared_options_agree(json_object_get(leader, "options"), json_object_get(member, "options"), all, why,
				    size);
}

static void on_signal(struct ev_loop *loop, ev_signal *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

/* The i-th server of the run, from 0; NULL beyond the last. */
static const char *server_at(const struct loadgen_config *cfg, uint32_t i, uint16_t *port)
{
	*port = cfg->targets.n > 1 && i < cfg->targets.n ? cfg->targets.v[i].port : (uint16_t)cfg->tls_port;
	if (cfg->targets.n > 1)
		return i < cfg->targets.n ? cfg->targets.v[i].host : NULL;
	return i < cfg->servers.n ? cfg->servers.name[i] : NULL;
}

/* This host's address on the route to the first server, reachable for the others. 0 or -errno with a line in `err`. */
static int own_address(const struct loadgen_config *cfg, char text[ADDR_TEXT_MAX], char *err, size_t err_size)
{
	struct addr server, source;
	uint16_t port;
	const char *name = server_at(cfg, 0, &port);
	int ret = resolve_host(name ? name : "", port, &server, err, err_size);

	if (ret)
		return ret;
	ret = dev_source_addr(&server, &source);
	if (ret)
		snprintf(err, err_size, "no route to %.64s: %s", name, strerror(-ret));
	else
		addr_host_text(&source, text);
	return ret;
}

/* Prints the other hosts' command, with --lease because their leases begin before they know the leader's options. */
static void print_command(const struct loadgen_config *cfg, const struct opts_spec *spec, int argc, char **argv,
			  const char *url)
{
	/* With --json - stdout is for the figures alone. */
	FILE *out = cfg->json && strcmp(cfg->json, "-") == 0 ? stderr : stdout;
	json_auto_t *options = shared_options(spec, argc, argv);
	const char *lease = shared_options_value(options, "lease");

	/* Print --lease as it was given, because the leader compares options as texts. */
	utf8_print_line(out, "On %s: performance_test %s%s%s--join '%s'",
			cfg->hosts == 2 ? "the other host" : "each of the other hosts",
			lease ? "--lease " : "", lease ? lease : "", lease ? " " : "", url);
	fflush(out);
}

static int start_etcd(struct meeting *m, const struct opts_spec *spec, const struct loadgen_config *cfg, int argc,
		      char **argv, char *err, size_t err_size)
{
	char host[ADDR_TEXT_MAX], run[ETCD_RUN_MAX + 1];
	struct etcd_proc_config c = { .host = host, .run = run, .ca = cfg->etcd_ca, .cert = cfg->etcd_cert,
				      .key = cfg->etcd_key };
	int ret = own_address(cfg, host, err, err_size);

	snprintf(run, sizeof(run), "%.60s", cfg->name_text);
	if (!ret)
		ret = etcd_proc_start(&c, &m->etcd, err, err_size);
	if (ret)
		return ret;
	snprintf(m->url, sizeof(m->url), "%s", etcd_proc_local_url(m->etcd));
	print_command(cfg, spec, argc, argv, etcd_proc_url(m->etcd));
	return 0;
}

static int join(struct meeting *m, const struct opts_spec *spec, const struct loadgen_config *cfg, int argc,
		char **argv, struct cluster **cluster, char *err, size_t err_size)
{
	const struct cluster_config c = {
		.etcd = { .url = m->url, .ca = cfg->etcd_ca, .cert = cfg->etcd_cert, .key = cfg->etcd_key,
			  .lease_ns = cfg->lease_ns },
		.hosts = cfg->join ? 0 : (uint32_t)cfg->hosts, .join_timeout_ns = cfg->join_timeout_ns,
		.leads = cfg->lead, .joins = cfg->join != NULL,
		/* The ramp decides whether the run continues. Barriers must not wait for lost hosts even to end it. */
		.go_on_after_loss = true };
	struct ev_loop *loop = ev_default_loop(0);
	ev_signal interrupt, terminate;
	int ret;

	ev_signal_init(&interrupt, on_signal, SIGINT);
	ev_signal_init(&terminate, on_signal, SIGTERM);
	ev_signal_start(loop, &interrupt);
	ev_signal_start(loop, &terminate);
	ret = cluster_join(&c, loop, about_json(spec, cfg, argc, argv), check, NULL, cluster, err, err_size);
	ev_signal_stop(loop, &interrupt);
	ev_signal_stop(loop, &terminate);
	return ret;
}

/* Reads the first line of --token-file into `token`. 0, or -errno with a line in `err`. */
static int read_token_file(const char *path, char *token, size_t size, char *err, size_t err_size)
{
	FILE *file = fopen(path, "re");
	int ret = file ? 0 : -errno;

	if (file && !fgets(token, (int)size, file))
		ret = ferror(file) ? -EIO : -ENODATA;
	if (file)
		fclose(file);
	if (ret)
		snprintf(err, err_size, "--token-file %.200s: %s", path,
			 ret == -ENODATA ? "it is empty" : strerror(-ret));
	token[strcspn(token, "\r\n")] = '\0';
	return ret;
}

/* The URL of the run's etcd. Every user of a machine can read the arguments of a program until it overwrites them, so
 * the token may also come from a file or the environment, which only this user can read. */
static int make_url(struct meeting *m, const struct loadgen_config *cfg, char *err, size_t err_size)
{
	const char *given = cfg->join ? cfg->join : cfg->cluster;
	char token[ETCD_TOKEN_MAX + 3] = "";
	const char *inherited = getenv("RAMPART_TOKEN");
	bool in_url = strchr(given, '?');
	int ret = 0, n;

	if (cfg->token_file && in_url) {
		snprintf(err, err_size, "--token-file: the URL also has a token; give only one of the two");
		return -EINVAL;
	}
	if (cfg->token_file)
		ret = read_token_file(cfg->token_file, token, sizeof(token), err, err_size);
	else if (inherited && !in_url)
		snprintf(token, sizeof(token), "%s", inherited);
	n = snprintf(m->url, sizeof(m->url), "%s%s%s", given, *token ? "?token=" : "", token);
	if (!ret && n >= (int)sizeof(m->url)) {
		snprintf(err, err_size, "%s: the URL is longer than %zu bytes", cfg->join ? "--join" : "--cluster",
			 sizeof(m->url) - 1);
		ret = -EINVAL;
	}
	return ret;
}

int meeting_begin(struct meeting *m, const struct opts_spec *spec, const struct loadgen_config *cfg, int argc,
		  char **argv, char *err, size_t err_size)
{
	struct cluster *cluster;
	int ret;

	*m = (struct meeting){ .own_argc = argc };
	ret = cfg->lead ? 0 : make_url(m, cfg, err, err_size);
	/* Child processes must not inherit the token. */
	unsetenv("RAMPART_TOKEN");
	if (ret)
		return ret;
	if (cfg->lead && start_etcd(m, spec, cfg, argc, argv, err, err_size))
		return -ENOENT;
	/* Neither ps nor run.json may show the token. */
	for (int i = 1; i < argc; i++)
		etcd_url_redact(argv[i]);
	ret = join(m, spec, cfg, argc, argv, &cluster, err, err_size);
	if (ret) {
		etcd_proc_free(m->etcd);
		m->etcd = NULL;
		return ret;
	}
	if (team_init(&m->team, cluster, ev_default_loop(0))) {
		cluster_leave(cluster, "it is out of memory");
		snprintf(err, err_size, "this machine is out of memory");
		return -ENOMEM;
	}
	m->team.go_on_after_loss = cfg->on_host_loss == HOST_LOSS_CONTINUE;
	m->team.max_skew_ns = cfg->max_skew_ns;
	log_info("%u hosts are there; this one has rank %u", m->team.n, m->team.rank);
	if (m->team.rank == 0)
		return 0;
	m->argv = shared_options_join(spec, argc, argv, json_object_get(cluster_about(cluster, 0), "resolved"),
				      &m->argc, err, err_size);
	return m->argv ? 0 : -EINVAL;
}

/* False with a line in `err` if this host may not load the servers that the leader names. */
static bool allows(const struct loadgen_config *cfg, char *err, size_t err_size)
{
	struct targets allowed;
	const char *name;
	uint16_t port;

	/* Without --server a run starts a server of its own, and a leader must not do that on another host. */
	if (!cfg->server) {
		snprintf(err, err_size, "the leader's run names no server");
		return false;
	}
	if (!cfg->allow_server)
		return true;
	if (targets_parse("allow-server", cfg->allow_server, 0, &allowed, err, err_size))
		return false;
	for (uint32_t i = 0; (name = server_at(cfg, i, &port)); i++)
		if (!targets_allow(&allowed, name, port)) {
			snprintf(err, err_size,
				 "the leader's run loads %.64s, port %u, which --allow-server does not allow", name,
				 port);
			return false;
		}
	return true;
}

bool meeting_apply(struct meeting *m, struct loadgen_config *cfg, char *err, size_t err_size)
{
	cfg->team = &m->team;
	cfg->hosts = m->team.n;
	cfg->rank = m->team.rank;
	if (m->team.rank != 0)
		cfg->report = 0;
	return allows(cfg, err, err_size);
}

void meeting_end(struct meeting *m, const char *why)
{
	team_clear(&m->team, why);
	etcd_proc_free(m->etcd);
	m->etcd = NULL;
	for (int i = m->own_argc; i < m->argc; i++)
		free(m->argv[i]);
	free(m->argv);
	m->argv = NULL;
}
