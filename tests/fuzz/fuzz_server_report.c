/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports from a server's control session: three of them, separated by zero bytes, from before, in and after a step. */
#include <jansson.h>

#include "common/base/json_at.h"
#include "loadgen/config/config.h"
#include "loadgen/server_under_test/needs.h"
#include "loadgen/server_under_test/sut.h"
#include "loadgen/measurement/step.h"
#include "loadgen/workloads/workloads.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/json_mutate.h"

static struct loadgen_config cfg;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char program[] = "performance_test", *args[] = { program, NULL };
	char err[400];

	(void)argc;
	(void)argv;
	loadgen_config_defaults(&cfg);
	return loadgen_config_check(&cfg, 1, args, err, sizeof(err)) ||
	       workloads_apply(&cfg, 1, args, err, sizeof(err));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	return json_mutate(data, size, max_size, seed);
}

/* Reads a report as client/control.c does. */
static json_t *take_report(struct input *in)
{
	static const struct json_limit limit = { 1 << 20, 16 << 20 };
	const uint8_t *p;
	size_t n = input_bytes(in, strnlen((const char *)in->p, in->n), &p);

	input_number(in, 1);
	return json_read((const char *)p, n, 0, &limit, NULL, 0);
}

/* run.json can be written from accepted reports. */
static void use(json_t *before, json_t *in, json_t *after)
{
	struct sut sut = { .cfg = &cfg, .baseline = before };
	char text[512] = "", *dump;
	struct step *s;
	json_t *o;

	if (!needs_are_met(&cfg, in, cfg.steps.v[0], cfg.clients, text, sizeof(text)))
		assert(text[0]);
	(void)sut_is_restored(&sut, after);
	assert(step_new(10, 64, 1, &s) == 0);
	s->connected_held = 10;
	s->baseline = json_incref(before);
	s->held = json_incref(in);
	s->begin.server = json_incref(before);
	s->end.server = json_incref(in);
	s->after = json_incref(after);
	o = step_json(s, &cfg, NULL, 0);
	assert(o);
	dump = json_dumps(o, 0);
	assert(dump);
	free(dump);
	json_decref(o);
	step_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	json_t *before = take_report(&in), *held = take_report(&in), *after = take_report(&in);

	for (int churn = 0; churn < 2 && before; churn++) {
		cfg.churn_per_s = (uint64_t)churn;
		use(before, held ? held : before, after ? after : before);
	}
	json_decref(before);
	json_decref(held);
	json_decref(after);
	return 0;
}
