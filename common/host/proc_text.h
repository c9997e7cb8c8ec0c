/* SPDX-License-Identifier: BSD-2-Clause */
/* Values in texts of /proc (proc(5)). A text may be anything: what is not there, or is no number, is said to be
 * missing. Pure. */
#ifndef RAMPART_COMMON_PROC_TEXT_H
#define RAMPART_COMMON_PROC_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* The value of `name` in lines of "name : value"; NULL when there is none. */
const char *proc_text_field(const char *text, const char *name);
/* A number at the begin of the value, in that base; 0 when there is none. */
uint64_t proc_text_number(const char *text, const char *name, int base);

/* Reads a decimal number without a sign that begins at *at behind blanks, and puts *at behind it. False, with *at as
 * it was, if there is none, or one above 2^63 - 1. */
bool proc_text_take(const char **at, uint64_t *out);

/* CPU time in ticks of a line of /proc/stat ("cpu  1 2 3 ..."). Guest time is not added, because user and nice include
 * it. */
struct proc_cpu {
	uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
};

/* `at` is behind the line's name. False if it is not as proc(5) says. */
bool proc_text_cpu(const char *at, struct proc_cpu *out);

#endif
