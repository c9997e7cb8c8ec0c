/* Unit tests of common/base/utf8.c. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>

#include "common/base/utf8.h"

static void expect(const char *text, bool lines, const char *expected)
{
	char *clean = utf8_clean(text, lines);

	assert_non_null(clean);
	assert_string_equal(clean, expected);
	free(clean);
}

static void clean__valid__as_it_is(void **state)
{
	(void)state;
	expect("", false, "");
	expect("p99 < 500 \xc2\xb5s \xe2\x9c\x93 \xf0\x9f\x98\x80", false,
	       "p99 < 500 \xc2\xb5s \xe2\x9c\x93 \xf0\x9f\x98\x80");
}

static void clean__invalid_bytes__one_replacement_each(void **state)
{
	(void)state;
	expect("a\xff" "b", false, "a\xef\xbf\xbd" "b");
	/* Cut short, overlong, a surrogate, beyond the last. */
	expect("\xe2\x9c", false, "\xef\xbf\xbd\xef\xbf\xbd");
	expect("\xc0\xaf", false, "\xef\xbf\xbd\xef\xbf\xbd");
	expect("\xed\xa0\x80", false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect("\xf4\x90\x80\x80", false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void clean__control_and_direction__replaced(void **state)
{
	(void)state;
	expect("a\033[31m", false, "a\xef\xbf\xbd[31m");
	expect("\x7f\xc2\x9b", false, "\xef\xbf\xbd\xef\xbf\xbd");
	expect("a\xe2\x80\xae" "b\xef\xbf\xbf", false, "a\xef\xbf\xbd" "b\xef\xbf\xbd");
}

static void clean__lines__only_where_allowed(void **state)
{
	(void)state;
	expect("a\n\tb\r", false, "a  b ");
	expect("a\n\tb\r", true, "a\n\tb ");
}

static void count__characters__not_bytes(void **state)
{
	(void)state;
	assert_int_equal(utf8_count(""), 0);
	assert_int_equal(utf8_count("5 \xc2\xb5s\xff"), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean__valid__as_it_is),
		cmocka_unit_test(clean__invalid_bytes__one_replacement_each),
		cmocka_unit_test(clean__control_and_direction__replaced),
		cmocka_unit_test(clean__lines__only_where_allowed),
		cmocka_unit_test(count__characters__not_bytes),
	};

	return cmocka_run_group_tests_name("report_utf8", tests, NULL, NULL);
}
