/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/base/paths.c: files that are made in a folder, links in their way, a disk that is full. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "common/base/paths.h"
#include "tests/unit/files/scratch.h"
#include "tests/unit/helpers/full_disk.h"

static char dir[SCRATCH_MAX];		/* everything is made below it */
static int folder;		/* dir/in */
static int tear_down(void **state)
{
	(void)state;
	disk_room = -1;
	close(folder);
	return chdir("/") || scratch_remove(dir);
}

static int set_up(void **state)
{
	(void)state;
	disk_room = -1;
	disk_full_errno = ENOSPC;
	if (scratch_make(dir) || chdir(dir) || mkdir("in", 0777) || mkdir("out", 0777))
		return -1;
	scratch_put(".", "out/victim", "precious");
	folder = path_open_folder("in");
	return folder < 0;
}

static const char *text_of(const char *path)
{
	static char text[100];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static int write_text(FILE *out, const void *text)
{
	fputs(text, out);
	return 0;	/* path_write_in finds out by itself */
}

static int write_json(FILE *out, const void *o)
{
	return json_dumpf(o, out, JSON_INDENT(1)) ? -EIO : 0;
}

TEST(write_in__a_link_for_the_file_or_its_temporary__refused)
{
	static const char *const names[] = { "in/f", "in/f.tmp" };
	static const char *const targets[] = { "../out/victim", "../out/none", "f" };

	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		for (size_t k = 0; k < N_ELEMENTS(targets); k++) {
			assert_int_equal(symlink(targets[k], names[i]), 0);
			assert_int_equal(path_write_in(folder, "f", write_text, "new"), -ELOOP);
			assert_int_equal(path_write("in/f", write_text, "new"), -ELOOP);
			assert_string_equal(text_of("out/victim"), "precious");
			assert_false(exists("out/none"));
			assert_int_equal(unlink(names[i]), 0);
			assert_false(exists("in/f.tmp"));
		}
	}
	assert_says(path_error(-ELOOP), "symbolic link");
	assert_string_equal(path_error(-ENOSPC), strerror(ENOSPC));
}

TEST(make_file__anything_there__refused)
{
	int fd;

	assert_int_equal(symlink("../out/victim", "in/f"), 0);
	assert_int_equal(path_make_file(folder, "f"), -ELOOP);
	assert_int_equal(unlink("in/f"), 0);
	assert_int_equal(symlink("../out/none", "in/f"), 0);
	assert_int_equal(path_make_file(folder, "f"), -ELOOP);
	assert_false(exists("out/none"));
	scratch_put(".", "in/g", "");
	assert_int_equal(path_make_file(folder, "g"), -EEXIST);
	fd = path_make_file(folder, "h");
	assert_true(fd >= 0);
	close(fd);
}

TEST(make_folder__a_link_to_one__refused)
{
	int fd;

	assert_int_equal(symlink("../out", "in/tables"), 0);
	assert_int_equal(path_make_folder(folder, "tables"), -ELOOP);
	assert_int_equal(unlink("in/tables"), 0);
	assert_int_equal(symlink("../out/none", "in/tables"), 0);
	assert_int_equal(path_make_folder(folder, "tables"), -ELOOP);
	assert_false(exists("out/none"));
	assert_int_equal(unlink("in/tables"), 0);
	scratch_put(".", "in/tables", "");
	assert_int_equal(path_make_folder(folder, "tables"), -ENOTDIR);
	assert_int_equal(unlink("in/tables"), 0);
	for (int i = 0; i < 2; i++) {
		fd = path_make_folder(folder, "tables");
		assert_true(fd >= 0);
		close(fd);
	}
}

TEST(append__a_link__refused)
{
	assert_int_equal(symlink("../out/victim", "in/f"), 0);
	assert_int_equal(path_append("in/f", true, write_text, "new"), -ELOOP);
	assert_int_equal(path_append("in/f", false, write_text, "new"), -ELOOP);
	assert_string_equal(text_of("out/victim"), "precious");
}

TEST(may_write__what_path_write_could_not__an_error)
{
	char long_name[NAME_MAX + 1] = "";

	assert_int_equal(path_may_write("new"), 0);
	assert_int_equal(path_may_write("out/victim"), 0);
	assert_int_equal(path_may_write("nowhere/new"), -ENOENT);
	assert_int_equal(path_may_write("out/victim/new"), -ENOTDIR);
	assert_int_equal(path_may_write("out"), -EISDIR);
	assert_int_equal(path_may_write("out/"), -EISDIR);
	memset(long_name, 'x', sizeof(long_name) - 1);
	assert_int_equal(path_may_write(long_name), -ENAMETOOLONG);
	long_name[NAME_MAX - 4] = '\0';
	assert_int_equal(path_may_write(long_name), 0);
	assert_int_equal(symlink("../out/victim", "in/f"), 0);
	assert_int_equal(path_may_write("in/f"), -ELOOP);
	assert_false(exists("new"));
}

