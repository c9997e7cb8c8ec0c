/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/suites/suite_file.c, suite.c and suite_results.c: what is read from a suite, and what becomes
 * of its runs. */
#include "tests/unit/helpers/unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "loadgen/report/suite_report.h"
#include "loadgen/suites/suite.h"
#include "loadgen/suites/suite_find.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/files/scratch.h"
#include "tests/unit/helpers/report_rig.h"

#define ARGS_MAX 16

static struct suite *suite;
static char line[256], err[1024];
static char *args[ARGS_MAX];
static int n_args;

static void give(const char *arguments)
{
	char *save;

	n_args = 0;
	snprintf(line, sizeof(line), "performance_test %s", arguments);
	for (char *s = strtok_r(line, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		assert_true(n_args < ARGS_MAX - 1);
		args[n_args++] = s;
	}
	args[n_args] = NULL;
	err[0] = '\0';
	suite_free(suite);
	suite = calloc(1, sizeof(*suite));
	assert_non_null(suite);
}

static int parse(const char *arguments, const char *text)
{
	give(arguments);
	return suite_add(suite, text, strlen(text), n_args, args, err, sizeof(err));
}

/* A suite with one entry, "s-e", of these options, and of further members, which begin with a comma. */
static const char *with_members(const char *options, const char *members)
{
	static char text[2048];

	snprintf(text, sizeof(text), "{\"schema_version\": 1, \"name\": \"s\", \"title\": \"S\", \"entries\": "
		 "[{\"name\": \"e\", \"title\": \"E\", \"options\": {%s}%s}]}", options, members);
	return text;
}

static const char *with(const char *options)
{
	return with_members(options, "");
}

static void assert_refused(const char *arguments, const char *text, const char *beginning)
{
	assert_int_equal(parse(arguments, text), -EINVAL);
	if (strncmp(err, beginning, strlen(beginning)) != 0 || strchr(err, '\n'))
		fail_msg("'%s' does not begin with '%s'", err, beginning);
}

static int set_up(void **state)
{
	fake_verbs_reset();
	fake_rdmacm_reset();
	return report_rig_set_up(state);
}

static int tear_down(void **state)
{
	(void)state;
	suite_free(suite);
	suite = NULL;
	return 0;
}

TEST_WITH(plan__values_of_all_types__as_on_a_command_line, NULL, tear_down)
{
	const struct suite_entry *e;

	assert_int_equal(parse("",
			       with("\"steps\": [1, 5], \"message-size\": \"64,1k\", \"duration\": 0.5, \"warmup\": 2, "
					"\"verify\": true, \"message-auth\": false, \"workload\": \"echo\"")), 0);
	e = &suite->entries[0];
	assert_string_equal(e->id, "s-e");
	assert_string_equal(e->cfg.name_text, "s-e");
	assert_string_equal(e->question, "");
	assert_int_equal(e->cfg.steps.n, 2);
	assert_int_equal(e->cfg.steps.v[1], 5);
	assert_int_equal(e->cfg.sizes.v[1], 1024);
	assert_int_equal(e->cfg.duration_ns, 500000000);
	assert_int_equal(e->cfg.warmup_ns, 2000000000);
	assert_true(e->cfg.verify);
	assert_false(e->cfg.message_auth);
}

TEST_WITH(plan__command_line__replaces_what_entries_say, NULL, tear_down)
{
	static const char text[] = "{\"schema_version\": 1, \"name\": \"s\", \"title\": \"S\", "
		"\"defaults\": {\"duration\": 3, \"warmup\": 1, \"clients\": 20, \"poll\": \"busy\"}, \"entries\": ["
		"{\"name\": \"a\", \"title\": \"A\", \"options\": {\"steps\": 7, \"poll\": \"event\"}}, "
		"{\"name\": \"b\", \"title\": \"B\", \"options\": {\"iterations\": 3, \"workload\": \"pingpong\"}}]}";

	assert_int_equal(parse("--suite x", text), 0);
	assert_int_equal(suite->entries[0].cfg.duration_ns, 3000000000);
	assert_int_equal(suite->entries[0].cfg.steps.v[0], 7);
	assert_int_not_equal(suite->entries[0].cfg.poll, suite->entries[1].cfg.poll);
	assert_int_equal(suite->entries[1].cfg.iterations, 3);
	/* A time given there is for all entries, those that count operations, too. */
	assert_int_equal(parse("--suite=x --duration 2 --steps 4 --verify", text), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(suite->entries[i].cfg.duration_ns, 2000000000);
		assert_int_equal(suite->entries[i].cfg.steps.v[0], 4);
		assert_int_equal(suite->entries[i].cfg.iterations, 0);
		assert_true(suite->entries[i].cfg.verify);
		assert_null(suite->entries[i].cfg.suite);
	}
}

TEST_WITH(plan__comparisons__alternatives_of_an_entry, NULL, tear_down)
{
	assert_int_equal(parse("", with("\"compare\": [\"inline=off,auto\", \"post-list=1,16\"], \"repeat\": 3")), 0);
	assert_int_equal(suite->entries[0].alternatives.n, 4);
	assert_int_equal(suite->entries[0].alternatives.rounds, 3);
	fake_verbs_reset();
	fake_rdmacm_reset();
	/* The fake's only device has a name; the second one is not there, and stays as it is written. */
	assert_int_equal(parse("", with("\"compare\": \"device=@1,@1+@2\", \"workload\": \"duplex\"")), 0);
	assert_null(strchr(suite->entries[0].alternatives.v[0].name, '@'));
	assert_non_null(strstr(suite->entries[0].alternatives.v[1].name, "+@2"));
	assert_int_equal(suite_rails(suite), 2);
	/* The devices are those of the micro-VM. */
	assert_int_equal(parse("--environment vm --suite x",
			       with("\"device\": \"@1,@2\", \"workload\": \"duplex\"")), 0);
	assert_int_equal(suite_rails(suite), 2);
}

TEST_WITH(plan__wrong__refused_with_the_entry, NULL, tear_down)
{
	assert_refused("", "", "--suite: line 1: ");
	assert_refused("", "[]", "--suite: schema_version is missing");
	assert_refused("", "{\"schema_version\": 2}", "--suite: schema_version is missing or not 1");
	assert_refused("", "{\"schema_version\": 1, \"name\": \"../x\", \"title\": \"S\"}",
		       "--suite: the suite needs a name");
	assert_refused("", "{\"schema_version\": 1, \"name\": \"s\", \"title\": \"S\"}", "--suite: s: needs entries");
	assert_refused("", "{\"schema_version\": 1, \"name\": \"s\", \"title\": \"S\", \"entries\": [], \"x\\u001b\": "
		       "1}", "--suite: s: 'x\\x1b' is not a member of a suite");
	assert_refused("", "{\"schema_version\": 1, \"name\": \"s\", \"title\": \"S\", \"entries\": [7]}",
		       "--suite: entry 1 of s: a name is missing");
	assert_refused("", "{\"schema_version\": 1, \"name\": \"s\", \"title\": \"S\", \"entries\": [{\"name\": "
		       "\"e\"}]}", "--suite: entry s-e: needs a title and options");
	assert_refused("", with("\"clients\": 0"),
		       "--suite: entry s-e: --clients: 0 is not allowed; allowed: 1 to 100000");
	assert_refused("", with("\"message-size\": 15"), "--suite: entry s-e: --message-size: 15 is not allowed");
	assert_refused("", with("\"nonsense\": 1"), "--suite: entry s-e: nonsense: unknown option");
	assert_refused("", with("\"output\": \"/etc\""),
		       "--suite: entry s-e: output is not allowed in a suite; give --output");
	assert_refused("", with("\"server\": \"a\""),
		       "--suite: entry s-e: server is not allowed in a suite; give --server");
	assert_refused("", with("\"suite\": \"all\""), "--suite: entry s-e: suite is not allowed");
	assert_refused("", with("\"verify\": 1"), "--suite: entry s-e: verify: the value is not allowed");
	assert_refused("", with("\"clients\": true"), "--suite: entry s-e: clients: the value is not allowed");
	assert_refused("", with("\"clients\": {}"), "--suite: entry s-e: clients: the value is not allowed");
	assert_refused("", with("\"clients\": []"), "--suite: entry s-e: clients: the value is not allowed");
	assert_refused("", with("\"clients\": \"\""), "--suite: entry s-e: clients: the value is not allowed");
	assert_refused("", with("\"steps\": [1, [2]]"), "--suite: entry s-e: steps: the value is not allowed");
	assert_refused("", with("\"clients\": 1, \"clients\": 2"), "--suite: line 1: duplicate object key");
	assert_refused("", with("\"compare\": \"clients=1,2\""),
		       "--suite: entry s-e: --compare: clients cannot be compared");
	assert_refused("", with("\"compare\": "
				"[\"inline=off,auto\",\"inline=1,2\",\"inline=1,2\",\"inline=1,2\",\"inline=1,2\","
				"\"inline=1,2\",\"inline=1,2\",\"inline=1,2\",\"inline=1,2\"]"),
				"--suite: entry s-e: ");
	assert_refused("--join etcd://127.0.0.1:2379/run", with("\"clients\": 2, \"numa\": \"auto\""),
		       "--suite: entry s-e: numa is not allowed in a run on several hosts");
	assert_refused("--churn 5", with("\"cycles\": 5, \"phased\": true, \"reconnect\": -1"),
		       "--suite: entry s-e: --reconnect: ");
}

/* A file that is cut off, or has another byte anywhere, is read or refused with a line. */
TEST_WITH(plan__damaged_file__refused_with_one_line, NULL, tear_down)
{
	const char *whole = with("\"steps\": [1, 5], \"compare\": [\"inline=off,auto\"], \"verify\": true, "
				 "\"duration\": 0.5");
	char text[2048];
	size_t n = strlen(whole);

	for (size_t i = 0; i < n; i++) {
		give("");
		assert_int_not_equal(suite_add(suite, whole, i, n_args, args, err, sizeof(err)), 0);
		assert_true(err[0] && !strchr(err, '\n'));
		for (int c = 0; c < 256; c += 17) {
			give("");
			memcpy(text, whole, n);
			text[i] = (char)c;
			if (suite_add(suite, text, n, n_args, args, err, sizeof(err)))
				assert_true(err[0] && !strchr(err, '\n'));
		}
	}
}

static void read_refused(const char *path, const char *why)
{
	give("");
	suite_free(suite);
	assert_true(suite_read(path, NULL, n_args, args, &suite, err, sizeof(err)) < 0);
	if (!strstr(err, why))
		fail_msg("'%s' does not say '%s'", err, why);
	assert_int_equal(strncmp(err, "--suite: ", 9), 0);
	assert_null(strchr(err, '\n'));
}

/* On a load host the leader names the file: a FIFO would keep the host waiting for ever, a device could give bytes
 * without end. */
TEST_WITH(read__what_is_no_suite_file__refused_with_one_line, NULL, tear_down)
{
	char dir[SCRATCH_MAX], path[SCRATCH_MAX + 10];
	FILE *f;

	assert_int_equal(scratch_make(dir), 0);
	snprintf(path, sizeof(path), "%s/x", dir);
	read_refused(path, "No such file or directory");
	read_refused(dir, "not a regular file");
	read_refused("/dev/null", "not a regular file");
	read_refused("/dev/zero", "not a regular file");
	assert_int_equal(mkfifo(path, 0600), 0);
	read_refused(path, "not a regular file");
	assert_int_equal(unlink(path), 0);
	f = fopen(path, "w");
	assert_non_null(f);
	read_refused(path, "line 1: ");
	/* Little text that takes much memory once it is parsed. */
	for (int i = 0; i < 300000; i++)
		assert_true(fputs(i ? ",{}" : "[{}", f) >= 0);
	assert_int_equal(fclose(f), 0);
	read_refused(path, "would take about ");
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	read_refused(path, "has more than the 1048576 bytes that are allowed");
	assert_int_equal(scratch_remove(dir), 0);
}

TEST_WITH(read__shipped_and_unknown, NULL, tear_down)
{
	static const char *const bad[] = { "nothing", "./nothing.json", "nothing.json", "/" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		give("");
		suite_free(suite);
		assert_int_not_equal(suite_read(bad[i], NULL, n_args, args, &suite, err, sizeof(err)), 0);
		assert_int_equal(strncmp(err, "--suite: ", 9), 0);
	}
}

static const char five[] = "{\"schema_version\": 1, \"name\": \"s\", \"title\": \"<i>S\", \"defaults\": {\"steps\": "
			   "1}, \"entries\": ["
	"{\"name\": \"a\", \"title\": \"A\", \"options\": {\"message-size\": \"64,128\"}}, "
	"{\"name\": \"b\", \"title\": \"B\", \"options\": {\"workload\": \"small\"}}, "
	"{\"name\": \"c\", \"title\": \"C\", \"options\": {\"compare\": \"inline=off,auto\", \"repeat\": 2}}, "
	"{\"name\": \"d\", \"title\": \"D\", \"options\": {\"workload\": \"duplex\", \"device\": \"@1,@8\"}}, "
	"{\"name\": \"e\", \"title\": \"E\", \"options\": {\"poll\": \"busy\"}}]}";

/* An entry that is not chosen may be one that the command line forbids. */
TEST_WITH(read__only__these_entries_in_the_suites_order, NULL, tear_down)
{
	static const char *const bad[] = { "a,x", "", "a,", ",", "s-aa" };
	char dir[SCRATCH_MAX], path[SCRATCH_MAX + 10];

	assert_int_equal(scratch_make(dir), 0);
	scratch_put(dir, "s.json", five);
	snprintf(path, sizeof(path), "%s/s.json", dir);
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		give("--transport tcp");
		suite_free(suite);
		assert_int_equal(suite_read(path, bad[i], n_args, args, &suite, err, sizeof(err)), -EINVAL);
		assert_non_null(strstr(err, "is no entry of the suite; allowed: a, b, c, d, e"));
	}
	give("--suite x --only s-c,b --transport tcp");
	suite_free(suite);
	assert_int_equal(suite_read(path, "s-c,b", n_args, args, &suite, err, sizeof(err)), 0);
	assert_int_equal(suite->n, 2);
	assert_string_equal(suite->entries[0].id, "s-b");
	assert_string_equal(suite->entries[1].cfg.name, "s-c");
	assert_int_equal(suite->entries[1].alternatives.n, 2);
	assert_int_equal(scratch_remove(dir), 0);
}

