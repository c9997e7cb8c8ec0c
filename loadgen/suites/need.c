/* SPDX-License-Identifier: BSD-2-Clause */
/* Does this need RDMA? See need.h. */
#include "loadgen/suites/need.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/suites/side_by_side.h"

/* A step that holds fewer of its clients misses the objective, however fast the others are. */
#define HELD_RATIO 0.99
#define HOURS_PER_MONTH 730.0
#define SENTENCE_MAX 4096

enum outcome { MET, MISSED, DISTURBED, SATURATED, TOO_FEW, NOT_TRIED, OUTCOMES };

/* Why a round with this outcome shows nothing about the server. */
static const char *const unknown_words[OUTCOMES] = {
	[DISTURBED] = "disturbed", [SATURATED] = "missed with a saturated generator",
	[TOO_FEW] = "with too few samples", [NOT_TRIED] = "not tried",
};

static bool is_disturbed(const json_t *step)
{
	/* The flags of step_is_disturbed(). */
	return read_has_flag(step, VALIDITY_clock_hole) || read_has_flag(step, VALIDITY_replies_stalled) ||
	       read_has_flag(step, VALIDITY_cpu_stolen) || read_has_flag(step, VALIDITY_cpu_throttled);
}

static bool lost_clients(const json_t *step)
{
	return !read_has_flag(step, VALIDITY_clients_come_and_go) &&
	       read_amount(step, "connected_held") < HELD_RATIO * read_amount(step, "target_clients");
}

static enum outcome judge_step(const json_t *step)
{
	bool missed = lost_clients(step), few = json_array_size(json_object_get(step, "slo")) == 0;
	const json_t *term;
	size_t i;

	if (is_disturbed(step))
		return DISTURBED;
	json_array_foreach(json_object_get(step, "slo"), i, term) {
		const char *result = json_text_at(term, "result");

		missed |= result && strcmp(result, "fail") == 0;
		few |= !result || strcmp(result, "inconclusive") == 0;
	}
	if (missed)
		return read_has_flag(step, VALIDITY_generator_saturated) ? SATURATED : MISSED;
	return few ? TOO_FEW : MET;
}

/* Why it is not known whether a number of clients meets the objective: the most frequent outcome among its rounds
 * without a result. */
static json_t *reason_of(const unsigned n[OUTCOMES], unsigned rounds)
{
	enum outcome most = DISTURBED;

	for (enum outcome o = DISTURBED; o < OUTCOMES; o++)
		most = n[o] > n[most] ? o : most;
	if (n[most] == 0)
		return json_sprintf("met in %u of %u rounds and missed in %u", n[MET], rounds, n[MISSED]);
	return json_sprintf("%s in %u of %u rounds", unknown_words[most], n[most], rounds);
}

static json_t *tally_json(double clients, const json_t *steps, unsigned rounds)
{
	unsigned n[OUTCOMES] = { 0 };
	bool met, missed;
	const json_t *step;
	size_t i;

	json_array_foreach(steps, i, step)
		n[judge_step(step)]++;
	n[NOT_TRIED] = rounds > i ? rounds - (unsigned)i : 0;
	met = 2 * n[MET] > rounds;
	missed = 2 * n[MISSED] > rounds;
	return json_pack("{s:o, s:i, s:i, s:i, s:s, s:o}", "clients", json_whole(clients), "met_rounds", (int)n[MET],
			 "missed_rounds", (int)n[MISSED], "unknown_rounds", (int)(rounds - n[MET] - n[MISSED]),
			 "result", met ? "met" : missed ? "missed" : "not_known", "reason",
			 met || missed ? json_null() : reason_of(n, rounds));
}

