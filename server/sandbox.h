/* SPDX-License-Identifier: BSD-2-Clause */
/* The system calls that the server may make once it serves (--seccomp on): an allow list for all of its threads, which
 * cannot be lifted (seccomp(2)). Other calls fail with EPERM, and so does opening a file for writing, mapping memory as
 * executable, or changing a limit: an attacker who takes over the process can start no program and make no socket.
 * Whatever the open descriptors of verbs and rdmacm allow stays possible, including RDMA connections.
 *
 * Reading certificates and registering regions need no other calls. Main thread.
 */
#ifndef RAMPART_SERVER_SANDBOX_H
#define RAMPART_SERVER_SANDBOX_H

/* Call it when all threads exist. 0, -ENOMEM or the error of seccomp_load(3): -ECANCELED (from the kernel), -EINVAL
 * (the kernel has no seccomp). */
int sandbox_enter(void) __attribute__((warn_unused_result));

#endif
