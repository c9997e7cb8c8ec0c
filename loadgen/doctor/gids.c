/* SPDX-License-Identifier: BSD-2-Clause */
/* The GIDs of a port, from its folders `gids` and `gid_attrs` (Documentation/ABI/stable/sysfs-class-infiniband of
 * Linux). See checks.h. */
#include "loadgen/doctor/checks.h"

#include <arpa/inet.h>
#include <string.h>

#include "loadgen/doctor/base/tree.h"

#define GIDS_MAX 256
#define ARPHRD_IPOIB "32"	/* ARPHRD_INFINIBAND */

struct gids {
	const char *root;
	const struct rdma_port *port;
	struct findings *out;
	unsigned n, ipv4, ipv6, local;
	unsigned typed;	/* GIDs whose type can be read */
	unsigned v2_addresses;	/* RoCE v2 GIDs with an address that others can reach */
	unsigned untold;	/* GIDs for which `list` has no room */
	char text[INET6_ADDRSTRLEN];	/* a usable address, if there is one */
	char list[200];
};

static bool is_address(const struct in6_addr *a)
{
	return !IN6_IS_ADDR_LINKLOCAL(a);
}

/* Counts a GID and writes its address to `text`. */
static void count_address(struct gids *g, const struct in6_addr *a, char text[INET6_ADDRSTRLEN])
{
	if (IN6_IS_ADDR_V4MAPPED(a))
		inet_ntop(AF_INET, &a->s6_addr[12], text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, a, text, INET6_ADDRSTRLEN);
	g->n++;
	if (!is_address(a))
		g->local++;
	else if (IN6_IS_ADDR_V4MAPPED(a))
		g->ipv4++;
	else
		g->ipv6++;
	if (IN6_IS_ADDR_V4MAPPED(a) || (is_address(a) && !g->ipv4))
		memcpy(g->text, text, sizeof(g->text));
}

/* The kernel uses one name, "IB/RoCE v1", for InfiniBand and RoCE v1. */
static const char *type_of(struct gids *g, int index)
{
	const struct rdma_port *p = g->port;
	char line[32];

	if (tree_line(tree_at(g->root, "%s/gid_attrs/types/%d", p->sys, index), line, sizeof(line)))
		return "of a type that cannot be read";
	g->typed++;
	if (strcmp(line, "RoCE v2") == 0)
		return "RoCE v2";
	return p->ethernet ? "RoCE v1" : "InfiniBand";
}

/* Names the interface if it is not the one of the port, for example that of a VLAN. */
static void add_to_list(struct gids *g, int index, const char *text, const char *type)
{
	const struct rdma_port *p = g->port;
	size_t used = strlen(g->list);
	char netdev[32];
	bool other;
	int n;

	other = tree_line(tree_at(g->root, "%s/gid_attrs/ndevs/%d", p->sys, index), netdev, sizeof(netdev)) == 0 &&
		netdev[0] && strcmp(netdev, p->netdev) != 0;
	n = snprintf(g->list + used, sizeof(g->list) - used, "%s%d %s %s%s%s", used ? ", " : "", index, text, type,
		     other ? " on " : "", other ? netdev : "");
	if (g->untold || n >= (int)(sizeof(g->list) - used)) {
		g->list[used] = '\0';
		g->untold++;
	}
}

static void take_gid(struct gids *g, int index)
{
	char line[64], text[INET6_ADDRSTRLEN];
	struct in6_addr a;
	const char *type;

	if (tree_line(tree_at(g->root, "%s/gids/%d", g->port->sys, index), line, sizeof(line)) ||
	    inet_pton(AF_INET6, line, &a) != 1 || IN6_IS_ADDR_UNSPECIFIED(&a))
		return;
	count_address(g, &a, text);
	type = type_of(g, index);
	g->v2_addresses += is_address(&a) && strcmp(type, "RoCE v2") == 0;
	add_to_list(g, index, text, type);
}

static void mend_with_address(const struct gids *g, struct finding *f)
{
	if (g->port->netdev[0])
		finding_mend(f, "ip address add 10.77.0.1/16 dev %s", g->port->netdev);
}

