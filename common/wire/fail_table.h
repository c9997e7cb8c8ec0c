/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts of failures by stage, kind and code. One writer thread; any thread may read at the same time.
 *
 * A peer cannot fill the table, because fail_row limits the rows for codes that a peer chooses. Failures that find no
 * row all the same are counted in `overflow`, without a stage. */
#ifndef RAMPART_COMMON_FAIL_TABLE_H
#define RAMPART_COMMON_FAIL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/counter.h"
#include "common/wire/fail.h"

/* More than the combinations of stage, kind and code that can occur on one side. */
#define FAIL_TABLE_MAX 256

struct fail_table {
	_Atomic uint32_t n;
	struct {
		struct fail fail;	/* written before n counts it, constant afterwards */
		counter count;
	} rows[FAIL_TABLE_MAX];
	counter overflow;		/* failures that found no row */
};

/* Writer only. */
void fail_table_count(struct fail_table *t, const struct fail *f);
void fail_table_reset(struct fail_table *t);

/* dst += src; the caller is dst's writer. */
void fail_table_add(struct fail_table *dst, const struct fail_table *src);
/* The most frequent failure that has a row; false when there is none. */
bool fail_table_top(const struct fail_table *t, struct fail *out, uint64_t *count);
uint64_t fail_table_total(const struct fail_table *t);
/* Number of failures in the rows for which `counts` returns true. */
uint64_t fail_table_sum(const struct fail_table *t, bool (*counts)(const struct fail *f));

/* [{stage, code, count, meaning}], largest count first; without a row: "any", "other". NULL when out of memory. */
json_t *fail_table_json(const struct fail_table *t);

#endif
