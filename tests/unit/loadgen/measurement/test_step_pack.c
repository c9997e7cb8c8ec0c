/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/measurement/step_pack.c and step_merge.c: the merged steps of several hosts equal the step of
 * one host with all their samples; a damaged step is refused completely. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "common/hist/hist_internal.h"
#include "loadgen/measurement/step.h"
#include "loadgen/measurement/step_fields.h"
#include "loadgen/measurement/step_pack.h"
#include "loadgen/worker/worker.h"

#define HOSTS_MAX 5
#define TARGET 40
#define MANY 64

/* The test plays the workers; the last one belongs to a host that measured everything. */
struct worker {
	struct worker_stats stats;
};

const struct worker_stats *worker_stats(const struct worker *w)
{
	return &w->stats;
}

static struct worker *workers[HOSTS_MAX + 1];
static struct step *steps[HOSTS_MAX + 1];
static const struct workload messages = { .streams = 1, .kind_names = { "a", "b" } };
static struct loadgen_config cfg;
static char err[512];

static int set_up(void **state)
{
	(void)state;
	memset(&cfg, 0, sizeof(cfg));
	cfg.wl = &messages;
	cfg.inflight = 1;
	for (int i = 0; i <= HOSTS_MAX; i++) {
		workers[i] = calloc(1, sizeof(*workers[i]));
		assert_non_null(workers[i]);
		assert_int_equal(worker_stats_init(&workers[i]->stats), 0);
		worker_stats_reset(&workers[i]->stats);
		assert_int_equal(step_new(i < HOSTS_MAX ? 4 : TARGET, 64, 1, &steps[i]), 0);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i <= HOSTS_MAX; i++) {
		worker_stats_release(&workers[i]->stats);
		free(workers[i]);
		step_free(steps[i]);
	}
	return 0;
}

/* Samples, which go to a host and to the one that has everything. */

static void both_count(int host, size_t offset, uint64_t n)
{
	counter *own = (counter *)(void *)((char *)&workers[host]->stats + offset);
	counter *all = (counter *)(void *)((char *)&workers[HOSTS_MAX]->stats + offset);

	counter_add(own, n);
	counter_add(all, n);
}

static void both_fail(int host, uint64_t *seed)
{
	const struct fail f = { .stage = (enum stage)(unit_random(seed) % STAGE_N), .kind = FAIL_ERRNO,
				.code = (int)(unit_random(seed) % 20) };

	fail_table_count(&workers[host]->stats.failures, &f);
	fail_table_count(&workers[HOSTS_MAX]->stats.failures, &f);
	fail_table_count(&workers[host]->stats.retried, &f);
	fail_table_count(&workers[HOSTS_MAX]->stats.retried, &f);
}

static void fair_add(struct worker_fairness *f, uint64_t n)
{
	uint64_t clients = counter_get(&f->n);

	counter_set(&f->min, clients && counter_get(&f->min) < n ? counter_get(&f->min) : n);
	counter_set(&f->max, counter_get(&f->max) > n ? counter_get(&f->max) : n);
	counter_add(&f->n, 1);
	counter_add(&f->sum, n);
	atomic_store(&f->squares, atomic_load(&f->squares) + (double)(n * n));
}

#define OFFSET(field) offsetof(struct worker_stats, field)

static void deal_one(int host, uint64_t *seed)
{
	uint64_t ns = unit_random(seed) >> (24 + unit_random(seed) % 40);

	for (size_t i = 0; i < STEP_HISTS; i++) {
		uint64_t n = unit_random(seed) % 2;

		hist_record_n(workers[host]->stats.hists.all[i], ns + i, n);
		hist_record_n(workers[HOSTS_MAX]->stats.hists.all[i], ns + i, n);
	}
	both_fail(host, seed);
	fair_add(&workers[host]->stats.fair, ns % 1000);
	fair_add(&workers[HOSTS_MAX]->stats.fair, ns % 1000);
	fair_add(&workers[host]->stats.streams[0].fair, ns % 77);
	fair_add(&workers[HOSTS_MAX]->stats.streams[0].fair, ns % 77);
}

