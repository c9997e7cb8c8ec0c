/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether rules of nftables or iptables can exist, and if they can be read, what they do to packets for rampart. What
 * is not looked at is said to be: BPF programs, and whatever is between the hosts. See firewall.h. */
#include "loadgen/doctor/firewall.h"

#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <string.h>

#include "loadgen/doctor/base/module.h"
#include "loadgen/doctor/base/rules.h"
#include "loadgen/doctor/base/run.h"
#include "loadgen/doctor/base/tree.h"

#define N_PORTS 2
#define N_SOURCES 3
#define NOT_CHECKED "BPF programs and what is between hosts were not checked"

/* A server's --tls-port, and RoCE v2 (its port is IANA's). */
static const struct rules_port asked[N_PORTS] = { { .udp = false, .port = 7471 }, { .udp = true, .port = 4791 } };
static const char *const why_port[N_PORTS] = {
	"Clients come to a server over TCP first; a machine without a server does not need it.",
	"Packets of Soft-RoCE come to this port of servers and clients; those of a NIC go past the kernel's rules.",
};

static const struct source {
	const char *name;
	const char *names;	/* the kernel's list of tables; NULL: nftables, which has none */
	const char *programs[2];	/* that print the rules, the first that is installed */
	const char *arguments;
	const char *menders[2];	/* of iptables: what each of these goes with */
} sources[N_SOURCES] = {
	{ .name = "nftables", .programs = { "nft" }, .arguments = "list ruleset" },
	{ .name = "iptables",
	  .names = "/proc/net/ip_tables_names",
	  .programs = { "iptables-legacy-save", "iptables-save" },
	  .arguments = "",
	  .menders = { "iptables-legacy", "iptables" } },
	{ .name = "ip6tables",
	  .names = "/proc/net/ip6_tables_names",
	  .programs = { "ip6tables-legacy-save", "ip6tables-save" },
	  .arguments = "",
	  .menders = { "ip6tables-legacy", "ip6tables" } },
};

enum can { CAN_NOT, CAN, PERHAPS };

static const char why_unread[] =
	"What a filter drops looks like a server that does not answer; `performance_test doctor --server HOST` "
	"tries the way itself.";

/* --- whether there can be rules --- */

/* nf_tables needs nfnetlink, whose socket the kernel holds (port 0). */
static enum can has_nfnetlink(const char *root)
{
	char path[PATH_MAX], line[256];
	unsigned protocol, port;
	enum can can = CAN_NOT;
	FILE *f;

	if (!tree_path(root, path, sizeof(path), "/proc/net/netlink"))
		return PERHAPS;
	f = fopen(path, "re");
	if (!f)
		return PERHAPS;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %u %u", &protocol, &port) == 2 && protocol == NETLINK_NETFILTER && port == 0)
			can = PERHAPS;
	fclose(f);
	return can;
}

static enum can can_exist(const char *root, const struct source *s)
{
	enum module_state module;
	char text[256];
	int ret;

	if (!s->names) {
		module = module_state(root, "nf_tables");
		return module == MODULE_UNKNOWN ? has_nfnetlink(root) : module == MODULE_ABSENT ? CAN_NOT : CAN;
	}
	ret = tree_text(root, text, sizeof(text), "%s", s->names);
	if (ret == -ENOENT)
		return tree_has(root, "/proc/net") ? CAN_NOT : PERHAPS;
	return ret ? PERHAPS : text[0] ? CAN : CAN_NOT;
}

/* --- what they do --- */

static void mend_port(struct finding *f, const struct source *s, unsigned program, const struct rules_where *w,
		      const struct rules_port *p)
{
	const char *protocol = p->udp ? "udp" : "tcp";

	if (!tree_is_name(w->table) || !tree_is_name(w->chain))
		return;
	if (s->names)
		finding_mend(f, "%s -t %s -I %s -p %s --dport %u -j ACCEPT", s->menders[program], w->table, w->chain,
			     protocol, p->port);
	else if (tree_is_name(w->family))
		finding_mend(f, "nft insert rule %s %s %s %s dport %u accept", w->family, w->table, w->chain, protocol,
			     p->port);
}

static void say_port(const struct source *s, unsigned program, const struct rules *rules, unsigned i,
		     struct findings *out)
{
	const struct rules_port *p = &asked[i];
	const char *protocol = p->udp ? "UDP" : "TCP";
	struct rules_where w;
	struct finding *f;
	bool more;
	enum rules_verdict v = rules_ask(rules, i, &w, &more);

