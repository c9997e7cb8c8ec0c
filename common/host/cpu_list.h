/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of CPUs as text, such as "0,2,4-7" (cpuset(7), "List format"). Pure. */
#ifndef RAMPART_COMMON_CPU_LIST_H
#define RAMPART_COMMON_CPU_LIST_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_LIST_TEXT_MAX 256

/* Puts the CPUs of `text` into `cpus`, in the order of the text, and their number into *n. Errors:
 *   -EINVAL  it is no list, a number is not below CPU_SETSIZE, or there are more than `max` */
int cpu_list_parse(const char *text, uint16_t *cpus, uint32_t max, uint32_t *n) __attribute__((warn_unused_result));

/* The set as such a text, ranges joined; cut at the last element that fits. Returns `out`. */
const char *cpu_list_text(const cpu_set_t *set, char *out, size_t size);

#endif