static void deal(int n_hosts, uint64_t *seed, int samples)
{
	const size_t counters[] = { OFFSET(attempted), OFFSET(failed), OFFSET(dropped), OFFSET(retries),
				    OFFSET(rails_dropped),
		OFFSET(messages), OFFSET(messages_measured), OFFSET(sends_measured), OFFSET(checked), OFFSET(corrupt),
		OFFSET(cycles), OFFSET(cycles_failed), OFFSET(outages), OFFSET(repeated), OFFSET(psn_verified),
		OFFSET(psns_exchanged), OFFSET(psns_shared), OFFSET(psns_redrawn), OFFSET(psn_mismatches),
		OFFSET(late),
		OFFSET(kind_measured[0]), OFFSET(streams[0].took_ns), OFFSET(streams[0].waited_ns), OFFSET(qps),
		OFFSET(cqs), OFFSET(mrs), OFFSET(pinned_bytes) };

	for (int i = 0; i < samples; i++)
		deal_one((int)(unit_random(seed) % (uint64_t)n_hosts), seed);
	for (int h = 0; h < n_hosts; h++)
		for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
			both_count(h, counters[i], unit_random(seed) % 3);
	for (int h = 0; h <= HOSTS_MAX; h++) {
		counter_set(&workers[h]->stats.measure_start_ns, NS_PER_S);
		counter_set(&workers[h]->stats.measure_end_ns, 5 * NS_PER_S);
		steps[h]->begin = (struct step_moment){ .now_ns = NS_PER_S,
							.generator = { .rss_bytes = 10, .cpu_user_ns = 7 } };
		steps[h]->end = (struct step_moment){ .now_ns = 5 * NS_PER_S,
						      .generator = { .rss_bytes = 20, .cpu_user_ns = 107,
			.fds = 3, .threads = 2 }, .work = { .requests = 11 }, .payload_bytes = 13 };
		steps[h]->connected_peak = steps[h]->connected_held = 4;
		for (uint32_t i = 0; i < 16; i++)
			intervals_add(&steps[h]->intervals, 0.25 * (i + 1), 100 + i % 2,
				      workers[h]->stats.hists.response);
		step_collect(steps[h], &workers[h], 1, &cfg);
	}
}

/* Packs a step as it comes from another host: written and parsed. */
static json_t *pack(int host)
{
	json_t *o = step_pack(steps[host], &cfg, &workers[host], 1), *back;
	char *text = json_dumps(o, JSON_COMPACT);

	assert_non_null(text);
	back = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(back);
	free(text);
	json_decref(o);
	return back;
}

static struct step *begin(void)
{
	struct step *into;

	assert_int_equal(step_merge_begin(steps[0], TARGET, &into), 0);
	return into;
}

static void merge(struct step *into, int host)
{
	json_auto_t *packed = pack(host);

	if (step_merge(into, (uint32_t)host, packed, err, sizeof(err)))
		fail_msg("%s", err);
}

static void assert_same_hist(const char *name, const struct hist *a, const struct hist *b)
{
	if (hist_count(a) != hist_count(b) || counter_get(&a->sum) != counter_get(&b->sum) ||
	    counter_get(&a->min) != counter_get(&b->min) || counter_get(&a->max) != counter_get(&b->max))
		fail_msg("%s: count, sum, minimum or maximum differ", name);
	for (size_t i = 0; i < HIST_CELLS; i++)
		if (counter_get(&a->cell[i]) != counter_get(&b->cell[i]))
			fail_msg("%s: cell %zu differs", name, i);
}

static void assert_same_hists(const struct step *a, const struct step *b)
{
	char name[STEP_HIST_NAME];

	for (size_t i = 0; i < STEP_HISTS; i++)
		assert_same_hist(step_hist_name(i, name), a->hists.all[i], b->hists.all[i]);
	for (int i = 0; i < STAGE_TIMED; i++)
		assert_same_hist(stage_names[i], a->stages[i], b->stages[i]);
	assert_same_hist("total", a->total, b->total);
}

static void assert_same_fields(const struct step *a, const struct step *b)
{
	for (const struct step_field *f = step_fields; f->name; f++)
		for (uint32_t i = 0; i < f->n; i++) {
			double x = step_field_get(f, a, i), y = step_field_get(f, b, i);

			if (fabs(x - y) > 1e-12 * fmax(1, fabs(y)))
				fail_msg("%s: %.17g and not %.17g", f->name, x, y);
		}
}

