/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups of checks of `performance_test doctor`. Each examines the machine whose files are below `root` ("" except
 * in tests) and adds its findings. */
#ifndef RAMPART_LOADGEN_DOCTOR_CHECKS_H
#define RAMPART_LOADGEN_DOCTOR_CHECKS_H

#include "loadgen/doctor/base/finding.h"
#include "loadgen/doctor/base/ports.h"

enum module_state {
	MODULE_LOADED,
	MODULE_BUILT_IN,
	MODULE_ABSENT,
	MODULE_UNKNOWN,	/* not loaded, and the list of built-in modules cannot be read */
};

/* State of a kernel module by /sys/module and modules.builtin (kbuild, "Kbuild output files"). `name` has no '-'. */
enum module_state module_state(const char *root, const char *name);

/* Writes to `out` the shell command that loads rdma_rxe, after installing it if this kernel lacks it. scripts/softroce
 * knows it; without that script it is modprobe. False if there is no such command: `out` says why. */
bool module_rxe_command(char *out, size_t size);

/* The kernel's RDMA modules and the device drivers. */
void modules_check(const char *root, struct findings *out);
/* RDMA devices, their ports, network interfaces and device files. */
void devices_check(const char *root, struct findings *out);
/* The addresses of one port. */
void gids_check(const char *root, const struct rdma_port *p, struct findings *out);
/* The DSCP of RDMA packets, and flow control of the links. */
void lossless_check(const char *root, struct findings *out);
/* Possible packet filters and the ports they must let through; `tls_port` is the server's. */
void firewall_check(const char *root, unsigned tls_port, struct findings *out);
/* Huge pages and NUMA nodes. */
void memory_check(const char *root, struct findings *out);
/* Container, cloud and the CPUs' governor. */
void machine_check(const char *root, struct findings *out);
/* The limits of this process; `root` is where its capabilities are read. */
void process_check(const char *root, struct findings *out);

#endif
