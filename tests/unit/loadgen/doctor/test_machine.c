/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/machine.c, with machines that are files in a folder. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "loadgen/doctor/checks.h"
#include "tests/unit/files/machine.h"

#define GOVERNOR "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"

static void look(void)
{
	machine_look(machine_check);
}

TEST(machine__nothing_special__nothing_said)
{
	machine_put("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
	look();
	assert_int_equal(machine_found.n, 0);
}

TEST(machine__container_and_wsl__noted)
{
	machine_put("/run/.containerenv", "");
	machine_put("/proc/sys/kernel/osrelease", "5.15.90.1-Microsoft-standard-WSL2\n");
	look();
	assert_int_equal(machine_found.n, 2);
	assert_string_equal(machine_found.v[0].check, "container");
	machine_says("wsl", FINDING_NOTE, "Linux 2, kernel 5.15.90.1-Microsoft-standard-WSL2");
	assert_int_equal(findings_status(&machine_found), 0);
}

/* The identity of WSL's own virtual machine does not matter. */
TEST(machine__wsl_on_hyper_v__no_cloud)
{
	machine_put("/proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n");
	machine_put("/sys/class/dmi/id/chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77\n");
	look();
	assert_int_equal(machine_found.n, 1);
	machine_says("wsl", FINDING_NOTE, "version 1");
}

TEST(machine__clouds__noted_by_name)
{
	machine_put("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
	machine_put("/sys/class/dmi/id/product_name", "c6gn.16xlarge\n");
	look();
	machine_says("cloud", FINDING_NOTE, "c6gn.16xlarge");
	assert_non_null(strstr(machine_found.v[0].why, "EFA"));
	machine_put("/sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n");
	machine_put("/sys/class/dmi/id/chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77\n");
	look();
	machine_says("cloud", FINDING_NOTE, "Azure");
	machine_put("/sys/class/dmi/id/chassis_asset_tag", "\n");
	machine_put("/sys/class/dmi/id/product_name", "Google Compute Engine\n");
	look();
	machine_says("cloud", FINDING_NOTE, "Google");
	assert_int_equal(findings_status(&machine_found), 0);
}

/* A private Hyper-V host. */
TEST(machine__hyper_v_without_azures_tag__no_cloud)
{
	machine_put("/sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n");
	machine_put("/sys/class/dmi/id/product_name", "Virtual Machine\n");
	look();
	assert_int_equal(machine_found.n, 0);
}

TEST(machine__governor__noted_unless_performance)
{
	machine_put(GOVERNOR, "powersave\n");
	look();
	assert_int_equal(machine_found.n, 1);
	assert_int_equal(machine_found.v[0].status, FINDING_NOTE);
	assert_non_null(strstr(machine_found.v[0].what, "powersave"));
	assert_non_null(strstr(machine_found.v[0].mend, "performance"));
	machine_put(GOVERNOR, "performance\n");
	look();
	assert_int_equal(machine_found.v[0].status, FINDING_FINE);
}

TEST_EACH(machine_make, machine_remove)
