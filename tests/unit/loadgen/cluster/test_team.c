/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/cluster/team.c and progress.c: what other hosts report is kept and shown. */
#include "tests/unit/helpers/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "loadgen/cluster/cluster.h"
#include "loadgen/ramp/phases.h"
#include "loadgen/ramp/progress.h"
#include "loadgen/cluster/team.h"
#include "loadgen/output/outcome.h"
#include "loadgen/measurement/series.h"
#include "loadgen/measurement/step.h"

/* The cluster: only remembers its callbacks. */

struct cluster {
	uint32_t rank;
	struct cluster_events events;
	void *arg;
};

static struct cluster fake;
static struct team team;

void cluster_arrive(struct cluster *c, const char *barrier, json_t *note)
{
	(void)c;
	(void)barrier;
	json_decref(note);
}

void cluster_measure_clock(struct cluster *c, const char *barrier)
{
	(void)c;
	(void)barrier;
}

void cluster_go(struct cluster *c, const char *barrier, json_t *what, uint64_t in_ns)
{
	(void)in_ns;
	cluster_arrive(c, barrier, what);
}

const json_t *cluster_note(const struct cluster *c, const char *barrier, uint32_t rank)
{
	(void)c;
	(void)barrier;
	(void)rank;
	return NULL;
}

void cluster_put_out_absent(struct cluster *c, const char *barrier, const char *why)
{
	(void)c;
	(void)barrier;
	(void)why;
}

void cluster_forget(struct cluster *c, const char *barrier)
{
	(void)c;
	(void)barrier;
}

void cluster_say(struct cluster *c, json_t *what)
{
	(void)c;
	json_decref(what);
}

void cluster_listen(struct cluster *c, const struct cluster_events *events, void *arg)
{
	c->events = *events;
	c->arg = arg;
}

uint32_t cluster_rank(const struct cluster *c)
{
	return c->rank;
}

uint32_t cluster_hosts(const struct cluster *c)
{
	(void)c;
	return 2;
}

const json_t *cluster_about(const struct cluster *c, uint32_t rank)
{
	(void)c;
	(void)rank;
	return NULL;
}

int64_t cluster_clock_offset_ns(const struct cluster *c)
{
	(void)c;
	return 0;
}

uint64_t cluster_clock_error_ns(const struct cluster *c)
{
	(void)c;
	return 1000;
}

void cluster_leave(struct cluster *c, const char *why)
{
	(void)c;
	(void)why;
}

static int set_up_member(void **state)
{
	(void)state;
	fake = (struct cluster){ .rank = 1 };
	return team_init(&team, &fake, ev_default_loop(0));
}

static int tear_down(void **state)
{
	(void)state;
	team_clear(&team, NULL);
	return 0;
}

/* Reads into `out` what progress_show writes to a terminal. */
static void shown_on_a_terminal(const struct ramp *r, char *out, size_t size)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave, before = dup(STDERR_FILENO);
	struct progress p = { .quiet = false };
	size_t n = 0;
	ssize_t got;

	assert_true(master >= 0 && before >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	fflush(stderr);
	dup2(slave, STDERR_FILENO);
	progress_show(&p, r, "");
	dup2(before, STDERR_FILENO);
	close(slave);
	/* Read until the end, which is EIO once nobody has the terminal open. */
	while ((got = read(master, out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = '\0';
	close(master);
	close(before);
}

TEST(said__phase_with_control_characters__shown_as_digits)
{
	static struct loadgen_config cfg = { .hosts = 2 };
	static struct outcome outcome;
	static struct step step = { .target = 1 };
	static struct ramp r = { .cfg = &cfg, .team = &team, .outcome = &outcome, .phase = RAMP_DRAIN,
				 .current.step = &step };
	json_t *what = json_pack("{s:i, s:s}", "hosts", 2, "phase", "a\033[31mb\007\xc2\x9b" "1m");
	char out[1000];

	assert_int_equal(series_new(&outcome.series), 0);
	fake.events.on_said(fake.arg, 0, what);
	json_decref(what);
	assert_string_equal(team.live[0].phase, "a\\x1b[31mb\\x07\\x9b1m");
	/* Other code might also put such characters into the line. */
	strcpy(team.live[0].phase, "x\033]0;y\007z\n\x9b");
	shown_on_a_terminal(&r, out, sizeof(out));
	assert_int_equal(strncmp(out, "\r\033[K", 4), 0);
	assert_non_null(strstr(out, "x\\x1b]0;y\\x07z\\x0a\\x9b"));
	for (const char *p = out + 4; *p; p++)
		assert_in_range((unsigned char)*p, ' ', '~');
	series_free(outcome.series);
}

static char out_because[600];

static void on_out(void *arg, const char *why)
{
	(void)arg;
	snprintf(out_because, sizeof(out_because), "%s", why);
}

static void on_go(void *arg, uint32_t step, const char *name, json_t *what, uint64_t at_ns)
{
	(void)arg;
	(void)step;
	(void)name;
	(void)what;
	(void)at_ns;
}

static void let_go(const char *barrier, size_t elements)
{
	json_t *what = json_array();

	for (size_t i = 0; i < elements; i++)
		json_array_append_new(what, json_object());
	fake.events.on_go(fake.arg, barrier, what, 0);
	json_decref(what);
}

TEST(gone__of_runs_before__dropped)
{
	static const struct team_events none = { .on_out = on_out };

	let_go("r1/s0/end", 1);
	let_go("r2/s0/info", 1);
	team_begin_run(&team, &none, NULL);
	assert_non_null(team_gone(&team, 0, "end"));
	team_end_run(&team);
	team_begin_run(&team, &none, NULL);
	assert_non_null(team_gone(&team, 0, "info"));
	assert_int_equal(json_object_size(team.gone), 1);
}

/* A run may have thousands of steps, so old ones are dropped. */
TEST(gone__of_steps_before_the_last__dropped)
{
	static const struct team_events none = { .on_out = on_out, .on_go = on_go };

	team_begin_run(&team, &none, NULL);
	let_go("r1/s0/info", 1);
	let_go("r1/s1/step", 1);
	let_go("r1/s1/ready", 1);
	let_go("r1/s2/step", 1);
	assert_non_null(team_gone(&team, 1, "ready"));
	let_go("r1/s3/step", 1);
	assert_int_equal(json_object_size(team.gone), 3);
	assert_non_null(team_gone(&team, 2, "step"));
	assert_non_null(team_gone(&team, 0, "info"));
}

/* A few bytes of a leader's notes may become much memory: 17 MB of them took 1.3 GiB. */
TEST(gone__more_than_a_run_needs__this_host_is_out_and_keeps_nothing)
{
	static const struct team_events events = { .on_out = on_out };
	char barrier[96];

	out_because[0] = '\0';
	log_init("test_team", LOG_LVL_ERROR);
	team_begin_run(&team, &events, NULL);
	team.events = &events;
	for (unsigned i = 1; i <= 100 && !team.out; i++) {
		assert_true(json_memory(team.gone) <= 32 << 20);
		snprintf(barrier, sizeof(barrier), "r2/s0/x%u", i);
		let_go(barrier, 10000);
	}
	assert_true(team.out);
	assert_string_equal(out_because,
			    "the leader's go messages take more memory than a run needs; allowed: 32 MiB");
	let_go("r2/s0/end", 10000);
	assert_int_equal(json_object_size(team.gone), 0);
}

TEST_EACH(set_up_member, tear_down)
