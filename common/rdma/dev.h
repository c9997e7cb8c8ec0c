/* SPDX-License-Identifier: BSD-2-Clause */
/* The RDMA device a program works on, found by the IP address that belongs to it.
 *
 * Each thread opens its own struct dev. The ibv_context behind it is the one that librdmacm holds for the device, which
 * all threads share (verbs are thread-safe on it). Where librdmacm cannot be used, each has a context of its own, which
 * is enough for connections out of band.
 */
#ifndef RAMPART_COMMON_DEV_H
#define RAMPART_COMMON_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <jansson.h>

#include "common/base/addr.h"

struct cm_channel;
struct cm_fabric;
struct rdma_cm_id;

struct dev {
	struct ibv_context *ctx;	/* librdmacm's, valid while `anchor` lives; without one, dev_close closes it */
	struct rdma_cm_id *anchor;	/* bound to the address, so that librdmacm keeps the device open; or NULL */
	struct cm_channel *channel;	/* of the anchor: tells when the device is removed */
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint8_t port_num;
	uint8_t gid_index;		/* entry of the address in the port's GID table; RoCE v2 if there is one */
	union ibv_gid gid;		/* that entry; all 0: there is none (dev_has_gid) */
	/* The device raises IBV_EVENT_QP_LAST_WQE_REACHED for each queue pair on a shared receive queue that went to
	 * ERR (IBTA 11.6.3.1). The mlx4 and mlx5 drivers are known to do so; Soft-RoCE does not before kernel 6.5. */
	bool tells_last_wqe;
	char name[IBV_SYSFS_NAME_MAX];
	struct addr addr;		/* local address, port 0 */
};

/* Number of RDMA devices of this machine. */
int dev_count(void);

/* Name of the `i`-th device, from 0, into `out`. Any thread. 0, or -ENODEV if there are fewer. */
int dev_name(unsigned i, char *out, size_t size) __attribute__((warn_unused_result));

/* An IP address of the device `name` (NULL: of the first device with an active port and an address
 * in its GID table, IPv4 preferred). Any thread. Errors, with a line in `err` that says what to do:
 *   -ENODEV  no device, none of this name, or none with an active port and an address
 */
int dev_local_addr(const char *name, struct addr *out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* The local address from which this machine's routes reach `peer`, with port 0. Sends nothing. Any thread. Errors: from
 * socket, connect or getsockname (-ENETUNREACH: no route). */
int dev_source_addr(const struct addr *peer, struct addr *out) __attribute__((warn_unused_result));

/* Opens the device that owns the local address. `name`, if not NULL, must be its name. With `needs_cm` the device can
 * be used for connections through rdmacm; otherwise librdmacm is not needed on Ethernet. Close it with dev_close, after
 * everything created on the device is gone. Any thread. Errors, with a line in `err` that says what to do:
 *   -EADDRNOTAVAIL  the address is not this machine's, or no RDMA device's
 *   -ENODEV         no device has the address, or the device has another name
 *   other           from cm_channel_new, cm_id_new or rdma_bind_addr, without `needs_cm` only if no device has the
 *                   address in its GID table either; from ibv_query_device or ibv_query_port
 */
int dev_open(const struct addr *local, const char *name, bool needs_cm, struct dev *out, char *err,
	     size_t err_size) __attribute__((warn_unused_result));
/* Reopens an open device if entry `index` of its port's GID table has another address than the one it was opened with.
 * Errors, with a line in `err` that names --gid-index; the device may then be closed:
 *   -EINVAL        there is no such entry, or it holds no IP address of the family of the device's address
 *   -EAFNOSUPPORT  the link is not Ethernet, so GIDs are not IP addresses
 *   other          from dev_open */
int dev_use_gid(struct dev *d, uint32_t index, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Checks that an open device supports the chosen path settings, and applies the GID index with dev_use_gid. Errors,
 * with a line in `err` that names the option and what is allowed; the device may then be closed:
 *   -EINVAL  a service level above 7 on Ethernet
 *   other    from dev_use_gid */
int dev_fit_fabric(struct dev *d, const struct cm_fabric *f, char *err, size_t err_size)
	__attribute__((warn_unused_result));
void dev_close(struct dev *d);	/* also on an all-zero struct, which is not open */

/* The port's number if its link is Ethernet (RoCE), else 0. */
static inline uint8_t dev_ethernet_port(const struct dev *d)
{
	return d->port.link_layer == IBV_LINK_LAYER_ETHERNET ? d->port_num : 0;
}

/* False if the port's GID table has no entry for the address, as on iWARP; InfiniBand always has one. */
bool dev_has_gid(const struct dev *d);

/* The NUMA node of the device, or of a software device's interface; PLACE_NO_NODE (common/host/place.h) if unknown. */
int dev_numa_node(const struct dev *d);

bool dev_is_software(const struct dev *d);	/* rdma_rxe or siw */

/* Name, driver with its version (null: an in-tree driver), firmware, link, MTU, NUMA node (null: unknown) and limits,
 * for run.json. NULL when out of memory. */
json_t *dev_json(const struct dev *d);

/* True if the device does RDMA atomics. */
bool dev_has_atomics(const struct dev *d);

#endif
