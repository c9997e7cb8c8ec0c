/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's counters of an RDMA port and of the network interface below it (/sys). The counters' files are opened
 * once and read with pread(2), so that reading needs no descriptor and no path. No verbs; a reading allocates only its
 * JSON. Any thread, one at a time, except data threads: a reading takes as long as a system call for each counter. */
#ifndef RAMPART_COMMON_PORT_H
#define RAMPART_COMMON_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/addr.h"

/* Maximum number of open descriptors per port; further counters are left out. Drivers have 15 (rdma_rxe) to about 80
 * (mlx5_core), an interface 8. */
#define PORT_FILES_MAX 96

struct port;

struct port_id {
	const char *device;		/* name of the RDMA device */
	unsigned number;		/* number of the port, from 1 */
	struct addr addr;		/* the address in use; its GID identifies the network interface */
	bool software;			/* rdma_rxe or siw, whose packets the network interface sends */
};

/* Opens the port's files below `sysfs` ("/sys"); values of files that cannot be opened are unknown in every reading.
 * The caller owns *out. Returns 0 or -ENOMEM. */
int port_open(const char *sysfs, const struct port_id *id, struct port **out) __attribute__((warn_unused_result));
void port_close(struct port *p);	/* NULL-safe */
/* How many files it keeps open. */
unsigned port_files(const struct port *p);

/* A reading, as a new reference; NULL when out of memory:
 *   device, port, software
 *   netdev               name of the network interface, or null
 *   link_bits_per_s      the port's `rate`, which the kernel may have made up for a software device
 *   link_lanes           lanes of the link
 *   netdev_bits_per_s    speed of the network interface
 *   counters             object: the port's `counters` and `hw_counters`, by the kernel's names
 *   netdev_counters      object: rx_bytes, tx_bytes, ... of the network interface
 * A value that is unknown, or not a whole number from 0 to 2^63 - 1, is null or left out. Names and units are those of
 * Documentation/ABI/stable/sysfs-class-infiniband, sysfs-class-net-statistics and sysfs-class-net of the kernel. */
json_t *port_read(const struct port *p);

/* Speed of a network interface, such as "eth0", read below `sysfs`; NAN: not known. */
double port_netdev_bits_per_s(const char *sysfs, const char *netdev);
/* Speed of the line behind a port, from a reading that another host may have made, and its source (docs/results.md,
 * `line_source`): the interface's speed, otherwise the rate of a hardware port. NAN and NULL: not known. */
double port_line_bits_per_s(const json_t *reading, const char **source);

/* Readings of n ports at one moment, as a new reference; NULL when out of memory:
 *   read_at              that moment by the wall clock, "2027-02-25T10:00:00.000Z"
 *   read_ns              that moment on the monotonic clock
 *   ports                array of port_read() */
json_t *port_read_all(struct port *const *ports, uint32_t n);

#endif
