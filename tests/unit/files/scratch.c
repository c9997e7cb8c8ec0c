/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for the files of one test. See scratch.h. */
#include "tests/unit/files/scratch.h"

#include "tests/unit/helpers/unit.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/paths.h"

int scratch_make(char dir[SCRATCH_MAX])
{
	const char *tmp = getenv("TMPDIR");

	if (snprintf(dir, SCRATCH_MAX, "%s/rampart-unit-XXXXXX", tmp ? tmp : "/tmp") >= SCRATCH_MAX) {
		fprintf(stderr, "TMPDIR is too long: %s\n", tmp);
		return -1;
	}
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int scratch_remove(const char *dir)
{
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) ? -1 : 0;
}

void scratch_put(const char *dir, const char *path, const char *text)
{
	char full[PATH_MAX], *name;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", dir, path);
	name = strrchr(full, '/');
	*name = '\0';
	assert_int_equal(path_make_dirs(full), 0);
	*name = '/';
	if (!name[1])
		return;
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}
