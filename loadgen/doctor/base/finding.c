/* SPDX-License-Identifier: BSD-2-Clause */
/* See finding.h. */
#include "loadgen/doctor/base/finding.h"

#include <assert.h>
#include <stdarg.h>

#include "common/base/utf8.h"

static const char *const status_names[] = { "fine", "wrong", "unknown", "note" };
static_assert(sizeof(status_names) / sizeof(status_names[0]) == FINDING_NOTE + 1, "a name for each status");

struct finding *findings_add(struct findings *f, const char *check, enum finding_status status, const char *why,
			     const char *format, ...)
{
	struct finding *new = &f->v[f->n];
	va_list args;

	if (f->n == FINDINGS_MAX) {
		f->lost = true;
		return NULL;
	}
	f->n++;
	*new = (struct finding){ .check = check, .status = status, .why = why };
	va_start(args, format);
	vsnprintf(new->what, sizeof(new->what), format, args);
	va_end(args);
	return new;
}

void finding_mend(struct finding *f, const char *format, ...)
{
	va_list args;

	if (!f || f->status == FINDING_FINE)
		return;
	va_start(args, format);
	/* A truncated command is worse than none. */
	if (vsnprintf(f->mend, sizeof(f->mend), format, args) >= (int)sizeof(f->mend))
		f->mend[0] = '\0';
	va_end(args);
}

int findings_status(const struct findings *f)
{
	bool unknown = f->lost;

	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].status == FINDING_WRONG)
			return 1;
		unknown |= f->v[i].status == FINDING_UNKNOWN;
	}
	return unknown ? 3 : 0;
}

void findings_print(const struct findings *f, FILE *out)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct finding *v = &f->v[i];

		utf8_print_line(out, "%-8s %-12s %s", status_names[v->status], v->check, v->what);
		if (v->why && v->status != FINDING_FINE)
			utf8_print_line(out, "         why:         %s", v->why);
		if (v->mend[0])
			utf8_print_line(out, "         mend:        %s", v->mend);
	}
	if (f->lost)
		fprintf(out, "There are more findings, which are not shown.\n");
}

json_t *findings_json(const struct findings *f)
{
	json_t *list = json_array();
	char shown[2 * FINDING_TEXT];

	for (size_t i = 0; i < f->n; i++) {
		const struct finding *v = &f->v[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "check", v->check, "status",
						      status_names[v->status], "what",
						      utf8_show(v->what, shown, sizeof(shown)), "why", v->why, "mend",
						      v->mend[0] ? v->mend : NULL));
	}
	return json_pack("{s:i, s:i, s:b, s:o}", "schema_version", 1, "exit_status", findings_status(f), "complete",
			 !f->lost, "findings", list);
}