static char ran[512];
static const char *failing;	/* an entry whose run cannot start */
static bool keeps[16];
static uint64_t first_size;	/* of the last run */
static unsigned n_runs;

/* In the place of the run: a step for each size. */
enum run_exit run_once(const struct loadgen_config *cfg, int argc, char **argv, bool print, json_t **out)
{
	json_t *steps = json_array();

	(void)argc;
	(void)argv;
	assert_false(print);
	assert_null(cfg->json);
	assert_true(cfg->trace_each);
	*out = NULL;
	keeps[n_runs++] = cfg->keep != NULL;
	first_size = cfg->sizes.v[0];
	strcat(strcat(ran, cfg->name_text), " ");
	if (failing && strcmp(cfg->name_text, failing) == 0) {
		json_decref(steps);
		return EXIT_ENVIRONMENT;
	}
	for (size_t i = 0; i < cfg->sizes.n; i++)
		json_array_append_new(steps, json_pack("{s:i, s:I, s:f, s:f, s:{s:i, s:i, s:n, s:f}}", "target_clients",
						       1,
			"message_bytes", (json_int_t)cfg->sizes.v[i], "throughput_msgs_per_s", 1000.,
			"throughput_bytes_per_s",
			1000. * (double)cfg->sizes.v[i], "response_ns", "p50", 5000, "p99", 9000, "p99_9", "jitter",
			1.8));
	*out = json_pack("{s:{s:s, s:s, s:s}, s:o, s:[{s:s, s:s, s:s, s:s}]}", "run", "id", cfg->name_text,
			 "stop_reason",
			 "max_reached", "stop_detail", "", "steps", steps, "verdict", "result", "fail", "criterion",
			 "<b>x", "measured", "1", "required", "2");
	return strcmp(cfg->name_text, "s-b") == 0 ? EXIT_CRITERION : EXIT_OK;
}

