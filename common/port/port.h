/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel counts at an RDMA port, and at the network interface below it (/sys). The counters' files are opened
 * once and read with pread(2), so that reading takes no descriptor and no path. No verbs, no memory per reading but its JSON.
 * Any thread, one at a time; a reading takes as long as a system call for each counter, so it does not belong on a data
 * thread. */
#ifndef RAMPART_COMMON_PORT_H
#define RAMPART_COMMON_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/addr.h"

/* Descriptors that a port has open, at most; counters beyond it are left out. Drivers have 15 (rdma_rxe) to about 80
 * (mlx5_core), an interface 8. */
#define PORT_FILES_MAX 96

struct port;

struct port_id {
	const char *device;		/* name of the RDMA device */
	unsigned number;		/* of the port, from 1 */
	struct addr addr;		/* the address that is used there: its GID says which network interface that is */
	bool software;			/* rdma_rxe or siw: its packets are sent by the network interface */
};

/* Opens what there is of the port below `sysfs` ("/sys"); what cannot be opened is not known in any reading. The caller's.
 * 0 or -ENOMEM. */
int port_open(const char *sysfs, const struct port_id *id, struct port **out) __attribute__((warn_unused_result));
void port_close(struct port *p);	/* NULL-safe */
/* How many files it keeps open. */
unsigned port_files(const struct port *p);

/* A reading, a new reference; NULL when out of memory:
 *   device, port, software
 *   netdev               name of the network interface, or null
 *   link_bits_per_s      what the port's `rate` says; of a software device the kernel may have made it up
 *   link_lanes           its lanes
 *   netdev_bits_per_s    speed of the network interface
 *   counters             object: what `counters` and `hw_counters` of the port have, by the kernel's names
 *   netdev_counters      object: rx_bytes, tx_bytes, ... of the network interface
 * What is not known, or no whole number from 0 to 2^63 - 1, is null or left out. The names and units are those of
 * Documentation/ABI/stable/sysfs-class-infiniband, sysfs-class-net-statistics and sysfs-class-net of the kernel. */
json_t *port_read(const struct port *p);

/* Readings of n ports at one moment, a new reference; NULL when out of memory:
 *   read_at              that moment by the machine's calendar, "2027-02-25T10:00:00.000Z"
 *   read_ns              and on its monotonic clock
 *   ports                array of port_read() */
json_t *port_read_all(struct port *const *ports, uint32_t n);

#endif
