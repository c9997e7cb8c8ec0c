/* SPDX-License-Identifier: BSD-2-Clause */
/* See machine.h. */
#include "tests/unit/files/machine.h"

#include "tests/unit/helpers/unit.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/paths.h"

char machine_root[SCRATCH_MAX];
struct findings machine_found;

int machine_make(void **state)
{
	(void)state;
	return scratch_make(machine_root);
}

int machine_remove(void **state)
{
	(void)state;
	return scratch_remove(machine_root);
}

/* Its path here, with the folders before it. */
static void path_of(const char *path, char full[PATH_MAX])
{
	snprintf(full, PATH_MAX, "%s%s", machine_root, path);
	*strrchr(full, '/') = '\0';
	assert_int_equal(path_make_dirs(full), 0);
	snprintf(full, PATH_MAX, "%s%s", machine_root, path);
}

void machine_put(const char *path, const char *text)
{
	scratch_put(machine_root, path, text);
}

void machine_link(const char *path, const char *target)
{
	char full[PATH_MAX];

	path_of(path, full);
	assert_int_equal(symlink(target, full), 0);
}

void machine_take(const char *path)
{
	char full[PATH_MAX];

	path_of(path, full);
	assert_int_equal(scratch_remove(full), 0);
}

void machine_look(void (*check)(const char *root, struct findings *out))
{
	memset(&machine_found, 0, sizeof(machine_found));
	check(machine_root, &machine_found);
}

const struct finding *machine_finding(const char *check, enum finding_status status)
{
	for (size_t i = 0; i < machine_found.n; i++)
		if (strcmp(machine_found.v[i].check, check) == 0 && machine_found.v[i].status == status)
			return &machine_found.v[i];
	return NULL;
}

void machine_says(const char *check, enum finding_status status, const char *what)
{
	for (size_t i = 0; i < machine_found.n; i++) {
		const struct finding *f = &machine_found.v[i];

		if (strcmp(f->check, check) == 0 && f->status == status && strstr(f->what, what))
			return;
	}
	for (size_t i = 0; i < machine_found.n; i++)
		print_message("%d %s: %s\n", (int)machine_found.v[i].status, machine_found.v[i].check,
			      machine_found.v[i].what);
	fail_msg("no finding %s with '%s'", check, what);
}

void machine_mended_by(const char *check, const char *mend)
{
	const struct finding *f = machine_finding(check, FINDING_WRONG);

	assert_non_null(f);
	assert_string_equal(f->mend, mend);
}
