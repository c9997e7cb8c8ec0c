/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/suites/need.c: which transport meets an objective, up to how many clients and at what cost. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/suites/need.h"

/* The rounds of a transport at each of up to three numbers of clients, a letter a round: p pass, f fail, i too few
 * samples, d disturbed, s missed with a saturated generator, l clients lost; none: the step was not tried. */
struct transport {
	const char *name, *rounds[3];
	double cpu_ns, per_s;
};

static json_t *step_of(char letter, int clients)
{
	const char *result = letter == 'i' ? "inconclusive" : strchr("fs", letter) ? "fail" : "pass";
	const char *flag = letter == 'd' ? "cpu_stolen" : letter == 's' ? "generator_saturated" : "not_steady";

	return json_pack("{s:i, s:i, s:[{s:s}], s:[s]}", "target_clients", clients, "connected_held", letter == 'l' ?
			 clients / 2 : clients, "slo", "result", result, "validity", flag);
}

static json_t *run_of(const char *rounds, int clients)
{
	json_t *steps = json_array();

	for (; rounds && *rounds; rounds++)
		json_array_append_new(steps, step_of(*rounds, clients));
	return json_pack("{s:o}", "steps", steps);
}

/* Points of each size at 50, 100 and 2,000 clients, as far as the first transport has rounds; the largest comes first,
 * since --steps may have any order. */
static json_t *points_of(const struct transport *t, size_t n, const int *sizes, size_t n_sizes)
{
	static const int clients[] = { 50, 100, 2000 };
	json_t *points = json_array();

	for (size_t z = 0; z < n_sizes; z++)
		for (int c = 2; c >= 0; c--) {
			json_t *runs = json_array(), *figures = json_array();

			for (size_t i = 0; i < n; i++) {
				json_array_append_new(runs, run_of(t[i].rounds[c], clients[c]));
				json_array_append_new(figures, json_pack("{s:f, s:f, s:f}",
					"server_cpu_ns_per_message", t[i].cpu_ns / 4, "generator_cpu_ns_per_message",
					t[i].cpu_ns * 3 / 4, "throughput_msgs_per_s", t[i].per_s));
			}
			json_array_append_new(points, json_pack("{s:i, s:i, s:n, s:o, s:o}", "clients", clients[c],
				"message_bytes", sizes[z], "offered_per_s", "figures", figures, "runs", runs));
		}
	return points;
}

static json_t *need_of(const struct transport *t, size_t n, const int *sizes, size_t n_sizes, double price)
{
	const struct need_terms terms = { .rounds = 3, .slo = "p99<1ms", .cpu_hour_price = price };
	json_t *alternatives = json_array(), *points = points_of(t, n, sizes, n_sizes), *need;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(alternatives, json_pack("{s:s, s:{s:s}}", "name", t[i].name, "options",
							      "transport", t[i].name));
	need = need_json(alternatives, points, &terms);
	json_decref(alternatives);
	json_decref(points);
	return need;
}

static const int one_size[] = { 64 };

static void assert_sentence(const struct transport *t, size_t n, const char *sentence)
{
	json_t *need = need_of(t, n, one_size, 1, 0);

	assert_string_equal(json_text_at(need, "sentence"), sentence);
	json_decref(need);
}

TEST(sentence__sockets_meet_it_everywhere__enough)
{
	static const struct transport one[] = { { "rdma", { "ppp", "pfp", "fpf" }, 0, 0 },
						{ "tcp", { "ppp", "ppp", "ppf" }, 0, 0 } };
	static const struct transport both[] = { { "tcp", { "ppp", "ppp", "ppp" }, 0, 0 },
						 { "tls", { "ppp", "ppp", "ppp" }, 0, 0 } };

	assert_sentence(one, 2, "TCP is enough here: it meets p99<1ms at all numbers of clients that were tried "
			"(up to 2,000); RDMA up to 100 clients.");
	assert_sentence(both, 2, "TCP and TLS are enough here: they meet p99<1ms at all numbers of clients that were "
			"tried (up to 2,000).");
}

TEST(sentence__limits__each_with_its_own)
{
	static const struct transport t[] = { { "rdma", { "ppp", "ppp", "ppp" }, 0, 0 },
					      { "tls", { "lll", "ppp", "fff" }, 0, 0 },
					      { "tcp", { "ppp", "fff", "ppp" }, 0, 0 } };
	json_t *need = need_of(t, 3, one_size, 1, 0), *tcp = json_array_get(json_object_get(need, "alternatives"), 2);

	assert_string_equal(json_text_at(need, "sentence"), "TCP meets p99<1ms up to 50 clients; RDMA up to 2,000 "
			    "clients, the most that were tried; TLS not even with 50 clients.");
	assert_true(json_number_at(tcp, "met_up_to_clients") == 50);
	assert_true(json_number_at(tcp, "missed_from_clients") == 100);
	assert_true(json_is_null(json_object_get(tcp, "not_known_clients")));
	assert_true(json_number_at(json_array_get(json_object_get(tcp, "steps"), 0), "met_rounds") == 3);
	json_decref(need);
}

