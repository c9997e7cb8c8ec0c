/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of `performance_test report`: its options, exit statuses, the files it leaves, baselines. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loadgen/report/report_command.h"
#include "tests/unit/helpers/analysis_run.h"
#include "tests/unit/helpers/report_rig.h"
#include "tests/unit/helpers/full_disk.h"

#define D REPORT_RIG_DIR
#define ARGS_MAX 16

static char said[1 << 20];	/* stdout and stderr of the last command */
static json_t *run;

static int set_up(void **state)
{
	run = analysis_run();
	if (report_rig_set_up(state))
		return -1;
	report_rig_run(D, run);
	return 0;
}

static int tear_down(void **state)
{
	json_decref(run);
	return report_rig_tear_down(state);
}

static void redirect(int to, int saved[2])
{
	fflush(stdout);
	fflush(stderr);
	for (int fd = 1; fd <= 2; fd++) {
		saved[fd - 1] = dup(fd);
		assert_int_equal(dup2(to, fd), fd);
	}
}

static void restore(const int saved[2])
{
	fflush(stdout);
	fflush(stderr);
	for (int fd = 1; fd <= 2; fd++) {
		dup2(saved[fd - 1], fd);
		close(saved[fd - 1]);
	}
}

/* Runs the command with arguments separated by spaces. */
static int report(const char *arguments)
{
	char line[1024], *args[ARGS_MAX] = { (char *)(uintptr_t)"report" }, *save;
	int n = 1, saved[2], status, fd = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);
	ssize_t size;

	snprintf(line, sizeof(line), "%s", arguments);
	for (char *s = strtok_r(line, " ", &save); s && n < ARGS_MAX - 1; s = strtok_r(NULL, " ", &save))
		args[n++] = s;
	redirect(fd, saved);
	status = report_command(n, args);
	restore(saved);
	size = pread(fd, said, sizeof(said) - 1, 0);
	said[size > 0 ? size : 0] = '\0';
	close(fd);
	return status;
}

static void expect(const char *arguments, int status, const char *text)
{
	int is = report(arguments);

	if (is != status || !strstr(said, text))
		fail_msg("%s: %d and not %d, or '%s' is not in '%.2000s'", arguments, is, status, text, said);
}

TEST(command__wrong_usage__2_and_what_is_allowed)
{
	expect("", 2, "name the folder of a run");
	expect("run run", 2, "name one run only");
	expect("run --format pdf", 2, "--format");
	expect("run --headroom 91", 2, "--headroom: 91 is not allowed");
	expect("run --headroom -1", 2, "--headroom");
	expect("run --plan 5,x", 2, "--plan");
	expect("run --baseline a,b,c,d,e", 2, "at most 4");
	expect("run --baseline a,", 2, "a folder is missing");
	expect("run --baseline x=", 2, "a folder is missing");
	expect("run --baseline x=a,x=b", 2, "the label x is given twice");
	expect("run --baseline <b>=a", 2, "is not a label");
	expect("run --no-such", 2, "unknown option");
}

TEST(command__help_and_version__0)
{
	expect("--help", 0, "performance_test report DIR [options]");
	expect("--version", 0, "performance_test ");
}

TEST(command__a_run__report_and_its_files)
{
	expect("run", 0, "4,000");
	assert_int_equal(access(D "/report.html", R_OK), 0);
	assert_int_equal(access(D "/report.md", R_OK), 0);
	assert_int_equal(access(D "/tables/throughput.csv", R_OK), 0);
	assert_int_not_equal(access(D "/report.html.tmp", F_OK), 0);
	expect("run --format html", 0, "<html");
	expect("--format markdown run", 0, "\n## ");
	expect("--format text run", 0, "\nEach step\n=========\n");
}

TEST(command__output__files_there_and_links_to_the_run)
{
	report_rig_file(D, "server.log", "");
	expect("run --output a/b --format html", 0, "/run/run.json");
	assert_int_equal(access("a/b/report.html", R_OK), 0);
	assert_int_not_equal(access(D "/report.html", F_OK), 0);
}