static enum run_exit run_suite(const char *arguments, const char *text)
{
	struct loadgen_config base;
	int first;

	ran[0] = '\0';
	n_runs = 0;
	if (parse(arguments, text))
		fail_msg("%s", err);
	loadgen_config_defaults(&base);
	assert_int_equal(opts_parse(&loadgen_options, n_args, args, &base, &first, err, sizeof(err)), OPTS_OK);
	return suite_run(suite, &base, n_args, args);
}

static enum run_exit run(const char *failing_entry)
{
	failing = failing_entry;
	return run_suite("--quiet --output results --json copy.json", five);
}

/* The suite's folder below another one. */
static const char *folder_of(const char *output)
{
	static char path[600];
	DIR *dir = opendir(output);
	struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		if (strstr(e->d_name, "-suite-s"))
			snprintf(path, sizeof(path), "%s/%s", output, e->d_name);
	closedir(dir);
	return path;
}

static const char *folder(void)
{
	return folder_of("results");
}

static json_t *read_results_of(const char *output)
{
	char path[700];
	json_t *o;

	snprintf(path, sizeof(path), "%s/suite.json", folder_of(output));
	o = json_load_file(path, 0, NULL);
	assert_non_null(o);
	return o;
}

static json_t *read_results(void)
{
	return read_results_of("results");
}

