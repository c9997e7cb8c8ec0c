/* The machine around the devices: where it runs, and what makes its times vary. See machine.h. */
#include "loadgen/doctor/machine.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "loadgen/doctor/tree.h"

static bool is_there(const char *root, const char *path)
{
	char full[PATH_MAX];

	return tree_path(root, full, sizeof(full), "%s", path) && access(full, F_OK) == 0;
}

static void check_container(const char *root, struct findings *out)
{
	if (!is_there(root, "/.dockerenv") && !is_there(root, "/run/.containerenv") &&
	    !is_there(root, "/var/run/secrets/kubernetes.io"))
		return;
	findings_add(out, "container", FINDING_NOTE, "It has the devices, limits and addresses that it was given (docs/launchers.md).",
		     "this is a container");
}

static void check_wsl(const char *root, struct findings *out)
{
	char release[128];

	if (tree_line(root, release, sizeof(release), "/proc/sys/kernel/osrelease"))
		return;
	for (char *c = release; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (strstr(release, "microsoft"))
		findings_add(out, "wsl", FINDING_NOTE, "Its kernel has neither RDMA devices nor rdma_rxe: runs are made in a micro-VM.",
			     "this is the Windows Subsystem for Linux");
}

static void check_governor(const char *root, struct findings *out)
{
	char governor[32];
	bool fast;
	struct finding *f;

	if (tree_line(root, governor, sizeof(governor), "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
		return;
	fast = strcmp(governor, "performance") == 0;
	f = findings_add(out, "governor", fast ? FINDING_FINE : FINDING_NOTE, "A CPU that sleeps or slows down between messages adds to "
			 "their latency.", "the governor of the CPUs' frequency is %s", governor);
	if (!fast)
		finding_mend(f, "for g in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo performance >\"$g\"; done");
}

void machine_check(const char *root, struct findings *out)
{
	check_container(root, out);
	check_wsl(root, out);
	check_governor(root, out);
}
