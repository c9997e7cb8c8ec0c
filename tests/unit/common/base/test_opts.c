/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/base/opts.c: every type, every way to be wrong, and --help. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/opts.h"

#define UNTOUCHED UINT64_C(0xa5a5a5a5a5a5a5a5)
#define MAX_ARGS  16

struct config {
	uint64_t any, clients, duration, size;
	struct opt_config file;
	const char *name;
	struct opt_list steps, sizes;
	struct opt_texts tags;
	int mode;
	bool verbose;
};

static const char *const modes[] = { "busy", "event", "hybrid", NULL };

static const struct opt table[] = {
	{ .name = "any", .type = OPT_UINT, .offset = offsetof(struct config, any),
	  .max = UINT64_MAX, .metavar = "N", .help = "Anything that fits." },
	{ .name = "clients", .type = OPT_UINT, .offset = offsetof(struct config, clients),
	  .min = 1, .max = 100000, .metavar = "N", .def = "10",
	  .help = "How many clients to start. The text is long enough to be wrapped, so that one "
		  "can see where the second line begins and that no word is lost on the way." },
	{ .name = "config", .type = OPT_CONFIG, .offset = offsetof(struct config, file),
	  .metavar = "FILE", .help = "Further options." },
	{ .name = "duration", .type = OPT_DURATION, .offset = offsetof(struct config, duration),
	  .min = 1500, .max = UINT64_C(7200000000000), .metavar = "SECONDS", .def = "10s",
	  .help = "How long." },
	{ .name = "mode", .type = OPT_CHOICE, .offset = offsetof(struct config, mode),
	  .choices = modes, .metavar = "MODE", .def = "busy",
	  .help = "How to poll, with words so chosen that this last one ends at column 101" },
	{ .name = "name", .type = OPT_STRING, .offset = offsetof(struct config, name),
	  .metavar = "TEXT", .help = "What to call it." },
	{ .name = "size", .type = OPT_SIZE, .offset = offsetof(struct config, size), .min = 64,
	  .max = UINT64_C(4) << 30, .metavar = "BYTES", .help = "How large." },
	{ .name = "sizes", .type = OPT_SIZES, .offset = offsetof(struct config, sizes), .min = 1,
	  .max = 2 << 20, .metavar = "BYTES,...", .help = "Which sizes." },
	{ .name = "steps", .type = OPT_LIST, .offset = offsetof(struct config, steps), .min = 1,
	  .max = 500, .metavar = "N,...", .help = "Which steps." },
	{ .name = "tag", .type = OPT_TEXTS, .offset = offsetof(struct config, tags),
	  .metavar = "TEXT", .help = "A tag; any number of times." },
	{ .name = "verbose", .type = OPT_FLAG, .offset = offsetof(struct config, verbose),
	  .help = "Say more." },
};

static const struct opts_spec spec = {
	.program = "prog",
	.usage = "[OPTIONS] [FILE]",
	.summary = "Does a thing.",
	.opts = table,
	.n_opts = sizeof(table) / sizeof(table[0]),
	.epilog = "Exit status: 0.",
};

struct parsed {
	enum opts_result result;
	struct config config;
	int first_arg;
	char err[400];
};

static struct parsed p;	/* of the last parse() */

