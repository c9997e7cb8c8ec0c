/* Unit tests of common/rdma/rails.c: lists of names, and what is wrong with bad ones. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/base/rails.h"

static struct rail_names names;
static char err[400];

static void split(const char *list, uint32_t n)
{
	if (rails_split("device", list, &names, err, sizeof(err)))
		fail_msg("'%s': %s", list, err);
	assert_int_equal(names.n, n);
}

static void assert_refused(const char *list, const char *problem)
{
	memset(err, 0, sizeof(err));
	assert_int_equal(rails_split("device", list, &names, err, sizeof(err)), -EINVAL);
	assert_ptr_equal(strstr(err, "--device: '"), err);
	if (!strstr(err, problem))
		fail_msg("'%s' does not say '%s'", err, problem);
	assert_non_null(strstr(err, "; allowed: 1 to 8 different names, comma-separated"));
	assert_null(strchr(err, '\n'));
}

static void split__one_name__itself(void **state)
{
	(void)state;
	split("rxe0", 1);
	assert_string_equal(names.name[0], "rxe0");
}

static void split__several__in_their_order(void **state)
{
	(void)state;
	split("mlx5_1,10.0.0.1,fe80::1", 3);
	assert_string_equal(names.name[0], "mlx5_1");
	assert_string_equal(names.name[1], "10.0.0.1");
	assert_string_equal(names.name[2], "fe80::1");
}

/* One begins like the other, on either side. */
static void split__alike_but_not_the_same__taken(void **state)
{
	(void)state;
	split("rxe1,rxe,rxe10", 3);
	assert_string_equal(names.name[1], "rxe");
}

static void split__eight__are_all_there_can_be(void **state)
{
	(void)state;
	split("a,b,c,d,e,f,g,h", RAILS_MAX);
	assert_string_equal(names.name[7], "h");
	assert_refused("a,b,c,d,e,f,g,h,i", "too many names");
	assert_refused("a,b,c,d,e,f,g,h,", "empty name");
}

static void split__empty_name__refused_wherever_it_is(void **state)
{
	(void)state;
	assert_refused("", "'' has an empty name");
	assert_refused(",", "empty name");
	assert_refused(",rxe0", "empty name");
	assert_refused("rxe0,", "'rxe0,' has an empty name");
	assert_refused("rxe0,,rxe1", "'rxe0,,rxe1' has an empty name");
}

static void split__name_twice__refused(void **state)
{
	(void)state;
	assert_refused("rxe0,rxe0", "'rxe0,rxe0' has a name twice");
	assert_refused("a,b,c,a", "name twice");
}

/* Leftovers of a longer list are not taken for names. */
static void split__into_a_used_list__only_the_new_names(void **state)
{
	(void)state;
	split("long-name,second,third", 3);
	split("x,second", 2);
	assert_string_equal(names.name[0], "x");
	assert_string_equal(names.name[1], "second");
}

static void split__long_name__255_bytes_at_most(void **state)
{
	char list[600];

	(void)state;
	memset(list, 'n', sizeof(list));
	list[255] = '\0';
	split(list, 1);
	assert_int_equal(strlen(names.name[0]), 255);
	list[255] = 'n';
	list[256] = '\0';
	assert_refused(list, "nnn...' has a name that is too long");
	list[256] = ',';
	list[599] = '\0';
	assert_refused(list, "too long");
}

static void split__little_room_for_the_message__cut(void **state)
{
	char little[10];

	(void)state;
	assert_int_equal(rails_split("device", ",", &names, little, sizeof(little)), -EINVAL);
	assert_string_equal(little, "--device:");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split__one_name__itself),
		cmocka_unit_test(split__several__in_their_order),
		cmocka_unit_test(split__alike_but_not_the_same__taken),
		cmocka_unit_test(split__eight__are_all_there_can_be),
		cmocka_unit_test(split__empty_name__refused_wherever_it_is),
		cmocka_unit_test(split__name_twice__refused),
		cmocka_unit_test(split__into_a_used_list__only_the_new_names),
		cmocka_unit_test(split__long_name__255_bytes_at_most),
		cmocka_unit_test(split__little_room_for_the_message__cut),
	};

	return cmocka_run_group_tests_name("rails", tests, NULL, NULL);
}
