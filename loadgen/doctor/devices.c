/* RDMA devices as /sys shows them: ports, addresses, network interfaces, and the files that programs open. No verbs: they
 * need the permissions that are checked here. See devices.h. */
#include "loadgen/doctor/devices.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loadgen/doctor/tree.h"

/* RoCE's largest MTU is 4096 bytes, with 84 bytes of headers at most; Ethernet's own MTU is 1500. */
#define MTU_FULL 4200
#define MTU_USUAL 1500
#define GIDS_MAX 256

struct look {
	const char *root;
	struct findings *out;
	char device[64], netdev[32], port[16];
};

static const char why_device[] = "Without one, transfers over RDMA run in a micro-VM only, with times of an emulated CPU.";

/* --- no device at all --- */

static void take_netdev(void *arg, const char *name)
{
	struct look *l = arg;
	char type[16], state[16];

	if (l->netdev[0] || strlen(name) >= sizeof(l->netdev) ||
	    tree_line(l->root, type, sizeof(type), "/sys/class/net/%s/type", name) || strcmp(type, "1") != 0)
		return;
	/* An interface that cannot tell whether it has a carrier says "unknown" when it is up. */
	if (tree_line(l->root, state, sizeof(state), "/sys/class/net/%s/operstate", name) == 0 &&
	    (strcmp(state, "up") == 0 || strcmp(state, "unknown") == 0))
		memcpy(l->netdev, name, strlen(name) + 1);
}

static void say_no_device(struct look *l)
{
	struct finding *f;

	tree_each(l->root, "/sys/class/net", take_netdev, l);
	f = findings_add(l->out, "device", FINDING_WRONG, why_device, "this machine has no RDMA device%s", l->netdev[0] ? "" :
			 ", and no Ethernet interface that is up to make a software one on; `scripts/softroce vm` boots a "
			 "micro-VM that has one");
	if (l->netdev[0])
		finding_mend(f, "modprobe rdma_rxe; rdma link add rxe0 type rxe netdev %s", l->netdev);
}

/* --- a port --- */

struct gids {
	unsigned ipv4, ipv6, local;
	char text[INET6_ADDRSTRLEN];	/* one that can be used */
};

static void count_gid(const char *line, struct gids *g)
{
	struct in6_addr a;

	if (inet_pton(AF_INET6, line, &a) != 1 || IN6_IS_ADDR_UNSPECIFIED(&a))
		return;
	if (IN6_IS_ADDR_V4MAPPED(&a)) {
		g->ipv4++;
		inet_ntop(AF_INET, &a.s6_addr[12], g->text, sizeof(g->text));
	} else if (IN6_IS_ADDR_LINKLOCAL(&a)) {
		g->local++;
	} else {
		g->ipv6++;
		if (!g->ipv4)
			inet_ntop(AF_INET6, &a, g->text, sizeof(g->text));
	}
}

static void check_gids(struct look *l)
{
	struct gids g = { .text = "" };
	struct finding *f;
	char line[64];

	for (int i = 0; i < GIDS_MAX; i++)
		if (tree_line(l->root, line, sizeof(line), "/sys/class/infiniband/%s/ports/%s/gids/%d", l->device, l->port, i) == 0)
			count_gid(line, &g);
	if (g.ipv4) {
		findings_add(l->out, "gid", FINDING_FINE, NULL, "%s port %s: IPv4 address %s among its GIDs", l->device, l->port,
			     g.text);
		return;
	}
	f = findings_add(l->out, "gid", g.ipv6 ? FINDING_NOTE : FINDING_WRONG, g.ipv6 ?
			 "Peers without IPv6 cannot connect." : "Link-local addresses reach no other network.",
			 "%s port %s: no IPv4 address among its GIDs (%u IPv6, %u link-local)", l->device, l->port, g.ipv6, g.local);
	if (l->netdev[0])
		finding_mend(f, "ip address add 10.77.0.1/16 dev %s", l->netdev);
}