static int split(char *line, char **argv)
{
	int argc = 0;
	char *save;

	argv[argc++] = (char *)(uintptr_t)"prog";
	for (char *s = strtok_r(line, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		assert_true(argc < MAX_ARGS - 1);
		argv[argc++] = s;
	}
	argv[argc] = NULL;
	return argc;
}

/* Arguments are separated by spaces; they live as long as the next call. */
static enum opts_result parse(const char *arguments)
{
	static char line[2000];
	char *argv[MAX_ARGS];
	int argc;

	snprintf(line, sizeof(line), "%s", arguments);
	argc = split(line, argv);
	memset(&p, 0, sizeof(p));
	p.config.any = p.config.clients = p.config.duration = p.config.size = UNTOUCHED;
	p.config.mode = -1;
	p.first_arg = -1;
	p.result = opts_parse(&spec, argc, argv, &p.config, &p.first_arg, p.err, sizeof(p.err));
	return p.result;
}

static void assert_parses(const char *arguments)
{
	if (parse(arguments) != OPTS_OK)
		fail_msg("%s: %s", arguments, p.err);
	assert_string_equal(p.err, "");
}

/* They parse, and *stored, a member of p.config, is this number. */
static void assert_stores(const char *arguments, const uint64_t *stored, uint64_t number)
{
	assert_parses(arguments);
	assert_true(*stored == number);
}

/* They parse, and the first that is no option is this one of argv. */
static void assert_ends_at(const char *arguments, int first_arg)
{
	assert_parses(arguments);
	assert_int_equal(p.first_arg, first_arg);
}

static void assert_refused(const char *arguments, const char *message)
{
	assert_int_equal(parse(arguments), OPTS_ERROR);
	assert_string_equal(p.err, message);
}

TEST(uint__digits__stored)
{
	assert_stores("--clients 1", &p.config.clients, 1);
	assert_stores("--clients=100000", &p.config.clients, 100000);
	assert_stores("--any=0", &p.config.any, 0);
	assert_stores("--any=18446744073709551615", &p.config.any, UINT64_MAX);
	assert_stores("--any=0000000000000000000000000000012", &p.config.any, 12);
}

TEST(size__suffixes__powers_of_1024)
{
	assert_stores("--size 64", &p.config.size, 64);
	assert_stores("--size 3k", &p.config.size, 3 * 1024);
	assert_stores("--size 5M", &p.config.size, 5 * 1024 * 1024);
	assert_stores("--size=4G", &p.config.size, UINT64_C(4294967296));
}

TEST(duration__units_and_fractions__exact_ns)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "1", 1000000000 },	     { "1s", 1000000000 },
		{ "0.1", 100000000 },	     { "0.3", 300000000 },
		{ "2.5m", 150000000000 },    { "1.5us", 1500 },
		{ "250ms", 250000000 },	     { "0.000002", 2000 },
		{ "0.5h", 1800000000000 },   { "2h", 7200000000000 },
		{ "1.000000001", 1000000001 }, { "1.0000000000", 1000000000 },
		{ "007.250us", 7250 },	     { "0.3333333333h", 1199999999880 },
	};

	for (size_t i = 0; i < N_ELEMENTS(good); i++) {
		char arguments[64];

		snprintf(arguments, sizeof(arguments), "--duration=%s", good[i].text);
		assert_parses(arguments);
		assert_int_equal(p.config.duration, good[i].ns);
	}
}

TEST(string__any_text__points_into_argv)
{
	char *argv[] = { (char *)(uintptr_t)"prog", (char *)(uintptr_t)"--name",
			 (char *)(uintptr_t)"-a=b,c", NULL };
	struct config c = { 0 };
	char err[100];
	int first;

	assert_int_equal(opts_parse(&spec, 3, argv, &c, &first, err, sizeof(err)), OPTS_OK);
	assert_ptr_equal(c.name, argv[2]);
	assert_parses("--name=--x=y");
	assert_string_equal(p.config.name, "--x=y");
	assert_parses("--name -");
	assert_string_equal(p.config.name, "-");
}

TEST(choice__each__its_index)
{
	assert_parses("--mode busy");
	assert_int_equal(p.config.mode, 0);
	assert_parses("--mode=hybrid");
	assert_int_equal(p.config.mode, 2);
}

TEST(list__values__in_their_order)
{
	assert_parses("--steps 500,1,1,20");
	assert_int_equal(p.config.steps.n, 4);
	assert_int_equal(p.config.steps.v[0], 500);
	assert_int_equal(p.config.steps.v[1], 1);
	assert_int_equal(p.config.steps.v[2], 1);
	assert_int_equal(p.config.steps.v[3], 20);
	assert_parses("--steps=7");
	assert_int_equal(p.config.steps.n, 1);
}

TEST(list__as_long_as_allowed__taken)
{
	char arguments[300] = "--steps=1";

	for (int i = 1; i < OPT_LIST_MAX; i++)
		strcat(arguments, ",2");
	assert_parses(arguments);
	assert_int_equal(p.config.steps.n, OPT_LIST_MAX);
	strcat(arguments, ",2");
	assert_int_equal(parse(arguments), OPTS_ERROR);
	assert_says(p.err, "is too long; allowed: 1 to 500 each, comma-separated, ");
	assert_int_equal(p.config.steps.n, 0);
}

TEST(flag__given__true)
{
	assert_parses("");
	assert_false(p.config.verbose);
	assert_parses("--verbose");
	assert_true(p.config.verbose);
}

TEST(operands__end_the_options__first_arg)
{
	assert_ends_at("", 1);
	assert_ends_at("--clients 5", 3);
	assert_ends_at("--clients=5 file --bogus", 2);
	assert_ends_at("--verbose -- --bogus", 3);
	assert_ends_at("- --bogus", 1);
}

