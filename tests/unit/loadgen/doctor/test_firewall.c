/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/firewall.c: kernels made of files in a folder, and programs that print what a test
 * wants. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/doctor/base/run.h"
#include "loadgen/doctor/firewall.h"
#include "tests/unit/files/machine.h"

#define BUILT_IN "/lib/modules/6.1.0-13-amd64/modules.builtin"
#define HEAD "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"

static struct {
	const char *program;	/* that is installed */
	const char *complaints;	/* "": none */
	const char *text;	/* that it prints; NULL: it is not ours to run */
	int status;
	unsigned runs;
} shell;

int run_open(const char *program, const char *arguments, FILE **out)
{
	const char *text = strstr(arguments, "2>&1") ? shell.complaints : shell.text;

	*out = NULL;
	if (!shell.text)
		return -EPERM;
	if (strcmp(program, shell.program) != 0)
		return -ENOENT;
	shell.runs++;
	*out = *text ? fmemopen((void *)(uintptr_t)text, strlen(text), "r") : fopen("/dev/null", "r");
	assert_non_null(*out);
	return 0;
}

int run_close(FILE *out)
{
	fclose(out);
	return shell.status;
}

static void look(void)
{
	machine_look(firewall_check);
}

static int set_up(void **state)
{
	memset(&shell, 0, sizeof(shell));
	shell.program = "nft";
	shell.complaints = "";
	if (machine_make(state))
		return -1;
	machine_put("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
	machine_put(BUILT_IN, "kernel/fs/ext4/ext4.ko\n");
	machine_put("/proc/net/netlink", HEAD "0000000000000000 0   0          00000000 0 0 0 2 0 4\n");
	machine_put("/sys/class/infiniband/rxe0/parent", "eth0\n");
	return 0;
}

static void can_have_nft_rules(const char *text)
{
	machine_put("/sys/module/nf_tables/initstate", "live\n");
	shell.text = text;
}

TEST(firewall__no_filter_in_the_kernel__fine)
{
	look();
	assert_int_equal(machine_found.n, 1);
	machine_says("firewall", FINDING_FINE, "has neither nftables nor tables of iptables; BPF programs");
	assert_int_equal(shell.runs, 0);
}

TEST(firewall__iptables_without_tables__fine)
{
	machine_put("/proc/net/ip_tables_names", "");
	look();
	assert_int_equal(machine_found.n, 1);
	assert_non_null(machine_finding("firewall", FINDING_FINE));
}

/* Where the list of what is built in is missing, as in a container, nfnetlink's socket tells. */
TEST(firewall__nothing_known_of_the_kernel__unknown)
{
	machine_take(BUILT_IN);
	look();
	assert_non_null(machine_finding("firewall", FINDING_FINE));
	machine_put("/proc/net/netlink", HEAD "0000000000000000 12  0          00000000 0 0 0 2 0 4\n");
	look();
	machine_says("firewall", FINDING_UNKNOWN, "nftables may be there and have rules");
	machine_put("/proc/net/netlink", HEAD "0000000000000000 12  4711       00000000 0 0 0 2 0 4\n");
	look();
	assert_null(machine_finding("firewall", FINDING_UNKNOWN));
	machine_take("/proc/net");
	look();
	machine_says("firewall", FINDING_UNKNOWN, "nftables");
	machine_says("firewall", FINDING_UNKNOWN, "ip6tables may be there");
}

TEST(firewall__not_root__unknown)
{
	can_have_nft_rules(NULL);
	look();
	assert_int_equal(machine_found.n, 1);
	machine_says("firewall", FINDING_UNKNOWN,
		     "nftables can have rules for TCP port 7471 or UDP port 4791, which were not read: only "
		     "root may read them");
	assert_int_equal(findings_status(&machine_found), 3);
}

TEST(firewall__not_installed__unknown)
{
	can_have_nft_rules("");
	shell.program = "none";
	look();
	machine_says("firewall", FINDING_UNKNOWN, "nft is not installed");
}

TEST(firewall__program_fails__unknown)
{
	can_have_nft_rules("table inet filter {\n}\n");
	shell.status = 1;
	look();
	assert_int_equal(machine_found.n, 1);
	machine_says("firewall", FINDING_UNKNOWN, "nft failed");
}

/* As of rules that iptables made in a container, whose extensions the host does not have. */
TEST(firewall__program_leaves_matches_out__unknown)
{
	can_have_nft_rules("table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority filter; policy accept;\n"
			   "\t\ttcp dport 7471  counter packets 0 bytes 0 drop\n\t}\n}\n");
	shell.complaints = "# Warning: table ip filter is managed by iptables-nft, do not touch!\n";
	look();
	assert_non_null(machine_finding("firewall", FINDING_WRONG));
	shell.complaints = "XT match comment not found\n";
	look();
	assert_int_equal(machine_found.n, 1);
	machine_says("firewall", FINDING_UNKNOWN, "does not show all of them");
}

TEST(firewall__rules_let_in__fine)
{
	can_have_nft_rules(
		"table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n\t}\n}\n");
	look();
	assert_int_equal(machine_found.n, 2);
	machine_says("firewall", FINDING_FINE, "nftables: TCP port 7471 is let in; BPF");
	machine_says("firewall", FINDING_FINE, "nftables: UDP port 4791 is let in; BPF");
}

TEST(firewall__nft_drops__mend_inserts_a_rule)
{
	can_have_nft_rules(
		"table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n"
		"\t\tudp dport 4791 accept\n\t}\n}\n");
	look();
	machine_says("firewall", FINDING_WRONG, "TCP port 7471 is dropped in table filter, chain input");
	machine_mended_by("firewall", "nft insert rule inet filter input tcp dport 7471 accept");
	machine_says("firewall", FINDING_FINE, "UDP port 4791 is let in");
}

TEST(firewall__a_rule_may_accept__unknown_and_mended)
{
	can_have_nft_rules(
		"table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n"
		"\t\tip saddr 10.0.0.0/8 accept\n\t}\n}\n");
	look();
	assert_null(machine_finding("firewall", FINDING_WRONG));
	machine_says("firewall", FINDING_UNKNOWN, "unless a rule accepts it that looks at more than the port");
	assert_string_equal(machine_finding("firewall", FINDING_UNKNOWN)->mend,
			    "nft insert rule inet filter input tcp dport 7471 accept");
}

TEST(firewall__legacy_iptables_drops__mend_inserts_a_rule)
{
	machine_put("/proc/net/ip_tables_names", "filter\n");
	shell.program = "iptables-save";
	shell.text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 7471 -j ACCEPT\nCOMMIT\n";
	look();
	machine_says("firewall", FINDING_FINE, "iptables: TCP port 7471 is let in");
	machine_mended_by("firewall", "iptables -t filter -I INPUT -p udp --dport 4791 -j ACCEPT");
	shell.program = "iptables-legacy-save";
	look();
	machine_mended_by("firewall", "iptables-legacy -t filter -I INPUT -p udp --dport 4791 -j ACCEPT");
}

/* iptables-save of nftables prints other rules than those of the tables that the kernel names. */
TEST(firewall__rules_of_another_program__unknown)
{
	machine_put("/proc/net/ip6_tables_names", "filter\n");
	shell.program = "ip6tables-save";
	shell.text = "# Generated by ip6tables-save v1.8.9 (nf_tables) on Mon Nov 23 12:00:00 2026\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
	look();
	machine_says("firewall", FINDING_UNKNOWN, "ip6tables-legacy-save is not installed");
}

/* Packets of a NIC do not pass the kernel's rules. */
TEST(firewall__no_software_device__udp_is_no_matter)
{
	machine_take("/sys/class/infiniband/rxe0/parent");
	can_have_nft_rules(
		"table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n"
		"\t\ttcp dport 7471 accept\n\t}\n}\n");
	look();
	assert_int_equal(machine_found.n, 1);
	machine_says("firewall", FINDING_FINE, "TCP port 7471");
}

TEST(firewall__name_is_a_command__not_in_a_mend)
{
	can_have_nft_rules(
		"table inet x;reboot {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n}\n");
	look();
	machine_mended_by("firewall", "");
}

TEST_EACH(set_up, machine_remove)
