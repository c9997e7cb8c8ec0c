/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads settings from the driver of a network interface through the kernel. Needs no privileges and changes nothing. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_DRIVER_H
#define RAMPART_LOADGEN_DOCTOR_BASE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct driver_pause {
	bool rx, tx;
};

/* Pause frames of the whole link (ETHTOOL_GPAUSEPARAM). 0 or -errno; -EOPNOTSUPP: the driver does not report it. */
int driver_pause(const char *netdev, struct driver_pause *out) __attribute__((warn_unused_result));
/* Priorities with flow control of their own (PFC, IEEE 802.1Qbb), one bit each (DCB_CMD_IEEE_GET). Returns 0 or -errno;
 * -EOPNOTSUPP: the driver does not report them; -EBADMSG: the answer is malformed. */
int driver_pfc(const char *netdev, uint8_t *priorities) __attribute__((warn_unused_result));

/* Parses the kernel's answer for driver_pfc. */
int driver_pfc_of(const void *answer, size_t bytes, uint8_t *priorities) __attribute__((warn_unused_result));

#endif
