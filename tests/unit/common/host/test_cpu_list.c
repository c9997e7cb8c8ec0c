/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/host/cpu_list.c: lists of CPUs as text. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>

#include "common/host/cpu_list.h"

TEST(text__any_set__ranges_joined_and_read_back)
{
	static const char *const lists[] = { "", "0", "0-1", "0,2,4-7", "1-3,5,1020-1023" };
	uint16_t cpus[CPU_SETSIZE];
	char text[64];
	uint32_t n;

	for (size_t i = 0; i < N_ELEMENTS(lists); i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		if (*lists[i])
			assert_int_equal(cpu_list_parse(lists[i], cpus, CPU_SETSIZE, &n), 0);
		for (uint32_t k = 0; *lists[i] && k < n; k++)
			CPU_SET(cpus[k], &set);
		assert_string_equal(cpu_list_text(&set, text, sizeof(text)), lists[i]);
	}
}

TEST(text__too_long__cut_behind_an_element)
{
	cpu_set_t set;
	char text[9];

	CPU_ZERO(&set);
	CPU_SET(10, &set);
	CPU_SET(12, &set);
	CPU_SET(14, &set);
	assert_string_equal(cpu_list_text(&set, text, sizeof(text)), "10,12,14");
	assert_string_equal(cpu_list_text(&set, text, 8), "10,12");
}

TEST(parse__more_than_there_is_room_for__refused)
{
	uint16_t cpus[3];
	uint32_t n;

	assert_int_equal(cpu_list_parse("5-7", cpus, 3, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(cpus[2], 7);
	assert_int_equal(cpu_list_parse("5-8", cpus, 3, &n), -EINVAL);
}
