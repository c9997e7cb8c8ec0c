/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a suite of runs from a file (docs/suite.schema.json), or makes one of --compare, merges it with the command
 * line, and checks each entry as if its options had been given. The file may be damaged or hostile. Owning thread: main
 * (opts.h). */
#ifndef RAMPART_LOADGEN_SUITE_FILE_H
#define RAMPART_LOADGEN_SUITE_FILE_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/suites/alternatives.h"
#include "loadgen/config/config.h"

#define SUITE_ENTRIES_MAX 64
#define SUITE_NAME_MAX 32
#define SUITE_FILE_BYTES_MAX (1u << 20)

struct suite_entry {
	const char *suite, *name;	/* names of the file's suite and of the entry */
	char id[2 * SUITE_NAME_MAX + 2]; /* "fabric-latency": the name of the run's folder and of its chapter */
	const char *title, *question;	/* question: "" if there is none */
	json_t *expect;			/* the file's expectations (expect_check); NULL: none */
	json_t *options;		/* the file's options, without those that the command line replaces */
	char **argv;			/* the entry's command line, into which `cfg` and `alternatives` point; NULL:
					 * they point into main's */
	int argc;
	struct loadgen_config cfg;
	struct alternatives alternatives;	/* n is 0: a single run */
};

struct suite {
	char name[SUITE_NAME_MAX + 1];	/* the only file's name, "all" or "compare" */
	const char *title;
	const char *only;		/* names or ids of the entries that are run, comma-separated; NULL: all. The
					 * others are not configured, and suite_read takes them out */
	json_t *files;			/* the files read; titles point into them */
	json_t *sources;		/* `files` of suite.json: name, version and SHA-256 of each */
	struct suite_entry entries[SUITE_ENTRIES_MAX];
	unsigned n;
};

/* True if `name`, of `n` bytes, is the name or the id of the entry. */
bool suite_entry_is_called(const struct suite_entry *e, const char *name, size_t n);
/* True if --only names the entry, or was not given. */
bool suite_is_chosen(const struct suite *s, const struct suite_entry *e);

/* Writes a refusal to `err`, in characters that a terminal can show. Returns -EINVAL. */
int suite_refuse(char *err, size_t err_size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Adds the entries of a file whose text is `text`, and the file to `sources`. `argv` is the command line; its options
 * replace those of each entry. Returns 0, or -EINVAL or -ENOMEM with a line in `err` that names the entry. */
int suite_add(struct suite *s, const char *text, size_t bytes, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Makes a suite whose only entry is the comparison that `base` asks for. argv is the command line of `base`; both must
 * outlive the suite. Returns the same as suite_add. Call suite_free also after an error. */
int suite_of_comparison(const struct loadgen_config *base, int argc, char **argv, struct suite **out, char *err,
			size_t err_size) __attribute__((warn_unused_result));
void suite_free(struct suite *s);	/* NULL-safe */
void suite_entry_free(struct suite_entry *e);	/* what the entry holds, not the entry itself */

/* Configures the entry again with the options of `replace` in place of its own (NULL: none). Returns the same as
 * suite_add. */
int suite_entry_configure(struct suite_entry *e, json_t *replace, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* The i-th configuration, counting those of all entries and their alternatives; NULL after the last. */
struct loadgen_config *suite_config(struct suite *s, unsigned i);

/* The most RDMA devices that an entry asks for. */
uint32_t suite_rails(struct suite *s);

#endif
