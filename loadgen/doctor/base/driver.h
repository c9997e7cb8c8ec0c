/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver of a network interface says when the kernel asks it. Nobody needs privileges for it, and nothing is
 * changed. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_DRIVER_H
#define RAMPART_LOADGEN_DOCTOR_BASE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct driver_pause {
	bool rx, tx;
};

/* Pause frames of the whole link (ETHTOOL_GPAUSEPARAM). 0, or a -errno; -EOPNOTSUPP: this driver does not say. */
int driver_pause(const char *netdev, struct driver_pause *out) __attribute__((warn_unused_result));
/* Priorities with flow control of their own (PFC, IEEE 802.1Qbb), a bit each (DCB_CMD_IEEE_GET). 0, or a -errno;
 * -EOPNOTSUPP: this driver does not say; -EBADMSG: the answer is not as it should be. */
int driver_pfc(const char *netdev, uint8_t *priorities) __attribute__((warn_unused_result));

/* The same out of an answer of the kernel's. */
int driver_pfc_of(const void *answer, size_t bytes, uint8_t *priorities) __attribute__((warn_unused_result));

#endif
