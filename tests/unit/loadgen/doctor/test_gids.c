/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/gids.c and base/ports.c, with ports that are files in a folder. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <string.h>

#include "loadgen/doctor/checks.h"
#include "tests/unit/files/machine.h"

#define DEVICE "/sys/class/infiniband/mlx5_0"
#define PORT DEVICE "/ports/1"
#define MODE "/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode"
#define LOCAL "fe80:0000:0000:0000:0200:00ff:fe00:0001\n"
#define NO_GID "0000:0000:0000:0000:0000:0000:0000:0000\n"

static void check_port(void *arg, const struct rdma_port *p)
{
	gids_check(machine_root, p, arg);
}

static void check(const char *root, struct findings *out)
{
	assert_int_equal(ports_each(root, check_port, out), 1);
}

static void look(void)
{
	machine_look(check);
}

static void put_gid(int index, const char *gid, const char *type)
{
	char path[128];

	snprintf(path, sizeof(path), PORT "/gids/%d", index);
	machine_put(path, gid);
	snprintf(path, sizeof(path), PORT "/gid_attrs/types/%d", index);
	machine_put(path, type);
}

static int set_up(void **state)
{
	if (machine_make(state))
		return -1;
	machine_put(PORT "/link_layer", "Ethernet\n");
	machine_put(PORT "/gid_attrs/ndevs/0", "eth0\n");
	put_gid(0, LOCAL, "IB/RoCE v1\n");
	put_gid(1, LOCAL, "RoCE v2\n");
	put_gid(2, "0000:0000:0000:0000:0000:ffff:0a4d:0001\n", "IB/RoCE v1\n");
	put_gid(3, "0000:0000:0000:0000:0000:ffff:0a4d:0001\n", "RoCE v2\n");
	put_gid(4, NO_GID, "");
	return 0;
}

TEST(gids__roce_v2_with_an_address__fine_and_listed)
{
	look();
	machine_says("gid", FINDING_FINE, "mlx5_0 port 1: IPv4 address 10.77.0.1");
	machine_says("gid-type", FINDING_FINE,
		     "GIDs 0 fe80::200:ff:fe00:1 RoCE v1, 1 fe80::200:ff:fe00:1 RoCE v2, 2 10.77.0.1 RoCE v1, "
		     "3 10.77.0.1 RoCE v2");
	assert_int_equal(findings_status(&machine_found), 0);
}

TEST(gids__of_another_interface__said)
{
	machine_put(PORT "/gid_attrs/ndevs/2", "eth0\n");
	machine_put(PORT "/gid_attrs/ndevs/3", "eth0.100\n");
	look();
	machine_says("gid-type", FINDING_FINE, "2 10.77.0.1 RoCE v1, 3 10.77.0.1 RoCE v2 on eth0.100");
}

TEST(gids__more_than_a_line_holds__counted)
{
	for (int i = 0; i < 40; i++)
		put_gid(i, "2001:0db8:0000:0000:0000:0000:0000:0001\n", "RoCE v2\n");
	look();
	machine_says("gid-type", FINDING_FINE, " more");
}

/* The address exists, so adding one mends nothing. */
TEST(gids__address_of_roce_v1_only__wrong)
{
	put_gid(3, NO_GID, "");
	look();
	assert_non_null(machine_finding("gid", FINDING_FINE));
	machine_says("gid-type", FINDING_WRONG, "no RoCE v2 GID is an IP address: 0 fe80");
	machine_mended_by("gid-type", "");
}

TEST(gids__link_local_only__mend_adds_an_address)
{
	put_gid(2, NO_GID, "");
	put_gid(3, NO_GID, "");
	look();
	machine_mended_by("gid", "ip address add 10.77.0.1/16 dev eth0");
	machine_mended_by("gid-type", "ip address add 10.77.0.1/16 dev eth0");
}

/* Clients with IPv6 can connect. */
TEST(gids__ipv6_only__noted_and_of_a_type_that_serves)
{
	put_gid(2, NO_GID, "");
	put_gid(3, "2001:0db8:0000:0000:0000:0000:0000:0001\n", "RoCE v2\n");
	look();
	machine_says("gid", FINDING_NOTE, "(1 IPv6, 2 link-local)");
	machine_says("gid-type", FINDING_FINE, "3 2001:db8::1 RoCE v2");
}

TEST(gids__none__wrong)
{
	machine_take(PORT "/gids");
	look();
	assert_non_null(machine_finding("gid", FINDING_WRONG));
	machine_says("gid-type", FINDING_WRONG, "there is none");
}

TEST(gids__types_absent__unknown)
{
	machine_take(PORT "/gid_attrs/types");
	look();
	machine_says("gid-type", FINDING_UNKNOWN, "cannot be read");
	assert_int_equal(findings_status(&machine_found), 3);
}

TEST(gids__rdma_cm_set_to_v1__mend_sets_v2)
{
	machine_put(MODE, "RoCE v2\n");
	look();
	assert_null(machine_finding("gid-type", FINDING_WRONG));
	machine_put(MODE, "IB/RoCE v1\n");
	look();
	machine_mended_by("gid-type", "echo 'RoCE v2' >" MODE);
}

TEST(gids__infiniband__address_from_ipoib)
{
	machine_put(PORT "/link_layer", "InfiniBand\n");
	for (int i = 1; i < 4; i++)
		put_gid(i, NO_GID, "");
	look();
	machine_says("gid-type", FINDING_FINE, "0 fe80::200:ff:fe00:1 InfiniBand");
	machine_mended_by("gid", "modprobe ib_ipoib");
	machine_put("/sys/class/net/ib0/type", "32\n");
	look();
	machine_says("gid", FINDING_FINE, "such as ib0");
	machine_take(PORT "/gids");
	look();
	machine_says("gid-type", FINDING_WRONG, "GIDs none");
}

TEST(gids__iwarp__noted)
{
	machine_put(DEVICE "/node_type", "4: RNIC\n");
	look();
	assert_int_equal(machine_found.n, 1);
	machine_says("gid", FINDING_NOTE, "iWARP");
}

TEST_EACH(set_up, machine_remove)