/* A name with two: writing must not reach the other. */
TEST(write_in__a_hard_link__replaced_and_the_other_name_keeps_its_text)
{
	assert_int_equal(link("out/victim", "in/f"), 0);
	assert_int_equal(link("out/victim", "in/f.tmp"), 0);
	assert_int_equal(path_write_in(folder, "f", write_text, "new"), 0);
	assert_string_equal(text_of("in/f"), "new");
	assert_string_equal(text_of("out/victim"), "precious");
	assert_false(exists("in/f.tmp"));
}

/* The folder was opened once: whatever takes its name later is not written to. */
TEST(write_in__folder_exchanged_for_a_link__stays_in_the_old_one)
{
	assert_int_equal(rename("in", "moved"), 0);
	assert_int_equal(symlink("out", "in"), 0);
	assert_int_equal(path_write_in(folder, "f", write_text, "new"), 0);
	assert_string_equal(text_of("moved/f"), "new");
	assert_false(exists("out/f"));
	assert_int_equal(unlink("in"), 0);
}

TEST(write_in__temporary_left_by_a_killed_run__replaced)
{
	scratch_put(".", "in/f.tmp", "half of");
	assert_int_equal(path_write_in(folder, "f", write_text, "new"), 0);
	assert_string_equal(text_of("in/f"), "new");
	assert_false(exists("in/f.tmp"));
	assert_int_equal(mkdir("in/f.tmp", 0777), 0);
	assert_int_equal(path_write_in(folder, "f", write_text, "newer"), -EEXIST);
	assert_int_equal(mkfifo("in/g.tmp", 0666), 0);
	assert_int_equal(path_write_in(folder, "g", write_text, "new"), -EEXIST);
}

/* For every number of bytes that fit: the error is the disk's, whoever writes, and nothing is left of the file. */
TEST(write_in__disk_full__its_errno_and_no_file)
{
	static const char text[] = "some text that is longer than what fits";
	json_auto_t *o = json_pack("{s:s}", "text", text);

	for (int old = 0; old < 2; old++) {
		for (ssize_t fits = 0; fits < (ssize_t)strlen(text); fits++) {
			disk_full_errno = fits % 2 ? ENOSPC : EDQUOT;
			disk_room = fits;
			assert_int_equal(path_write_in(folder, "f", write_text, text), -disk_full_errno);
			disk_room = fits;
			assert_int_equal(path_write_in(folder, "f", write_json, o), -disk_full_errno);
			disk_room = -1;
			assert_false(exists("in/f.tmp"));
			assert_int_equal(exists("in/f"), old);
		}
		scratch_put(".", "in/f", "old");
	}
	assert_string_equal(text_of("in/f"), "old");
}

TEST(append__disk_full__as_long_as_before)
{
	for (disk_room = 0; disk_room < 4; ) {
		ssize_t fits = disk_room;

		assert_int_equal(path_append("in/f", true, write_text, "first"), -ENOSPC);
		assert_false(exists("in/f"));
		disk_room = fits + 1;
	}
	disk_room = -1;
	assert_int_equal(path_append("in/f", true, write_text, "first"), 0);
	disk_room = 3;
	assert_int_equal(path_append("in/f", false, write_text, "second"), -ENOSPC);
	disk_room = -1;
	assert_string_equal(text_of("in/f"), "first");
	assert_int_equal(path_append("in/f", false, write_text, "+"), 0);
	assert_string_equal(text_of("in/f"), "first+");
	assert_int_equal(path_append("in/f", true, write_text, "anew"), 0);
	assert_string_equal(text_of("in/f"), "anew");
	assert_int_equal(path_append("/dev/full", true, write_text, "x"), -ENOSPC);
	assert_true(exists("/dev/full"));
}

static int refuse(FILE *out, const void *arg)
{
	(void)out;
	(void)arg;
	return -EDOM;
}

TEST(write_in__the_writer_fails__its_error_and_no_file)
{
	assert_int_equal(path_write_in(folder, "f", refuse, NULL), -EDOM);
	assert_false(exists("in/f"));
	assert_false(exists("in/f.tmp"));
}

TEST(write__paths__folder_and_name)
{
	char name[300];

	assert_int_equal(path_write("f", write_text, "here"), 0);
	assert_string_equal(text_of("f"), "here");
	assert_int_equal(path_write("in/f", write_text, "there"), 0);
	assert_string_equal(text_of("in/f"), "there");
	assert_int_equal(path_write("none/f", write_text, "x"), -ENOENT);
	assert_int_equal(path_write("f/g", write_text, "x"), -ENOTDIR);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(path_write(name, write_text, "x"), -ENAMETOOLONG);
	assert_int_equal(path_write("/", write_text, "x"), -EISDIR);
}

TEST_EACH(set_up, tear_down)