static void assert_same_table(const struct fail_table *a, const struct fail_table *b)
{
	assert_int_equal(fail_table_total(a), fail_table_total(b));
	assert_int_equal(a->n, b->n);
	for (uint32_t i = 0; i < a->n; i++) {
		uint32_t k = 0;

		while (k < b->n && memcmp(&a->rows[i].fail, &b->rows[k].fail, sizeof(a->rows[i].fail)) != 0)
			k++;
		assert_true(k < b->n);
		assert_int_equal(counter_get(&a->rows[i].count), counter_get(&b->rows[k].count));
	}
}

static void assert_same_fairness(const struct step_fairness *a, const struct step_fairness *b)
{
	assert_int_equal(a->clients, b->clients);
	assert_int_equal(a->min, b->min);
	assert_int_equal(a->max, b->max);
	assert_float_equal(a->sum, b->sum, 0);
	assert_float_equal(a->squares, b->squares, 0);
}

static void assert_same(const struct step *a, const struct step *b)
{
	assert_same_hists(a, b);
	assert_same_fields(a, b);
	assert_same_table(&a->failures, &b->failures);
	assert_same_table(&a->retried, &b->retried);
	assert_same_fairness(&a->fairness, &b->fairness);
	assert_same_fairness(&a->stream_fairness[0], &b->stream_fairness[0]);
	assert_int_equal(a->steady, b->steady);
	assert_int_equal(a->intervals.n, b->intervals.n);
	for (uint32_t i = 0; i < a->intervals.n; i++) {
		const struct interval *x = &a->intervals.v[i], *y = &b->intervals.v[i];

		assert_float_equal(x->messages_per_s, y->messages_per_s, 1e-9);
		assert_memory_equal(x->cells, y->cells, sizeof(x->cells));
	}
}

/* 6 deals of up to 3,000 samples to between 1 and 5 hosts. */
TEST(merge__random_samples__as_of_one_host)
{
	uint64_t seed = 7;

	for (int round = 0; round < 6; round++) {
		int n_hosts = 1 + (int)(unit_random(&seed) % HOSTS_MAX);
		struct step *into;

		deal(n_hosts, &seed, (int)(unit_random(&seed) % 3000));
		/* The ramp counts these itself, not the workers. */
		steps[HOSTS_MAX]->connected_peak = 4 * (uint32_t)n_hosts;
		steps[HOSTS_MAX]->connected_held = steps[HOSTS_MAX]->senders = 0;
		for (uint32_t i = 0; i < 16; i++)
			steps[HOSTS_MAX]->intervals.v[i].messages_per_s *= n_hosts;
		into = begin();
		for (int h = 0; h < n_hosts; h++) {
			steps[HOSTS_MAX]->connected_held += steps[h]->connected_held;
			steps[HOSTS_MAX]->senders += steps[h]->senders;
			merge(into, h);
		}
		assert_int_equal(into->hosts.n, n_hosts);
		assert_same(into, steps[HOSTS_MAX]);
		step_free(into);
		tear_down(state);
		set_up(state);
	}
}

TEST(merge__any_order__the_same)
{
	struct step *a, *b;
	uint64_t seed = 3;

	deal(5, &seed, 500);
	steps[2]->intervals.n = 14;
	steps[3]->generator_saturated = true;
	steps[1]->target = 0;
	steps[4]->phase_ns[2] = 77;
	a = begin();
	b = begin();
	for (int h = 0; h < 5; h++) {
		merge(a, h);
		merge(b, 4 - h);
	}
	assert_same(a, b);
	assert_int_equal(a->intervals.n, 14);
	assert_true(a->generator_saturated);
	assert_int_equal(a->hosts.saturated[0], 1 << 3);
	assert_memory_equal(a->hosts.saturated, b->hosts.saturated, sizeof(a->hosts.saturated));
	assert_int_equal(a->phase_ns[2], 77);
	step_free(a);
	step_free(b);
}