TEST(command__no_run_or_nowhere_to_write__3)
{
	expect("elsewhere", 3, "elsewhere: No such file or directory");
	expect("run --output /proc/none", 3, "/proc/none");
	expect("run --baseline elsewhere", 3, "elsewhere: No such file or directory");
	report_rig_file(D, "run.json", "{");
	expect("run", 3, "run.json: line 1: ");
}

TEST(command__a_suite__no_option_is_passed_over)
{
	FILE *f;

	assert_int_equal(mkdir("suite", 0700), 0);
	f = fopen("suite/suite.json", "w");
	assert_non_null(f);
	fprintf(f, "{\"schema_version\": 2, \"id\": \"s\", \"entries\": []}");
	fclose(f);
	expect("suite", 0, "Suite report: s\n");
	expect("suite --baseline " D, 2, "--baseline does not work with suites");
	expect("suite --plan 10", 2, "--plan does not work with suites");
}

TEST(command__plan__those_rows_in_rising_order)
{
	const char *rows, *a, *b;

	expect("run --plan 7000,300 --headroom 0 --growth 100 --format markdown", 0, "");
	report_rig_look(D, "plan-capacity", "100 %", NULL);
	rows = report_rig_read(D, "tables/plan.csv");
	a = strstr(rows, "\n300,600,6,100,");
	b = strstr(rows, "\n7000,14000,140,100,");
	assert_non_null(a);
	assert_non_null(b);
	assert_true(a < b);
}

TEST(baseline__as_good__0_and_said)
{
	report_rig_run("base", run);
	expect("run --baseline base", 0, "");
	report_rig_look(D, "baseline-no-worse", NULL);
	report_rig_look(D, "baseline-base", NULL);
}

/* The run's throughput is half of the baseline's, far beyond the noise of their intervals. */
static void make_worse(void)
{
	report_rig_run("base", run);
	json_array_clear(json_object_get(run, "steps"));
	analysis_run_add(run, 10, 500);
	analysis_run_add(run, 50, 1500);
	analysis_run_add(run, 100, 2000);
	report_rig_run(D, run);
}

TEST(baseline__worse__1_and_by_how_much)
{
	make_worse();
	expect("run --baseline before=base", 1, "");
	report_rig_look(D, "baseline-before", "base", NULL);
	report_rig_look(D, "baseline-worse", "3", NULL);
	assert_true(report_rig_has_row(D, "baseline_before", ",-50,regression"));
	expect("run --baseline base --min-effect 60", 0, "");
	report_rig_look(D, "baseline-no-worse", "60 %", NULL);
	expect("base --baseline run", 0, "");
	report_rig_look("base", "baseline-no-worse", NULL);
}

TEST(baseline__other_environment__3_and_each_difference)
{
	report_rig_run("base", run);
	analysis_run_set(run, "environment.server.cpu_model", json_string("B"));
	analysis_run_set(run, "config.inflight", json_integer(4));
	report_rig_run(D, run);
	expect("run --baseline base", 3, "environment.server.cpu_model: A there, B here\n");
	assert_non_null(strstr(said, "config.inflight: 1 there, 4 here\n"));
	assert_non_null(strstr(said, "--any-environment"));
	assert_int_not_equal(access(D "/report.html", F_OK), 0);
}

/* A run.json must not control the terminal. */
TEST(baseline__other_environment__control_characters_shown)
{
	report_rig_run("base", run);
	analysis_run_set(run, "environment.server.cpu_model", json_string("B\033]0;x\007\n\xc2\x9b" "31m"));
	report_rig_run(D, run);
	expect("run --baseline base", 3, "A there, B\\x1b]0;x\\x07\\x0a\\x9b31m here\n");
	assert_null(strpbrk(said, "\033\007"));
	expect("base --baseline run --format markdown --any-environment", 0, "");
	assert_null(strpbrk(said, "\033\007"));
}

TEST(baseline__other_environment_allowed__differences_in_the_report)
{
	report_rig_run("base", run);
	analysis_run_set(run, "environment.server.cpu_model", json_string("B"));
	report_rig_run(D, run);
	expect("run --baseline base --any-environment", 0, "");
	report_rig_look(D, "baseline-unlike", NULL);
	report_rig_look(D, "baseline-difference", "environment.server.cpu_model", "A", "B", NULL);
}