TEST(operands_last__mixed__options_first_in_order)
{
	char *argv[] = { (char *)"p", (char *)"host", (char *)"--clients", (char *)"5", (char *)"ping",
			 (char *)"--verbose", (char *)"--", (char *)"--text", NULL };
	static const char *const expected[] = { "p", "--clients", "5", "--verbose", "--", "host", "ping", "--text" };

	opts_operands_last(&spec, 8, argv);
	for (int i = 0; i < 8; i++)
		assert_string_equal(argv[i], expected[i]);
	assert_null(argv[8]);
}

TEST(several__any_order__all_stored_and_the_rest_untouched)
{
	assert_parses("--size=1k --verbose --clients 7 --any=9");
	assert_int_equal(p.config.size, 1024);
	assert_int_equal(p.config.clients, 7);
	assert_int_equal(p.config.any, 9);
	assert_true(p.config.verbose);
	assert_true(p.config.duration == UNTOUCHED);
	assert_int_equal(p.config.mode, -1);
	assert_null(p.config.name);
}

TEST(help_and_version__long_and_short__recognised)
{
	assert_int_equal(parse("--help"), OPTS_HELP);
	assert_int_equal(parse("-h"), OPTS_HELP);
	assert_int_equal(parse("--version"), OPTS_VERSION);
	assert_int_equal(parse("-V"), OPTS_VERSION);
	assert_int_equal(parse("--clients 5 --help --bogus"), OPTS_HELP);
	assert_int_equal(parse("--bogus --help"), OPTS_ERROR);
	assert_parses("-- --help");
	assert_refused("--help=1", "--help: value given; allowed: no value");
}

#define CLIENTS_ALLOWED	 "1 to 100000"
#define DURATION_ALLOWED "1.500us to 2h"
#define SIZE_ALLOWED	 "64 to 4G"
#define MODE_ALLOWED	 "busy, event or hybrid"
#define SIZES_ALLOWED	 "1 to 2M each, comma-separated; A-B is A, doubled up to B; at most 64"
#define STEPS_ALLOWED	 "1 to 500 each, comma-separated, at most 64"

/* --name=value is refused for that problem, and no destination was written. */
static void assert_value_refused(const char *name, const char *value, const char *problem,
				 const char *allowed)
{
	char arguments[200], message[300];

	snprintf(arguments, sizeof(arguments), "--%s=%s", name, value);
	snprintf(message, sizeof(message), "--%s: %s%s%s; allowed: %s", name, value,
		 *value ? " " : "", problem, allowed);
	assert_refused(arguments, message);
	assert_true(p.config.any == UNTOUCHED && p.config.clients == UNTOUCHED &&
		    p.config.duration == UNTOUCHED && p.config.size == UNTOUCHED);
	assert_true(p.config.mode == -1 && !p.config.name && !p.config.steps.n);
}

static void assert_all_refused(const char *name, const char *const *values, size_t n, const char *problem,
			       const char *allowed)
{
	for (size_t i = 0; i < n; i++)
		assert_value_refused(name, values[i], problem, allowed);
}

TEST(uint__not_digits__refused)
{
	static const char *const bad[] = {
		"-1", "+1", "1e3", "0x10", "1.0", "1k", "1,2", "12a", "a",
	};

	assert_all_refused("clients", bad, N_ELEMENTS(bad), "is not a whole number", CLIENTS_ALLOWED);
}

/* The last three wrap to small numbers in 64 bits: 2^64, 2^64 + 5 and 10 * 2^64. */
TEST(uint__out_of_range__refused)
{
	assert_value_refused("clients", "0", "is not allowed", CLIENTS_ALLOWED);
	assert_value_refused("clients", "100001", "is not allowed", CLIENTS_ALLOWED);
	assert_value_refused("any", "18446744073709551616", "is not allowed", "0 or more");
	assert_value_refused("clients", "18446744073709551621", "is not allowed", CLIENTS_ALLOWED);
	assert_value_refused("any", "184467440737095516160", "is not allowed", "0 or more");
}

TEST(size__not_a_size__refused)
{
	static const char *const bad[] = { "k", "1K", "1m", "1kB", "-1k", "1.5k", "1kk", "G" };

	assert_all_refused("size", bad, N_ELEMENTS(bad), "is not a number of bytes (suffix k, M or G)",
			   SIZE_ALLOWED);
}

