/* SPDX-License-Identifier: BSD-2-Clause */
/* Values in texts of /proc (proc(5)). Any text is allowed: a value that is absent or not a number counts as missing.
 * Pure. */
#ifndef RAMPART_COMMON_PROC_TEXT_H
#define RAMPART_COMMON_PROC_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* The value of `name` in lines of "name : value"; NULL when there is none. */
const char *proc_text_field(const char *text, const char *name);
/* The number at the start of the value, in the given base; 0 if there is none. */
uint64_t proc_text_number(const char *text, const char *name, int base);

/* Reads an unsigned decimal number at *at, after blanks, and advances *at past it. False, with *at unchanged, if there
 * is none or it is above 2^63 - 1. */
bool proc_text_take(const char **at, uint64_t *out);

/* CPU times of a line of /proc/stat ("cpu 1 2 3 ..."), in ticks. Guest time is not added, because user and nice include
 * it. */
struct proc_cpu {
	uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
};

/* `at` points behind the line's name. False if the format is not that of proc(5). */
bool proc_text_cpu(const char *at, struct proc_cpu *out);

#endif
