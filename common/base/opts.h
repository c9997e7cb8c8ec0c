/* SPDX-License-Identifier: BSD-2-Clause */
/* Options from one sorted table: those of the command line, and those of a configuration file that it names.
 *
 * A program describes its options in a table of `struct opt`. Parsing, range checks and --help follow that table, so
 * they cannot disagree. opts_print_* write, and opts_parse reads the configuration file; nothing else does I/O.
 * Functions that take argv use getopt_long(3), which keeps its state in globals: only one thread may call them at a
 * time.
 */
#ifndef RAMPART_COMMON_OPTS_H
#define RAMPART_COMMON_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum opt_type {
	OPT_FLAG,	/* no value; stores true in a bool */
	OPT_UINT,	/* decimal whole number; stores a uint64_t */
	OPT_SIZE,	/* bytes, suffix k, M or G (powers of 1024) allowed; stores a uint64_t */
	OPT_DURATION,	/* seconds, fraction allowed, suffix us, ms, s, m or h allowed; stores ns in a uint64_t */
	OPT_STRING,	/* any text that is not empty; stores a const char *, which points into argv or the file */
	OPT_CHOICE,	/* one of `choices`; stores the int index of the choice */
	OPT_LIST,	/* comma-separated whole numbers, each in min..max; stores a struct opt_list */
	OPT_SIZES,	/* comma-separated sizes as in OPT_SIZE; A-B is A doubled up to B; stores a struct opt_list */
	OPT_TEXTS,	/* as OPT_STRING, but the option may be given OPT_TEXTS_MAX times; stores a struct opt_texts */
	OPT_CONFIG,	/* path of a configuration file, which opts_parse reads; stores a struct opt_config */
};

#define OPT_LIST_MAX 64

struct opt_list {
	uint64_t v[OPT_LIST_MAX];
	size_t n;
};

#define OPT_TEXTS_MAX 8

struct opt_texts {
	const char *v[OPT_TEXTS_MAX];	/* in their order; they point into argv or the file */
	size_t n;
};

#define OPTS_CONFIG_BYTES 16384	/* maximum size of a configuration file */
#define OPTS_LINE_BYTES	  1024	/* maximum length of one of its lines */

struct opt_config {
	const char *path;	/* points into argv; NULL: no file */
	char text[OPTS_CONFIG_BYTES + 1];	/* the file; values of OPT_STRING and OPT_TEXTS in it point here */
};

struct opt {
	const char *name;	/* long name without dashes; the table is sorted by it */
	const char *group;	/* name of a group of the program; NULL if it has none */
	enum opt_type type;
	size_t offset;		/* offset of the value in the program's config struct */
	uint64_t min, max;	/* allowed range of a number, or of each one in a list: a count, bytes or ns */
	const char *const *choices; /* OPT_CHOICE: NULL-terminated */
	const char *metavar;	/* in --help: N, BYTES, SECONDS, FILE, ... ; NULL for a flag */
	const char *def;	/* default as one would type it, which opts_defaults stores; NULL: zero, NULL or
				 * false */
	const char *def_words;	/* the default in words for --help, where `def` would not explain it */
	const char *needs;	/* options that have to be given as well, comma-separated; A|B: at least one of the
				 * two */
	const char *excludes;	/* options that cannot be combined with this one, comma-separated */
	bool common;		/* the short --help shows it */
	bool per_host;		/* each of several load hosts gives its own */
	bool per_suite;		/* given for a whole suite, not for one of its entries */
	const char *help;	/* one sentence */
	const char *more;	/* further sentences for docs/options.md, in Markdown; NULL: none */
};

/* In `needs` and `excludes`, NAME=VALUE stands for the option with that value. An option whose value is both its
 * default and its minimum, such as --churn 0, counts as not given. */

struct opts_group {
	const char *name;	/* for --help NAME */
	const char *title;
};

struct opts_spec {
	const char *program;	/* "rdma_server" */
	const char *usage;	/* the usage line after the program's name */
	const char *summary;	/* a line or a few on what the program does */
	const struct opt *opts;
	size_t n_opts;
	const struct opts_group *groups;	/* in the order of --help; NULL: the options are not grouped */
	size_t n_groups;
	const char *hidden;	/* options that this command refuses and --help leaves out, comma-separated; or NULL */
	const char *epilog;	/* printed at the end of --help, or NULL */
};

enum opts_result {
	OPTS_OK = 0,	/* parsed */
	OPTS_ERROR,	/* err holds one line that names the argument and what is allowed */
	OPTS_HELP,	/* --help or -h was given; what follows it may be a topic (opts_print_help) */
	OPTS_VERSION,	/* --version or -V was given */
};

/* Stores the default of each option that has one; the rest of `config` stays as it is. */
void opts_defaults(const struct opts_spec *spec, void *config);

/* Reads argv[1..] into `config`, which holds the defaults on entry. Both --name VALUE and --name=VALUE are options;
 * names are not abbreviated. Options end at `--` and at the first operand. --help (-h) and --version (-V) need no entry
 * in the table. OPTS_ERROR: an option that is unknown, is given too often, has no value or a bad one, or lacks or
 * contradicts another; `config` holds what came before it, and `err`, of `err_size` bytes, one line without program
 * name or newline, such as
 *   --clients: 0 is not allowed; allowed: 1 to 100000
 *   --polll: unknown option; did you mean --poll? (see --help)
 *   --cycles: needs --churn
 * After the command line it reads the configuration file of an OPT_CONFIG option that was given. A line of that file is
 * NAME = VALUE, or NAME for a flag; empty lines and lines that begin with # are skipped. Values are checked as on the
 * command line, whose options replace those of the file. `err` then begins with the file and the line:
 *   /etc/rampart/server.conf:7: --max-clients: 0 is not allowed; allowed: 1 to 200000
 * *first_arg is the index of the first operand, or after OPTS_HELP that of the topic (argc: there is none).
 */
enum opts_result opts_parse(const struct opts_spec *spec, int argc, char **argv, void *config,
			    int *first_arg, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Moves the operands of argv behind the options and keeps their order, so that both may be mixed as in GNU programs.
 * `--` and what follows it stay last. Call it before opts_parse. */
void opts_operands_last(const struct opts_spec *spec, int argc, char **argv);

/* True if argv[1..] has the option `name` before the first operand or `--`. For a check that asks whether an option was
 * given, not what its value is. */
int opts_given(const struct opts_spec *spec, int argc, char **argv, const char *name);

/* Writes "PROGRAM: `text`" as one line to `out`. Errors may repeat what was typed, or on a load host what the leader's
 * command line has, so control characters are escaped here, whichever function wrote the error. */
void opts_print_error(const struct opts_spec *spec, const char *text, FILE *out);

/* The row of an option; NULL: there is none of that name. */
const struct opt *opts_find(const struct opts_spec *spec, const char *name);

/* Writes --help to `out`, wrapped at 100 columns: usage, summary, options with ranges and defaults, epilog. `topic` is
 * the name of a group, "all", "markdown" for the tables of docs/options.md, or NULL: the common options and the names
 * of the groups, or all options of a program without groups. */
void opts_print_help(const struct opts_spec *spec, const char *topic, FILE *out);

#endif
