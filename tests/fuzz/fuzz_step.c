/* SPDX-License-Identifier: BSD-2-Clause */
/* How a member of a run on several hosts reads the leader's announcements: the next step, or the end of the run. */
#include <jansson.h>

#include "common/base/log.h"
#include "common/wire/msg.h"
#include "loadgen/config/config.h"
#include "loadgen/ramp/gates.h"
#include "loadgen/ramp/phases.h"
#include "loadgen/cluster/team.h"
#include "loadgen/workloads/workloads.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/json_mutate.h"

static struct loadgen_config cfg;

/* A refused step is logged; nobody reads the log here. */
void log_write(enum log_level level, const char *fmt, ...)
{
	(void)level;
	(void)fmt;
}

void log_write_event(enum log_level level, const struct log_fields *fields, const char *fmt, ...)
{
	(void)level;
	(void)fields;
	(void)fmt;
}

bool log_enabled(enum log_level level)
{
	(void)level;
	return false;
}

bool log_is_due(uint64_t *next_ns, uint64_t every_ns)
{
	(void)next_ns;
	(void)every_ns;
	return false;
}

const char *const log_level_names[] = { "error", "warn", "info", "debug", NULL };

/* An accepted step has room for all that the workload puts into a message, and no more clients than exist. */
static void check_step(const struct ramp *r, const struct step_figures *f)
{
	char why[256] = "";
	uint64_t dealt = 0;

	if (workload_check_step(r->cfg, f, why, sizeof(why))) {
		assert(why[0] && !strchr(why, '\n'));
		return;
	}
	for (uint32_t i = 0; i < r->suts.n; i++)
		dealt += r->current.dealt[i];
	assert(f->bytes >= MSG_HEADER_BYTES + MSG_SUM_BYTES + MSG_TAG_BYTES && f->bytes <= cfg.message_bytes);
	assert(dealt == f->clients && f->clients >= 1 && f->clients <= cfg.clients);
	assert(f->repetition >= 1 && f->repetition <= cfg.repeat && (f->rate == 1000 || f->rate == 2000));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char *args[] = { "performance_test", "--targets", "a,b", "--workload", "small", "--verify",
				"--message-auth", "--message-size", "36,64", "--clients", "8", "--repeat", "2",
				"--rate", "1000-2000:2", NULL };
	int n = (int)(sizeof(args) / sizeof(args[0])) - 1, first;
	char err[400];

	(void)argc;
	(void)argv;
	loadgen_config_defaults(&cfg);
	assert(opts_parse(&loadgen_options, n, args, &cfg, &first, err, sizeof(err)) == OPTS_OK);
	return loadgen_config_check(&cfg, n, args, err, sizeof(err)) ||
	       workloads_apply(&cfg, n, args, err, sizeof(err));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	return json_mutate(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const names[] = { "r1/s1/step", "r1/s0/end", "r1/s0/exit", "r1/s0/info" };
	json_t *what = json_loadb((const char *)data, n, JSON_DECODE_ANY, NULL);

	for (size_t i = 0; what && i < sizeof(names) / sizeof(names[0]); i++) {
		struct team team = { .rank = 1, .n = 2, .run = 1, .gone = json_pack("{s:O}", names[i], what),
				     .events = &gates_events };
		struct outcome oc;
		struct ramp r = { .cfg = &cfg, .outcome = &oc, .phase = RAMP_AWAIT, .team = &team, .suts.n = 2 };
		enum gates_news news;
		struct step_figures f;

		outcome_init(&oc, &cfg);
		news = gates_read_news(&r, &f);
		assert(news == (i == 3 ? GATES_NOTHING : GATES_END) || i == 0);
		if (news == GATES_STEP)
			check_step(&r, &f);
		json_decref(team.gone);
		outcome_clear(&oc);
	}
	json_decref(what);
	return 0;
}
