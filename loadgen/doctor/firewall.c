/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks whether this kernel can filter packets, and names the ports that must then be open. It does not read rules:
 * `doctor --server` tries the path itself. See checks.h. */
#include "loadgen/doctor/checks.h"

#include <errno.h>
#include <stdio.h>

#include "loadgen/doctor/base/tree.h"

static const char why[] =
	"A packet that a filter drops looks like a server that does not answer; `performance_test doctor --server "
	"HOST` tries the path itself. RDMA packets of a NIC bypass the kernel's filters.";

/* The kernel lists its iptables tables in /proc/net. An unreadable list counts as not empty. */
static bool has_tables(const char *root, const char *list)
{
	char line[64];
	int ret = tree_line(tree_at(root, "/proc/net/%s", list), line, sizeof(line));

	return ret ? ret != -ENOENT : line[0] != '\0';
}

void firewall_check(const char *root, unsigned tls_port, struct findings *out)
{
	enum module_state nft = module_state(root, "nf_tables");
	bool iptables = has_tables(root, "ip_tables_names") || has_tables(root, "ip6_tables_names");

	if (nft == MODULE_ABSENT && !iptables) {
		findings_add(out, "firewall", FINDING_FINE, NULL,
			     "this kernel filters no packets with nftables or iptables; BPF programs and devices "
			     "between hosts were not checked");
		return;
	}
	findings_add(out, "firewall", FINDING_NOTE, why,
		     "%s%s%s may filter packets. A server needs TCP port %u (--tls-port), and for --transport tcp one "
		     "port for each shard, from 7472 on (--rdma-port); Soft-RoCE needs UDP port 4791 at both ends",
		     nft == MODULE_ABSENT ? "" : "nftables", nft != MODULE_ABSENT && iptables ? " and " : "",
		     iptables ? "iptables" : "", tls_port);
}
