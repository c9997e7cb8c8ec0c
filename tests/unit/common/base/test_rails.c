/* SPDX-License-Identifier: BSD-2-Clause */
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
	assert_says(err, problem);
	assert_says(err, "; allowed: 1 to 8 different names, comma-separated");
	assert_null(strchr(err, '\n'));
}

TEST(split__one_name__itself)
{
	split("rxe0", 1);
	assert_string_equal(names.name[0], "rxe0");
}

TEST(split__several__in_their_order)
{
	split("mlx5_1,10.0.0.1,fe80::1", 3);
	assert_string_equal(names.name[0], "mlx5_1");
	assert_string_equal(names.name[1], "10.0.0.1");
	assert_string_equal(names.name[2], "fe80::1");
}

/* One begins like the other, on either side. */
TEST(split__alike_but_not_the_same__taken)
{
	split("rxe1,rxe,rxe10", 3);
	assert_string_equal(names.name[1], "rxe");
}

TEST(split__eight__are_all_there_can_be)
{
	split("a,b,c,d,e,f,g,h", RAILS_MAX);
	assert_string_equal(names.name[7], "h");
	assert_refused("a,b,c,d,e,f,g,h,i", "too many names");
	assert_refused("a,b,c,d,e,f,g,h,", "empty name");
}

TEST(split__empty_name__refused_wherever_it_is)
{
	assert_refused("", "'' has an empty name");
	assert_refused(",", "empty name");
	assert_refused(",rxe0", "empty name");
	assert_refused("rxe0,", "'rxe0,' has an empty name");
	assert_refused("rxe0,,rxe1", "'rxe0,,rxe1' has an empty name");
}

TEST(split__name_twice__refused)
{
	assert_refused("rxe0,rxe0", "'rxe0,rxe0' has a name twice");
	assert_refused("a,b,c,a", "name twice");
}

/* Leftovers of a longer list are not taken for names. */
TEST(split__into_a_used_list__only_the_new_names)
{
	split("long-name,second,third", 3);
	split("x,second", 2);
	assert_string_equal(names.name[0], "x");
	assert_string_equal(names.name[1], "second");
}

TEST(split__long_name__255_bytes_at_most)
{
	char list[600];

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

TEST(split__little_room_for_the_message__cut)
{
	char little[10];

	assert_int_equal(rails_split("device", ",", &names, little, sizeof(little)), -EINVAL);
	assert_string_equal(little, "--device:");
}
