/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts of failures by stage, kind and code. See fail_table.h. */
#include "common/wire/fail_table.h"

#include <stdlib.h>
#include <string.h>

static uint32_t rows_of(const struct fail_table *t)
{
	return atomic_load_explicit(&((struct fail_table *)t)->n, memory_order_acquire);
}

static bool same(const struct fail *a, const struct fail *b)
{
	return a->stage == b->stage && a->kind == b->kind && a->code == b->code;
}

static void count_row(struct fail_table *t, const struct fail *f, uint64_t count)
{
	uint32_t n = rows_of(t), i = 0;

	while (i < n && !same(&t->rows[i].fail, f))
		i++;
	if (i == FAIL_TABLE_MAX) {
		counter_add(&t->overflow, count);
		return;
	}
	if (i == n) {
		t->rows[i].fail = *f;
		counter_set(&t->rows[i].count, 0);
		atomic_store_explicit(&t->n, n + 1, memory_order_release);
	}
	counter_add(&t->rows[i].count, count);
}

void fail_table_count(struct fail_table *t, const struct fail *f)
{
	struct fail row = fail_row(f);

	count_row(t, &row, 1);
}

void fail_table_reset(struct fail_table *t)
{
	atomic_store_explicit(&t->n, 0, memory_order_release);
	counter_set(&t->overflow, 0);
}

void fail_table_add(struct fail_table *dst, const struct fail_table *src)
{
	uint32_t n = rows_of(src);

	for (uint32_t i = 0; i < n; i++)
		count_row(dst, &src->rows[i].fail, counter_get(&src->rows[i].count));
	counter_add(&dst->overflow, counter_get(&src->overflow));
}

bool fail_table_top(const struct fail_table *t, struct fail *out, uint64_t *count)
{
	uint32_t n = rows_of(t);

	*count = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (counter_get(&t->rows[i].count) <= *count)
			continue;
		*count = counter_get(&t->rows[i].count);
		*out = t->rows[i].fail;
	}
	return *count > 0;
}

uint64_t fail_table_sum(const struct fail_table *t, bool (*counts)(const struct fail *f))
{
	uint64_t sum = 0;
	uint32_t n = rows_of(t);

	for (uint32_t i = 0; i < n; i++)
		if (counts(&t->rows[i].fail))
			sum += counter_get(&t->rows[i].count);
	return sum;
}

uint64_t fail_table_total(const struct fail_table *t)
{
	uint64_t total = counter_get(&t->overflow);
	uint32_t n = rows_of(t);

	for (uint32_t i = 0; i < n; i++)
		total += counter_get(&t->rows[i].count);
	return total;
}

static int by_count(const void *a, const void *b)
{
	json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "count"));
	json_int_t y = json_integer_value(json_object_get(*(json_t *const *)b, "count"));

	return x < y ? 1 : x > y ? -1 : 0;
}

static json_t *row_json(const char *stage, const char *code, uint64_t count, const char *meaning)
{
	return json_pack("{s:s, s:s, s:I, s:s}", "stage", stage, "code", code, "count", (json_int_t)count, "meaning",
			 meaning);
}

json_t *fail_table_json(const struct fail_table *t)
{
	json_t *rows[FAIL_TABLE_MAX + 1] = { NULL }, *out = json_array();
	uint64_t overflow = counter_get(&t->overflow);
	uint32_t n = rows_of(t), made = 0;
	char code[96];

	for (uint32_t i = 0; i < n; i++) {
		const struct fail *f = &t->rows[i].fail;

		rows[made] = row_json(stage_names[f->stage], fail_code_text(f, code, sizeof(code)),
				      counter_get(&t->rows[i].count), fail_advice(f));
		if (rows[made])
			made++;
	}
	if (overflow)
		rows[made] = row_json("any", "other", overflow,
				      "failures of kinds beyond those counted separately");
	made += rows[made] != NULL;
	qsort(rows, made, sizeof(rows[0]), by_count);
	for (uint32_t i = 0; i < made; i++)
		json_array_append_new(out, rows[i]);
	return out;
}