TEST(merge__resources__differences_added)
{
	struct step *into;
	uint64_t seed = 5;
	json_t *o;

	deal(3, &seed, 10);
	into = begin();
	for (int h = 0; h < 3; h++)
		merge(into, h);
	o = step_json(into, &cfg, NULL, 0);
	assert_float_equal(json_number_at(o, "resources.generator.cpu_user_s"), 300e-9, 1e-15);
	assert_float_equal(json_number_at(o, "resources.generator.rss_bytes"), 60, 0);
	assert_float_equal(json_number_at(o, "resources.generator.fds"), 9, 0);
	assert_float_equal(json_number_at(o, "resources.generator.window_s"), 4, 1e-9);
	assert_float_equal(json_number_at(o, "resources.generator.payload_bytes"), 39, 0);
	assert_float_equal(json_number_at(o, "effective.generator.requests"), 33, 0);
	assert_true(json_is_null(json_at(o, "resources.machine.busy_s")));
	assert_int_equal(json_array_size(json_object_get(o, "saturated_hosts")), 0);
	json_decref(o);
	/* If one host could not read its own use, the sum is unknown. */
	steps[3]->begin.generator.rss_bytes = 0;
	merge(into, 3);
	o = step_json(into, &cfg, NULL, 0);
	assert_true(json_is_null(json_at(o, "resources.generator.cpu_user_s")));
	assert_true(json_is_null(json_at(o, "resources.generator.rss_bytes")));
	json_decref(o);
	step_free(into);
}

/* A host that drifts while the others do not makes the whole step drift, or not: what counts is the whole. */
TEST(merge__intervals_of_all_hosts__judged_as_one)
{
	struct step *into;
	uint64_t seed = 6;

	deal(3, &seed, 100);
	for (uint32_t i = 0; i < 16; i++)
		steps[1]->intervals.v[i].messages_per_s += 3 * i;
	into = begin();
	merge(into, 0);
	assert_true(into->steady);
	merge(into, 1);
	assert_false(into->steady || into->too_short);
	merge(into, 2);
	merge(into, 2);
	merge(into, 2);
	assert_true(into->steady);
	steps[2]->intervals.n = 9;
	merge(into, 2);
	assert_true(into->too_short);
	step_free(into);
}

/* Two servers, each with some clients of each host: the hosts' figures for a server are added. */
TEST(merge__two_servers__each_added_up)
{
	static const uint32_t dealt[] = { 3, 1 };
	struct step *into;
	uint64_t seed = 12;
	json_t *packed;

	deal(2, &seed, 50);
	for (int h = 0; h < 2; h++) {
		assert_int_equal(step_make_targets(steps[h], 2, dealt), 0);
		steps[h]->targets[1].failed = 2 + (uint32_t)h;
		hist_record(steps[h]->targets[1].response, 1000 + (uint64_t)h);
	}
	into = begin();
	merge(into, 0);
	merge(into, 1);
	assert_int_equal(into->n_targets, 2);
	assert_int_equal(into->targets[0].clients, 6);
	assert_int_equal(into->targets[1].clients, 2);
	assert_int_equal(into->targets[1].failed, 5);
	assert_int_equal(hist_count(into->targets[0].response), 0);
	assert_int_equal(hist_count(into->targets[1].response), 2);
	assert_int_equal(hist_max(into->targets[1].response), 1001);
	packed = pack(0);
	json_array_remove(json_object_get(packed, "servers"), 0);
	assert_int_equal(step_merge(into, 2, packed, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "\"servers\""));
	assert_int_equal(into->hosts.n, 2);
	json_decref(packed);
	step_free(into);
}

/* Many hosts, with samples of all magnitudes. Prints what each host costs (docs/cluster.md). */
TEST(merge__many_hosts__all_counted)
{
	uint64_t seed = 3, begun, bytes;
	struct step *into;
	json_t *packed;
	char *text;

	deal(1, &seed, 20000);
	packed = pack(0);
	text = json_dumps(packed, JSON_COMPACT);
	assert_non_null(text);
	bytes = strlen(text);
	free(text);
	into = begin();
	begun = clock_now_ns();
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(step_merge(into, i, packed, err, sizeof(err)), 0);
	print_message("a host: %llu bytes, merged in %.2f ms\n", (unsigned long long)bytes,
		      (double)(clock_now_ns() - begun) / 1e6 / MANY);
	assert_int_equal(into->hosts.n, MANY);
	assert_int_equal(hist_count(into->hists.response), MANY * hist_count(workers[0]->stats.hists.response));
	json_decref(packed);
	step_free(into);
}

