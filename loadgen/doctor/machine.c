/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the machine itself: container, cloud, and settings that make times vary. See checks.h. */
#include "loadgen/doctor/checks.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/doctor/base/tree.h"

static void check_container(const char *root, struct findings *out)
{
	/* The micro-VM has the files of its host, which may be a container. */
	if (getenv("RAMPART_VM"))
		return;
	if (!tree_has(tree_at(root, "/.dockerenv")) && !tree_has(tree_at(root, "/run/.containerenv")) &&
	    !tree_has(tree_at(root, "/var/run/secrets/kubernetes.io")))
		return;
	findings_add(out, "container", FINDING_NOTE,
		     "It has only the devices, limits and addresses that it was given (docs/launchers.md).",
		     "this is a container");
}

static bool check_wsl(const char *root, struct findings *out)
{
	char release[128], lower[128] = "";

	if (tree_line(tree_at(root, "/proc/sys/kernel/osrelease"), release, sizeof(release)))
		return false;
	for (size_t i = 0; release[i]; i++)
		lower[i] = (char)tolower((unsigned char)release[i]);
	if (!strstr(lower, "microsoft"))
		return false;
	findings_add(out, "wsl", FINDING_NOTE,
		     "Microsoft's kernel has no RDMA devices and no rdma_rxe: runs are made in a micro-VM, which "
		     "`scripts/softroce vm` boots without either, or with a kernel that has rdma_rxe (kernel= in "
		     ".wslconfig).",
		     "this is the Windows Subsystem for Linux %s, kernel %s",
		     strstr(lower, "wsl2") ? "2" : "(of version 1, or unknown)", release);
	return true;
}

/* Clouds, recognised by the DMI data of their virtual machines. */

/* The chassis tag of every Azure machine, and of no other Hyper-V guest. */
#define AZURE_TAG "7783-7084-3265-9085-8269-3286-77"

static void dmi(const char *root, const char *field, char out[64])
{
	tree_line(tree_at(root, "/sys/class/dmi/id/%s", field), out, 64);
}

static void check_cloud(const char *root, struct findings *out)
{
	char vendor[64], product[64], tag[64];

	dmi(root, "sys_vendor", vendor);
	dmi(root, "product_name", product);
	dmi(root, "chassis_asset_tag", tag);
	if (strcmp(vendor, "Amazon EC2") == 0)
		findings_add(out, "cloud", FINDING_NOTE,
			     "Its RDMA device, EFA, has no reliable connections of rdmacm: RDMA means Soft-RoCE here. "
			     "Security groups must let TCP 7471 and UDP 4791 in.",
			     "this is a machine of Amazon EC2 (%s)", product);
	else if (strcmp(tag, AZURE_TAG) == 0)
		findings_add(out, "cloud", FINDING_NOTE,
			     "Sizes with an \"r\" in their name have InfiniBand; others have at most MANA, or "
			     "Soft-RoCE. Network security groups must let TCP 7471 and UDP 4791 in.",
			     "this is a machine of Microsoft Azure");
	else if (strcmp(product, "Google Compute Engine") == 0)
		findings_add(out, "cloud", FINDING_NOTE,
			     "Few machine types have an RDMA device, on networks of their own; others have Soft-RoCE. "
			     "Firewall rules of the network must let TCP 7471 and UDP 4791 in.",
			     "this is a machine of Google Compute Engine");
}

static void check_governor(const char *root, struct findings *out)
{
	char governor[32];
	bool fast;
	struct finding *f;

	if (tree_line(tree_at(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), governor,
		      sizeof(governor)))
		return;
	fast = strcmp(governor, "performance") == 0;
	f = findings_add(out, "governor", fast ? FINDING_FINE : FINDING_NOTE,
			 "A CPU that sleeps or slows down between messages adds to their latency.",
			 "the CPU frequency governor is %s", governor);
	finding_mend(f,
		     "for g in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo performance >\"$g\"; "
		     "done");
}

void machine_check(const char *root, struct findings *out)
{
	check_container(root, out);
	if (!check_wsl(root, out))
		check_cloud(root, out);
	check_governor(root, out);
}
