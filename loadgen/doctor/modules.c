/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the modules that programs need to reach RDMA devices, and the drivers. See checks.h. */
#include "loadgen/doctor/checks.h"

#include <stdio.h>
#include <string.h>

#include "common/host/beside.h"
#include "loadgen/doctor/base/tree.h"

/* True if `line` names the file of the module (".../efa/efa.ko"), which may have '-' where the module has '_'. */
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
	/* A built-in module with parameters has a folder too, but without `initstate`. */
	if (tree_has(tree_at(root, "/sys/module/%s/initstate", name)))
		return MODULE_LOADED;
	return tree_has(tree_at(root, "/sys/module/%s", name)) ? MODULE_BUILT_IN : look_in_list(root, name);
}

bool module_rxe_command(char *out, size_t size)
{
	static const char *const question[] = { "module", NULL };
	int status = beside_ask("scripts/softroce", question, out, size);

	if (status == 3 && out[0])
		return false;
	if (status != 0 || !out[0])
		snprintf(out, size, "modprobe rdma_rxe");
	return true;
}

/* The core modules, and the path in /sys that each creates, loaded or built in. */
static const struct core {
	const char *name, *makes;
} core[] = {
	{ "ib_core", "/sys/class/infiniband" },
	{ "ib_uverbs", "/sys/class/infiniband_verbs" },
	{ "rdma_cm", "/sys/class/misc/rdma_cm" },	/* made by rdma_ucm, which depends on rdma_cm */
	{ "rdma_ucm", "/sys/class/misc/rdma_cm" },
};

static const char *const drivers[] = {
	"rdma_rxe",   "siw",	  "mlx5_ib", "mlx4_ib", "bnxt_re",	  "irdma",
	"ionic_rdma", "efa",	  "mana_ib", "erdma",	"hns_roce_hw_v2", "hfi1",
	"ib_qib",     "iw_cxgb4", "ocrdma",  "qedr",	"usnic_verbs",	  "vmw_pvrdma",
};

#define N_CORE (sizeof(core) / sizeof(core[0]))
#define N_DRIVERS (sizeof(drivers) / sizeof(drivers[0]))

/* A list of names, cut if too long. */
struct names {
	char text[200];
};

static void add_name(struct names *n, const char *name, const char *how)
{
	size_t used = strlen(n->text);

	snprintf(n->text + used, sizeof(n->text) - used, "%s%s%s", used ? ", " : "", name, how);
}

static const char *how_text(enum module_state s)
{
	return s == MODULE_BUILT_IN ? " (built in)" : s == MODULE_LOADED ? "" : " (known by its files in /sys)";
}

static void check_core(const char *root, struct findings *out)
{
	static const char why[] = "Programs reach devices through ib_uverbs, and connect through rdma_ucm.";
	struct names have = { .text = "" }, missing = { .text = "" }, load = { .text = "" };
	struct finding *f;
	bool loads;

	for (size_t i = 0; i < N_CORE; i++) {
		enum module_state s = module_state(root, core[i].name);

		if (s == MODULE_LOADED || s == MODULE_BUILT_IN || tree_has(tree_at(root, "%s", core[i].makes))) {
			add_name(&have, core[i].name, how_text(s));
			continue;
		}
		add_name(&missing, core[i].name, "");
		snprintf(load.text + strlen(load.text), sizeof(load.text) - strlen(load.text), " %s", core[i].name);
	}
	if (!missing.text[0]) {
		findings_add(out, "modules", FINDING_FINE, NULL, "the kernel has %s", have.text);
	} else if (!tree_has(tree_at(root, "/sys/class"))) {
		findings_add(out, "modules", FINDING_UNKNOWN, why, "/sys is missing: modules cannot be examined");
	} else {
		loads = tree_has(tree_at(root, "/proc/modules"));
		f = findings_add(out, "modules", FINDING_WRONG, why, "the kernel has not loaded %s%s%s%s", missing.text,
				 loads ? "" : ", and loads no modules", have.text[0] ? "; it has " : "", have.text);
		if (loads)
			finding_mend(f, "modprobe -a%s", load.text);
	}
}

static void check_drivers(const char *root, struct findings *out)
{
	struct names have = { .text = "" };
	char rxe[FINDING_TEXT / 2];
	struct finding *f;
	bool unknown = false, loads;

	for (size_t i = 0; i < N_DRIVERS; i++) {
		enum module_state s = module_state(root, drivers[i]);

		if (s == MODULE_LOADED || s == MODULE_BUILT_IN)
			add_name(&have, drivers[i], how_text(s));
		unknown |= s == MODULE_UNKNOWN;
	}
	if (have.text[0]) {
		findings_add(out, "driver", FINDING_FINE, NULL, "drivers of RDMA devices: %s%s", have.text,
			     unknown ? " (what else is built in cannot be read)" : "");
		return;
	}
	loads = module_rxe_command(rxe, sizeof(rxe));
	f = findings_add(out, "driver", FINDING_NOTE,
			 "Without a driver there is no device; rdma_rxe makes one of any Ethernet interface.",
			 "no known driver of RDMA devices is loaded%s%s%s",
			 unknown ? "; what is built in cannot be read" : " or built in", loads ? "" : "; ",
			 loads ? "" : rxe);
	if (loads)
		finding_mend(f, "%s", rxe);
}

void modules_check(const char *root, struct findings *out)
{
	check_core(root, out);
	check_drivers(root, out);
}
