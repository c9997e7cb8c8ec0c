/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/base/utf8.c. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"

static void expect(const char *text, bool lines, const char *expected)
{
	char *clean = utf8_clean(text, lines);

	assert_non_null(clean);
	assert_string_equal(clean, expected);
	free(clean);
}

TEST(clean__valid__as_it_is)
{
	expect("", false, "");
	expect("p99 < 500 \xc2\xb5s \xe2\x9c\x93 \xf0\x9f\x98\x80", false,
	       "p99 < 500 \xc2\xb5s \xe2\x9c\x93 \xf0\x9f\x98\x80");
}

TEST(clean__invalid_bytes__one_replacement_each)
{
	expect("a\xff" "b", false, "a\xef\xbf\xbd" "b");
	/* Cut short, overlong, a surrogate, beyond the last. */
	expect("\xe2\x9c", false, "\xef\xbf\xbd\xef\xbf\xbd");
	expect("\xc0\xaf", false, "\xef\xbf\xbd\xef\xbf\xbd");
	expect("\xed\xa0\x80", false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect("\xf4\x90\x80\x80", false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(clean__control_and_direction__replaced)
{
	expect("a\033[31m", false, "a\xef\xbf\xbd[31m");
	expect("\x7f\xc2\x9b", false, "\xef\xbf\xbd\xef\xbf\xbd");
	expect("a\xe2\x80\xae" "b\xef\xbf\xbf", false, "a\xef\xbf\xbd" "b\xef\xbf\xbd");
}

TEST(clean__lines__only_where_allowed)
{
	expect("a\n\tb\r", false, "a  b ");
	expect("a\n\tb\r", true, "a\n\tb ");
}

static void expect_shown(const char *text, const char *expected)
{
	char out[100], *printed = NULL;
	size_t size;
	FILE *f = open_memstream(&printed, &size);

	assert_string_equal(utf8_show(text, out, sizeof(out)), expected);
	assert_non_null(f);
	utf8_print(text, f);
	fclose(f);
	assert_string_equal(printed, expected);
	free(printed);
}

TEST(show__what_a_terminal_obeys__as_digits)
{
	char out[100];

	expect_shown("plain, 5 \xc2\xb5s \xf0\x9f\x98\x80 \xef\xbf\xbd",
		     "plain, 5 \xc2\xb5s \xf0\x9f\x98\x80 \xef\xbf\xbd");
	expect_shown("a\033[31m\033]0;title\007\r\b\x7f", "a\\x1b[31m\\x1b]0;title\\x07\\x0d\\x08\\x7f");
	expect_shown("\xc2\x9b" "31m", "\\x9b31m");		/* CSI of C1, in UTF-8 */
	expect_shown("\x9b" "31m", "\\x9b31m");		/* and as a byte */
	expect_shown("\xff\xc0\xaf\xed\xa0\x80\xe2\x9c", "\\xff\\xc0\\xaf\\xed\\xa0\\x80\\xe2\\x9c");
	expect_shown("a\xe2\x80\xae" "b\xe2\x81\xa6" "c\xef\xbf\xbf", "a\\u202eb\\u2066c\\uffff");
	assert_string_equal(utf8_show("a\nb", out, sizeof(out)), "a\\x0ab");
}

TEST(print__lines__stay)
{
	char *printed = NULL;
	size_t size;
	FILE *f = open_memstream(&printed, &size);

	assert_non_null(f);
	utf8_print("a\nb\033\n", f);
	fclose(f);
	assert_string_equal(printed, "a\nb\\x1b\n");
	free(printed);
}

TEST(print_line__text_with_a_newline__one_line)
{
	char *printed = NULL;
	size_t size;
	FILE *f = open_memstream(&printed, &size);

	assert_non_null(f);
	utf8_print_line(f, "%s: %5.2f%%", "a\nb\xc2\x9b\xff", 2.5);
	fclose(f);
	assert_string_equal(printed, "a\\x0ab\\x9b\\xff:  2.50%\n");
	free(printed);
}

/* Cut before a character that does not fit as a whole. */
TEST(show__every_size__terminated_and_no_half)
{
	static const char text[] = "a\033\xc2\xb5z";
	static const size_t lengths[] = { 0, 0, 1, 1, 1, 1, 5, 5, 7, 8, 8 };

	for (size_t size = 1; size < N_ELEMENTS(lengths); size++) {
		char *out = malloc(size);

		assert_int_equal(strlen(utf8_show(text, out, size)), lengths[size]);
		free(out);
	}
}

TEST(count__characters__not_bytes)
{
	assert_int_equal(utf8_count(""), 0);
	assert_int_equal(utf8_count("5 \xc2\xb5s\xff"), 5);
}
