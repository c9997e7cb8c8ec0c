/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of rails. See rails.h. No I/O. */
#include "common/base/rails.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 64	/* maximum bytes of the input that an error repeats */

static bool has(const struct rail_names *names, const char *name)
{
	for (uint32_t i = 0; i < names->n; i++)
		if (strcmp(names->name[i], name) == 0)
			return true;
	return false;
}

/* Appends the first `len` bytes of `name`. Returns NULL, or what is wrong with the name (static text). */
static const char *append(struct rail_names *names, const char *name, size_t len)
{
	if (len == 0)
		return "has an empty name";
	if (len >= RAIL_NAME_BYTES)
		return "has a name that is too long";
	if (names->n == RAILS_MAX)
		return "has too many names";
	/* Stored beyond n, so that it does not count yet. */
	memcpy(names->name[names->n], name, len);
	names->name[names->n][len] = '\0';
	if (has(names, names->name[names->n]))
		return "has a name twice";
	names->n++;
	return NULL;
}

int rails_split(const char *option, const char *list, struct rail_names *out, char *err, size_t err_size)
{
	const char *problem = NULL, *p = list;

	memset(out, 0, sizeof(*out));
	while (p && !problem) {
		size_t len = strcspn(p, ",");

		problem = append(out, p, len);
		p = p[len] ? p + len + 1 : NULL;
	}
	if (!problem)
		return 0;
	snprintf(err, err_size, "--%s: '%.*s%s' %s; allowed: 1 to %d different names, comma-separated", option,
		 SHOWN_MAX, list, strlen(list) > SHOWN_MAX ? "..." : "", problem, RAILS_MAX);
	return -EINVAL;
}
