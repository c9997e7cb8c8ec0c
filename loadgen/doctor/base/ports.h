/* SPDX-License-Identifier: BSD-2-Clause */
/* The ports of RDMA devices, as /sys shows them. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_PORTS_H
#define RAMPART_LOADGEN_DOCTOR_BASE_PORTS_H

#include <stdbool.h>

struct rdma_port {
	char device[64], port[16];
	char name[96];		/* "DEVICE port PORT" */
	char sys[128];		/* its folder in /sys */
	char cm[128];		/* its settings of rdma_cm in configfs */
	char netdev[32];	/* its network interface; "": none, or a name that is not safe in a shell */
	bool ethernet;		/* false: InfiniBand */
	bool iwarp;		/* runs over TCP, so its GIDs are not IP addresses */
};

/* Calls `each` for every port of the device. Returns how many there were, or the -errno of opendir(3). */
int ports_of(const char *root, const char *device, void (*each)(void *arg, const struct rdma_port *p), void *arg);
/* The same for all devices; -ENOENT if this machine has none. */
int ports_each(const char *root, void (*each)(void *arg, const struct rdma_port *p), void *arg);

#endif