/* The last two are 2^64 bytes and a GiB more. */
TEST(size__out_of_range__refused)
{
	static const char *const bad[] = { "63", "5G", "17179869184G", "17179869185G" };

	assert_all_refused("size", bad, N_ELEMENTS(bad), "is not allowed", SIZE_ALLOWED);
}

TEST(duration__not_a_duration__refused)
{
	static const char *const bad[] = {
		".5", "5.", "1.s", "-1", "+1", "1e3", "1ns", "1S", "1d", "s", "1.5.2", "1ss", "1,5",
	};

	assert_all_refused("duration", bad, N_ELEMENTS(bad), "is not a duration (seconds, or suffix us, ms, s, m or h)",
			   DURATION_ALLOWED);
}

/* Past 64 bits in ns, in the number (2^64 + 5), and only with the fraction added. */
TEST(duration__out_of_range__refused)
{
	static const char *const bad[] = {
		"0.0000014", "2.5h", "0", "18446744075.709551616", "18446744073709551616h",
		"18446744073709551621", "18446744073.709551616", "5124095.6h",
	};

	assert_all_refused("duration", bad, N_ELEMENTS(bad), "is not allowed", DURATION_ALLOWED);
}

TEST(duration__too_fine__refused)
{
	static const char *const bad[] = { "0.0000000001", "1.5000000000000000000001", "1.0001us" };

	assert_all_refused("duration", bad, N_ELEMENTS(bad), "is finer than a nanosecond", DURATION_ALLOWED);
}

TEST(choice__other_text__refused)
{
	assert_value_refused("mode", "bus", "is not allowed", MODE_ALLOWED);
	assert_value_refused("mode", "Busy", "is not allowed", MODE_ALLOWED);
	assert_value_refused("mode", "busyevent", "is not allowed", MODE_ALLOWED);
}

TEST(list__bad__refused)
{
	static const char *const no_list[] = { "1,,2", ",1", "1,", "1;2", "1,-2", "1,2x", "x" };
	static const char *const not_allowed[] = { "1,0", "501", "1,18446744073709551617" };

	assert_all_refused("steps", no_list, N_ELEMENTS(no_list), "is not a list of whole numbers", STEPS_ALLOWED);
	assert_all_refused("steps", not_allowed, N_ELEMENTS(not_allowed), "is not allowed", STEPS_ALLOWED);
}

TEST(sizes__single_and_ranges__in_their_order)
{
	static const uint64_t expected[] = { 100, 1024, 2048, 4096, 3, 6, 12, 1 << 20 };

	assert_parses("--sizes 100,1k-4k,3-20,1M");
	assert_int_equal(p.config.sizes.n, N_ELEMENTS(expected));
	for (size_t i = 0; i < N_ELEMENTS(expected); i++)
		assert_true(p.config.sizes.v[i] == expected[i]);
	assert_parses("--sizes=7-7");
	assert_int_equal(p.config.sizes.n, 1);
	assert_int_equal(p.config.sizes.v[0], 7);
}

TEST(sizes__bad__refused)
{
	static const char *const not_allowed[] = { "0", "3M", "1,0", "0-4", "1-4M", "8-4", "1-2,3M" };
	static const char *const no_sizes[] = { ",", "1,", "1,,2", "-", "1-", "-2", "1-2-3", "x", "1kk", "1-x" };

	assert_all_refused("sizes", not_allowed, N_ELEMENTS(not_allowed), "is not allowed", SIZES_ALLOWED);
	assert_all_refused("sizes", no_sizes, N_ELEMENTS(no_sizes), "is not a number of bytes (suffix k, M or G)",
			   SIZES_ALLOWED);
	/* A list of 64 and one more. */
	assert_value_refused("sizes", "1-1M,1-1M,1-1M,1,1", "is too long", SIZES_ALLOWED);
}

TEST(value__empty__refused)
{
	assert_value_refused("clients", "", "empty value", CLIENTS_ALLOWED);
	assert_value_refused("duration", "", "empty value", DURATION_ALLOWED);
	assert_value_refused("mode", "", "empty value", MODE_ALLOWED);
	assert_value_refused("name", "", "empty value", "any text that is not empty");
	assert_value_refused("size", "", "empty value", SIZE_ALLOWED);
	assert_value_refused("steps", "", "empty value", STEPS_ALLOWED);
}

TEST(value__missing__refused)
{
	assert_refused("--clients", "--clients: value missing; allowed: " CLIENTS_ALLOWED);
	assert_refused("--size --verbose", "--size: value missing; allowed: " SIZE_ALLOWED);
	assert_refused("--name --", "--name: value missing; allowed: any text that is not empty");
}