	if (v == RULES_ACCEPT) {
		findings_add(out, "firewall", FINDING_FINE, NULL, "%s: %s port %u is let in%s; " NOT_CHECKED, s->name,
			     protocol, p->port,
			     more ? ", but for rules that look at more than the port, which were not judged" : "");
		return;
	}
	f = findings_add(
		out, "firewall", v == RULES_DROP ? FINDING_WRONG : FINDING_UNKNOWN, why_port[i],
		"%s: %s port %u is dropped in table %s, chain %s%s", s->name, protocol, p->port, w.table, w.chain,
		v == RULES_DROP ? ""
				: ", unless a rule accepts it that looks at more than the port, which was not judged");
	mend_port(f, s, program, &w, p);
}

/* Of rules that iptables made, nft leaves out what it has no extension of iptables for, and complains. */
static bool left_something_out(const struct source *s, unsigned program)
{
	char line[512];
	bool out = false;
	FILE *in;

	if (s->names || run_open(s->programs[program], "list ruleset 2>&1 >/dev/null", &in))
		return false;
	while (fgets(line, sizeof(line), in))
		out |= strstr(line, "not found") != NULL;
	run_close(in);
	return out;
}

/* 0, or why the rules were not read: the -errno of run_open or rules_read, -EIO if the program failed, -EBADMSG if it left
 * something out. */
static int read_rules(const struct source *s, unsigned *program, struct rules **rules)
{
	int ret = -ENOENT, status;
	FILE *in = NULL;

	*rules = NULL;
	for (*program = 0; ret == -ENOENT && *program < 2 && s->programs[*program]; ++*program)
		ret = run_open(s->programs[*program], s->arguments, &in);
	if (ret)
		return ret;
	--*program;
	ret = rules_read(in, s->names ? RULES_IPTABLES : RULES_NFT, asked, N_PORTS, rules);
	status = run_close(in);
	if (!ret)
		ret = status ? -EIO : left_something_out(s, *program) ? -EBADMSG : 0;
	if (ret) {
		rules_free(*rules);
		*rules = NULL;
	}
	return ret;
}

static void say_unread(const struct source *s, enum can can, int error, struct findings *out)
{
	char reason[128];

	switch (-error) {
	case EPERM:
		snprintf(reason, sizeof(reason), "only root may read them");
		break;
	case ENOENT:
	case ENODATA:
		snprintf(reason, sizeof(reason), "%s is not installed", s->programs[0]);
		break;
	case EBADMSG:
		snprintf(reason, sizeof(reason), "%s does not show all of them without the package iptables", s->programs[0]);
		break;
	case EFBIG:
		snprintf(reason, sizeof(reason), "they are too many");
		break;
	default:
		snprintf(reason, sizeof(reason), "%s failed", s->programs[0]);
		break;
	}
	findings_add(out, "firewall", FINDING_UNKNOWN, why_unread,
		     "%s %s rules for TCP port 7471 or UDP port 4791, which were not read: %s", s->name,
		     can == CAN ? "can have" : "may be there and have", reason);
}

static void check_source(const struct source *s, enum can can, bool software, struct findings *out)
{
	struct rules *rules;
	unsigned program;
	int ret = read_rules(s, &program, &rules);

	if (ret) {
		say_unread(s, can, ret, out);
		return;
	}
	for (unsigned i = 0; i < N_PORTS; i++)
		if (!asked[i].udp || software)
			say_port(s, program, rules, i, out);
	rules_free(rules);
}

/* --- whose packets pass the rules --- */

struct search {
	const char *root;
	bool found;
};

/* A device of rdma_rxe has a parent: its network interface. */
static void look_for_software(void *arg, const char *device)
{
	struct search *s = arg;

	s->found |= tree_has(s->root, "/sys/class/infiniband/%s/parent", device);
}

void firewall_check(const char *root, struct findings *out)
{
	struct search software = { .root = root };
	bool any = false;

	tree_each(root, "/sys/class/infiniband", look_for_software, &software);
	for (int i = 0; i < N_SOURCES; i++) {
		enum can can = can_exist(root, &sources[i]);

		if (can == CAN_NOT)
			continue;
		any = true;
		check_source(&sources[i], can, software.found, out);
	}
	if (!any)
		findings_add(out, "firewall", FINDING_FINE, NULL,
			     "nothing filters TCP port 7471 or UDP port 4791: this kernel has neither "
			     "nftables nor tables of iptables; " NOT_CHECKED);
}
