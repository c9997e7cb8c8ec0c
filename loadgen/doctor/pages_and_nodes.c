/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks huge pages and NUMA nodes. No finding here prevents a run. See checks.h. */
#include "loadgen/doctor/checks.h"

#include <inttypes.h>
#include <string.h>

#include "common/host/place.h"
#include "common/host/proc_text.h"
#include "loadgen/doctor/base/tree.h"

static void check_reserved(const char *root, struct findings *out)
{
	uint64_t total, unused, kib, available;
	char text[8192];
	struct finding *f;
	bool much;

	if (tree_text(tree_at(root, "/proc/meminfo"), text, sizeof(text)) || !proc_text_field(text, "MemAvailable")) {
		findings_add(out, "hugepages", FINDING_UNKNOWN, NULL, "/proc/meminfo cannot be read");
		return;
	}
	if (!proc_text_field(text, "HugePages_Total")) {
		findings_add(out, "hugepages", FINDING_FINE, NULL, "this kernel reserves no huge pages");
		return;
	}
	total = proc_text_number(text, "HugePages_Total", 10);
	unused = proc_text_number(text, "HugePages_Free", 10);
	kib = proc_text_number(text, "Hugepagesize", 10);
	available = proc_text_number(text, "MemAvailable", 10);
	much = kib && unused > available / kib;
	f = findings_add(out, "hugepages", much ? FINDING_NOTE : FINDING_FINE,
			 "Server and load generator use no reserved huge pages, and "
			 "their memory cannot be used for anything else.",
			 "%" PRIu64 " of %" PRIu64 " reserved huge pages of %" PRIu64 " KiB are free%s", unused, total,
			 kib, much ? ": more than the other memory that is available" : "");
	finding_mend(f, "echo 0 >/proc/sys/vm/nr_hugepages");
}

static void check_transparent(const char *root, struct findings *out)
{
	static const char file[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	char line[64], *mode, *end;
	struct finding *f;
	bool always;

	if (tree_line(tree_at(root, file), line, sizeof(line))) {
		findings_add(out, "thp", FINDING_NOTE, NULL, "this kernel has no transparent huge pages");
		return;
	}
	mode = strchr(line, '[');
	end = mode ? strchr(mode, ']') : NULL;
	if (!end) {
		findings_add(out, "thp", FINDING_UNKNOWN, NULL, "%s has an unexpected content: %s", file, line);
		return;
	}
	*end = '\0';
	mode++;
	always = strcmp(mode, "always") == 0;
	f = findings_add(out, "thp", always ? FINDING_FINE : FINDING_NOTE,
			 "Buffers do not request huge pages, with which a device has fewer addresses to look up: "
			 "they get them only in mode always.",
			 "transparent huge pages: %s", mode);
	finding_mend(f, "echo always >%s", file);
}

struct numa {
	const char *root;
	struct findings *out;
	struct tree_path sys;
	int nodes;
};

static void check_device_node(void *arg, const char *device)
{
	static const char why[] =
		"Data that crosses from one node to another takes longer; --numa auto keeps threads on the device's "
		"node.";
	const struct numa *n = arg;
	int node = place_node_of_rdma(n->sys.v, device);
	char cpus[64];
	struct finding *f;
	cpu_set_t set;

	if (node == PLACE_NO_NODE) {
		findings_add(n->out, "numa", FINDING_NOTE, why, "%s does not say which of %d NUMA nodes it is at",
			     device, n->nodes);
		return;
	}
	if (tree_line(tree_at(n->root, "/sys/devices/system/node/node%d/cpulist", node), cpus, sizeof(cpus)) ||
	    cpus[strspn(cpus, "0123456789,-")])
		cpus[0] = '\0';
	if (place_cpus_beside(n->sys.v, node, &set)) {
		findings_add(n->out, "numa", FINDING_FINE, NULL, "%s is at node %d of %d, whose CPUs are %s", device,
			     node, n->nodes, cpus);
		return;
	}
	f = findings_add(n->out, "numa", FINDING_NOTE, why,
			 "%s is at node %d of %d, and this process may use none of the CPUs of that node (%s)", device,
			 node, n->nodes,
			 cpus[0] ? cpus : "which are unknown");
	if (cpus[0])
		finding_mend(f, "taskset -pc %s $$", cpus);
}

static void check_numa(const char *root, struct findings *out)
{
	struct numa n = { .root = root, .out = out, .sys = tree_at(root, "%s", PLACE_SYS) };

	n.nodes = place_nodes(n.sys.v);
	if (n.nodes <= 1)
		findings_add(out, "numa", FINDING_FINE, NULL, "%s",
			     n.nodes ? "this machine has one NUMA node" : "this machine shows no NUMA nodes");
	else if (tree_each(root, "/sys/class/infiniband", check_device_node, &n) <= 0)
		findings_add(out, "numa", FINDING_FINE, NULL,
			     "this machine has %d NUMA nodes, but no RDMA device", n.nodes);
}

void memory_check(const char *root, struct findings *out)
{
	check_reserved(root, out);
	check_transparent(root, out);
	check_numa(root, out);
}