TEST(flag__with_a_value__refused)
{
	assert_refused("--verbose=yes", "--verbose: value given; allowed: no value");
	assert_refused("--verbose=", "--verbose: value given; allowed: no value");
	assert_false(p.config.verbose);
}

TEST(option__twice__refused)
{
	assert_refused("--clients 5 --any=1 --clients=6", "--clients: given twice; allowed: once");
	assert_refused("--verbose --verbose", "--verbose: given twice; allowed: once");
}

TEST(texts__several_times__in_their_order)
{
	assert_parses("--tag a --clients 5 --tag=b,c --tag a");
	assert_int_equal(p.config.tags.n, 3);
	assert_string_equal(p.config.tags.v[0], "a");
	assert_string_equal(p.config.tags.v[1], "b,c");
	assert_string_equal(p.config.tags.v[2], "a");
	assert_refused("--tag a --tag=",
		       "--tag: empty value; allowed: any text that is not empty; the option at most 8 times");
	assert_refused("--tag=1 --tag=2 --tag=3 --tag=4 --tag=5 --tag=6 --tag=7 --tag=8 --tag=9",
		       "--tag: 9 is one too many; allowed: any text that is not empty; the option at most 8 times");
}

static void assert_suggests(const char *argument, const char *name)
{
	char message[128];

	snprintf(message, sizeof(message), "%s: unknown option; did you mean --%s? (see --help)",
		 argument, name);
	assert_refused(argument, message);
}

TEST(option__unknown_but_near__suggested)
{
	assert_suggests("--client", "clients");
	assert_suggests("--cleints", "clients");
	assert_suggests("--nane", "name");
	assert_suggests("--verbosee", "verbose");
	assert_suggests("--dur", "duration");
	assert_suggests("-clients", "clients");
}

TEST(option__unknown__refused)
{
	assert_refused("--zebra", "--zebra: unknown option (see --help)");
	assert_refused("--zebra=stripes", "--zebra: unknown option (see --help)");
	assert_refused("-x", "-x: unknown option (see --help)");
	assert_refused("-h=1", "-h: unknown option (see --help)");
	assert_refused("--=5", "--: unknown option (see --help)");
	assert_refused("-hV", "-hV: unknown option (see --help)");
	assert_refused("--vers", "--vers: unknown option (see --help)");
}

TEST(error__hostile_text__one_short_line)
{
	char arguments[1600] = "--name=x --clients=a\nb\x1b" "c\x7f\xc2\x9b\xff";
	size_t len = strlen(arguments);

	assert_refused(arguments,
		       "--clients: a\\x0ab\\x1bc\\x7f\\x9b\\xff is not a whole number; allowed: 1 to 100000");
	memset(arguments + len, '7', sizeof(arguments) - len - 1);
	assert_int_equal(parse(arguments), OPTS_ERROR);
	assert_true(strlen(p.err) < 200);
	assert_says(p.err, "777... is not a whole number; allowed: 1 to 100000");
}

TEST(error__small_buffer__cut_and_terminated)
{
	char *argv[] = { (char *)(uintptr_t)"prog", (char *)(uintptr_t)"--clients=0", NULL };
	char err[12] = "###########";
	struct config c = { 0 };
	int first;

	assert_int_equal(opts_parse(&spec, 2, argv, &c, &first, err, 8), OPTS_ERROR);
	assert_memory_equal(err, "--clien\0###", 11);
	assert_int_equal(opts_parse(&spec, 2, argv, &c, &first, NULL, 0), OPTS_ERROR);
}

static int given(const char *arguments, const char *name)
{
	char line[200], *argv[MAX_ARGS];

	snprintf(line, sizeof(line), "%s", arguments);
	return opts_given(&spec, split(line, argv), argv, name);
}

TEST(opts_given__by_position__only_options_count)
{
	assert_true(given("--any=1 --clients 5", "clients"));
	assert_true(given("--clients=5", "clients"));
	assert_false(given("--any=1", "clients"));
	assert_false(given("--name=--clients", "clients"));
	assert_false(given("file --clients 5", "clients"));
	assert_false(given("-- --clients 5", "clients"));
	assert_false(given("--name clients", "clients"));
	assert_false(given("", "clients"));
}

static char *help_text(const struct opts_spec *s, const char *topic)
{
	size_t len;
	char *text;
	FILE *stream = open_memstream(&text, &len);

	assert_non_null(stream);
	opts_print_help(s, topic, stream);
	assert_int_equal(fclose(stream), 0);
	return text;
}