static void assert_report_says(const char *file, const char *text, bool says)
{
	static char page[1 << 18];
	char path[700];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder(), file);
	f = fopen(path, "r");
	assert_non_null(f);
	page[fread(page, 1, sizeof(page) - 1, f)] = '\0';
	fclose(f);
	if ((strstr(page, text) != NULL) != says)
		fail_msg("%s: '%s'", file, text);
}

TEST_WITH(run__all_entries__one_folder_and_a_chapter_each, set_up, report_rig_tear_down)
{
	json_t *o, *entry;

	assert_int_equal(run(NULL), EXIT_CRITERION);
	assert_string_equal(ran, "s-a s-b s-c-1-1 s-c-1-2 s-c-2-2 s-c-2-1 s-e ");
	/* A comparison's runs have servers of their own; other entries share one. */
	assert_true(keeps[0] && keeps[1] && !keeps[2] && keeps[6]);
	o = read_results();
	entry = json_load_file("copy.json", 0, NULL);
	assert_true(json_equal(entry, o));
	json_decref(entry);
	assert_string_equal(json_text_at(o, "status"), "completed");
	assert_float_equal(json_number_at(o, "exit_status"), EXIT_CRITERION, 0);
	assert_int_equal(json_array_size(json_at(o, "entries")), 5);
	entry = json_array_get(json_at(o, "entries"), 0);
	assert_string_equal(json_text_at(entry, "id"), "s-a");
	assert_float_equal(json_number_at(entry, "server"), 1, 0);
	assert_int_equal(json_array_size(json_at(entry, "steps")), 2);
	assert_float_equal(json_number_at(json_array_get(json_at(entry, "steps"), 1), "throughput_bytes_per_s"), 128000,
			   0);
	assert_true(json_is_null(json_at(json_array_get(json_at(entry, "steps"), 1), "response_p99_9_ns")));
	assert_float_equal(json_number_at(json_array_get(json_at(o, "entries"), 1), "server"), 1, 0);
	entry = json_array_get(json_at(o, "entries"), 2);
	assert_true(json_is_null(json_at(entry, "server")));
	assert_string_equal(json_text_at(entry, "comparison.baseline"), "off");
	entry = json_array_get(json_at(o, "entries"), 3);
	assert_string_equal(json_text_at(entry, "status"), "skipped");
	assert_float_equal(json_number_at(entry, "exit_status"), EXIT_INCONCLUSIVE, 0);
	assert_float_equal(json_number_at(json_array_get(json_at(o, "entries"), 4), "server"), 2, 0);
	json_decref(o);
	for (const char *const *id = (const char *const[]){ "s-a", "s-b", "s-c", "s-d", "s-e", "summary",
							    NULL }; *id; id++) {
		char text[64];

		snprintf(text, sizeof(text), "<section id=\"%s\"", *id);
		assert_report_says("report.html", text, true);
		snprintf(text, sizeof(text), "<a href=\"#%s\">", *id);
		assert_report_says("report.html", text, true);
	}
	assert_report_says("report.html", "<i>S", false);
	assert_report_says("report.html", "<b>x", false);
	assert_report_says("report.html", "./s-a/report.html", true);
	assert_report_says("tables/summary.csv", "s-a,1,128,", true);
}

