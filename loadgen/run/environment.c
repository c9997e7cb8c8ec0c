/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses where the test runs. See environment.h. */
#include "loadgen/run/environment.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "common/base/paths.h"
#include "common/base/utf8.h"
#include "common/host/beside.h"
#include "common/rdma/dev.h"
#include "loadgen/report/cases/step_summary.h"

#define ARGS_MAX 256
#define SHARES_MAX 9
#define WORDS_BEFORE 34	/* room for the words before our own arguments, and for the last NULL */

#define SCRIPT "scripts/softroce"

struct script_args {
	char *v[ARGS_MAX];
	int n;
	char shares[SHARES_MAX][PATH_MAX];
	int n_shares;
	char rails[16];
};

/* Memory of the micro-VM; NULL: the script's default, which depends on the machine. */
static const char *memory_for(uint64_t clients)
{
	return clients <= 2000 ? NULL : clients <= 12000 ? "8G" : "16G";
}

/* Copies our arguments except --environment, which is set here. */
static int copy_args(int argc, char **argv, char **out, int n)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--environment") == 0) {
			i++;
			continue;
		}
		if (strncmp(argv[i], "--environment=", 14) == 0)
			continue;
		out[n++] = argv[i];
	}
	return n;
}

static void add_arg(struct script_args *a, const char *arg)
{
	a->v[a->n++] = (char *)arg;
}

/* Shares the folder under the same path, so that results land where they would without the micro-VM. */
static void add_share(struct script_args *a, const char *dir)
{
	if (!realpath(dir, a->shares[a->n_shares]))
		return; /* the run in the micro-VM will report the missing folder */
	add_arg(a, "--share");
	add_arg(a, a->shares[a->n_shares++]);
}

static void add_share_of_file(struct script_args *a, const char *file)
{
	char dir[PATH_MAX];
	char *slash;

	if (!file || strcmp(file, "-") == 0 || snprintf(dir, sizeof(dir), "%s", file) >= (int)sizeof(dir))
		return;
	slash = strrchr(dir, '/');
	if (!slash)
		return; /* the file is in the working directory */
	slash[slash == dir] = '\0';
	add_share(a, dir);
}

static void add_shares(struct script_args *a, const struct loadgen_config *c)
{
	if (path_make_dirs(c->output) == 0)
		add_share(a, c->output);
	add_share_of_file(a, c->json);
	add_share_of_file(a, c->junit);
	add_share_of_file(a, c->trace);
	add_share_of_file(a, c->ca);
	add_share_of_file(a, c->crl);
	add_share_of_file(a, c->suite);
	if (c->from)
		add_share(a, c->from);
}

/* Options of the micro-VM; a network namespace has this machine's memory and files. */
static void add_vm_options(struct script_args *a, const struct loadgen_config *c)
{
	const char *summary = getenv(STEP_SUMMARY_VARIABLE);
	struct stat st;

	if (memory_for(c->clients)) {
		add_arg(a, "--memory");
		add_arg(a, memory_for(c->clients));
	}
	if (c->vm_rails > 1) {
		snprintf(a->rails, sizeof(a->rails), "%u", c->vm_rails);
		add_arg(a, "--rails");
		add_arg(a, a->rails);
	}
	add_shares(a, c);
	if (summary && lstat(summary, &st) == 0 && S_ISREG(st.st_mode)) { /* GitHub Actions creates the file */
		add_share_of_file(a, summary);
		add_arg(a, "--env");
		add_arg(a, STEP_SUMMARY_VARIABLE);
	}
}

