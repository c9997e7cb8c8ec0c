/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/modules.c, with kernels that are files in a folder. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/host/beside.h"
#include "loadgen/doctor/checks.h"
#include "tests/unit/files/machine.h"

#define BUILT_IN "/lib/modules/6.1.0-13-amd64/modules.builtin"

/* The answer of scripts/softroce: its exit status and its line. */
static int script_status;
static const char *script_line;

int beside_ask(const char *relative, const char *const words[], char *line, size_t size)
{
	assert_string_equal(relative, "scripts/softroce");
	assert_string_equal(words[0], "module");
	assert_null(words[1]);
	snprintf(line, size, "%s", script_line);
	return script_status;
}

static void look(void)
{
	machine_look(modules_check);
}

static int set_up(void **state)
{
	script_status = 0;
	script_line = "modprobe rdma_rxe";
	if (machine_make(state))
		return -1;
	machine_put("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
	machine_put(BUILT_IN, "kernel/fs/ext4/ext4.ko\n");
	machine_put("/sys/class/misc/fuse/dev", "10:229\n");
	return 0;
}

static void put_core(void)
{
	machine_put("/sys/module/ib_core/initstate", "live\n");
	machine_put("/sys/module/ib_uverbs/initstate", "live\n");
	machine_put("/sys/module/rdma_cm/initstate", "live\n");
	machine_put("/sys/module/rdma_ucm/initstate", "live\n");
}

TEST(modules__all_loaded__fine_and_named)
{
	put_core();
	machine_put("/sys/module/rdma_rxe/initstate", "live\n");
	machine_put("/sys/module/mlx5_ib/initstate", "live\n");
	look();
	machine_says("modules", FINDING_FINE, "the kernel has ib_core, ib_uverbs, rdma_cm, rdma_ucm");
	machine_says("driver", FINDING_FINE, "rdma_rxe, mlx5_ib");
	assert_int_equal(machine_found.n, 2);
}

/* Found in the list, where file names may contain '-', or only by a folder of parameters. */
TEST(modules__built_in__fine_and_said)
{
	put_core();
	machine_take("/sys/module/rdma_ucm");
	machine_take("/sys/module/ib_core");
	machine_put("/sys/module/ib_core/parameters/recv_queue_size", "512\n");
	machine_put(BUILT_IN,
		    "kernel/drivers/infiniband/core/rdma_ucm.ko\nkernel/drivers/infiniband/hw/hns/hns-roce-hw-v2.ko\n");
	look();
	machine_says("modules", FINDING_FINE, "ib_core (built in), ib_uverbs, rdma_cm, rdma_ucm (built in)");
	machine_says("driver", FINDING_FINE, "hns_roce_hw_v2 (built in)");
}

TEST(modules__missing__mend_loads_those)
{
	put_core();
	machine_take("/sys/module/rdma_ucm");
	machine_take("/sys/module/ib_uverbs");
	look();
	machine_says("modules", FINDING_WRONG, "ib_uverbs, rdma_ucm, and loads no modules; it has ib_core, rdma_cm");
	machine_mended_by("modules", "");
	machine_put("/proc/modules", "");
	look();
	machine_says("modules", FINDING_WRONG, "has not loaded ib_uverbs, rdma_ucm; it has ib_core, rdma_cm");
	machine_mended_by("modules", "modprobe -a ib_uverbs rdma_ucm");
}

/* Containers often lack the list of built-in modules; then the files that a module makes prove it. */
TEST(modules__no_list__known_by_what_they_made)
{
	machine_take(BUILT_IN);
	look();
	machine_says("modules", FINDING_WRONG, "ib_core, ib_uverbs, rdma_cm, rdma_ucm");
	machine_says("driver", FINDING_NOTE, "what is built in cannot be read");
	machine_put("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
	machine_put("/sys/class/infiniband_verbs/abi_version", "6\n");
	machine_put("/sys/class/misc/rdma_cm/dev", "10:122\n");
	look();
	machine_says("modules", FINDING_FINE, "ib_core (known by its files in /sys)");
}

TEST(modules__no_driver__note_says_rxe)
{
	put_core();
	look();
	machine_says("driver", FINDING_NOTE, "is loaded or built in");
	assert_string_equal(machine_finding("driver", FINDING_NOTE)->mend, "modprobe rdma_rxe");
	assert_int_equal(findings_status(&machine_found), 0);
}

TEST(modules__kernel_without_rxe__mend_installs_its_package)
{
	put_core();
	script_line = "dnf install -y kernel-modules-extra-6.1 && modprobe rdma_rxe";
	look();
	assert_string_equal(machine_finding("driver", FINDING_NOTE)->mend, script_line);
}

TEST(modules__no_package_has_rxe__reason_instead_of_a_mend)
{
	put_core();
	script_status = 3;
	script_line = "kernel 6.1 was built without rdma_rxe";
	look();
	machine_says("driver", FINDING_NOTE, "or built in; kernel 6.1 was built without rdma_rxe");
	assert_string_equal(machine_finding("driver", FINDING_NOTE)->mend, "");
}

TEST(modules__no_script__modprobe)
{
	put_core();
	script_status = -ENOENT;
	script_line = "";
	look();
	assert_string_equal(machine_finding("driver", FINDING_NOTE)->mend, "modprobe rdma_rxe");
}

TEST(modules__no_sys__unknown)
{
	machine_take("/sys");
	look();
	assert_non_null(machine_finding("modules", FINDING_UNKNOWN));
	assert_int_equal(findings_status(&machine_found), 3);
}

TEST_EACH(set_up, machine_remove)
