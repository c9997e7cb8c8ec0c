/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the suite of --suite and the entries of --only. See suite_find.h. */
#include "loadgen/suites/suite_find.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/paths.h"
#include "common/base/utf8.h"

#define SHIPPED_IN "docs/suites"
#define INSTALLED_IN "../share/rampart/suites"

static const char *const shipped[] = { "fabric", "messages", "arrays", "connections", "transports", "setup",
				       "qp-sweep" };
#define OF_ALL 4u	/* "all" leaves out the rest, which take longer than these together */

static bool is_file(const char *what)
{
	size_t n = strlen(what);

	return strchr(what, '/') || (n > 5 && strcmp(what + n - 5, ".json") == 0);
}

static int add_file(struct suite *s, const char *path, int argc, char **argv, char *err, size_t err_size)
{
	char *text;
	size_t n;
	/* The path may come from the leader. path_read does not block, whatever kind of file it finds there. */
	int ret = path_read(path, SUITE_FILE_BYTES_MAX, &text, &n);

	if (ret == -EFBIG)
		suite_refuse(err, err_size, "--suite: %s has more than the %u bytes that are allowed", path,
			     SUITE_FILE_BYTES_MAX);
	else if (ret)
		suite_refuse(err, err_size, "--suite: cannot read %s: %s", path, path_error(ret));
	else
		ret = suite_add(s, text, n, argc, argv, err, err_size);
	free(text);
	return ret;
}

/* Adds a suite that comes with rampart: from the source tree, else from where it is installed. */
static int add_shipped(struct suite *s, const char *name, int argc, char **argv, char *err, size_t err_size)
{
	static const char *const folders[] = { SHIPPED_IN, INSTALLED_IN };
	char relative[128], path[PATH_MAX];

	for (size_t i = 0; i < 2; i++) {
		snprintf(relative, sizeof(relative), "%s/%s.json", folders[i], name);
		if (path_beside_program(relative, path, sizeof(path)))
			continue;
		if (i == 1 || access(path, R_OK) == 0)
			return add_file(s, path, argc, argv, err, err_size);
	}
	return suite_refuse(err, err_size, "--suite: the path of the suites is too long");
}

static bool is_shipped(const char *name)
{
	for (size_t i = 0; i < sizeof(shipped) / sizeof(shipped[0]); i++)
		if (strcmp(name, shipped[i]) == 0)
			return true;
	return false;
}

static int add_all(struct suite *s, int argc, char **argv, char *err, size_t err_size)
{
	int ret = 0;

	for (size_t i = 0; i < OF_ALL && !ret; i++)
		ret = add_shipped(s, shipped[i], argc, argv, err, err_size);
	snprintf(s->name, sizeof(s->name), "all");
	s->title = "All suites";
	return ret;
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

/* Leaves only the entries of --only in the suite. */
static int choose_entries(struct suite *s, char *err, size_t err_size)
{
	unsigned kept = 0;
	size_t n;

	for (const char *name = s->only; name; name = name[n] ? name + n + 1 : NULL) {
		unsigned i = 0;

		n = strcspn(name, ",");
		while (i < s->n && !suite_entry_is_called(&s->entries[i], name, n))
			i++;
		if (i == s->n)
			return refuse_name(s, name, n, err, err_size);
	}
	for (unsigned i = 0; i < s->n; i++) {
		struct suite_entry *to = &s->entries[kept];

		if (!suite_is_chosen(s, &s->entries[i])) {
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

int suite_read(const char *what, const char *only, int argc, char **argv, struct suite **out, char *err,
	       size_t err_size)
{
	struct suite *s = *out = calloc(1, sizeof(*s));
	int ret = 0;

	if (!s) {
		snprintf(err, err_size, "this machine is out of memory");
		return -ENOMEM;
	}
	s->only = only;
	if (is_file(what))
		ret = add_file(s, what, argc, argv, err, err_size);
	else if (strcmp(what, "all") == 0)
		ret = add_all(s, argc, argv, err, err_size);
	else if (is_shipped(what))
		ret = add_shipped(s, what, argc, argv, err, err_size);
	else
		ret = suite_refuse(err, err_size,
				    "--suite: '%.64s' is not allowed; allowed: a file (with a slash, or NAME.json), "
			      "fabric, messages, arrays, connections, transports, setup, qp-sweep or all", what);
	return ret || !only ? ret : choose_entries(s, err, err_size);
}