/* Each number of clients at which the size was measured, rising. */
static json_t *tallies_of(const json_t *points, double bytes, size_t alternative, unsigned rounds)
{
	json_t *all = json_array(), *point;
	size_t i, at;

	json_array_foreach((json_t *)points, i, point) {
		double clients = json_number_at(point, "clients");
		json_t *run = json_array_get(json_object_get(point, "runs"), alternative);

		if (json_number_at(point, "message_bytes") != bytes)
			continue;
		for (at = json_array_size(all); at > 0; at--)
			if (json_number_at(json_array_get(all, at - 1), "clients") < clients)
				break;
		json_array_insert_new(all, at, tally_json(clients, json_object_get(run, "steps"), rounds));
	}
	return all;
}

static bool is_result(const json_t *tally, const char *result)
{
	return strcmp(json_text_at(tally, "result"), result) == 0;
}

/* Tallies of the smallest number of clients that misses the objective, of the largest below it that meets it, and of
 * the smallest between the two without a result; NULL: there is none. */
struct bounds {
	const json_t *met, *missed, *unknown;
};

static struct bounds bounds_of(const json_t *tallies)
{
	struct bounds b = { NULL, NULL, NULL };
	const json_t *tally;
	size_t i;

	json_array_foreach(tallies, i, tally) {
		if (is_result(tally, "missed")) {
			b.missed = tally;
			break;
		}
		if (is_result(tally, "met")) {
			b.met = tally;
			b.unknown = NULL;
		} else if (!b.unknown) {
			b.unknown = tally;
		}
	}
	return b;
}

/* CPU time of both ends for an operation. */
static double cpu_of(const json_t *point, size_t alternative)
{
	const json_t *o = json_array_get(json_object_get(point, "figures"), alternative);

	return read_amount(o, "server_cpu_ns_per_message") + read_amount(o, "generator_cpu_ns_per_message");
}

static bool all_cpu_is_known(const json_t *point)
{
	size_t n = json_array_size(json_object_get(point, "figures"));

	for (size_t i = 0; i < n; i++)
		if (!isfinite(cpu_of(point, i)))
			return false;
	return true;
}

/* The point of the most clients at which the CPU time of all alternatives is known, so that they are compared under the
 * same load; NULL: there is none. */
static const json_t *cpu_point(const json_t *points, double bytes)
{
	const json_t *best = NULL, *point;
	size_t i;

	json_array_foreach(points, i, point)
		if (json_number_at(point, "message_bytes") == bytes && all_cpu_is_known(point) &&
		    !(json_number_at(point, "clients") <= json_number_at(best, "clients")))
			best = point;
	return best;
}

/* Operations a second of a client with the slowest alternative: a rate that all of them reach. */
static double common_rate(const json_t *point)
{
	double least = INFINITY;
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(point, "figures"), i, o)
		least = fmin(least, read_amount(o, "throughput_msgs_per_s"));
	return least / json_number_at(point, "clients");
}

static bool is_socket(const json_t *alternative)
{
	const char *transport = json_text_at(alternative, "options.transport");

	return transport && (strcmp(transport, "tcp") == 0 || strcmp(transport, "tls") == 0);
}

static json_t *alternative_json(const json_t *o, double bytes, json_t *tallies, const json_t *at, size_t alternative,
				double price)
{
	struct bounds b = bounds_of(tallies);
	double cpu_ns = cpu_of(at, alternative), rate = common_rate(at);
	double cost = price > 0 ? cpu_ns / 1e9 * rate * HOURS_PER_MONTH * price : NAN;

	return json_pack("{s:O, s:b, s:o, s:O?, s:O?, s:O?, s:o, s:o, s:o, s:o, s:o}", "name",
			 json_object_get(o, "name"), "is_socket", is_socket(o), "message_bytes", json_whole(bytes),
			 "met_up_to_clients", json_object_get(b.met, "clients"), "missed_from_clients",
			 json_object_get(b.missed, "clients"), "not_known_clients",
			 json_object_get(b.unknown, "clients"), "steps", tallies, "cpu_ns_per_op", json_number(cpu_ns),
			 "cpu_clients", json_whole(json_number_at(at, "clients")), "ops_per_client_s",
			 json_number(rate), "cost_per_client_month", json_number(cost));
}