TEST_WITH(run__an_entry_that_cannot_run__others_do, set_up, report_rig_tear_down)
{
	json_auto_t *o = NULL;

	assert_int_equal(run("s-a"), EXIT_ENVIRONMENT);
	assert_string_equal(ran, "s-a s-b s-c-1-1 s-c-1-2 s-c-2-2 s-c-2-1 s-e ");
	o = read_results();
	assert_string_equal(json_text_at(json_array_get(json_at(o, "entries"), 0), "status"), "failed");
	assert_string_equal(json_text_at(json_array_get(json_at(o, "entries"), 1), "status"), "ran");
}

/* The p50 is 5 us at both sizes; 256 bytes are not measured. */
TEST_WITH(run__expectations__in_the_results_the_report_and_the_exit_status, set_up, report_rig_tear_down)
{
	static const char options[] = "\"steps\": 1, \"message-size\": \"64,128\"";
	static const char text[] = ", \"expect\": [{\"metric\": \"response_p50_ns\", \"max\": %d, \"source\": "
		"\"<b>a guide\"}, {\"metric\": \"response_p99_ns\", \"max\": 1, \"source\": \"s\", \"at\": "
		"{\"message_bytes\": 256}}]";
	char expect[512];
	json_auto_t *o = NULL;

	failing = NULL;
	snprintf(expect, sizeof(expect), text, 5000);
	assert_int_equal(run_suite("--quiet --output other", with_members(options, expect)), EXIT_INCONCLUSIVE);
	snprintf(expect, sizeof(expect), text, 4000);
	assert_int_equal(run_suite("--quiet --output results", with_members(options, expect)), EXIT_CRITERION);
	o = read_results();
	assert_float_equal(json_number_at(o, "exit_status"), EXIT_CRITERION, 0);
	assert_int_equal(json_array_size(json_at(json_array_get(json_at(o, "entries"), 0), "expectations")), 3);
	assert_report_says("tables/expectations.csv", "s-e,response_p50_ns,1,128,at most 4 us,5 us,missed", true);
	assert_report_says("report.html", "&lt;b&gt;a guide", true);
}