static void check_mtu(struct look *l)
{
	char line[16], *end;
	unsigned long mtu;
	struct finding *f;

	if (!l->netdev[0])
		return;
	if (tree_line(l->root, line, sizeof(line), "/sys/class/net/%s/mtu", l->netdev) ||
	    (mtu = strtoul(line, &end, 10), end == line || *end)) {
		findings_add(l->out, "mtu", FINDING_UNKNOWN, NULL, "the MTU of %s cannot be read", l->netdev);
		return;
	}
	f = findings_add(l->out, "mtu", mtu < MTU_USUAL ? FINDING_WRONG : mtu < MTU_FULL ? FINDING_NOTE : FINDING_FINE,
			 mtu < MTU_USUAL ? "RDMA packets carry less than 1024 bytes, and both ends must agree." :
					   "RDMA packets carry up to 4096 bytes only with larger frames, if the switches take them.",
			 "%s has an MTU of %lu bytes", l->netdev, mtu);
	if (mtu < MTU_USUAL)
		finding_mend(f, "ip link set %s mtu %d", l->netdev, MTU_USUAL);
	else if (mtu < MTU_FULL)
		finding_mend(f, "ip link set %s mtu 9000", l->netdev);
}

static void check_port(void *arg, const char *port)
{
	struct look *l = arg;
	char state[32];
	struct finding *f;
	bool active;

	if (strlen(port) >= sizeof(l->port))
		return;
	memcpy(l->port, port, strlen(port) + 1);
	if (tree_line(l->root, l->netdev, sizeof(l->netdev), "/sys/class/infiniband/%s/ports/%s/gid_attrs/ndevs/0", l->device,
		      port) || !tree_is_name(l->netdev))
		l->netdev[0] = '\0';
	if (tree_line(l->root, state, sizeof(state), "/sys/class/infiniband/%s/ports/%s/state", l->device, port)) {
		findings_add(l->out, "link", FINDING_UNKNOWN, NULL, "the state of %s port %s cannot be read", l->device, port);
		return;
	}
	active = strstr(state, "ACTIVE") != NULL;
	f = findings_add(l->out, "link", active ? FINDING_FINE : FINDING_WRONG,
			 "Nothing is sent or received through a port that is not active.", "%s port %s on %s: %s", l->device, port,
			 l->netdev[0] ? l->netdev : "no network interface", state);
	if (!active && l->netdev[0])
		finding_mend(f, "ip link set %s up", l->netdev);
	check_gids(l);
	check_mtu(l);
}

static void check_device(void *arg, const char *name)
{
	struct look *l = arg;
	char folder[128];

	if (strlen(name) >= sizeof(l->device))
		return;
	memcpy(l->device, name, strlen(name) + 1);
	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports", name);
	if (tree_each(l->root, folder, check_port, l) <= 0)
		findings_add(l->out, "link", FINDING_UNKNOWN, NULL, "the ports of %s cannot be read", name);
	if (strncmp(name, "efa", 3) == 0)
		findings_add(l->out, "device", FINDING_WRONG, "Connections are reliable ones of rdmacm, which EFA does not have.",
			     "%s is an Elastic Fabric Adapter", name);
}

/* --- the files that programs open --- */

static const char why_file[] = "Programs reach the device through this file.";

static void check_file(struct look *l, const char *name)
{
	char path[PATH_MAX];
	struct finding *f;

	if (!tree_path(l->root, path, sizeof(path), "/dev/infiniband/%s", name))
		return;
	if (access(path, R_OK | W_OK) == 0) {
		findings_add(l->out, "access", FINDING_FINE, NULL, "/dev/infiniband/%s can be opened", name);
	} else if (errno == ENOENT) {
		f = findings_add(l->out, "access", FINDING_WRONG, why_file, "/dev/infiniband/%s is missing", name);
		finding_mend(f, "modprobe %s", strcmp(name, "rdma_cm") == 0 ? "rdma_ucm" : "ib_uverbs");
	} else {
		f = findings_add(l->out, "access", FINDING_WRONG, why_file, "/dev/infiniband/%s: %s", name, strerror(errno));
		finding_mend(f, "chmod 0666 /dev/infiniband/%s", name);
	}
}

static void check_uverbs(void *arg, const char *name)
{
	if (strncmp(name, "uverbs", 6) == 0)
		check_file(arg, name);
}

void devices_check(const char *root, struct findings *out)
{
	struct look l = { .root = root, .out = out };

	if (tree_each(root, "/sys/class/infiniband", check_device, &l) <= 0) {
		say_no_device(&l);
		return;
	}
	check_file(&l, "rdma_cm");
	tree_each(root, "/sys/class/infiniband_verbs", check_uverbs, &l);
}