struct sentence {
	char text[SENTENCE_MAX];
	size_t used;
};

static void __attribute__((format(printf, 2, 3))) say(struct sentence *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(s->text + s->used, sizeof(s->text) - s->used, fmt, ap);
	va_end(ap);
	s->used = n < 0 || (size_t)n >= sizeof(s->text) - s->used ? sizeof(s->text) - 1 : s->used + (size_t)n;
}

/* Says a number up to LOADGEN_CLIENTS_MAX, with commas between thousands. */
static void say_number(struct sentence *s, double clients)
{
	unsigned n = (unsigned)clients;

	if (n < 1000)
		say(s, "%u", n);
	else if (n < 1000000)
		say(s, "%u,%03u", n / 1000, n % 1000);
	else
		say(s, "%u,%03u,%03u", n / 1000000, n / 1000 % 1000, n % 1000);
}

static void say_clients(struct sentence *s, const json_t *row, const char *path)
{
	double n = json_number_at(row, path);

	say_number(s, n);
	say(s, n == 1 ? " client" : " clients");
}

static void say_name(struct sentence *s, const json_t *row)
{
	static const char *const words[][2] = { { "rdma", "RDMA" }, { "tcp", "TCP" }, { "tls", "TLS" } };
	const char *name = json_text_at(row, "name");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(name, words[i][0]) == 0)
			name = words[i][1];
	say(s, "%s", name);
}

static const json_t *last_tally(const json_t *row)
{
	const json_t *tallies = json_object_get(row, "steps");

	return json_array_get(tallies, json_array_size(tallies) - 1);
}

static bool is_known(const json_t *row, const char *path)
{
	return isfinite(json_number_at(row, path));
}

static bool meets_all(const json_t *row)
{
	return json_number_at(row, "met_up_to_clients") == json_number_at(last_tally(row), "clients");
}

/* True for a transport that meets the objective without RDMA wherever it was tried. */
static bool is_enough(const json_t *row)
{
	return meets_all(row) && json_is_true(json_object_get(row, "is_socket"));
}

static bool misses_all(const json_t *row)
{
	return !is_known(row, "met_up_to_clients") && !is_known(row, "not_known_clients");
}

/* "A, B and C" of the rows for which `is` holds (NULL: of all). Returns how many. */
static size_t say_names(struct sentence *s, const json_t *rows, bool (*is)(const json_t *))
{
	size_t n = 0, said = 0, i;
	const json_t *row;

	json_array_foreach(rows, i, row)
		n += !is || is(row);
	json_array_foreach(rows, i, row) {
		if (is && !is(row))
			continue;
		say(s, "%s", said == 0 ? "" : said + 1 == n ? " and " : ", ");
		say_name(s, row);
		said++;
	}
	return n;
}

static void say_unknown(struct sentence *s, const json_t *row)
{
	const json_t *tally;
	size_t i;

	say_clients(s, row, "not_known_clients");
	json_array_foreach(json_object_get(row, "steps"), i, tally)
		if (json_number_at(tally, "clients") == json_number_at(row, "not_known_clients"))
			say(s, ": %s", json_text_at(tally, "reason"));
}

/* Continues "TCP meets it ..." or "; TCP ...". */
static void say_limit(struct sentence *s, const json_t *row)
{
	if (!is_known(row, "met_up_to_clients")) {
		say(s, misses_all(row) ? "not even with " : "gave no result (");
		if (misses_all(row))
			say_clients(s, row, "missed_from_clients");
		else
			say_unknown(s, row);
		say(s, misses_all(row) ? "" : ")");
		return;
	}
	say(s, "up to ");
	say_clients(s, row, "met_up_to_clients");
	if (meets_all(row))
		say(s, ", the most that were tried");
	else if (is_known(row, "not_known_clients")) {
		say(s, " (");
		say_unknown(s, row);
		say(s, ")");
	}
}

/* Says the limit of each alternative: first sockets, because the question is whether they are enough, and last those
 * that meet the objective nowhere. `begun`: the sentence has named alternatives that are enough. */