static void set_at(json_t *o, const char *path, json_t *v)
{
	char name[64];
	const char *dot = strchr(path, '.');

	if (!dot || json_object_get(o, path)) {
		json_object_set_new(o, path, v);
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
	set_at(json_object_get(o, name), dot + 1, v);
}

static void assert_refused(const char *path, json_t *v, const char *named)
{
	struct step *into = begin(), *before = begin();
	json_t *packed = pack(0);

	set_at(packed, path, v);
	assert_int_equal(step_merge(into, 2, packed, err, sizeof(err)), -EINVAL);
	if (!strstr(err, named) || !strstr(err, "host 2"))
		fail_msg("%s: %s", path, err);
	assert_same(into, before);
	assert_int_equal(into->hosts.n, 0);
	json_decref(packed);
	step_free(into);
	step_free(before);
}

/* An object with this many levels of arrays in it. */
static json_t *nested(unsigned levels)
{
	json_t *v = json_integer(1);

	for (unsigned i = 1; i < levels; i++)
		v = json_pack("[o]", v);
	return json_pack("{s:o}", "x", v);
}

TEST(merge__damaged_member__named)
{
	static char text[256 << 10];
	uint64_t seed = 9;

	deal(1, &seed, 400);
	assert_refused("pack", json_integer(0), "\"pack\"");
	assert_refused("bytes", json_integer(65), "\"bytes\"");
	assert_refused("repetition", json_string("1"), "\"repetition\"");
	assert_refused("figures", json_null(), "\"target\"");
	assert_refused("figures.retries", json_integer(-1), "\"retries\"");
	assert_refused("figures.retries", json_integer(INT64_MAX), "\"retries\"");
	assert_refused("figures.failed", json_integer(INT64_C(1) << 32), "\"failed\"");
	assert_refused("figures.measured", json_integer(1), "\"measured\"");
	assert_refused("figures.floor", json_integer(3), "\"floor\"");
	assert_refused("figures.phase_ns", json_array(), "\"phase_ns\"");
	assert_refused("figures.messages_per_s", json_real(-1), "\"messages_per_s\"");
	assert_refused("figures.messages_per_s", json_real(1e300), "\"messages_per_s\"");
	assert_refused("moment.window_ns", json_null(), "\"window_ns\"");
	assert_refused("hists.response", json_integer(3), "\"response\"");
	assert_refused("hists.full.total", json_string(""), "\"full.total\"");
	assert_refused("failures.rows", json_pack("[[i, i, i, i]]", STAGE_N, 1, 1, 1), "\"failures\"");
	assert_refused("failures.rows", json_pack("[[i, i, i, i, i]]", 1, 1, 1, 1, 1), "\"failures\"");
	assert_refused("retried.overflow", json_true(), "\"retried\"");
	assert_refused("fairness.squares", json_string("x"), "\"squares\"");
	assert_refused("streams", json_object(), "\"streams\"");
	assert_refused("intervals", json_pack("[[f, f]]", 1.0, 1.0), "\"intervals\"");
	assert_refused("intervals", json_pack("[[f, f, s]]", 1.0, 1.0, "-896 1 "), "\"intervals\"");
	assert_refused("network", json_pack("{s:i}", "bytes_out", 3), "\"network\"");
	assert_refused("own", json_array(), "\"own\"");
	assert_refused("own", nested(17), "\"own\" is nested deeper than 16 levels");
	assert_refused("own", json_pack("{s:s#}", "x", memset(text, 'x', sizeof(text)), (int)sizeof(text)),
		       "\"own\" is longer than 262144 bytes");
}

/* Only the leader has reports, and they count the clients of all hosts. */
TEST(pack__own_step_of_a_leader__no_figure_of_the_server)
{
	json_auto_t *o = NULL;

	for (int i = 0; i < 2; i++) {
		json_t **report = i ? &steps[0]->held : &steps[0]->marked;

		*report = json_pack("{s:{s:i, s:i}}", "resources", "cpu_user_s", 1 + i, "cpu_system_s", 1);
	}
	steps[0]->connected_peak = 1;
	o = pack(0);
	assert_true(json_is_number(json_at(o, "own.connect_cpu_ns_per_client.generator")));
	assert_true(json_is_null(json_at(o, "own.connect_cpu_ns_per_client.server")));
}

/* A seed of another version ends at the check of the version, and the fuzzer never gets further. */
TEST(merge__seeds_of_the_fuzzer__accepted)
{
	FILE *f = fopen("tests/fuzz/seeds/note.txt", "re");
	struct step *into = begin();
	uint32_t n = 0;
	json_t *note;

	assert_non_null(f);
	while ((note = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL))) {
		if (step_merge(into, n++, json_object_get(note, "step"), err, sizeof(err)))
			fail_msg("%s", err);
		json_decref(note);
	}
	assert_int_equal(n, 2);
	assert_false(fclose(f));
	step_free(into);
}

