/* SPDX-License-Identifier: BSD-2-Clause */
/* A disk that is full after some bytes: write() in place of libc's, in every program that names disk_room. Standard
 * output and error are on another disk. */
#ifndef RAMPART_TESTS_UNIT_FULL_DISK_H
#define RAMPART_TESTS_UNIT_FULL_DISK_H

#include <sys/types.h>

extern ssize_t disk_room;	/* bytes that still fit; -1: any number */
extern int disk_full_errno;	/* what write() fails with then: ENOSPC, or EDQUOT */

#endif
