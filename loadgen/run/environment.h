/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses where the test runs: on an RDMA device of this machine or, if there is none, over Soft-RoCE in a network
 * namespace or a micro-VM. */
#ifndef RAMPART_LOADGEN_ENVIRONMENT_H
#define RAMPART_LOADGEN_ENVIRONMENT_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/config/config.h"

/* Returns 0 to continue on this machine. Otherwise names the chosen environment on stderr and replaces this process by
 * the same command there; returns only if that fails, with -errno and a line in `err`. */
int environment_enter(const struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Writes a text such as "software RDMA device rxe0, in a virtual machine, CPU emulated in software (tcg): not hardware
 * figures", from the environment object of run.json (res_environment_json with rdma_device). Returns `text`. */
const char *environment_describe(const json_t *environment, char *text, size_t size);

#endif