TEST(opts_print_help__whole_table__as_documented)
{
	static const char expected[] =
		"Usage: prog [OPTIONS] [FILE]\n"
		"\n"
		"Does a thing.\n"
		"\n"
		"Options:\n"
		"  --any N                     Anything that fits. (0 or more)\n"
		"  --clients N                 How many clients to start. The text is "
		"long enough to be wrapped, so\n"
		"                              that one can see where the second line "
		"begins and that no word is lost\n"
		"                              on the way. (1 to 100000; default: 10)\n"
		"  --config FILE               Further options.\n"
		"  --duration SECONDS          How long. (1.500us to 2h; default: 10s)\n"
		"  --mode MODE                 How to poll, with words so chosen that this last "
		"one ends at column\n"
		"                              101 (busy, event or hybrid; default: busy)\n"
		"  --name TEXT                 What to call it.\n"
		"  --size BYTES                How large. (64 to 4G)\n"
		"  --sizes BYTES,...           Which sizes. (1 to 2M each, comma-separated; A-B is A, doubled up to\n"
		"                              B; at most 64)\n"
		"  --steps N,...               Which steps. (1 to 500 each, "
		"comma-separated, at most 64)\n"
		"  --tag TEXT                  A tag; any number of times.\n"
		"  --verbose                   Say more.\n"
		"  --help, -h                  Print this text and exit.\n"
		"  --version, -V               Print the version and exit.\n"
		"\n"
		"Exit status: 0.\n";
	char *text = help_text(&spec, NULL);

	assert_string_equal(text, expected);
	free(text);
}

static const char *const switches[] = { "off", "on", NULL };

static const struct opt grouped_table[] = {
	{ .name = "burst", .group = "load", .type = OPT_UINT, .offset = offsetof(struct config, any), .min = 1,
	  .max = 9,
	  .metavar = "N", .def = "1", .excludes = "rate,mode=on", .common = true, .help = "Messages at once.",
	  .more = "Up to `9|nine`." },
	{ .name = "cycles", .group = "load", .type = OPT_UINT, .offset = offsetof(struct config, clients), .min = 1,
	  .max = 9, .metavar = "N", .needs = "rate|burst,name", .help = "Rounds, as --rate says." },
	{ .name = "mode", .group = "how", .type = OPT_CHOICE, .offset = offsetof(struct config, mode),
	  .choices = switches, .metavar = "off|on", .def = "off", .help = "How to do it." },
	{ .name = "name", .group = "how", .type = OPT_STRING, .offset = offsetof(struct config, name),
	  .metavar = "TEXT", .def = "x", .def_words = "x, or y", .help = "Its name." },
	{ .name = "rate", .group = "load", .type = OPT_DURATION, .offset = offsetof(struct config, duration), .min = 0,
	  .max = 3600000000000, .metavar = "TIME", .def = "0", .help = "Time between two." },
};

static const struct opts_group groups[] = { { "load", "What to do" }, { "how", "How to do it" } };

static const struct opts_spec grouped = {
	.program = "prog", .usage = "[options]", .summary = "Does a thing.", .opts = grouped_table,
	.n_opts = N_ELEMENTS(grouped_table), .groups = groups, .n_groups = N_ELEMENTS(groups),
};

static const struct opts_spec with_hidden = {
	.program = "prog", .usage = "[options]", .summary = "Does a thing.", .opts = grouped_table,
	.n_opts = N_ELEMENTS(grouped_table), .groups = groups, .n_groups = N_ELEMENTS(groups), .hidden = "burst,mode",
};

static enum opts_result parse_grouped(const char *arguments)
{
	static char line[200];
	char *argv[MAX_ARGS];
	int argc;

	snprintf(line, sizeof(line), "%s", arguments);
	argc = split(line, argv);
	memset(&p.config, 0, sizeof(p.config));
	return opts_parse(&grouped, argc, argv, &p.config, &p.first_arg, p.err, sizeof(p.err));
}

TEST(opts_defaults__texts_of_the_table__stored)
{
	memset(&p.config, 0, sizeof(p.config));
	p.config.clients = UNTOUCHED;
	opts_defaults(&grouped, &p.config);
	assert_int_equal(p.config.any, 1);
	assert_int_equal(p.config.mode, 0);
	assert_string_equal(p.config.name, "x");
	assert_true(p.config.clients == UNTOUCHED);
}

