/* SPDX-License-Identifier: BSD-2-Clause */
/* See ports.h. */
#include "loadgen/doctor/base/ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/doctor/base/tree.h"

struct walk {
	const char *root, *device;
	void (*each)(void *arg, const struct rdma_port *p);
	void *arg;
	int n;
};

static void take_port(void *arg, const char *name)
{
	struct walk *w = arg;
	struct rdma_port p = { .ethernet = true };
	char line[32];

	if (strlen(name) >= sizeof(p.port) || strlen(w->device) >= sizeof(p.device))
		return;
	memcpy(p.port, name, strlen(name) + 1);
	memcpy(p.device, w->device, strlen(w->device) + 1);
	snprintf(p.name, sizeof(p.name), "%s port %s", p.device, p.port);
	snprintf(p.sys, sizeof(p.sys), "/sys/class/infiniband/%s/ports/%s", p.device, p.port);
	snprintf(p.cm, sizeof(p.cm), "/sys/kernel/config/rdma_cm/%s/ports/%s", p.device, p.port);
	if (tree_line(tree_at(w->root, "%s/gid_attrs/ndevs/0", p.sys), p.netdev, sizeof(p.netdev)) ||
	    !tree_is_name(p.netdev))
		p.netdev[0] = '\0';
	if (tree_line(tree_at(w->root, "%s/link_layer", p.sys), line, sizeof(line)) == 0)
		p.ethernet = strcmp(line, "InfiniBand") != 0;
	/* "4: RNIC" (ib_node_type of the kernel's rdma/ib_verbs.h). */
	if (tree_line(tree_at(w->root, "/sys/class/infiniband/%s/node_type", p.device), line, sizeof(line)) == 0)
		p.iwarp = strncmp(line, "4:", 2) == 0;
	w->each(w->arg, &p);
	w->n++;
}

int ports_of(const char *root, const char *device, void (*each)(void *arg, const struct rdma_port *p), void *arg)
{
	struct walk w = { .root = root, .device = device, .each = each, .arg = arg };
	char folder[128];
	int ret;

	if (snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports", device) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	ret = tree_each(root, folder, take_port, &w);
	return ret < 0 ? ret : w.n;
}

static void take_device(void *arg, const char *name)
{
	struct walk *w = arg;
	int n = ports_of(w->root, name, w->each, w->arg);

	w->n += n > 0 ? n : 0;
}

int ports_each(const char *root, void (*each)(void *arg, const struct rdma_port *p), void *arg)
{
	struct walk w = { .root = root, .each = each, .arg = arg };
	int ret = tree_each(root, "/sys/class/infiniband", take_device, &w);

	return ret < 0 ? ret : w.n;
}
