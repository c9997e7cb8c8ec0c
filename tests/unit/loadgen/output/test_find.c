/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/output/find.c: the verdict of a search, above all if the load hosts were the limit. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/output/find.h"
#include "loadgen/output/load_hosts.h"

static struct loadgen_config cfg;
static struct outcome oc;

static int set_up(void **state)
{
	(void)state;
	memset(&cfg, 0, sizeof(cfg));
	cfg.slo.n = 1;
	cfg.sizes.n = 1;
	oc = (struct outcome){ .cfg = &cfg, .steps = json_array(), .verdict = json_array(), .search_done = true };
	capacity_init(&oc.capacity, true, 10, 1000);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	load_hosts_free(oc.hosts);
	json_decref(oc.steps);
	json_decref(oc.verdict);
	return 0;
}

static void hosts_are(uint32_t n)
{
	static const char *const names[] = { "load1", "load2", "load3" };

	assert_int_equal(load_hosts_new(n, &oc.hosts), 0);
	for (uint32_t i = 0; i < n; i++) {
		json_t *about = json_pack("{s:s}", "name", names[i]);

		load_hosts_about(oc.hosts, i, about);
		json_decref(about);
	}
}

/* Adds a probe and its step, in which the hosts with these ranks were at their limit; -1: none. */
static void probe(uint32_t clients, enum slo_result slo, int rank, int other)
{
	struct capacity_probe p = { .clients = clients, .of = CAPACITY_SLO, .purpose = CAPACITY_DOUBLE, .repetition = 1, .slo = slo };
	json_t *ranks = json_array();

	if (rank >= 0)
		json_array_append_new(ranks, json_integer(rank));
	if (other >= 0)
		json_array_append_new(ranks, json_integer(other));
	json_array_append_new(oc.steps, json_pack("{s:i, s:i, s:o}", cfg.find_rate ? "offered_per_s" : "target_clients", (int)clients,
						  "target_clients", cfg.find_rate ? 50 : (int)clients, "saturated_hosts", ranks));
	capacity_tell(&oc.capacity, &p);
}

/* The verdict's only row must be this one. */
static void expect_verdict(const char *criterion, const char *result, const char *text)
{
	const json_t *row = json_array_get(oc.verdict, 0);
	char *dump = json_dumps(row, 0);

	assert_int_equal(json_array_size(oc.verdict), 1);
	assert_string_equal(json_text_at(row, "criterion"), criterion);
	assert_string_equal(json_text_at(row, "result"), result);
	if (!strstr(dump, text))
		fail_msg("%s is not in %s", text, dump);
	free(dump);
}

TEST(verdict__a_host_had_no_more_to_give__names_it_and_says_add_hosts)
{
	hosts_are(3);
	probe(40, SLO_PASS, 0, -1);	/* the SLO was met all the same, so load1 need not be named */
	probe(80, SLO_INCONCLUSIVE, 1, 2);
	find_add_verdict(&oc);
	expect_verdict("capacity", "inconclusive", "40 clients met the SLO; with 80, load2, load3 had no more to give: add hosts");
	assert_null(strstr(json_text_at(json_array_get(oc.verdict, 0), "measured"), "load1"));
}

TEST(verdict__of_a_rate__names_the_host_at_that_rate)
{
	cfg.find_rate = true;
	cfg.clients = 50;
	hosts_are(2);
	probe(400, SLO_PASS, -1, -1);
	probe(800, SLO_INCONCLUSIVE, 1, -1);
	find_add_verdict(&oc);
	expect_verdict("rate", "inconclusive", "400 operations a second met the SLO; with 800, load2 had no more to give: add hosts");
}

TEST(verdict__one_host_or_none_at_its_limit__does_not_say_add_hosts)
{
	char text[200];

	probe(40, SLO_PASS, -1, -1);
	probe(80, SLO_INCONCLUSIVE, 0, -1);	/* without several hosts there is no name */
	assert_string_equal(find_hosts_at_limit(&oc, 80, text, sizeof(text)), "");
	find_add_verdict(&oc);
	expect_verdict("capacity", "inconclusive", "with 80 the generator had no more to give, or too few samples were taken to tell");
}

TEST(verdict__the_server_missed_it__does_not_say_add_hosts)
{
	hosts_are(2);
	probe(40, SLO_PASS, -1, -1);
	probe(80, SLO_FAIL, 1, -1);
	find_add_verdict(&oc);
	expect_verdict("capacity", "inconclusive", "40 clients met the SLO, and 80 did not");
	assert_null(strstr(json_text_at(json_array_get(oc.verdict, 0), "measured"), "add hosts"));
}

TEST_EACH(set_up, tear_down)