TEST(needs_and_excludes__combinations__one_line_names_both)
{
	static const struct { const char *arguments, *err; } cases[] = {
		{ "", "" }, { "--cycles 2 --rate 1s --name a", "" }, { "--cycles 2 --burst 2 --name a", "" },
		{ "--cycles 2 --rate 1s", "--cycles: needs --name" },
		{ "--cycles 2 --name a", "--cycles: needs --rate or --burst" },
		{ "--burst 2 --rate 1s", "--burst: cannot be combined with --rate" },
		{ "--burst 2 --mode on", "--burst: cannot be combined with --mode on" }, { "--burst 2 --mode off", "" },
		/* A minimum that is the default switches off what the option is about. */
		{ "--burst 2 --rate 0", "" }, { "--burst 1 --rate 1s", "" },
		{ "--cycles 2 --rate 0s --name a", "--cycles: needs --rate or --burst" },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		assert_int_equal(parse_grouped(cases[i].arguments), *cases[i].err ? OPTS_ERROR : OPTS_OK);
		assert_string_equal(p.err, cases[i].err);
	}
}

TEST(help__topics__of_a_program_with_groups)
{
	assert_int_equal(parse_grouped("--help"), OPTS_HELP);
	assert_int_equal(p.first_arg, 2);
	assert_int_equal(parse_grouped("--help how --rate 1"), OPTS_HELP);
	assert_int_equal(p.first_arg, 2);
	assert_int_equal(parse_grouped("--help all"), OPTS_HELP);
	assert_int_equal(parse_grouped("--help --rate 1"), OPTS_HELP);
	assert_int_equal(parse_grouped("--help who"), OPTS_ERROR);
	assert_string_equal(p.err, "--help: who is not allowed; allowed: all, load, how");
}

TEST(opts_print_help__topics__their_options)
{
	static const char common[] =
		"Usage: prog [options]\n"
		"\n"
		"Does a thing.\n"
		"\n"
		"Common options:\n"
		"  --burst N                   Messages at once. (default: 1)\n"
		"  --help, -h                  Print this text and exit.\n"
		"  --version, -V               Print the version and exit.\n"
		"\n"
		"All options, by group (--help GROUP, or --help all):\n"
		"  load         What to do\n"
		"  how          How to do it\n";
	static const char how[] =
		"\nHow to do it (--help how):\n"
		"  --mode off|on               How to do it. (off or on; default: off)\n"
		"  --name TEXT                 Its name. (default: x, or y)\n";
	static const char markdown[] =
		"### What to do\n"
		"\n"
		"| option | allowed | default | meaning |\n"
		"|---|---|---|---|\n"
		"| `--burst N` | 1 to 9 | 1 | Messages at once. Up to `9\\|nine`. |\n"
		"| `--cycles N` | 1 to 9 |  | Rounds, as `--rate` says. |\n"
		"| `--rate TIME` | 0 to 1h | 0 | Time between two. |\n"
		"\n"
		"### How to do it\n"
		"\n"
		"| option | allowed | default | meaning |\n"
		"|---|---|---|---|\n"
		"| `--mode off\\|on` | off or on | off | How to do it. |\n"
		"| `--name TEXT` |  | x, or y | Its name. |\n";
	char *text = help_text(&grouped, NULL);

	assert_string_equal(text, common);
	free(text);
	text = help_text(&grouped, "how");
	assert_says(text, how);
	assert_null(strstr(text, "--burst"));
	free(text);
	text = help_text(&with_hidden, "all");
	assert_null(strstr(text, "--burst"));
	assert_null(strstr(text, "--mode"));
	assert_non_null(strstr(text, "--name"));
	free(text);
	text = help_text(&grouped, "all");
	assert_says(text, how);
	assert_says(text, "--cycles N ");
	free(text);
	text = help_text(&grouped, "markdown");
	assert_string_equal(text, markdown);
	free(text);
}

/* Parses `arguments` and --config with a file of these `n` bytes, and removes the file. p.err is without its path. */
static enum opts_result parse_file_bytes(const char *arguments, const char *bytes, size_t n)
{
	const char *folder = getenv("TMPDIR");
	char path[500], line[1000];
	size_t prefix;
	int fd;

	snprintf(path, sizeof(path), "%s/opts.XXXXXX", folder ? folder : "/tmp");
	prefix = strlen(path);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	snprintf(line, sizeof(line), "%s --config %s", arguments, path);
	parse(line);
	unlink(path);
	if (strncmp(p.err, path, prefix) == 0)	/* about a line of it */
		memmove(p.err, p.err + prefix, strlen(p.err + prefix) + 1);
	return p.result;
}

