/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/devices.c and finding.c, with machines that are files in a folder. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <string.h>

#include "common/host/beside.h"
#include "loadgen/doctor/checks.h"
#include "tests/unit/files/machine.h"

#define PORT "/sys/class/infiniband/rxe0/ports/1"

/* The reason that scripts/softroce gives for the module being missing; NULL: it prints a command that loads it. */
static const char *no_module;

int beside_ask(const char *relative, const char *const words[], char *line, size_t size)
{
	(void)relative, (void)words;
	snprintf(line, size, "%s", no_module ? no_module : "modprobe rdma_rxe");
	return no_module ? 3 : 0;
}

static void look(void)
{
	machine_look(devices_check);
}

/* The finding is wrong, so the exit status is 1. */
static void mended_by(const char *check, const char *mend)
{
	machine_mended_by(check, mend);
	assert_int_equal(findings_status(&machine_found), 1);
}

static int set_up(void **state)
{
	no_module = NULL;
	if (machine_make(state))
		return -1;
	machine_put("/sys/class/net/eth0/type", "1\n");
	machine_put("/sys/class/net/eth0/operstate", "up\n");
	machine_put("/sys/class/net/eth0/mtu", "9000\n");
	machine_put(PORT "/state", "4: ACTIVE\n");
	machine_put(PORT "/gid_attrs/ndevs/0", "eth0\n");
	machine_put(PORT "/gid_attrs/types/1", "RoCE v2\n");
	machine_put(PORT "/gids/0", "fe80:0000:0000:0000:0200:00ff:fe00:0001\n");
	machine_put(PORT "/gids/1", "0000:0000:0000:0000:0000:ffff:0a4d:0001\n");
	machine_put("/sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n");
	machine_put("/dev/infiniband/uverbs0", "");
	machine_put("/dev/infiniband/rdma_cm", "");
	return 0;
}

TEST_WITH(devices__all_is_there__fine, set_up, machine_remove)
{
	look();
	for (size_t i = 0; i < machine_found.n; i++)
		assert_int_equal(machine_found.v[i].status, FINDING_FINE);
	assert_int_equal(machine_found.n, 6);
	assert_int_equal(findings_status(&machine_found), 0);
}

TEST_WITH(devices__none__mend_makes_one_on_an_interface, set_up, machine_remove)
{
	machine_take("/sys/class/infiniband");
	look();
	mended_by("device", "modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0");
}

TEST_WITH(devices__none_and_no_module__reason_and_the_micro_vm, set_up, machine_remove)
{
	machine_take("/sys/class/infiniband");
	no_module = "kernel 6.1 was built without rdma_rxe";
	look();
	machine_says("device", FINDING_WRONG, "no RDMA device, and kernel 6.1 was built without rdma_rxe; "
		     "`scripts/softroce vm` boots a micro-VM");
	assert_string_equal(machine_finding("device", FINDING_WRONG)->mend, "");
}

TEST_WITH(devices__port_down__mend_sets_the_interface_up, set_up, machine_remove)
{
	machine_put(PORT "/state", "1: DOWN\n");
	look();
	mended_by("link", "ip link set eth0 up");
}

TEST_WITH(devices__small_mtu__mend_sets_it, set_up, machine_remove)
{
	machine_put("/sys/class/net/eth0/mtu", "1280\n");
	look();
	mended_by("mtu", "ip link set eth0 mtu 1500");
}

TEST_WITH(devices__mtu_is_no_number__unknown, set_up, machine_remove)
{
	machine_put("/sys/class/net/eth0/mtu", "15x\n");
	look();
	assert_non_null(machine_finding("mtu", FINDING_UNKNOWN));
	assert_int_equal(findings_status(&machine_found), 3);
}

TEST_WITH(devices__file_missing__mend_loads_its_module, set_up, machine_remove)
{
	machine_take("/dev/infiniband/rdma_cm");
	look();
	mended_by("access", "modprobe rdma_ucm");
}

TEST_WITH(devices__netdev_is_a_command__not_in_a_mend, set_up, machine_remove)
{
	machine_put(PORT "/gid_attrs/ndevs/0", "x;reboot\n");
	machine_put(PORT "/state", "1: DOWN\n");
	look();
	mended_by("link", "");
}

TEST_WITH(devices__efa__wrong_by_its_driver, set_up, machine_remove)
{
	machine_link("/sys/class/infiniband/rxe0/device/driver", "../../../../bus/pci/drivers/efa");
	look();
	machine_says("device", FINDING_WRONG, "rxe0 is an Elastic Fabric Adapter");
	mended_by("device", "modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0");
}

TEST_WITH(devices__efa_without_a_driver__wrong_by_its_name, set_up, machine_remove)
{
	machine_put("/sys/class/infiniband/efa_0/ports/1/state", "4: ACTIVE\n");
	look();
	machine_says("device", FINDING_WRONG, "efa_0 is an Elastic Fabric Adapter");
}

TEST_WITH(devices__mana__noted, set_up, machine_remove)
{
	machine_link("/sys/class/infiniband/rxe0/device/driver", "../../../../bus/pci/drivers/mana");
	look();
	machine_says("device", FINDING_NOTE, "MANA");
	assert_int_equal(findings_status(&machine_found), 0);
}

TEST_WITH(devices__another_driver__nothing_said, set_up, machine_remove)
{
	machine_link("/sys/class/infiniband/rxe0/device/driver", "../../../../bus/pci/drivers/mlx5_core");
	look();
	for (int status = FINDING_FINE; status <= FINDING_NOTE; status++)
		assert_null(machine_finding("device", (enum finding_status)status));
}

TEST(findings__too_many__not_complete)
{
	json_t *o;

	memset(&machine_found, 0, sizeof(machine_found));
	for (int i = 0; i < FINDINGS_MAX + 1; i++)
		findings_add(&machine_found, "x", FINDING_FINE, NULL, "%d", i);
	assert_int_equal(findings_status(&machine_found), 3);
	o = findings_json(&machine_found);
	assert_true(json_is_false(json_object_get(o, "complete")));
	json_decref(o);
}
