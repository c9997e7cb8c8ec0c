/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the test runs: on this machine's RDMA device, or, where there is none, in a micro-VM. */
#ifndef RAMPART_LOADGEN_ENVIRONMENT_H
#define RAMPART_LOADGEN_ENVIRONMENT_H

#include <stddef.h>

#include <jansson.h>

#include "loadgen/config/config.h"

/* Returns 0 to go on here. Otherwise replaces this process by the same command in the micro-VM, and
 * returns only if that fails: -errno with a line in `err`. Says in one line on stderr what it does. */
int environment_enter(const struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* "software RDMA device rxe0, in a virtual machine, CPU emulated in software (tcg): not hardware figures", ...
 * into `text`, from the environment object of run.json (res_environment_json with rdma_device). Returns `text`. */
const char *environment_describe(const json_t *environment, char *text, size_t size);

#endif
