/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/host/beside.c, with scripts that the test writes. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/host/beside.h"
#include "tests/unit/files/scratch.h"

/* Leads from any folder to the root. */
#define UP "../../../../../../../../../../../../../../../.."

static char dir[SCRATCH_MAX];
static char line[16];

static int set_up(void **state)
{
	(void)state;
	return scratch_make(dir);
}

static int tear_down(void **state)
{
	(void)state;
	return scratch_remove(dir);
}

/* Asks a script with this text, called with two words. */
static int ask(const char *text)
{
	static const char *const words[] = { "one", "two words", NULL };
	char relative[PATH_MAX];

	scratch_put(dir, "/script", text);
	snprintf(relative, sizeof(relative), UP "%s/script", dir);
	assert_int_equal(chmod(relative + strlen(UP), 0700), 0);
	memset(line, 'x', sizeof(line));
	return beside_ask(relative, words, line, sizeof(line));
}

TEST(ask__answer__first_line_and_status)
{
	assert_int_equal(ask("#!/bin/sh\necho \"$# $2\"\necho more\nexit 3\n"), 3);
	assert_string_equal(line, "2 two words");
	assert_int_equal(ask("#!/bin/sh\necho error >&2; cat\n"), 0);
	assert_string_equal(line, "");
}

/* The rest is more than a pipe holds. */
TEST(ask__long_answer__cut_and_read_to_its_end)
{
	assert_int_equal(ask("#!/bin/sh\nprintf %0200000d 7\nexit 5\n"), 5);
	assert_string_equal(line, "000000000000000");
}

TEST(ask__signal_or_no_program__no_status)
{
	assert_int_equal(ask("#!/bin/sh\nkill -KILL $$\n"), 255);
	assert_int_equal(ask("#!/nonexistent/interpreter\n"), -ENOENT);
	assert_string_equal(line, "");
}

TEST_EACH(set_up, tear_down)