TEST(baseline__no_step_in_common__says_so)
{
	report_rig_run("base", run);
	json_array_clear(json_object_get(run, "steps"));
	analysis_run_add(run, 7, 500);
	report_rig_run(D, run);
	expect("run --baseline base", 0, "");
	report_rig_look(D, "baseline-nothing-common", NULL);
}

TEST(write__at_the_end_of_a_run__its_folder)
{
	char err[256];

	assert_int_equal(report_write(D, NULL, err, sizeof(err)), 0);
	assert_int_equal(access(D "/report.html", R_OK), 0);
	assert_int_equal(report_write("elsewhere", NULL, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "elsewhere"));
}

/* Replaces each file that a report writes, and its temporary file, by a link that leads elsewhere. */
TEST(write__a_link_in_the_place_of_a_file__error_that_names_it)
{
	static const struct { const char *path, *to, *named; } files[] = {
		{ D "/report.html", "../victim", "run/report.html" },
		{ D "/report.md", "../victim", "run/report.md" },
		{ D "/tables/throughput.csv", "../../victim", "run/tables/throughput.csv" },
		{ D "/charts/throughput-chart.svg", "../../victim", "run/charts/throughput-chart.svg" },
		{ D "/report.html.tmp", "../victim", "run/report.html" },
		{ D "/report.md.tmp", "../none", "run/report.md" },
		{ D "/report.html.tmp", "/dev/full", "run/report.html" },
		{ D "/report.md.tmp", "/dev/full", "run/report.md" },
		{ D "/tables/throughput.csv.tmp", "/dev/full", "run/tables/throughput.csv" },
		{ D "/charts/throughput-chart.svg.tmp", "/dev/full", "run/charts/throughput-chart.svg" },
		{ D "/tables", "../outside", "run/tables/" },
		{ D "/charts", "../outside", "run/charts/" },
	};
	char err[256];

	report_rig_file(".", "victim", "precious");
	assert_int_equal(mkdir("outside", 0700), 0);
	for (size_t i = 0; i < N_ELEMENTS(files); i++) {
		assert_true(mkdir(D "/tables", 0700) == 0 || errno == EEXIST);
		assert_true(mkdir(D "/charts", 0700) == 0 || errno == EEXIST);
		if (strcmp(files[i].to, "../outside") == 0)
			assert_int_equal(rename(files[i].path, "moved"), 0);
		else
			unlink(files[i].path);
		assert_int_equal(symlink(files[i].to, files[i].path), 0);
		err[0] = '\0';
		assert_int_equal(report_write(D, NULL, err, sizeof(err)), -EIO);
		if (!strstr(err, files[i].named) || !strstr(err, "symbolic link"))
			fail_msg("'%s' is not in '%s'", files[i].named, err);
		assert_string_equal(report_rig_read(".", "victim"), "precious");
		unlink(files[i].path);
		if (access("moved", F_OK) == 0)
			assert_int_equal(rename("moved", files[i].path), 0);
	}
	assert_int_equal(rmdir("outside"), 0); /* it is empty */
	assert_int_not_equal(access("none", F_OK), 0);
	assert_int_equal(report_write(D, NULL, err, sizeof(err)), 0);
}

/* Tries disks that are full after any number of bytes: the reason is reported, and no incomplete file is left. */
TEST(write__disk_full__its_error_and_no_half_file)
{
	char err[256];
	ssize_t fits = 0;
	int ret;

	do {
		disk_room = fits;
		ret = report_write(D, NULL, err, sizeof(err));
		disk_room = -1;
		assert_true(ret == 0 || (ret == -EIO && strstr(err, strerror(ENOSPC))));
		assert_int_equal(system("test -z \"$(find " D " -name '*.tmp' -o -type f -size 0)\""), 0);
		fits += 4999;
	} while (ret);
	assert_true(fits > 40000);
}

TEST_EACH(set_up, tear_down)
