/* SPDX-License-Identifier: BSD-2-Clause */
/* See suite_choose.h. */
#include "loadgen/suites/suite_choose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/utf8.h"

static bool is_called(const struct suite_entry *e, const char *name, size_t n)
{
	return (strlen(e->name) == n && strncmp(e->name, name, n) == 0) ||
	       (strlen(e->id) == n && strncmp(e->id, name, n) == 0);
}

static int refuse_name(const struct suite *s, const char *name, size_t n, char *err, size_t err_size)
{
	char text[256 + SUITE_ENTRIES_MAX * (SUITE_NAME_MAX + 2)];
	int used = snprintf(text, sizeof(text), "--only: '%.*s' is no entry of the suite; allowed: ",
			    (int)(n < 64 ? n : 64), name);

	for (unsigned i = 0; i < s->n; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%s", i ? ", " : "", s->entries[i].name);
	utf8_show(text, err, err_size);
	return -EINVAL;
}

int suite_choose(struct suite *s, const char *names, char *err, size_t err_size)
{
	bool chosen[SUITE_ENTRIES_MAX] = { false };
	unsigned kept = 0;

	for (const char *name = names; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
		size_t n = strcspn(name, ",");
		bool known = false;

		for (unsigned i = 0; i < s->n; i++) {
			chosen[i] |= is_called(&s->entries[i], name, n);
			known |= is_called(&s->entries[i], name, n);
		}
		if (!known)
			return refuse_name(s, name, n, err, err_size);
	}
	for (unsigned i = 0; i < s->n; i++) {
		struct suite_entry *to = &s->entries[kept];

		if (!chosen[i]) {
			suite_entry_free(&s->entries[i]);
			continue;
		}
		if (i != kept++)
			*to = s->entries[i];
		to->cfg.name = to->id; /* moved with the entry */
	}
	s->n = kept;
	return 0;
}
