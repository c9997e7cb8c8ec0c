/* SPDX-License-Identifier: BSD-2-Clause */
/* What `performance_test doctor` finds: a list, which is printed or becomes JSON. Owning thread: main. */
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
	const char *check;		/* a name that stays, such as "memlock"; a literal */
	enum finding_status status;
	char what[FINDING_TEXT];	/* what was found */
	const char *why;		/* why it matters; a literal, or NULL */
	char mend[FINDING_TEXT];	/* a command for a shell, or "" */
};

struct findings {
	struct finding v[FINDINGS_MAX];
	size_t n;
	bool lost;	/* there were more */
};

/* Adds a finding; its text is made as by printf. Returns it, or NULL if there are too many. */
struct finding *findings_add(struct findings *f, const char *check, enum finding_status status, const char *why,
			     const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Says what mends the finding, unless it is fine. `f` may be NULL. */
void finding_mend(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Exit status: 0 nothing is wrong, 1 something is, 3 something could not be checked. */
int findings_status(const struct findings *f);
/* Lines for a terminal, made fit for it. */
void findings_print(const struct findings *f, FILE *out);
/* A new reference; NULL when out of memory. */
json_t *findings_json(const struct findings *f);

#endif