/* Replaces this process by the same command in `where`, "vm" or "netns". */
static int enter_environment(const char *where, const struct loadgen_config *c, int argc, char **argv, char *err,
			     size_t err_size)
{
	char script[PATH_MAX], self[PATH_MAX];
	struct script_args a = { .n = 0 };

	if (argc > ARGS_MAX - WORDS_BEFORE || path_beside_program(SCRIPT, script, sizeof(script)) ||
	    path_beside_program("performance_test", self, sizeof(self))) {
		snprintf(err, err_size, "too many arguments or a path too long for %s", SCRIPT);
		return -E2BIG;
	}
	if (access(script, X_OK)) {
		snprintf(err, err_size, "no RDMA device here, and %s, which makes a micro-VM with one, is "
			 "missing; run from the source tree or make a device with `scripts/softroce up`", script);
		return -ENODEV;
	}
	add_arg(&a, script);
	add_arg(&a, where);
	if (strcmp(where, "vm") == 0)
		add_vm_options(&a, c);
	add_arg(&a, "--");
	add_arg(&a, self);
	if (c->plan)
		add_arg(&a, "plan");
	add_arg(&a, "--environment");
	add_arg(&a, "native");
	a.n = copy_args(argc, argv, a.v, a.n);
	a.v[a.n] = NULL;
	execv(script, a.v);
	snprintf(err, err_size, "cannot run %s: %s", script, strerror(errno));
	return -errno;
}

/* Chooses between a network namespace of this machine and a micro-VM, and prints the choice. Returns it, or NULL to
 * stay here: a micro-VM inside a micro-VM would not find a device either. */
static const char *choose_environment(const struct loadgen_config *c)
{
	static const char *const question[] = { "netns", "--check", NULL };
	char obstacle[200] = "";

	/* The namespace has one device. */
	if (c->vm_rails <= 1 && beside_ask(SCRIPT, question, obstacle, sizeof(obstacle)) == 0) {
		utf8_print_line(stderr, "performance_test: no RDMA device on this machine: running over Soft-RoCE in a "
				"network namespace of it (--environment netns; the other way is a micro-VM: "
				"--environment vm)");
		return "netns";
	}
	if (getenv("RAMPART_VM"))
		return NULL;
	utf8_print_line(stderr, "performance_test: no RDMA device on this machine: running over Soft-RoCE in a "
			"micro-VM (--environment vm)%s%s",
			obstacle[0] ? "; a network namespace would be faster, but " : "", obstacle);
	return "vm";
}

int environment_enter(const struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
{
	const char *where = c->environment == ENVIRONMENT_NETNS ? "netns" : "vm";

	if (c->fell_back)
		fprintf(stderr,
			"performance_test: NO RDMA DEVICE on this machine: messages go over TCP (--transport auto)\n");
	/* Sockets need no RDMA device. */
	if (c->transport != TRANSPORT_RDMA || c->environment == ENVIRONMENT_NATIVE || c->server || c->device ||
	    loadgen_has_hosts(c))
		return 0;
	if (c->environment == ENVIRONMENT_AUTO) {
		where = dev_count() > 0 ? NULL : choose_environment(c);
		if (!where)
			return 0;
	}
	return enter_environment(where, c, argc, argv, err, err_size);
}

const char *environment_describe(const json_t *environment, char *text, size_t size)
{
	const json_t *dev = json_object_get(environment, "rdma_device");
	const char *accel = json_string_value(json_object_get(environment, "accelerator"));
	const char *name = json_string_value(json_object_get(dev, "name"));
	bool software = json_is_true(json_object_get(dev, "is_software"));
	size_t used;
	bool vm = json_is_true(json_object_get(environment, "is_virtual_machine"));
	bool emulated = json_is_true(json_object_get(environment, "is_emulated_cpu"));

	if (json_is_null(dev))
		snprintf(text, size, "no RDMA device in use");
	else
		snprintf(text, size, "%s device %s", software ? "software RDMA" : "RDMA", name ? name : "?");
	used = strlen(text);
	snprintf(text + used, size - used, "%s%s%s", vm ? ", in a virtual machine" : "",
		 emulated ? ", CPU emulated in software (" : "",
		 emulated ? (accel ? accel : "tcg") : "");
	if (emulated)
		strncat(text, "): not hardware figures", size - strlen(text) - 1);
	else if (software)
		strncat(text, ": not hardware figures", size - strlen(text) - 1);
	return text;
}