static void check_addresses(const struct gids *g)
{
	const struct rdma_port *p = g->port;
	struct finding *f;

	if (g->ipv4) {
		findings_add(g->out, "gid", FINDING_FINE, NULL, "%s: IPv4 address %s among its GIDs", p->name, g->text);
		return;
	}
	f = findings_add(g->out, "gid", g->ipv6 ? FINDING_NOTE : FINDING_WRONG,
			 g->ipv6 ? "Peers without IPv6 cannot connect."
				 : "Link-local addresses reach no other network.",
			 "%s: no IPv4 address among its GIDs (%u IPv6, %u link-local)", p->name, g->ipv6, g->local);
	mend_with_address(g, f);
}

static const char why_type[] =
	"Clients connect from and to a GID of RoCE v2 that is an IP address: RoCE v1 is not routed, and has no "
	"UDP port.";

static void check_types(const struct gids *g)
{
	const struct rdma_port *p = g->port;
	struct finding *f;
	char more[48] = "";

	if (g->untold)
		snprintf(more, sizeof(more), ", and %u more", g->untold);
	if (g->n && !g->typed) {
		findings_add(g->out, "gid-type", FINDING_UNKNOWN, why_type,
			     "%s: the types of its GIDs cannot be read", p->name);
		return;
	}
	f = findings_add(g->out, "gid-type", g->v2_addresses ? FINDING_FINE : FINDING_WRONG, why_type,
			 "%s: %s%s%s", p->name, g->v2_addresses ? "GIDs " : "no RoCE v2 GID is an IP address: ",
			 g->n ? g->list : "there is none", more);
	/* If there are addresses, adding one does not help: the device or driver supports RoCE v1 only. */
	if (!g->ipv4 && !g->ipv6)
		mend_with_address(g, f);
}

/* rdma_cm has its own RoCE mode. The setting exists once somebody has created the folder of the device in configfs. */
static void check_mode(const struct gids *g)
{
	const struct rdma_port *p = g->port;
	struct finding *f;
	char line[32];

	if (tree_line(tree_at(g->root, "%s/default_roce_mode", p->cm), line, sizeof(line)) ||
	    strcmp(line, "RoCE v2") == 0)
		return;
	f = findings_add(g->out, "gid-type", FINDING_WRONG, why_type, "%s: rdma_cm is set to make %s connections",
			 p->name, line);
	finding_mend(f, "echo 'RoCE v2' >%s/default_roce_mode", p->cm);
}

/* InfiniBand: addresses belong to IP over InfiniBand interfaces. */

struct ipoib {
	const char *root;
	char name[32];
};

static void take_ipoib(void *arg, const char *name)
{
	struct ipoib *i = arg;
	char type[16];

	if (!i->name[0] && strlen(name) < sizeof(i->name) &&
	    tree_line(tree_at(i->root, "/sys/class/net/%s/type", name), type, sizeof(type)) == 0 &&
	    strcmp(type, ARPHRD_IPOIB) == 0)
		memcpy(i->name, name, strlen(name) + 1);
}

static void check_infiniband(const struct gids *g)
{
	static const char why[] =
		"Connections are made to IP addresses, which an InfiniBand port gets from IP over InfiniBand.";
	struct ipoib i = { .root = g->root };
	const struct rdma_port *p = g->port;
	struct finding *f;

	findings_add(g->out, "gid-type", g->n ? FINDING_FINE : FINDING_WRONG,
		     "A port without a GID has not been set up by a subnet manager.", "%s: GIDs %s", p->name,
		     g->n ? g->list : "none");
	tree_each(g->root, "/sys/class/net", take_ipoib, &i);
	if (i.name[0]) {
		findings_add(g->out, "gid", FINDING_FINE, NULL,
			     "%s is InfiniBand; its addresses are those of interfaces such as %s, which were not "
			     "checked",
			     p->name, i.name);
		return;
	}
	f = findings_add(g->out, "gid", FINDING_WRONG, why,
			 "%s is InfiniBand, and there is no interface for IP over InfiniBand", p->name);
	finding_mend(f, "modprobe ib_ipoib");
}

void gids_check(const char *root, const struct rdma_port *p, struct findings *out)
{
	struct gids g = { .root = root, .port = p, .out = out };

	if (p->iwarp) {
		findings_add(out, "gid", FINDING_NOTE, "Rampart has been run over RoCE only.",
			     "%s is iWARP, whose GIDs are not IP addresses", p->name);
		return;
	}
	for (int i = 0; i < GIDS_MAX; i++)
		take_gid(&g, i);
	if (!p->ethernet) {
		check_infiniband(&g);
		return;
	}
	check_addresses(&g);
	check_types(&g);
	check_mode(&g);
}