TEST(sentence__nothing_meets_it__said_with_the_fewest)
{
	static const struct transport t[] = { { "rdma", { "fff", "fff", "" }, 0, 0 },
					      { "tcp", { "ffp", "ppp", "" }, 0, 0 } };

	assert_sentence(t, 2, "None of RDMA and TCP meets p99<1ms, not even with 50 clients, the fewest that were "
			"tried.");
}

TEST(sentence__not_known__the_reason)
{
	static const struct transport none[] = { { "rdma", { "dds", "dpp", "" }, 0, 0 },
						 { "tcp", { "iip", "fff", "" }, 0, 0 } };
	static const struct transport above[] = { { "rdma", { "ddp", "ppp", "ssf" }, 0, 0 },
						  { "tcp", { "pfi", "", "fff" }, 0, 0 } };

	assert_sentence(none, 2, "RDMA meets p99<1ms up to 100 clients (2,000 clients: not tried in 3 of 3 rounds); "
			"TCP gave no result (50 clients: with too few samples in 2 of 3 rounds).");
	assert_sentence(none + 1, 1, "It is not known what meets p99<1ms: TCP gave no result (50 clients: with too few "
			"samples in 2 of 3 rounds).");
	assert_sentence(above, 1, "RDMA meets p99<1ms up to 100 clients (2,000 clients: missed with a saturated "
			"generator in 2 of 3 rounds).");
}

TEST(price__cpu_time_of_both_ends_at_the_rate_that_all_reach)
{
	/* The slower one makes 4,000 operations a second with 2,000 clients: 2 each. 2 x 50 us are 0.0001 CPUs, which
	 * cost 0.0001 x 730 h x 0.04. */
	static const struct transport t[] = { { "rdma", { "ppp", "ppp", "ppp" }, 20e3, 90e3 },
					      { "tcp", { "ppp", "ppp", "ppp" }, 50e3, 4e3 } };
	json_t *need = need_of(t, 2, one_size, 1, 0.04), *all = json_object_get(need, "alternatives");

	assert_true(json_number_at(need, "cpu_hour_price") == 0.04);
	assert_float_equal(json_number_at(json_array_get(all, 1), "cpu_ns_per_op"), 50e3, 1e-6);
	assert_float_equal(json_number_at(json_array_get(all, 1), "cost_per_client_month"), 0.00292, 1e-12);
	assert_float_equal(json_number_at(json_array_get(all, 0), "cost_per_client_month"), 0.001168, 1e-12);
	assert_true(json_number_at(json_array_get(all, 0), "cpu_clients") == 2000);
	json_decref(need);
	need = need_of(t, 2, one_size, 1, 0);
	assert_true(json_is_null(json_object_get(need, "cpu_hour_price")));
	assert_true(json_is_null(json_object_get(json_array_get(json_object_get(need, "alternatives"), 0),
						 "cost_per_client_month")));
	json_decref(need);
}

TEST(sizes__several__a_sentence_each)
{
	static const struct transport t[] = { { "tcp", { "ppp", "ppp", "ppp" }, 0, 0 } };
	static const int sizes[] = { 64, 4096 };
	json_t *need = need_of(t, 1, sizes, 2, 0);

	assert_non_null(strstr(json_text_at(need, "sentence"), "64 bytes: TCP is enough"));
	assert_non_null(strstr(json_text_at(need, "sentence"), "). 4096 bytes: TCP is enough"));
	assert_int_equal(json_array_size(json_object_get(need, "alternatives")), 2);
	json_decref(need);
}

TEST(null__without_objective_transports_or_a_single_rate)
{
	const struct need_terms none = { .rounds = 3 }, terms = { .rounds = 3, .slo = "p99<1ms" };
	json_t *transports = json_pack("[{s:s, s:{s:s}}]", "name", "tcp", "options", "transport", "tcp");
	json_t *others = json_pack("[{s:s, s:{s:s}}]", "name", "off", "options", "inline", "off");
	json_t *points = json_pack("[{s:i, s:i, s:n}]", "clients", 1, "message_bytes", 64, "offered_per_s");
	json_t *sweep = json_pack("[{s:i, s:i, s:f}]", "clients", 1, "message_bytes", 64, "offered_per_s", 9.);
	json_t *all[] = { need_json(transports, points, &none), need_json(others, points, &terms),
			  need_json(transports, sweep, &terms) };

	for (size_t i = 0; i < N_ELEMENTS(all); i++) {
		assert_true(json_is_null(all[i]));
		json_decref(all[i]);
	}
	json_decref(transports);
	json_decref(others);
	json_decref(points);
	json_decref(sweep);
}