static void assert_file_parses(const char *arguments, const char *text)
{
	if (parse_file_bytes(arguments, text, strlen(text)) != OPTS_OK)
		fail_msg("%s: %s", text, p.err);
	assert_string_equal(p.err, "");
}

static void assert_file_refused(const char *text, const char *message)
{
	assert_int_equal(parse_file_bytes("", text, strlen(text)), OPTS_ERROR);
	assert_string_equal(p.err, message);
}

TEST(config__values__stored_as_from_the_command_line)
{
	assert_file_parses("", "# comment = 1\n\n\tclients=7\r\n  name =  a b = # c  \nverbose\nsteps = 1,2\n"
			   "tag = x\ntag = y");
	assert_int_equal(p.config.clients, 7);
	assert_string_equal(p.config.name, "a b = # c");
	assert_true(p.config.verbose);
	assert_int_equal(p.config.steps.n, 2);
	assert_int_equal(p.config.tags.n, 2);
	assert_string_equal(p.config.tags.v[1], "y");
	assert_file_parses("", "");
}

TEST(config__option_of_the_command_line__replaces_that_of_the_file)
{
	assert_file_parses("--clients 5 --tag z", "clients = 7\ntag = x\nsteps = 3");
	assert_int_equal(p.config.clients, 5);
	assert_int_equal(p.config.tags.n, 1);
	assert_string_equal(p.config.tags.v[0], "z");
	assert_int_equal(p.config.steps.v[0], 3);
	assert_int_equal(parse_file_bytes("--clients 5", "\nclients = 0\n", 13), OPTS_ERROR);
	assert_string_equal(p.err, ":2: --clients: 0 is not allowed; allowed: 1 to 100000");
	assert_int_equal(p.config.clients, 5);
}

TEST(config__bad_lines__refused_with_file_and_line)
{
	static const char no_option[] =
		":1: the line is not an option; allowed: NAME = VALUE, or NAME for an option without a value";

	assert_file_refused("#\nclints = 1\n", ":2: clints: unknown option; did you mean clients? (see --help)");
	assert_file_refused("--clients = 1\n", ":1: --clients: unknown option (see --help)");
	assert_file_refused("clients = 1\nclients = 1\n", ":2: --clients: given twice; allowed: once");
	assert_file_refused("clients\n", ":1: --clients: value missing; allowed: 1 to 100000");
	assert_file_refused("clients =\n", ":1: --clients: empty value; allowed: 1 to 100000");
	assert_file_refused("verbose = yes\n", ":1: --verbose: value given; allowed: no value");
	assert_file_refused("config = x\n",
			    ":1: --config: not allowed in a configuration file; allowed: on the command line");
	assert_file_refused("clients 1\n", no_option);
	assert_file_refused("= 1\n", no_option);
	assert_int_equal(parse_file_bytes("", "name = a\0b\n", 11), OPTS_ERROR);
	assert_string_equal(p.err, ":1: the line has a NUL byte; allowed: text");
}

TEST(config__line_and_file__as_long_as_allowed)
{
	static char text[OPTS_CONFIG_BYTES + 1];

	memset(text, '#', sizeof(text));
	text[OPTS_LINE_BYTES] = '\n';
	assert_int_equal(parse_file_bytes("", text, OPTS_LINE_BYTES + 1), OPTS_OK);
	text[OPTS_LINE_BYTES] = '#';
	assert_int_equal(parse_file_bytes("", text, OPTS_LINE_BYTES + 1), OPTS_ERROR);
	assert_string_equal(p.err, ":1: the line is too long; allowed: at most 1024 bytes");
	for (size_t i = 1000; i < sizeof(text); i += 1000)
		text[i] = '\n';
	assert_int_equal(parse_file_bytes("", text, OPTS_CONFIG_BYTES), OPTS_OK);
	assert_int_equal(parse_file_bytes("", text, OPTS_CONFIG_BYTES + 1), OPTS_ERROR);
	assert_says(p.err, "the file is too large; allowed: at most 16384 bytes");
}

TEST(config__no_regular_file__refused)
{
	assert_refused("--config /", "--config: /: cannot read it: not a regular file");
	assert_refused("--config /nowhere/x", "--config: /nowhere/x: cannot read it: No such file or directory");
	assert_int_equal(parse("--config /nowhere/x --help"), OPTS_HELP);
}