static void write_file(const char *path, const char *text, size_t bytes)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, bytes, f), bytes);
	assert_int_equal(fclose(f), 0);
}

/* suite.json with another byte, or cut off, is reported on or refused with a line. */
/* 10,000 regions of 1 GiB fit no machine. */
TEST_WITH(run__sizes_beyond_memory__made_smaller_unless_the_command_line_has_them, set_up, report_rig_tear_down)
{
	static const char text[] = "\"workload\": \"large\", \"inflight\": 1, \"steps\": 10000, \"message-size\": "
				   "\"1G\"";
	json_t *o;

	failing = NULL;
	run_suite("--quiet --report off --output results", with(text));
	assert_true(first_size > 0 && first_size < 1u << 30);
	o = read_results();
	assert_non_null(strstr(json_text_at(json_array_get(json_at(o, "entries"), 0), "note"), "made smaller"));
	json_decref(o);
	run_suite("--quiet --report off --output other --message-size 1G", with(text));
	assert_int_equal(first_size, 1u << 30);
	o = read_results_of("other");
	assert_true(json_is_null(json_at(json_array_get(json_at(o, "entries"), 0), "note")));
	json_decref(o);
}

TEST_WITH(report__damaged_suite_json__no_crash, set_up, report_rig_tear_down)
{
	static const char *const odd[] = { ("{\"schema_version\": 2, \"entries\": [7, null, {\"id\": 5, \"steps\": [1, "
					    "{\"clients\": \"a\"}]}, "
		"{\"id\": \"\\\"><b>\", \"folder\": \"../..\", \"comparison\": {\"points\": [1, {\"candidates\": "
		"[{\"rows\": [1]}]}]}, \"expectations\": [7, {}, {\"expected\": {\"metric\": 5, \"of\": \"<b>\"}, "
		"\"reason\": \"<b>\", \"reference\": 0}]}]}"),
		"{\"schema_version\": 2}", "{\"schema_version\": 1}", "[]", "" };
	char path[700], *text;
	json_t *o;
	size_t n;

	assert_int_equal(run(NULL), EXIT_CRITERION);
	o = read_results();
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	n = strlen(text);
	snprintf(path, sizeof(path), "%s/suite.json", folder());
	for (size_t i = 0; i < n; i += 1 + n / 100) {
		char was = text[i];

		text[i] = "0\"n{"[i % 4];
		write_file(path, text, i % 5 ? n : i);
		if (suite_report_write(folder(), err, sizeof(err)))
			assert_non_null(strstr(err, "suite.json: "));
		text[i] = was;
	}
	free(text);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		write_file(path, odd[i], strlen(odd[i]));
		assert_int_equal(suite_report_write(folder(), err, sizeof(err)) == 0, i < 2);
		if (i == 0)
			assert_report_says("report.html", "<b>", false);
	}
}

static int free_suite(void **state)
{
	(void)state;
	suite_free(suite);
	return 0;
}

TEST_GROUP(NULL, free_suite)
