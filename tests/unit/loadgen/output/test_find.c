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
	struct capacity_probe p = { .clients = clients, .of = CAPACITY_SLO, .purpose = CAPACITY_DOUBLE, .repetition = 1,
				    .slo = slo };
	json_t *ranks = json_array();

	if (rank >= 0)
		json_array_append_new(ranks, json_integer(rank));
	if (other >= 0)
		json_array_append_new(ranks, json_integer(other));
	json_array_append_new(oc.steps, json_pack("{s:i, s:i, s:o}", cfg.find_rate ? "offered_per_s" : "target_clients",
						  (int)clients,
						  "target_clients", cfg.find_rate ? 50 : (int)clients,
						  "saturated_hosts", ranks));
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
	expect_verdict("capacity", "inconclusive",
		       "at least 40: 40 clients met the SLO in 1 of 1 tries; with 80, load2, load3 "
		       "had no more to give: add hosts");
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
	expect_verdict("rate", "inconclusive",
		       "at least 400: 400 operations a second met the SLO in 1 of 1 tries; with 800, load2 "
		       "had no more to give: add hosts");
}

TEST(verdict__one_host_or_none_at_its_limit__does_not_say_add_hosts)
{
	char text[200];

	probe(40, SLO_PASS, -1, -1);
	probe(80, SLO_INCONCLUSIVE, 0, -1);	/* without several hosts there is no name */
	assert_string_equal(find_hosts_at_limit(&oc, 80, text, sizeof(text)), "");
	find_add_verdict(&oc);
	expect_verdict("capacity", "inconclusive",
		       "with 80 the generator had no more to give or CPU time was taken away, or too few samples were "
		       "taken to tell");
}

TEST(verdict__the_server_missed_it__does_not_say_add_hosts)
{
	hosts_are(2);
	probe(40, SLO_PASS, -1, -1);
	probe(80, SLO_FAIL, 1, -1);
	find_add_verdict(&oc);
	expect_verdict("capacity", "inconclusive", "40 to 80: 40 clients met the SLO in 1 of 1 tries, 80 missed it in "
		       "1 of 1; not confirmed: too few tries");
	assert_null(strstr(json_text_at(json_array_get(oc.verdict, 0), "measured"), "add hosts"));
}

/* Adds tries of a number of clients, of which some met the SLO and some were not steady. */
static void tries(uint32_t clients, uint32_t n, uint32_t met, uint32_t unsteady)
{
	for (uint32_t i = 0; i < n; i++)
		capacity_tell(&oc.capacity, &(struct capacity_probe){
			.clients = clients, .slo = i < met ? SLO_PASS : SLO_FAIL, .unsteady = i < unsteady });
}

/* Returns analysis.capacity.slo_capacity, or slo_rate; to be freed with json_decref. */
static json_t *found(void)
{
	json_t *all = cfg.find_rate ? find_rate_json(&oc) : find_json(&oc);
	json_t *o = cfg.find_rate ? json_incref(all) : json_incref(json_object_get(all, "slo_capacity"));

	json_decref(all);
	return o;
}

static void expect_found(const char *json)
{
	json_t *o = found(), *wanted = json_loads(json, 0, NULL), *v;
	const char *key;

	assert_non_null(wanted);
	json_object_foreach(wanted, key, v)
		if (!json_equal(v, json_object_get(o, key)))
			fail_msg("%s is not as in %s: %s", key, json, json_dumps(o, 0));
	json_decref(wanted);
	json_decref(o);
}

TEST(interval__tries_scatter__both_ends_and_what_is_between)
{
	tries(150, 5, 5, 0);
	tries(165, 5, 2, 1);
	tries(180, 2, 1, 0);
	tries(190, 5, 0, 0);
	find_add_verdict(&oc);
	expect_verdict("capacity", "pass", "150 to 190: 150 clients met the SLO in 5 of 5 tries, 190 missed it in 5 of "
		       "5; in between, tries disagree (165 met it in 2 of 5, 180 met it in 1 of 2) (confirmed)");
	expect_found("{\"clients\": 150, \"low\": 150, \"high\": 190, \"passes\": 5, \"tries\": 5, "
		     "\"confirmed\": true, \"lower\": {\"clients\": 150, \"met\": 5, \"tries\": 5, \"unsteady\": 0}, "
		     "\"upper\": {\"clients\": 190, \"missed\": 5, \"tries\": 5, \"unsteady\": 0}, \"between\": "
		     "[{\"clients\": 165, \"met\": 2, \"tries\": 5, \"unsteady\": 1}, "
		     "{\"clients\": 180, \"met\": 1, \"tries\": 2, \"unsteady\": 0}], "
		     "\"scatters\": true, \"capped_by\": null}");
}

TEST(interval__of_a_rate__in_rates)
{
	cfg.find_rate = true;
	tries(400, 5, 5, 0);
	tries(410, 5, 0, 0);
	expect_found("{\"per_s\": 400, \"lower\": {\"per_s\": 400, \"met\": 5, \"tries\": 5, \"unsteady\": 0}, "
		     "\"upper\": {\"per_s\": 410, \"missed\": 5, \"tries\": 5, \"unsteady\": 0}, \"between\": [], "
		     "\"scatters\": false, \"confirmed\": true}");
}

TEST(interval__tries_were_not_steady__not_confirmed_and_why)
{
	tries(172, 5, 5, 5);
	tries(180, 5, 0, 0);
	find_add_verdict(&oc);
	expect_verdict("capacity", "inconclusive", "not confirmed: too many of these tries were not steady");
	expect_found("{\"confirmed\": false}");
}

TEST(interval__server_was_full__that_is_the_answer)
{
	tries(180, 5, 5, 0);
	tries(186, 5, 0, 0);
	json_array_append_new(oc.steps, json_pack("{s:i, s:[{s:s}]}", "target_clients", 186, "failures", "code",
						  "refused:full"));
	oc.server_infos[0] = json_pack("{s:{s:i}}", "config", "max_clients", 180);
	find_add_verdict(&oc);
	expect_verdict("capacity", "pass", "180 is the server's own limit (--max-clients)");
	expect_found("{\"capped_by\": \"max_clients\"}");
	json_decref(oc.server_infos[0]);
}

TEST(interval__nothing_missed__at_least)
{
	tries(1000, 5, 5, 0);
	find_add_verdict(&oc);
	expect_verdict("capacity", "pass", "at least 1000: 1000 clients met the SLO in 5 of 5 tries, and more were "
		       "not tried");
	expect_found("{\"at_least\": true, \"upper\": null, \"high\": null, \"between\": []}");
}

TEST_EACH(set_up, tear_down)
