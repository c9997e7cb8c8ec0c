/* SPDX-License-Identifier: BSD-2-Clause */
/* The report on a run: report.html, report.md, tables/ and charts/, made from the run's folder. Owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_REPORT_H
#define RAMPART_LOADGEN_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#define REPORT_BASELINES_MAX 4
#define REPORT_HEADROOM 0.3

enum report_format { REPORT_TEXT, REPORT_MARKDOWN, REPORT_HTML };
/* Writes a document in a format. Returns 0, -EIO or -ENOMEM. */
struct doc;
int report_print(const struct doc *d, enum report_format format, FILE *out) __attribute__((warn_unused_result));

struct report_baseline {
	const char *label;		/* NULL: base, or base2 and so on */
	const char *dir;
};

struct report_options {
	const char *dir;		/* the run's folder */
	const char *output;		/* where the files go; NULL: into the run's folder */
	struct report_baseline baselines[REPORT_BASELINES_MAX];
	size_t n_baselines;
	bool any_environment;		/* compare runs of unlike environments */
	double min_effect;		/* a change of at most this share counts as none */
	double headroom, growth;	/* as in struct growth_options */
	const double *plan;		/* clients to plan for, in rising order; NULL: chosen from the run */
	size_t n_plan;
	FILE *out;			/* the report is also written here, in `format`; NULL: it is not */
	enum report_format format;
};

enum report_result {
	REPORT_MADE = 0,
	REPORT_REGRESSION = 1, /* the report was made, and the run is worse than a baseline */
	/* There is no report, and `err` says why. */
	REPORT_FAILED = 3, /* a run could not be read, or the environments differ */
	REPORT_UNWRITTEN = 4, /* one of its files could not be written */
};

/* Makes the report. `warnings` gets a line for each warning and each difference that makes runs incomparable. */
enum report_result report_make(const struct report_options *o, FILE *warnings, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Writes the report of a run that has just ended to its folder, with the default headroom, and its text to `out` (NULL:
 * nowhere). Returns 0, or with a line in `err` -EIO if one of its files could not be written, else -EINVAL. */
int report_write(const char *dir, FILE *out, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Writes the summary of `run` (the content of run.json) for a terminal; `where` describes the environment. Returns 0,
 * -ENOMEM or -EIO. */
int report_summary(const json_t *run, const char *where, FILE *out) __attribute__((warn_unused_result));

#endif
