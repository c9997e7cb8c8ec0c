/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts of failures by stage, kind and code. One writer thread; any thread may read at the same time.
 *
 * A peer cannot fill the table: the codes that it chooses make no rows beyond those of fail_row. What finds no row all the
 * same is counted in `overflow` and is of no stage. */
#ifndef RAMPART_COMMON_FAIL_TABLE_H
#define RAMPART_COMMON_FAIL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/counter.h"
#include "common/wire/fail.h"

/* More than all stages, kinds and codes that can occur on one side together. */
#define FAIL_TABLE_MAX 256

struct fail_table {
	_Atomic uint32_t n;
	struct {
		struct fail fail;	/* written before n counts it, constant afterwards */
		counter count;
	} rows[FAIL_TABLE_MAX];
	counter overflow;		/* what found no row */
};

/* Writer only. */
void fail_table_count(struct fail_table *t, const struct fail *f);
void fail_table_reset(struct fail_table *t);

/* dst += src; the caller is dst's writer. */
void fail_table_add(struct fail_table *dst, const struct fail_table *src);
/* The most frequent failure that has a row; false when there is none. */
bool fail_table_top(const struct fail_table *t, struct fail *out, uint64_t *count);
uint64_t fail_table_total(const struct fail_table *t);
/* Those rows' failures for which `counts` is true. */
uint64_t fail_table_sum(const struct fail_table *t, bool (*counts)(const struct fail *f));

/* [{stage, code, count, meaning}], largest count first; what found no row is of stage "any", code "other". NULL when out of memory. */
json_t *fail_table_json(const struct fail_table *t);

#endif
