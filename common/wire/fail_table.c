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

static void add(struct fail_table *t, const struct fail *f, uint64_t count)
{
	uint32_t n = rows_of(t), i = 0;

	while (i < n && !same(&t->rows[i].fail, f))
		i++;
	if (i == n && n <= FAIL_TABLE_MAX) {
		t->rows[i].fail = *f;
		if (n == FAIL_TABLE_MAX)
			t->rows[i].fail = (struct fail){ .stage = f->stage, .kind = FAIL_KIND_N };
		counter_set(&t->rows[i].count, 0);
		atomic_store_explicit(&t->n, n + 1, memory_order_release);
	}
	if (i > FAIL_TABLE_MAX)
		i = FAIL_TABLE_MAX;
	counter_add(&t->rows[i].count, count);
}

void fail_table_count(struct fail_table *t, const struct fail *f)
{
	add(t, f, 1);
}

void fail_table_reset(struct fail_table *t)
{
	atomic_store_explicit(&t->n, 0, memory_order_release);
}

void fail_table_add(struct fail_table *dst, const struct fail_table *src)
{
	uint32_t n = rows_of(src);

	for (uint32_t i = 0; i < n; i++)
		add(dst, &src->rows[i].fail, counter_get(&src->rows[i].count));
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

uint64_t fail_table_total(const struct fail_table *t)
{
	uint64_t total = 0;
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

json_t *fail_table_json(const struct fail_table *t)
{
	json_t *rows[FAIL_TABLE_MAX + 1] = { NULL }, *out = json_array();
	uint32_t n = rows_of(t), made = 0;
	char code[96];

	for (uint32_t i = 0; i < n; i++) {
		const struct fail *f = &t->rows[i].fail;

		rows[made] = json_pack("{s:s, s:s, s:I, s:s}", "stage", stage_names[f->stage], "code",
				       fail_code_text(f, code, sizeof(code)), "count",
				       (json_int_t)counter_get(&t->rows[i].count), "meaning",
				       fail_advice(f));
		if (rows[made])
			made++;
	}
	qsort(rows, made, sizeof(rows[0]), by_count);
	for (uint32_t i = 0; i < made; i++)
		json_array_append_new(out, rows[i]);
	return out;
}
