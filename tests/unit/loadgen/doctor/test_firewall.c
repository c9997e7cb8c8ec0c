/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/firewall.c, with kernels that are files in a folder. */
#include "tests/unit/helpers/unit.h"

#include "loadgen/doctor/checks.h"
#include "tests/unit/files/machine.h"

#define BUILT_IN "/lib/modules/6.1.0-13-amd64/modules.builtin"

static void check(const char *root, struct findings *out)
{
	firewall_check(root, 7999, out);
}

static int set_up(void **state)
{
	if (machine_make(state))
		return -1;
	machine_put("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
	machine_put(BUILT_IN, "kernel/fs/ext4/ext4.ko\n");
	return 0;
}

TEST(firewall__no_filter_in_the_kernel__fine)
{
	machine_look(check);
	assert_int_equal(machine_found.n, 1);
	machine_says("firewall", FINDING_FINE, "filters no packets with nftables or iptables");
}

TEST(firewall__iptables_without_tables__fine)
{
	machine_put("/proc/net/ip_tables_names", "");
	machine_look(check);
	assert_non_null(machine_finding("firewall", FINDING_FINE));
}

TEST(firewall__nftables__ports_that_are_needed)
{
	machine_put("/sys/module/nf_tables/initstate", "live\n");
	machine_look(check);
	assert_int_equal(machine_found.n, 1);
	machine_says("firewall", FINDING_NOTE, "nftables may filter packets. A server needs TCP port 7999 ");
	machine_says("firewall", FINDING_NOTE, "UDP port 4791 at both ends");
	assert_int_equal(findings_status(&machine_found), 0);
}

/* A container has no list of built-in modules. */
TEST(firewall__unknown_whether_nftables_is_built_in__noted)
{
	machine_take(BUILT_IN);
	machine_look(check);
	machine_says("firewall", FINDING_NOTE, "nftables may filter");
}

TEST(firewall__tables_of_either_kind_of_iptables__noted)
{
	machine_put("/proc/net/ip6_tables_names", "filter\n");
	machine_look(check);
	machine_says("firewall", FINDING_NOTE, "iptables may filter");
	machine_put("/sys/module/nf_tables/initstate", "live\n");
	machine_look(check);
	machine_says("firewall", FINDING_NOTE, "nftables and iptables may filter");
}

TEST_EACH(set_up, machine_remove)
