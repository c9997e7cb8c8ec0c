/* SPDX-License-Identifier: BSD-2-Clause */
/* See proc_text.h. */
#include "common/host/proc_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *proc_text_field(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *p;

		line += *line == '\n';
		if (strncmp(line, name, len) != 0)
			continue;
		p = line + len + strspn(line + len, " \t");
		if (*p == ':')
			return p + 1 + strspn(p + 1, " \t");
	}
	return NULL;
}

uint64_t proc_text_number(const char *text, const char *name, int base)
{
	const char *value = proc_text_field(text, name);

	return value ? strtoull(value, NULL, base) : 0;
}

bool proc_text_take(const char **at, uint64_t *out)
{
	const char *p = *at + strspn(*at, " \t");
	uintmax_t v;
	char *end;

	if (*p < '0' || *p > '9')
		return false;
	errno = 0;
	v = strtoumax(p, &end, 10);
	if (errno || v > INT64_MAX)
		return false;
	*out = v;
	*at = end;
	return true;
}

bool proc_text_cpu(const char *at, struct proc_cpu *out)
{
	uint64_t *const v[] = { &out->user, &out->nice, &out->system, &out->idle, &out->iowait, &out->irq,
				&out->softirq, &out->steal };

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		if (!proc_text_take(&at, v[i]))
			return false;
	return true;
}
