/* SPDX-License-Identifier: BSD-2-Clause */
/* A suite of runs as it is written in a file (docs/suite.schema.json): read, merged with the command line, and checked entry
 * by entry as if its options had been given. The file may be damaged or hostile. Owning thread: main (opts.h). */
#ifndef RAMPART_LOADGEN_SUITE_PLAN_H
#define RAMPART_LOADGEN_SUITE_PLAN_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/suites/alternatives.h"
#include "loadgen/config/config.h"

#define SUITE_ENTRIES_MAX 64
#define SUITE_NAME_MAX 32
#define SUITE_FILE_BYTES_MAX (1u << 20)

struct suite_entry {
	const char *suite, *name;	/* of the file and of the entry */
	char id[2 * SUITE_NAME_MAX + 2]; /* "fabric-latency": the run's folder and its chapter */
	const char *title, *question;	/* question: "" if there is none */
	json_t *options;		/* the file's, as given, without those that the command line replaces */
	char **argv;			/* the entry's command line, into which `cfg` and `alternatives` point; NULL: main's */
	int argc;
	struct loadgen_config cfg;
	struct alternatives alternatives;	/* n is 0: a single run */
};

struct suite {
	char name[SUITE_NAME_MAX + 1];	/* of the only file; "all"; "compare" */
	const char *title;
	json_t *files;			/* what was read; titles point into it */
	struct suite_entry entries[SUITE_ENTRIES_MAX];
	unsigned n;
};

/* Adds the entries of a file whose text is `text`. `argv` is the command line; its options replace those of each entry.
 * 0, or -EINVAL or -ENOMEM with a line in `err` that names the entry. */
int suite_add(struct suite *s, const char *text, size_t bytes, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Reads `--suite WHAT`: a file if it has a slash or ends with .json; else the suite of that name that is shipped, or all of
 * them. 0, or -errno with a line in `err`. suite_free undoes it, also after an error. */
int suite_read(const char *what, int argc, char **argv, struct suite **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* Makes a suite whose only entry is the comparison that `base` asks for, whose command line is argv. Both outlive it.
 * As suite_read. */
int suite_of_comparison(const struct loadgen_config *base, int argc, char **argv, struct suite **out, char *err,
			size_t err_size) __attribute__((warn_unused_result));
void suite_free(struct suite *s);	/* NULL-safe */

/* Checks the options of the entry with others in the place of those it has, {} for none. As suite_add. */
int suite_entry_configure(struct suite_entry *e, json_t *replace, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* The i-th of the configurations of all entries and their alternatives; NULL if there are not so many. */
struct loadgen_config *suite_config(struct suite *s, unsigned i);

/* The most RDMA devices that an entry asks for. */
uint32_t suite_rails(struct suite *s);

#endif
