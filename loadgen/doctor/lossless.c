/* SPDX-License-Identifier: BSD-2-Clause */
/* How RDMA packets are marked, and whether the link uses flow control instead of dropping them. A network without
 * either works, only slower under congestion, so no finding here is an error. See checks.h. */
#include "loadgen/doctor/checks.h"

#include <errno.h>
#include <string.h>

#include "loadgen/doctor/base/driver.h"
#include "loadgen/doctor/base/ports.h"
#include "loadgen/doctor/base/tree.h"

#define CONFIGFS "/sys/kernel/config"

struct look {
	const char *root;
	struct findings *out;
};

static const char why_dscp[] =
	"Switches sort packets into traffic classes by their DSCP, if the network has a class for RDMA; --dscp of a "
	"run overrides the default of the system.";

static void ignore_name(void *arg, const char *name)
{
	(void)arg;
	(void)name;
}

/* The folder of the device in configfs exists once somebody has created it. */
static void say_no_default(struct look *l, const struct rdma_port *p)
{
	struct finding *f;

	if (tree_has(tree_at(l->root, CONFIGFS "/rdma_cm"))) {
		f = findings_add(l->out, "dscp", FINDING_NOTE, why_dscp,
				 "%s: no default was set, packets have DSCP 0", p->name);
		finding_mend(f, "mkdir -p " CONFIGFS "/rdma_cm/%s && echo 104 >%s/default_roce_tos", p->device, p->cm);
		return;
	}
	f = findings_add(l->out, "dscp", FINDING_NOTE, why_dscp,
			 "%s: not shown by this system: configfs is not mounted, or has nothing of rdma_cm", p->name);
	if (tree_each(l->root, CONFIGFS, ignore_name, NULL) == 0)
		finding_mend(f, "mount -t configfs configfs " CONFIGFS);
}

static void check_dscp(struct look *l, const struct rdma_port *p)
{
	char class[64];
	struct finding *f;
	long tos;

	/* NVIDIA's own drivers have this file, and it overrides all other settings. */
	tree_line(tree_at(l->root, "/sys/class/infiniband/%s/tc/%s/traffic_class", p->device, p->port), class,
		  sizeof(class));
	if (class[0])
		findings_add(l->out, "dscp", FINDING_FINE, NULL, "%s: the driver's traffic_class: %s", p->name, class);
	if (!tree_has(tree_at(l->root, "%s", p->cm))) {
		say_no_default(l, p);
	} else if (!tree_number(tree_at(l->root, "%s/default_roce_tos", p->cm), &tos)) {
		findings_add(l->out, "dscp", FINDING_UNKNOWN, why_dscp,
			     "%s: default_roce_tos of rdma_cm cannot be read", p->name);
	} else {
		f = findings_add(l->out, "dscp", tos >> 2 ? FINDING_FINE : FINDING_NOTE, why_dscp,
				 "%s: packets have DSCP %ld (a default_roce_tos of %ld)", p->name, tos >> 2, tos);
		finding_mend(f, "echo 104 >%s/default_roce_tos", p->cm);
	}
}

static const char why_pause[] =
	"When a full queue drops a packet, its sender repeats everything after it; the switch must have the same "
	"setting.";

/* A setting that the driver does not report is not a fault of the machine. */
static void say_not_shown(struct look *l, const char *check, const char *netdev, int error)
{
	if (error == -EOPNOTSUPP)
		findings_add(l->out, check, FINDING_NOTE, why_pause, "%s: not shown by this driver", netdev);
	else
		findings_add(l->out, check, FINDING_UNKNOWN, why_pause, "%s: the setting cannot be read: %s", netdev,
			     strerror(-error));
}

static void say_priorities(struct look *l, const char *netdev, uint8_t priorities)
{
	char list[3 * 8] = "";
	struct finding *f;

	for (int i = 0; i < 8; i++)
		if (priorities >> i & 1)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%d", list[0] ? ", " : "", i);
	f = findings_add(l->out, "pfc", priorities ? FINDING_FINE : FINDING_NOTE, why_pause,
			 "%s: flow control of priorities (PFC): %s", netdev, priorities ? list : "none");
	finding_mend(f, "dcb pfc set dev %s prio-pfc 3:on", netdev);
}

static void say_pause(struct look *l, const char *netdev, const struct driver_pause *p, bool priorities)
{
	bool on = p->rx && p->tx, fine = on || priorities;
	struct finding *f;

	f = findings_add(l->out, "pause", fine ? FINDING_FINE : FINDING_NOTE, why_pause,
			 "%s: pause frames of the link: rx %s, tx %s%s", netdev, p->rx ? "on" : "off",
			 p->tx ? "on" : "off", !on && fine ? "; priorities have their own" : "");
	finding_mend(f, "ethtool -A %s rx on tx on", netdev);
}

static void check_flow_control(struct look *l, const char *netdev)
{
	struct driver_pause pause = { 0 };
	uint8_t priorities;
	int ret = driver_pfc(netdev, &priorities);

	if (ret)
		say_not_shown(l, "pfc", netdev, ret);
	else
		say_priorities(l, netdev, priorities);
	ret = driver_pause(netdev, &pause);
	if (ret)
		say_not_shown(l, "pause", netdev, ret);
	else
		say_pause(l, netdev, &pause, priorities != 0);
}

/* InfiniBand is lossless by design, so there is nothing to check. */
static void check_port(void *arg, const struct rdma_port *p)
{
	struct look *l = arg;

	if (!p->ethernet)
		return;
	if (!p->iwarp)
		check_dscp(l, p);
	if (p->netdev[0])
		check_flow_control(l, p->netdev);
}

void lossless_check(const char *root, struct findings *out)
{
	struct look l = { .root = root, .out = out };

	ports_each(root, check_port, &l);
}
