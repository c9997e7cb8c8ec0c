/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of CPUs as text, such as "0,2,4-7" (cpuset(7), "List format"). Pure. */
#ifndef RAMPART_COMMON_CPU_LIST_H
#define RAMPART_COMMON_CPU_LIST_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_LIST_TEXT_MAX 256

/* Stores the CPUs of `text` in `cpus`, in the order of the text, and their number in *n. Errors:
 *   -EINVAL  `text` is not a list, a number is not below CPU_SETSIZE, or there are more than `max` CPUs */
int cpu_list_parse(const char *text, uint16_t *cpus, uint32_t max, uint32_t *n) __attribute__((warn_unused_result));

/* Writes the set as such a text, with ranges joined; truncated after the last element that fits. Returns `out`. */
const char *cpu_list_text(const cpu_set_t *set, char *out, size_t size);

#endif
