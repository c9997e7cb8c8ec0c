/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes that load hosts leave for the leader at the end of a step, plain or compressed JSON, and the step in them. */
#include <jansson.h>

#include "loadgen/cluster/barriers.h"
#include "loadgen/cluster/cluster.h"
#include "loadgen/config/config.h"
#include "loadgen/output/load_hosts.h"
#include "loadgen/measurement/step.h"
#include "loadgen/measurement/step_pack.h"
#include "loadgen/workloads/workloads.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/json_mutate.h"

#define HOSTS 2

static struct loadgen_config cfg;
static struct step *own, *all;	/* the leader's step, and the sum, which a refused step leaves unchanged */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char program[] = "performance_test", *args[] = { program, NULL };
	char err[400];

	(void)argc;
	(void)argv;
	loadgen_config_defaults(&cfg);
	assert(step_new(4, 64, 1, &own) == 0 && step_merge_begin(own, 8, &all) == 0);
	return loadgen_config_check(&cfg, 1, args, err, sizeof(err)) ||
	       workloads_apply(&cfg, 1, args, err, sizeof(err));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	return json_mutate(data, size, max_size, seed);
}

/* Whatever was accepted can be written to run.json. */
static void show(struct load_hosts *hosts)
{
	json_t *o = json_pack("{s:o, s:o}", "step", step_json(all, &cfg, NULL, 0), "hosts", load_hosts_json(hosts));
	char *dump;

	assert(o);
	dump = json_dumps(o, 0);
	assert(dump);
	free(dump);
	json_decref(o);
	step_free(all);
	assert(step_merge_begin(own, 8, &all) == 0);
}

/* Merges the note as record_merge does. */
static void merge(const json_t *note)
{
	const json_t *packed = json_object_get(note, "step");
	struct load_hosts *hosts;
	char err[256] = "";
	uint64_t skew_ns;

	if (step_merge(all, 1, packed, err, sizeof(err))) {
		assert(err[0] && !strchr(err, '\n'));
		return;
	}
	assert(load_hosts_new(HOSTS, &hosts) == 0);
	load_hosts_about(hosts, 1, note);
	load_hosts_begin_step(hosts, 1);
	load_hosts_step(hosts, 1, packed, json_integer_value(json_object_get(note, "measure_ns")));
	load_hosts_end_step(hosts, &skew_ns);
	show(hosts);
	load_hosts_free(hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* A copy of exactly that size, so that sanitizers see reads beyond it. */
	uint8_t *copy = input_copy(data, n);
	struct barriers *b;
	const json_t *note;

	assert(barriers_new(HOSTS, 64 << 20, &b) == 0);
	if (!barriers_arrive(b, "r1/s1/counted", 1, 0, copy, n)) {
		note = barriers_note(b, "r1/s1/counted", 1);
		if (note)
			merge(note);
	}
	barriers_free(b);
	free(copy);
	return 0;
}
