/* SPDX-License-Identifier: BSD-2-Clause */
/* See module.h. */
#include "loadgen/doctor/base/module.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/doctor/base/tree.h"

/* The file of a module, such as "kernel/drivers/infiniband/hw/efa/efa.ko", may have '-' where its name has '_'. */
static bool is_file_of(char *line, const char *name)
{
	char *file = strrchr(line, '/');
	size_t n = strlen(name);

	file = file ? file + 1 : line;
	for (char *c = file; *c; c++)
		if (*c == '-')
			*c = '_';
	return strncmp(file, name, n) == 0 && strcmp(file + n, ".ko\n") == 0;
}

static enum module_state look_in_list(const char *root, const char *name)
{
	char release[128], line[512];
	struct tree_path list;
	bool found = false;
	FILE *f;

	if (tree_line(tree_at(root, "/proc/sys/kernel/osrelease"), release, sizeof(release)) || !tree_is_name(release))
		return MODULE_UNKNOWN;
	list = tree_at(root, "/lib/modules/%s/modules.builtin", release);
	f = fopen(list.v, "re");
	if (!f)
		return MODULE_UNKNOWN;
	while (!found && fgets(line, sizeof(line), f))
		found = is_file_of(line, name);
	fclose(f);
	return found ? MODULE_BUILT_IN : MODULE_ABSENT;
}

enum module_state module_state(const char *root, const char *name)
{
	/* One that is built in has a folder if it has parameters, but was never initialised as a module. */
	if (tree_has(tree_at(root, "/sys/module/%s/initstate", name)))
		return MODULE_LOADED;
	return tree_has(tree_at(root, "/sys/module/%s", name)) ? MODULE_BUILT_IN : look_in_list(root, name);
}
