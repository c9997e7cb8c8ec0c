/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of findings of `performance_test doctor`, to print or to convert to JSON. Owning thread: main. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_FINDING_H
#define RAMPART_LOADGEN_DOCTOR_BASE_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

enum finding_status { FINDING_FINE, FINDING_WRONG, FINDING_UNKNOWN, FINDING_NOTE };

#define FINDING_TEXT 320
#define FINDINGS_MAX 256

struct finding {
	const char *check;		/* a stable name, such as "memlock"; a literal */
	enum finding_status status;
	char what[FINDING_TEXT];	/* what was found */
	const char *why;		/* why it matters; a literal, or NULL */
	char mend[FINDING_TEXT];	/* a command for a shell, or "" */
};

struct findings {
	struct finding v[FINDINGS_MAX];
	size_t n;
	bool lost;	/* findings beyond FINDINGS_MAX were dropped */
};

/* Adds a finding with a text formatted like printf. Returns it, or NULL beyond FINDINGS_MAX. */
struct finding *findings_add(struct findings *f, const char *check, enum finding_status status, const char *why,
			     const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Sets the command that mends the finding, unless it is fine. `f` may be NULL. */
void finding_mend(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Exit status: 0 nothing is wrong, 1 something is, 3 something could not be checked. */
int findings_status(const struct findings *f);
/* Prints lines for a terminal, with control characters made visible. */
void findings_print(const struct findings *f, FILE *out);
/* A new reference; NULL when out of memory. */
json_t *findings_json(const struct findings *f);

#endif
