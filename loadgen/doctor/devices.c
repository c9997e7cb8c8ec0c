/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA devices as /sys shows them: ports, addresses, network interfaces, and the files that programs open. Verbs are
 * not used, because they need the permissions that are checked here. See checks.h. */
#include "loadgen/doctor/checks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loadgen/doctor/base/ports.h"
#include "loadgen/doctor/base/tree.h"

/* RoCE's largest MTU is 4096 bytes, with 84 bytes of headers at most; Ethernet's own MTU is 1500. */
#define MTU_FULL 4200
#define MTU_USUAL 1500
#define MTU_JUMBO 9000

struct look {
	const char *root;
	struct findings *out;
	char netdev[32];	/* an Ethernet interface that is up */
};

static const char why_device[] = "Without one, RDMA runs only in a micro-VM, with the times of an emulated CPU.";

static void take_netdev(void *arg, const char *name)
{
	struct look *l = arg;
	char type[16], state[16];

	if (l->netdev[0] || strlen(name) >= sizeof(l->netdev) ||
	    tree_line(tree_at(l->root, "/sys/class/net/%s/type", name), type, sizeof(type)) || strcmp(type, "1") != 0)
		return;
	/* An interface that cannot tell whether it has a carrier says "unknown" when it is up. */
	if (tree_line(tree_at(l->root, "/sys/class/net/%s/operstate", name), state, sizeof(state)) == 0 &&
	    (strcmp(state, "up") == 0 || strcmp(state, "unknown") == 0))
		memcpy(l->netdev, name, strlen(name) + 1);
}

/* A software device needs an Ethernet interface and the module. */
static void mend_with_soft_roce(const struct look *l, struct finding *f)
{
	char rxe[FINDING_TEXT / 2];

	if (l->netdev[0] && module_rxe_command(rxe, sizeof(rxe)))
		finding_mend(f, "%s; rdma link add rxe0 type rxe netdev %s", rxe, l->netdev);
}

static void say_no_device(struct look *l)
{
	char rxe[FINDING_TEXT / 2];
	const char *lacks = !l->netdev[0] ? "no Ethernet interface is up that a software device could use" :
			    module_rxe_command(rxe, sizeof(rxe)) ? "" : rxe;
	struct finding *f;

	f = findings_add(l->out, "device", FINDING_WRONG, why_device, "this machine has no RDMA device%s%s%s",
			 lacks[0] ? ", and " : "", lacks,
			 lacks[0] ? "; `scripts/softroce vm` boots a micro-VM that has one" : "");
	mend_with_soft_roce(l, f);
}

static void check_mtu(struct look *l, const char *netdev)
{
	struct finding *f;
	long mtu;

	if (!netdev[0])
		return;
	if (!tree_number(tree_at(l->root, "/sys/class/net/%s/mtu", netdev), &mtu)) {
		findings_add(l->out, "mtu", FINDING_UNKNOWN, NULL, "the MTU of %s cannot be read", netdev);
		return;
	}
	f = findings_add(l->out, "mtu", mtu < MTU_USUAL ? FINDING_WRONG : mtu < MTU_FULL ? FINDING_NOTE : FINDING_FINE,
			 mtu < MTU_USUAL ? "RDMA packets carry less than 1024 bytes, and both ends must agree." :
					   "RDMA packets carry up to 4096 bytes only in larger frames, which "
					   "switches must accept, too.",
			 "%s has an MTU of %ld bytes", netdev, mtu);
	finding_mend(f, "ip link set %s mtu %d", netdev, mtu < MTU_USUAL ? MTU_USUAL : MTU_JUMBO);
}

static void check_port(void *arg, const struct rdma_port *p)
{
	struct look *l = arg;
	char state[32];
	struct finding *f;
	bool active;

	if (tree_line(tree_at(l->root, "%s/state", p->sys), state, sizeof(state))) {
		findings_add(l->out, "link", FINDING_UNKNOWN, NULL, "the state of %s cannot be read", p->name);
		return;
	}
	active = strstr(state, "ACTIVE") != NULL;
	f = findings_add(l->out, "link", active ? FINDING_FINE : FINDING_WRONG,
			 "Nothing is sent or received through a port that is not active.", "%s on %s: %s",
			 p->name, p->netdev[0] ? p->netdev : "no network interface", state);
	if (p->netdev[0])
		finding_mend(f, "ip link set %s up", p->netdev);
	gids_check(l->root, p, l->out);
	check_mtu(l, p->netdev);
}

/* Cloud devices with limits that their names do not show. */

static void check_efa(struct look *l, const char *name)
{
	struct finding *f;

	f = findings_add(l->out, "device", FINDING_WRONG,
			 "EFA has no reliable connections of rdmacm, which RDMA clients need: let clients use sockets "
			 "(--transport tcp or tls) or Soft-RoCE.",
			 "%s is an Elastic Fabric Adapter", name);
	mend_with_soft_roce(l, f);
}

/* Goes by the driver, because udev gives devices names such as rdmap0s6. */
static void check_kind(struct look *l, const char *name)
{
	char driver[64];

	if (!tree_link(tree_at(l->root, "/sys/class/infiniband/%s/device/driver", name), driver, sizeof(driver)))
		driver[0] = '\0';
	if (strcmp(driver, "efa") == 0 || (!driver[0] && strncmp(name, "efa", 3) == 0))
		check_efa(l, name);
	else if (strcmp(driver, "mana") == 0 || (!driver[0] && strncmp(name, "mana", 4) == 0))
		findings_add(l->out, "device", FINDING_NOTE,
			     "Older kernels and rdma-core give it raw packets only, and no reliable connections: "
			     "`performance_test doctor --server HOST` tries one.",
			     "%s is a Microsoft Azure Network Adapter (MANA)", name);
}

static void check_device(void *arg, const char *name)
{
	struct look *l = arg;

	if (ports_of(l->root, name, check_port, l) <= 0)
		findings_add(l->out, "link", FINDING_UNKNOWN, NULL, "the ports of %s cannot be read", name);
	check_kind(l, name);
}

static const char why_file[] = "Programs reach the device through this file.";

static void check_file(struct look *l, const char *name)
{
	const struct tree_path at = tree_at(l->root, "/dev/infiniband/%s", name);
	struct finding *f;

	if (access(at.v, R_OK | W_OK) == 0) {
		findings_add(l->out, "access", FINDING_FINE, NULL, "/dev/infiniband/%s can be opened", name);
	} else if (errno == ENOENT) {
		f = findings_add(l->out, "access", FINDING_WRONG, why_file, "/dev/infiniband/%s is missing", name);
		finding_mend(f, "modprobe %s", strcmp(name, "rdma_cm") == 0 ? "rdma_ucm" : "ib_uverbs");
	} else {
		f = findings_add(l->out, "access", FINDING_WRONG, why_file, "/dev/infiniband/%s: %s", name,
				 strerror(errno));
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

	tree_each(root, "/sys/class/net", take_netdev, &l);
	if (tree_each(root, "/sys/class/infiniband", check_device, &l) <= 0) {
		say_no_device(&l);
		return;
	}
	check_file(&l, "rdma_cm");
	tree_each(root, "/sys/class/infiniband_verbs", check_uverbs, &l);
}
