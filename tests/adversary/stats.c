/* SPDX-License-Identifier: BSD-2-Clause */
/* stats: prints a server's statistics for shell tests, or waits until they fulfil conditions.
 *
 *   stats [options] HOST PORT TERM...
 *   stats --file FILE TERM...
 *
 * A TERM is a path into the server's report (or a JSON file), whose value is printed, or a condition
 * PATH=N, PATH!=N, PATH>=N or PATH<=N. With conditions the report is requested again until all of them
 * hold at once, for at most --wait. A path is names joined by dots. In a list the next name is an index,
 * or the next two are stage and code of a failure. Refusals and failures that never happened count 0;
 * other unknown paths are errors, so that a test with a misspelt path fails. One thread, one control
 * session.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>
#include <jansson.h>

#include "client/control.h"
#include "client/resolve.h"
#include "common/base/clock.h"
#include "common/base/opts.h"

enum { EXIT_OK = 0, EXIT_NOT_SO = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3 };

#define ASK_AGAIN_S 0.02
#define TERMS_MAX 32

struct settings {
	const char *ca, *cert, *key, *file;
	uint64_t wait_ns;
	bool info, quiet;
};

enum op { OP_PRINT, OP_EQ, OP_NE, OP_GE, OP_LE };

struct term {
	const char *text;
	char path[128];
	enum op op;
	double value;
	json_t *seen;	/* borrowed from the current report */
};

struct asker {
	const struct settings *set;
	struct control *control;
	struct ev_loop *loop;
	ev_timer again;
	struct term terms[TERMS_MAX];
	int n_terms;
	uint64_t deadline_ns;
	int status;
};

#define AT(field) offsetof(struct settings, field)

static const struct opt options[] = {
	{ .name = "ca", .type = OPT_STRING, .offset = AT(ca), .metavar = "FILE",
	  .def = "build/certs/ca.pem", .help = "CA certificate." },
	{ .name = "cert", .type = OPT_STRING, .offset = AT(cert), .metavar = "FILE",
	  .help = "Client certificate." },
	{ .name = "file", .type = OPT_STRING, .offset = AT(file), .metavar = "FILE",
	  .help = "Look into this JSON file instead of asking a server." },
	{ .name = "info", .type = OPT_FLAG, .offset = AT(info), .help = "Ask for INFO instead of STATS." },
	{ .name = "key", .type = OPT_STRING, .offset = AT(key), .metavar = "FILE",
	  .help = "Private key of --cert." },
	{ .name = "quiet", .type = OPT_FLAG, .offset = AT(quiet), .help = "Do not say what does not hold." },
	{ .name = "wait", .type = OPT_DURATION, .offset = AT(wait_ns), .min = 0, .max = 600 * NS_PER_S,
	  .metavar = "SECONDS", .def = "0", .help = "Longest time to wait for the conditions." },
};

static const struct opts_spec spec = {
	.program = "stats",
	.usage = "[options] HOST PORT TERM... | --file FILE TERM...",
	.summary = "Prints values of a server's report, or waits until conditions on them hold.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 all hold, 1 not so, 2 usage or no such path, 3 the server gave no report.",
};

static bool parse_term(const char *text, struct term *t)
{
	static const struct {
		const char *sign;
		enum op op;
	} signs[] = { { "!=", OP_NE }, { ">=", OP_GE }, { "<=", OP_LE }, { "=", OP_EQ } };
	size_t n = strcspn(text, "!<>=");
	char *end;

	t->text = text;
	t->op = OP_PRINT;
	if (n == 0 || n >= sizeof(t->path))
		return false;
	memcpy(t->path, text, n);
	t->path[n] = '\0';
	if (text[n] == '\0')
		return true;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (strncmp(text + n, signs[i].sign, strlen(signs[i].sign)) != 0)
			continue;
		t->op = signs[i].op;
		text += n + strlen(signs[i].sign);
		t->value = strtod(text, &end);
		return end != text && *end == '\0';
	}
	return false;
}

/* Returns the element with this index, or the count of the failure with this stage and the code that follows. */
static json_t *find_in_list(json_t *list, const char *stage, char **rest)
{
	const char *code;
	json_t *row;
	char *end;
	size_t i = strtoul(stage, &end, 10);

	if (*end == '\0' && end != stage)
		return json_array_get(list, i);
	code = strsep(rest, ".");
	if (!code)
		return NULL;
	json_array_foreach(list, i, row) {
		if (strcmp(json_string_value(json_object_get(row, "stage")), stage) == 0 &&
		    strcmp(json_string_value(json_object_get(row, "code")), code) == 0)
			return json_object_get(row, "count");
	}
	return NULL;
}

/* Returns NULL if the path names nothing. */
static json_t *find(json_t *report, const char *path)
{
	char copy[128], *rest = copy, *name;

	snprintf(copy, sizeof(copy), "%s", path);
	while (report && (name = strsep(&rest, "."))) {
		if (json_is_array(report))
			report = find_in_list(report, name, &rest);
		else
			report = json_object_get(report, name);
	}
	return report;
}

static bool counts_from_zero(const char *path)
{
	return strncmp(path, "events.refused.", 15) == 0 || strstr(path, "failures.");
}

static bool holds(const struct term *t)
{
	double v = t->seen ? json_number_value(t->seen) : 0;

	switch (t->op) {
	case OP_EQ: return v == t->value;
	case OP_NE: return v != t->value;
	case OP_GE: return v >= t->value;
	case OP_LE: return v <= t->value;
	case OP_PRINT: break;
	}
	return true;
}

