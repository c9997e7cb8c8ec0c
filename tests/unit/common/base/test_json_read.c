/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/base/json_at.c: limits that hold before anything is parsed. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "tests/unit/files/scratch.h"

enum { N = 20000 };

static const char *const units[] = {
	"{}", "[]", "0", "-1.5e3", "\"\"", "\"0123456789012345678901234567890123456789\"", "{\"a\":0}", "[[]]",
	"{\"a\":{\"b\":{}}}",
	"\"a\\\",{[:\"", "{\"name\":\"text\",\"number_of_it\":12345.678,\"is\":true}", "[1,2,3,4,5,6,7,8,9]",
	"{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9}",
};

/* An array of N times `unit`. */
static char *dense(const char *unit, size_t *bytes)
{
	size_t n = strlen(unit);
	char *text = malloc(N * (n + 1) + 3);

	assert_non_null(text);
	*bytes = 0;
	for (size_t i = 0; i < N; i++) {
		text[(*bytes)++] = i ? ',' : '[';
		memcpy(text + *bytes, unit, n);
		*bytes += n;
	}
	text[(*bytes)++] = ']';
	text[*bytes] = '\0';
	return text;
}

static size_t in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

TEST(memory__dense_texts__estimates_are_not_too_low)
{
	static const struct json_limit none = { SIZE_MAX, SIZE_MAX };

	for (size_t u = 0; u < N_ELEMENTS(units); u++) {
		size_t bytes, before, taken, estimate;
		char *text = dense(units[u], &bytes);
		json_t *all;

		before = in_use();
		all = json_read(text, bytes, 0, &none, NULL, 0);
		taken = in_use() - before;
		estimate = json_text_memory(text, bytes);
		assert_int_equal(json_array_size(all), N);
		/* Nor far too high: at most 3 times what is taken, beside the text. AddressSanitizer's malloc counts
		 * nothing. */
		if (taken > estimate || taken > json_memory(all) || (taken && estimate > 3 * taken + bytes))
			fail_msg("%s: %zu bytes each, estimated %zu and %zu", units[u], taken / N, estimate / N,
				 json_memory(all) / N);
		json_decref(all);
		free(text);
	}
}

/* Tables of members grow as arrays do. */
TEST(memory__object_of_many_members__estimates_are_not_too_low)
{
	static const struct json_limit none = { SIZE_MAX, SIZE_MAX };
	static const size_t members[] = { 8, 9, 1000, 8193, N };

	for (size_t m = 0; m < N_ELEMENTS(members); m++) {
		char *text = malloc(N * 20), *p = stpcpy(text, "{\"\":0");
		size_t before, taken;
		json_t *o;

		for (size_t i = 1; i < members[m]; i++)
			p += sprintf(p, ",\"%zu\":%zu", i, i);
		p = stpcpy(p, "}");
		before = in_use();
		o = json_read(text, (size_t)(p - text), JSON_REJECT_DUPLICATES, &none, NULL, 0);
		taken = in_use() - before;
		assert_int_equal(json_object_size(o), members[m]);
		assert_true(taken <= json_text_memory(text, (size_t)(p - text)) && taken <= json_memory(o));
		json_decref(o);
		free(text);
	}
}

/* The memory that jansson asked for. */
static size_t asked;

static void *count_memory(size_t n)
{
	asked += n;
	return malloc(n);
}

TEST(read__over_a_limit__refused_before_parsing)
{
	size_t bytes;
	char *text = dense("{}", &bytes), err[200];
	struct json_limit limit = { bytes, json_text_memory(text, bytes) };
	json_t *o;

	json_set_alloc_funcs(count_memory, free);
	limit.memory_bytes--;
	asked = 0;
	assert_null(json_read(text, bytes, 0, &limit, err, sizeof(err)));
	assert_says(err, "would take about ");
	assert_int_equal(asked, 0);
	limit.memory_bytes++;
	limit.text_bytes--;
	assert_null(json_read(text, bytes, 0, &limit, err, sizeof(err)));
	assert_says(err, "allowed: ");
	assert_int_equal(asked, 0);
	limit.text_bytes++;
	o = json_read(text, bytes, 0, &limit, err, sizeof(err));
	assert_non_null(o);
	assert_true(asked > 0);
	json_decref(o);
	json_set_alloc_funcs(malloc, free);
	free(text);
}

TEST(read__not_json__line_and_reason)
{
	static const struct json_limit limit = { 100, 100000 };
	char err[200];

	assert_null(json_read("{\"a\": 1,\n]", 10, 0, &limit, err, sizeof(err)));
	assert_int_equal(strncmp(err, "line 2: ", 8), 0);
	assert_null(json_read("\"a\\", 3, 0, &limit, err, sizeof(err)));
	assert_null(json_read("[", 1, 0, &limit, NULL, 0));
}

static char dir[SCRATCH_MAX];

static const char *below(const char *name)
{
	static char path[SCRATCH_MAX + 40];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void expect_file(const char *path, int ret, const char *why)
{
	static const struct json_limit limit = { 4096, 8192 };
	char err[200] = "";
	json_auto_t *o = NULL;

	assert_int_equal(json_read_file(path, 0, &limit, &o, err, sizeof(err)), ret);
	assert_string_equal(err, why);
	assert_int_equal(o != NULL, ret == 0);
}

static void write_file(const char *text, size_t bytes)
{
	FILE *f = fopen(below("file"), "w");

	assert_true(f && fwrite(text, 1, bytes, f) == bytes && fclose(f) == 0);
}

TEST(read_file__what_is_no_regular_file_or_too_large__refused)
{
	char text[4097], *many;
	size_t bytes;

	assert_int_equal(scratch_make(dir), 0);
	expect_file(below("none"), -ENOENT, "No such file or directory");
	assert_int_equal(mkfifo(below("fifo"), 0600), 0);
	expect_file(below("fifo"), -EINVAL, "not a regular file");
	expect_file("/dev/zero", -EINVAL, "not a regular file");
	expect_file(dir, -EINVAL, "not a regular file");
	memset(text, ' ', sizeof(text));
	memcpy(text, "[]", 2);
	write_file(text, 4096);
	expect_file(below("file"), 0, "");
	write_file(text, 4097);
	expect_file(below("file"), -EINVAL, "has more than the 4 KiB that are allowed");
	/* A file of a terabyte is not read either. */
	assert_int_equal(truncate(below("file"), (off_t)1 << 40), 0);
	expect_file(below("file"), -EINVAL, "has more than the 4 KiB that are allowed");
	many = dense("[]", &bytes);
	memcpy(many + 298, "]", 2);
	write_file(many, 299);
	expect_file(below("file"), -EINVAL, "would take about 16 KiB of memory; allowed: 8 KiB");
	free(many);
	assert_int_equal(symlink("fifo", below("link")), 0);
	expect_file(below("link"), -EINVAL, "not a regular file");
	assert_int_equal(scratch_remove(dir), 0);
}