/* A histogram whose figures do not fit its cells. */
TEST(merge__histogram_that_contradicts_itself__refused)
{
	static const char *const facts[] = { "count", "sum", "min", "max" };
	uint64_t seed = 10;

	deal(1, &seed, 400);
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		json_t *packed = pack(0), *h = json_copy(json_at(packed, "hists.response"));

		json_object_set_new(h, facts[i], json_integer(strcmp(facts[i], "sum") == 0 ||
							      strcmp(facts[i], "max") == 0 ? 0 : 1000000));
		assert_refused("hists.response", h, "\"response\"");
		json_decref(packed);
	}
}

static json_t *random_value(uint64_t *seed)
{
	switch (unit_random(seed) % 8) {
	case 0: return json_null();
	case 1: return json_integer((json_int_t)unit_random(seed));
	case 2: return json_real(-1.5);
	case 3: return json_string("AAAA");
	case 4: return json_true();
	case 5: return json_array();
	case 6: return json_integer((json_int_t)(unit_random(seed) % 5));
	default: return json_object();
	}
}

/* Damages one value somewhere below `o`. */
static void mutate(json_t *o, uint64_t *seed)
{
	size_t n = json_is_object(o) ? json_object_size(o) : json_array_size(o), at, i = 0;
	const char *key;
	json_t *v, *child = NULL;
	const char *name = NULL;

	if (!n)
		return;
	at = unit_random(seed) % n;
	json_object_foreach(o, key, v)
		if (i++ == at) {
			name = key;
			child = v;
		}
	if (!name)
		child = json_array_get(o, at);
	if (json_is_string(child) && json_string_length(child) > 8 && unit_random(seed) % 2) {
		char *text = strdup(json_string_value(child));

		text[unit_random(seed) % strlen(text)] = (char)('A' + unit_random(seed) % 26);
		json_string_set(child, text);
		free(text);
	} else if ((json_is_object(child) || json_is_array(child)) && unit_random(seed) % 16) {
		mutate(child, seed);
	} else if (name && unit_random(seed) % 4 == 0) {
		json_object_del(o, name);
	} else if (name) {
		json_object_set_new(o, name, random_value(seed));
	} else {
		json_array_set_new(o, at, random_value(seed));
	}
}

/* A step is added completely or not at all: a refusal changes nothing, a success counts one host more. */
TEST(merge__random_damage__never_half)
{
	struct step *into, *before;
	uint64_t seed = 11;
	int refused = 0;
	json_t *whole;

	deal(1, &seed, 60);
	whole = pack(0);
	json_object_set_new(whole, "own", json_object());
	before = begin();
	into = begin();
	for (int round = 0; round < 500; round++) {
		json_t *packed = json_deep_copy(whole);
		uint32_t n = into->hosts.n;

		mutate(packed, &seed);
		if (step_merge(into, (uint32_t)round % 100, packed, err, sizeof(err))) {
			assert_int_equal(into->hosts.n, n);
			refused++;
		} else {
			assert_int_equal(into->hosts.n, n + 1);
			step_free(into);
			into = begin();
		}
		if (round % 50 == 0) {
			if (into->hosts.n == 0)
				assert_same(into, before);
		}
		json_decref(packed);
	}
	assert_same(into, before);
	assert_true(refused > 250);
	json_decref(whole);
	step_free(into);
	step_free(before);
}

/* Steps take megabytes again and again, so keep freed memory. */
static int keep_memory(void **state)
{
	(void)state;
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	return 0;
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(keep_memory, NULL)