static void print_value(const struct term *t)
{
	if (!t->seen)
		printf("0\n");
	else if (json_is_string(t->seen))
		printf("%s\n", json_string_value(t->seen));
	else
		json_dumpf(t->seen, stdout, JSON_ENCODE_ANY | JSON_COMPACT), printf("\n");
}

static void end(struct asker *a, int status)
{
	a->status = status;
	ev_break(a->loop, EVBREAK_ALL);
}

static bool look_up(struct asker *a, json_t *report)
{
	for (int i = 0; i < a->n_terms; i++) {
		struct term *t = &a->terms[i];

		t->seen = find(report, t->path);
		if (t->seen || counts_from_zero(t->path))
			continue;
		fprintf(stderr, "stats: there is no %s in the report\n", t->path);
		return false;
	}
	return true;
}

static void say_what_fails(const struct asker *a)
{
	for (int i = 0; i < a->n_terms && !a->set->quiet; i++)
		if (!holds(&a->terms[i]))
			printf("not %s but %.15g\n", a->terms[i].text,
			       a->terms[i].seen ? json_number_value(a->terms[i].seen) : 0.);
}

static void on_report(void *arg, json_t *report, const struct fail *fail, const char *text)
{
	struct asker *a = arg;
	char code[96];
	bool all = true;

	if (!report) {
		fprintf(stderr, "stats: no report: %s: %s%s%s\n", stage_names[fail->stage],
			fail_code_text(fail, code, sizeof(code)), *text ? ": " : "", text);
		end(a, EXIT_UNREACHABLE);
		return;
	}
	if (!look_up(a, report)) {
		end(a, EXIT_USAGE);
		return;
	}
	for (int i = 0; i < a->n_terms; i++)
		all = all && holds(&a->terms[i]);
	if (!all && clock_now_ns() < a->deadline_ns) {
		ev_timer_set(&a->again, ASK_AGAIN_S, 0.);
		ev_timer_start(a->loop, &a->again);
		return;
	}
	if (!all)
		say_what_fails(a);
	for (int i = 0; i < a->n_terms; i++)
		if (a->terms[i].op == OP_PRINT)
			print_value(&a->terms[i]);
	end(a, all ? EXIT_OK : EXIT_NOT_SO);
}

static int look_into_file(struct asker *a)
{
	json_error_t e;
	json_t *file = json_load_file(a->set->file, 0, &e);
	bool all = true;
	int status = EXIT_USAGE;

	if (!file) {
		fprintf(stderr, "stats: %s: line %d: %s\n", a->set->file, e.line, e.text);
		return EXIT_UNREACHABLE;
	}
	if (look_up(a, file)) {
		for (int i = 0; i < a->n_terms; i++) {
			all = all && holds(&a->terms[i]);
			if (a->terms[i].op == OP_PRINT)
				print_value(&a->terms[i]);
		}
		say_what_fails(a);
		status = all ? EXIT_OK : EXIT_NOT_SO;
	}
	json_decref(file);
	return status;
}

static void ask(struct asker *a)
{
	(void)!control_request(a->control, a->set->info ? CONTROL_INFO : CONTROL_STATS);
}

static void on_again(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	ask(w->data);
}

static int run(struct asker *a, const struct control_config *cc)
{
	char err[512];

	a->loop = ev_default_loop(0);
	if (control_new(cc, a->loop, on_report, a, &a->control, err, sizeof(err))) {
		fprintf(stderr, "stats: %s\n", err);
		return EXIT_UNREACHABLE;
	}
	ev_timer_init(&a->again, on_again, 0., 0.);
	a->again.data = a;
	a->deadline_ns = clock_now_ns() + a->set->wait_ns;
	ask(a);
	ev_run(a->loop, 0);
	control_free(a->control);
	return a->status;
}

int main(int argc, char **argv)
{
	struct settings set = { .ca = "build/certs/ca.pem" };
	struct asker a = { .set = &set, .status = EXIT_UNREACHABLE };
	struct control_config cc = { .timeout_ns = 10 * NS_PER_S };
	char err[512];
	int first, terms;

	if (opts_parse(&spec, argc, argv, &set, &first, err, sizeof(err)) != OPTS_OK) {
		opts_print_help(&spec, NULL, stderr);
		return EXIT_USAGE;
	}
	terms = set.file ? first : first + 2;
	if (argc <= terms || argc - terms > TERMS_MAX) {
		fprintf(stderr, "stats: HOST, PORT and 1 to %d terms are needed\n", TERMS_MAX);
		return EXIT_USAGE;
	}
	for (int i = terms; i < argc; i++) {
		if (!parse_term(argv[i], &a.terms[a.n_terms++])) {
			fprintf(stderr, "stats: '%s' is neither a path nor a condition\n", argv[i]);
			return EXIT_USAGE;
		}
	}
	if (set.file)
		return look_into_file(&a);
	if (resolve_host(argv[first], (uint16_t)atoi(argv[first + 1]), &cc.server, err, sizeof(err))) {
		fprintf(stderr, "stats: %s\n", err);
		return EXIT_UNREACHABLE;
	}
	cc.verify_name = argv[first];
	cc.ca_file = set.ca;
	cc.cert_file = set.cert;
	cc.key_file = set.key;
	return run(&a, &cc);
}
