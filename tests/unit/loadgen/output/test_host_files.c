/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/output/host_files.c: the files that a load host hands in, and those that the leader accepts. */
#include "tests/unit/helpers/unit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "loadgen/output/host_files.h"
#include "loadgen/output/results.h"
#include "tests/unit/files/scratch.h"

static char dir[SCRATCH_MAX];
static struct results *results;

static int set_up(void **state)
{
	char err[512];

	(void)state;
	return scratch_make(dir) || results_new(dir, "run", 0, &results, err, sizeof(err));
}

static int tear_down(void **state)
{
	(void)state;
	results_free(results);
	return scratch_remove(dir);
}

static bool is_there(const char *name)
{
	char path[SCRATCH_MAX + 256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/hosts/1-b/%s", results_dir(results), name);
	return stat(path, &st) == 0;
}

static const char *const of_a_run[] = { "run.json", "events.ndjson", "step-00008-1-connect.hlog", "step-00008-12-64B-response.hgrm",
	"step-100000-1-500ps-service.hlog", "step-00008-1-64B-500ps-connect.hgrm" };

TEST(write__names_of_others__left_out_and_named_once)
{
	static const char *const others[] = { "report.html", "index.html", "chart.svg", "evil.sh", "-rf", ".bashrc", "", "../run.json",
		"run.json/x", "hosts", "server.log", "suite.json", "step-", "step-1-1-connect", "step-1-1-connect.svg", "step-1--connect.hlog",
		"step-00008-1-64B-64B-connect.hlog", "step-00008-1-connect.hlog.sh", "step-123456789012345678901-1-connect.hlog",
		"\x1b[2Jrun.json" };
	json_t *texts = json_object(), *files = json_pack("{s:O}", "files", texts);

	for (size_t i = 0; i < N_ELEMENTS(others); i++)
		json_object_set_new(texts, others[i], json_string("x"));
	json_object_set_new(texts, "step-00001-1-connect.hlog", json_integer(1));
	for (size_t i = 0; i < N_ELEMENTS(of_a_run); i++)
		json_object_set_new(texts, of_a_run[i], json_string("{}"));
	assert_int_equal(host_files_write(results, 1, "b", files), N_ELEMENTS(of_a_run));
	for (size_t i = 0; i < N_ELEMENTS(of_a_run); i++)
		assert_true(is_there(of_a_run[i]));
	for (size_t i = 1; i < 6; i++)
		assert_false(is_there(others[i]));
	assert_false(is_there(others[0]));
	assert_false(is_there("step-00001-1-connect.hlog"));
	assert_false(results_are_incomplete(results));
	json_decref(files);
	json_decref(texts);
}

TEST(write__more_than_a_host_hands_in__left_out)
{
	static char half[HOST_FILES_MAX / 2 + 1];
	json_t *files;

	memset(half, 'x', sizeof(half));
	files = json_pack("{s:{s:s%, s:s%, s:s}}", "files", "step-00001-1-connect.hlog", half, sizeof(half), "step-00002-1-connect.hlog",
			  half, sizeof(half), "run.json", "{}");
	assert_int_equal(host_files_write(results, 1, "b", files), 2);
	assert_true(is_there("run.json"));
	json_decref(files);
}

TEST(read__folder_with_other_files__those_of_the_run)
{
	static const char *const names[] = { "run.json", "report.html", "step-00008-1-connect.hlog" };
	json_t *files;

	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		FILE *f = fopen(results_path(results, names[i]), "w");

		assert_non_null(f);
		fputs("{}", f);
		fclose(f);
	}
	files = host_files_read(results);
	assert_string_equal(json_string_value(json_object_get(json_object_get(files, "files"), "run.json")), "{}");
	assert_non_null(json_object_get(json_object_get(files, "files"), "step-00008-1-connect.hlog"));
	assert_null(json_object_get(json_object_get(files, "files"), "report.html"));
	assert_int_equal(json_array_size(json_object_get(files, "left")), 0);
	json_decref(files);
}

TEST_EACH(set_up, tear_down)
