/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of CPUs as text. See cpu_list.h. */
#include "common/host/cpu_list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a CPU number at *p and advances *p past it. False if there is none, or it is too large. */
static bool take_cpu(const char **p, unsigned long *cpu)
{
	char *end;

	if (**p < '0' || **p > '9')
		return false;
	*cpu = strtoul(*p, &end, 10);
	*p = end;
	return *cpu < CPU_SETSIZE;
}

static bool take_range(const char **p, uint16_t *cpus, uint32_t max, uint32_t *n)
{
	unsigned long first, last;

	if (!take_cpu(p, &first))
		return false;
	last = first;
	if (**p == '-') {
		++*p;
		if (!take_cpu(p, &last) || last < first)
			return false;
	}
	for (; first <= last; first++) {
		if (*n == max)
			return false;
		cpus[(*n)++] = (uint16_t)first;
	}
	return true;
}

int cpu_list_parse(const char *text, uint16_t *cpus, uint32_t max, uint32_t *n)
{
	*n = 0;
	for (const char *p = text; p; p = *p ? p + 1 : NULL)
		if (!take_range(&p, cpus, max, n) || (*p && *p != ','))
			return -EINVAL;
	return 0;
}

/* The last CPU of the set's contiguous range that starts with `first`. */
static int end_of_row(const cpu_set_t *set, int first)
{
	while (first + 1 < CPU_SETSIZE && CPU_ISSET(first + 1, set))
		first++;
	return first;
}

const char *cpu_list_text(const cpu_set_t *set, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (int i = 0; i < CPU_SETSIZE; i++) {
		char part[24];
		int last, n;

		if (!CPU_ISSET(i, set))
			continue;
		last = end_of_row(set, i);
		n = last > i ? snprintf(part, sizeof(part), "%s%d-%d", used ? "," : "", i, last) :
			       snprintf(part, sizeof(part), "%s%d", used ? "," : "", i);
		if (used + (size_t)n >= size)
			break;
		memcpy(out + used, part, (size_t)n + 1);
		used += (size_t)n;
		i = last;
	}
	return out;
}
