/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/lossless.c, with devices that are files in a folder, and a driver that answers as the
 * test wants. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "loadgen/doctor/base/driver.h"
#include "loadgen/doctor/checks.h"
#include "tests/unit/files/machine.h"

#define PORT "/sys/class/infiniband/mlx5_0/ports/1"
#define OF_PORT "/sys/kernel/config/rdma_cm/mlx5_0/ports/1"
#define TOS OF_PORT "/default_roce_tos"

static struct {
	int pause_error, pfc_error;
	struct driver_pause pause;
	uint8_t priorities;
} driver;

int driver_pause(const char *netdev, struct driver_pause *out)
{
	assert_string_equal(netdev, "eth0");
	*out = driver.pause;
	return driver.pause_error;
}

int driver_pfc(const char *netdev, uint8_t *priorities)
{
	assert_string_equal(netdev, "eth0");
	*priorities = driver.priorities;
	return driver.pfc_error;
}

static void look(void)
{
	machine_look(lossless_check);
}

static int set_up(void **state)
{
	memset(&driver, 0, sizeof(driver));
	if (machine_make(state))
		return -1;
	machine_put(PORT "/link_layer", "Ethernet\n");
	machine_put(PORT "/gid_attrs/ndevs/0", "eth0\n");
	machine_put(TOS, "106\n");
	return 0;
}

static void noted(const char *check, const char *what, const char *mend)
{
	machine_says(check, FINDING_NOTE, what);
	assert_string_equal(machine_finding(check, FINDING_NOTE)->mend, mend);
	assert_int_equal(findings_status(&machine_found), 0);
}

TEST(dscp__a_default__fine)
{
	look();
	machine_says("dscp", FINDING_FINE, "mlx5_0 port 1: packets have DSCP 26 (a default_roce_tos of 106)");
}

/* The ECN bits are not part of the DSCP. */
TEST(dscp__zero__mend_sets_it)
{
	machine_put(TOS, "2\n");
	look();
	noted("dscp", "DSCP 0", "echo 104 >" TOS);
}

TEST(dscp__device_without_a_folder__mend_makes_it)
{
	machine_take("/sys/kernel/config/rdma_cm/mlx5_0");
	look();
	noted("dscp", "no default was set", "mkdir -p /sys/kernel/config/rdma_cm/mlx5_0 && echo 104 >" TOS);
}

TEST(dscp__configfs_not_mounted__mend_mounts_it)
{
	machine_take("/sys/kernel/config/rdma_cm");
	look();
	noted("dscp", "not shown by this system", "mount -t configfs configfs /sys/kernel/config");
	machine_take("/sys/kernel/config");
	look();
	noted("dscp", "not shown by this system", "");
}

TEST(dscp__no_number__unknown)
{
	machine_put(TOS, "26x\n");
	look();
	machine_says("dscp", FINDING_UNKNOWN, "cannot be read");
}

TEST(dscp__of_the_driver__said_too)
{
	machine_put("/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=106\n");
	look();
	machine_says("dscp", FINDING_FINE, "the driver's traffic_class: Global tclass=106");
}

TEST(flow__priorities__fine_without_pause_of_the_link)
{
	driver.priorities = 1 << 3 | 1 << 4;
	look();
	machine_says("pfc", FINDING_FINE, "eth0: flow control of priorities (PFC): 3, 4");
	machine_says("pause", FINDING_FINE, "rx off, tx off; priorities have their own");
}

TEST(flow__pause_of_the_link__fine)
{
	driver.pause = (struct driver_pause) { .rx = true, .tx = true };
	driver.pfc_error = -EOPNOTSUPP;
	look();
	machine_says("pause", FINDING_FINE, "rx on, tx on");
	machine_says("pfc", FINDING_NOTE, "eth0: not shown by this driver");
}

TEST(flow__none__mends_turn_it_on)
{
	driver.pause.rx = true;
	look();
	noted("pause", "rx on, tx off", "ethtool -A eth0 rx on tx on");
	noted("pfc", "none", "dcb pfc set dev eth0 prio-pfc 3:on");
}

TEST(flow__driver_says_nothing__noted)
{
	driver.pause_error = driver.pfc_error = -EOPNOTSUPP;
	look();
	noted("pause", "not shown by this driver", "");
	noted("pfc", "not shown by this driver", "");
}

TEST(flow__interface_is_gone__unknown)
{
	driver.pause_error = -ENODEV;
	look();
	machine_says("pause", FINDING_UNKNOWN, "No such device");
	assert_int_equal(findings_status(&machine_found), 3);
}

TEST(port__infiniband_or_none__nothing_said)
{
	machine_put(PORT "/link_layer", "InfiniBand\n");
	look();
	assert_int_equal(machine_found.n, 0);
	machine_take("/sys/class/infiniband");
	look();
	assert_int_equal(machine_found.n, 0);
}

TEST_EACH(set_up, machine_remove)
