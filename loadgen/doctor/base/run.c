/* SPDX-License-Identifier: BSD-2-Clause */
/* See run.h. */
#include "loadgen/doctor/base/run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const folders[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };

int run_open(const char *program, const char *arguments, FILE **out)
{
	char command[PATH_MAX];

	*out = NULL;
	if (geteuid() != 0)
		return -EPERM;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(command, sizeof(command), "%s/%s", folders[i], program);
		if (access(command, X_OK) != 0)
			continue;
		snprintf(command, sizeof(command), "%s/%s 2>/dev/null %s", folders[i], program, arguments);
		errno = ENOMEM;
		*out = popen(command, "re");
		return *out ? 0 : -errno;
	}
	return -ENOENT;
}

int run_close(FILE *out)
{
	int status = pclose(out);

	return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
