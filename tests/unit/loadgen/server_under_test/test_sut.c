/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/server_under_test/sut: when the server's pools count as restored. */
#include "tests/unit/helpers/unit.h"

#include "loadgen/server_under_test/sut.h"

struct pools {
	int connected, in_use, resting, exist, psns, posted;
};

static json_t *report_of(const struct pools *p)
{
	json_t *report = json_pack("{s:{s:i, s:i, s:i}, s:{s:i, s:i, s:i, s:i, s:{s:i, s:i, s:i}, s:{s:i, s:i}}}",
		"clients", "connected", p->connected, "handshakes", 0, "closing", 0, "pools", "sessions", 0,
		"regions_in_use", 0, "admitted", p->connected, "psns_in_use", p->psns, "qp", "in_use", p->in_use, "quarantined",
		p->resting, "exist", p->exist, "buffers", "posted", p->posted, "free", 9);

	assert_non_null(report);
	return report;
}

static bool is_restored(const struct loadgen_config *cfg, const struct pools *before, const struct pools *after)
{
	struct sut s = { .cfg = cfg, .baseline = report_of(before) };
	json_t *now = report_of(after);
	bool restored = sut_is_restored(&s, now);

	json_decref(now);
	json_decref(s.baseline);
	return restored;
}

TEST(pools__as_at_the_start_or_not__told_apart)
{
	static const struct loadgen_config held = { 0 }, churn = { .churn_per_s = 10 }, find = { .find_capacity = true };
	static const struct pools start = { .exist = 32, .posted = 9 };
	static const struct pools others = { .connected = 10, .in_use = 4, .exist = 32, .psns = 8, .posted = 9 };
	static const struct pools rests = { .resting = 3, .exist = 35, .psns = 6, .posted = 9 };
	const struct {
		const char *what;
		const struct loadgen_config *cfg;
		struct pools before, after;
		bool restored;
	} cases[] = {
		{ "nothing changed", &held, start, start, true },
		{ "queue pairs rest, with their PSNs", &held, start, rests, true },
		{ "others are connected, 4 over RDMA and 6 over sockets", &held, others, others, true },
		{ "a PSN leaked", &held, start, { .exist = 32, .psns = 1, .posted = 9 }, false },
		{ "a client is left", &held, start, { .connected = 1, .exist = 32, .posted = 9 }, false },
		{ "a queue pair is left", &held, start, { .in_use = 1, .exist = 32, .posted = 9 }, false },
		{ "who was there at the start is gone", &held, { .connected = 1, .in_use = 1, .exist = 32, .psns = 2, .posted = 8 }, start, true },
		{ "a receive is missing", &held, start, { .exist = 32, .posted = 8 }, false },
		{ "churn: the pool is still larger", &churn, start, { .exist = 35, .posted = 9 }, false },
		{ "churn: the pool is as it was", &churn, start, start, true },
		{ "churn: queue pairs rested at the start and are gone", &churn, rests, start, true },
		{ "search: queue pairs rest", &find, start, rests, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (is_restored(cases[i].cfg, &cases[i].before, &cases[i].after) != cases[i].restored)
			fail_msg("%s", cases[i].what);
}

/* A server that replaced another one has not yet reported its pools without clients. */
TEST(pools__no_baseline__not_restored)
{
	static const struct loadgen_config held = { 0 };
	static const struct pools empty = { .exist = 32, .posted = 9 };
	struct sut s = { .cfg = &held };
	json_t *now = report_of(&empty);

	assert_false(sut_is_restored(&s, now));
	json_decref(now);
}

TEST(pools__report_without_them__not_restored)
{
	static const struct loadgen_config churn = { .churn_per_s = 10 };
	struct sut s = { .cfg = &churn, .baseline = json_object() };
	json_t *now = json_object();

	assert_false(sut_is_restored(&s, now));
	json_decref(now);
	json_decref(s.baseline);
}