static void say_limits(struct sentence *s, const json_t *rows, const char *slo, bool begun)
{
	const json_t *row;
	size_t i;

	for (int turn = 0; turn < 3; turn++)
		json_array_foreach(rows, i, row) {
			bool meets = is_known(row, "met_up_to_clients");

			if ((meets ? json_is_true(json_object_get(row, "is_socket")) ? 0 : 1 : 2) != turn ||
			    is_enough(row))
				continue;
			say(s, "%s", begun ? "; " : "");
			say_name(s, row);
			say(s, begun || !meets ? " " : " meets %s ", slo);
			say_limit(s, row);
			begun = true;
		}
}

static void say_conclusion(struct sentence *s, const json_t *rows, const char *slo)
{
	size_t enough = 0, met = 0, missed = 0, i;
	const json_t *row;

	json_array_foreach(rows, i, row) {
		enough += is_enough(row);
		met += is_known(row, "met_up_to_clients");
		missed += misses_all(row);
	}
	if (enough) {
		say_names(s, rows, is_enough);
		say(s, enough == 1 ? " is enough here: it meets" : " are enough here: they meet");
		say(s, " %s at all numbers of clients that were tried (up to ", slo);
		say_number(s, json_number_at(last_tally(json_array_get(rows, 0)), "clients"));
		say(s, ")");
	} else if (missed == json_array_size(rows)) {
		say(s, "None of ");
		say_names(s, rows, NULL);
		say(s, " meets %s, not even with ", slo);
		say_clients(s, json_array_get(rows, 0), "missed_from_clients");
		say(s, ", the fewest that were tried");
	} else if (!met) {
		say(s, "It is not known what meets %s: ", slo);
	}
	if (met || missed < json_array_size(rows))
		say_limits(s, rows, slo, enough > 0);
	say(s, ".");
}

static json_t *rows_of_size(const json_t *alternatives, const json_t *points, double bytes,
			    const struct need_terms *terms)
{
	const json_t *at = cpu_point(points, bytes), *o;
	json_t *rows = json_array();
	size_t i;

	json_array_foreach(alternatives, i, o)
		json_array_append_new(rows, alternative_json(o, bytes, tallies_of(points, bytes, i, terms->rounds), at,
							     i, terms->cpu_hour_price));
	return rows;
}

static bool compares_transports(const json_t *alternatives)
{
	const json_t *o;
	size_t i;

	json_array_foreach(alternatives, i, o)
		if (json_at(o, "options.transport"))
			return true;
	return false;
}

static bool has_several_sizes(const json_t *points)
{
	for (size_t i = 1; i < json_array_size(points); i++)
		if (side_by_side_is_first(points, i, "message_bytes"))
			return true;
	return false;
}

json_t *need_json(const json_t *alternatives, const json_t *points, const struct need_terms *terms)
{
	struct sentence s = { .used = 0 };
	json_t *all, *rows, *point;
	double bytes;
	size_t i;

	if (!terms->slo || !compares_transports(alternatives) ||
	    is_known(json_array_get(points, 0), "offered_per_s"))
		return json_null();
	all = json_array();
	json_array_foreach((json_t *)points, i, point) {
		if (!side_by_side_is_first(points, i, "message_bytes"))
			continue;
		bytes = json_number_at(point, "message_bytes");
		rows = rows_of_size(alternatives, points, bytes, terms);
		if (i)
			say(&s, " ");
		if (has_several_sizes(points))
			say(&s, "%.0f bytes: ", bytes);
		say_conclusion(&s, rows, terms->slo);
		json_array_extend(all, rows);
		json_decref(rows);
	}
	return json_pack("{s:s, s:o, s:o, s:s}", "slo", terms->slo, "cpu_hour_price",
			 json_number(terms->cpu_hour_price > 0 ? terms->cpu_hour_price : NAN), "alternatives", all,
			 "sentence", s.text);
}
