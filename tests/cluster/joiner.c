/* SPDX-License-Identifier: BSD-2-Clause */
/* A host of a run without load: joins, measures its clock, starts together with the others, passes barriers, and prints
 * a line for each event. --shift-s sets its CLOCK_MONOTONIC ahead, like that of a machine that booted earlier.
 *
 * Usage: joiner URL NAME HOSTS [--lease-s N] [--timeout-s N] [--shift-s N] [--note-kb N] [--leads] [--joins] [--go-on]
 * 	[--barriers N]	(0: passes barriers until it is ended)
 * Prints: joined RANK HOSTS EPOCH UUID MS | refused WHY | start REAL_NS LATE_NS ERROR_NS | notes BYTES | lost RANK WHY
 * | out WHY | over. Exit status: 0 over, 1 out or lost, 3 not joined. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "loadgen/cluster/cluster_core.h"

static int64_t shift_s;

/* --wrap makes the calls in the program's archives come here. */
int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int rc = __real_clock_gettime(clock, ts);

	if (clock == CLOCK_MONOTONIC)
		ts->tv_sec += shift_s;
	return rc;
}

static struct ev_loop *loop;
static struct cluster *cluster;
static struct ev_timer at_start;
static uint64_t start_ns;
static unsigned barriers = 1, passed, note_kb;
static bool go_on;
static int status;

static json_t *note(void)
{
	size_t size = (size_t)note_kb * 1024;
	char *text = malloc(size + 1);
	json_t *made;

	for (size_t i = 0; i < size; i++)
		text[i] = (char)('A' + random() % 58);
	text[size] = 0;
	made = json_pack("{s:i, s:s}", "rank", (int)cluster_rank(cluster), "text", text);
	free(text);
	return made;
}

static void arrive_next(void)
{
	char name[32];

	snprintf(name, sizeof(name), "step/%u", passed);
	cluster_arrive(cluster, name, note());
}

static void end(int with)
{
	status = with;
	ev_break(loop, EVBREAK_ALL);
}

static void on_start(struct ev_loop *l, struct ev_timer *w, int revents)
{
	uint64_t now = clock_now_ns();

	(void)l;
	(void)w;
	(void)revents;
	printf("start %lld %lld %llu\n", (long long)(start_ns - (uint64_t)shift_s * NS_PER_S),
	       (long long)(now - start_ns), (unsigned long long)cluster_clock_error_ns(cluster));
	arrive_next();
}

static void on_all(void *arg, const char *barrier)
{
	size_t bytes = 0;
	char name[64];

	(void)arg;
	snprintf(name, sizeof(name), "%s", barrier);
	for (uint32_t rank = 0; rank < cluster_hosts(cluster) && !strncmp(name, "step/", 5); rank++) {
		const json_t *of = cluster_note(cluster, name, rank);

		if (cluster_is_lost(cluster, rank))
			continue;
		if (json_integer_value(json_object_get(of, "rank")) != rank)
			printf("bad note of %u\n", rank);
		bytes += json_string_length(json_object_get(of, "text"));
	}
	if (note_kb)
		printf("notes %zu\n", bytes);
	cluster_go(cluster, name, json_string(name), strcmp(name, "clock") ? 0 : 100 * NS_PER_MS);
	cluster_forget(cluster, name);
}

static void on_go(void *arg, const char *barrier, json_t *what, uint64_t at_ns)
{
	(void)arg;
	if (!json_is_string(what) || strcmp(json_string_value(what), barrier))
		printf("bad go of %s\n", barrier);
	if (!strcmp(barrier, "clock")) {
		start_ns = at_ns;
		ev_now_update(loop);
		ev_timer_set(&at_start, (double)((int64_t)(at_ns - clock_now_ns()) > 0 ? at_ns - clock_now_ns() : 0) /
			     NS_PER_S, 0.);
		ev_timer_start(loop, &at_start);
		return;
	}
	cluster_say(cluster, json_integer(passed));
	if (++passed == barriers) {
		printf("over\n");
		end(0);
		return;
	}
	arrive_next();
}

static void on_lost(void *arg, uint32_t rank, const char *why)
{
	(void)arg;
	printf("lost %u %s\n", rank, why);
	fflush(stdout);
	if (!go_on)
		end(1);
}

static void on_out(void *arg, const char *why)
{
	(void)arg;
	printf("out %s\n", why);
	end(1);
}

static void on_said(void *arg, uint32_t rank, json_t *what)
{
	(void)arg;
	(void)rank;
	(void)what;
}

static void on_signal(struct ev_loop *l, struct ev_signal *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(l, EVBREAK_ALL);
}

static void read_options(int argc, char **argv, struct cluster_config *cfg)
{
	static const struct option known[] = {
		{ "lease-s", 1, NULL, 'l' }, { "timeout-s", 1, NULL, 't' }, { "shift-s", 1, NULL, 's' },
		{ "note-kb", 1, NULL, 'n' }, { "barriers", 1, NULL, 'b' }, { "leads", 0, NULL, 'L' },
		{ "joins", 0, NULL, 'J' }, { "go-on", 0, NULL, 'g' }, { 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'l': cfg->etcd.lease_ns = strtoull(optarg, NULL, 10) * NS_PER_S; break;
		case 't': cfg->join_timeout_ns = strtoull(optarg, NULL, 10) * NS_PER_S; break;
		case 's': shift_s = strtoll(optarg, NULL, 10); break;
		case 'n': note_kb = (unsigned)strtoul(optarg, NULL, 10); break;
		case 'b': barriers = (unsigned)strtoul(optarg, NULL, 10); break;
		case 'L': cfg->leads = true; break;
		case 'J': cfg->joins = true; break;
		case 'g': cfg->go_on_after_loss = go_on = true; break;
		default: exit(2);
		}
	}
	if (argc - optind != 3)
		exit(2);
	cfg->etcd.url = argv[optind];
	cfg->hosts = (uint32_t)strtoul(argv[optind + 2], NULL, 10);
}

int main(int argc, char **argv)
{
	static const struct cluster_events events = { .on_all = on_all, .on_go = on_go, .on_lost = on_lost,
						      .on_out = on_out, .on_said = on_said };
	struct cluster_config cfg = { .etcd.lease_ns = 10 * NS_PER_S, .join_timeout_ns = 60 * NS_PER_S };
	struct ev_signal stop;
	uint64_t begun;
	char err[1024];
	int rc;

	read_options(argc, argv, &cfg);
	log_init("joiner", LOG_LVL_WARN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	loop = ev_default_loop(0);
	ev_signal_init(&stop, on_signal, SIGTERM);
	ev_signal_start(loop, &stop);
	ev_timer_init(&at_start, on_start, 0., 0.);
	begun = clock_now_ns();
	rc = cluster_join(&cfg, loop, json_pack("{s:s}", "name", argv[optind + 1]), NULL, NULL, &cluster, err,
			  sizeof(err));
	if (rc) {
		printf("refused %d %s\n", rc, err);
		return 3;
	}
	printf("joined %u %u %llu %s %llu\n", cluster_rank(cluster), cluster_hosts(cluster),
	       (unsigned long long)cluster->epoch, cluster->uuid,
	       (unsigned long long)((clock_now_ns() - begun) / NS_PER_MS));
	cluster_listen(cluster, &events, NULL);
	cluster_measure_clock(cluster, "clock");
	ev_run(loop, 0);
	cluster_leave(cluster, status ? "it saw a loss" : NULL);
	return status;
}
