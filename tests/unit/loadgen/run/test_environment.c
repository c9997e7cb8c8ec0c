/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/run/environment.c: how the verdict describes the environment, and how a run enters the
 * micro-VM, whose script the test provides. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/rdma/dev.h"
#include "common/base/paths.h"
#include "loadgen/run/environment.h"
#include "tests/unit/files/scratch.h"

static int devices;	/* RDMA devices of this machine */
static char dir[SCRATCH_MAX];	/* the program's folder */
static struct loadgen_config c;
static char err[PATH_MAX + 400];

int dev_count(void)
{
	return devices;
}

int path_beside_program(const char *relative, char *out, size_t size)
{
	return snprintf(out, size, "%s/%s", dir, relative) < (int)size ? 0 : -ENAMETOOLONG;
}

int path_make_dirs(const char *path)
{
	return mkdir(path, 0777) && errno != EEXIST ? -errno : 0;
}

static const char *below(const char *file)
{
	static char paths[2][PATH_MAX];
	static unsigned int turn;
	char *path = paths[turn++ % 2];

	snprintf(path, PATH_MAX, "%s/%s", dir, file);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	devices = 0;
	memset(&c, 0, sizeof(c));
	c.clients = 100;
	c.output = dir;
	err[0] = '\0';
	unsetenv("RAMPART_VM");
	unsetenv("GITHUB_STEP_SUMMARY");
	if (scratch_make(dir))
		return -1;
	return mkdir(below("scripts"), 0777);
}

static int tear_down(void **state)
{
	(void)state;
	return scratch_remove(dir);
}

static void assert_described(json_t *environment, const char *expected)
{
	char text[200], cut[200];

	assert_non_null(environment);
	assert_ptr_equal(environment_describe(environment, text, sizeof(text)), text);
	assert_string_equal(text, expected);
	/* With less room the text is cut and terminated, and nothing is written beyond it. */
	for (size_t size = 1; size <= strlen(expected); size++) {
		memset(cut, 0x55, sizeof(cut));
		environment_describe(environment, cut, size);
		assert_int_equal(strlen(cut), size - 1);
		assert_memory_equal(cut, expected, size - 1);
		assert_int_equal(cut[size], 0x55);
	}
	json_decref(environment);
}

static json_t *environment(const char *device, bool software, bool vm, bool emulated, const char *accelerator)
{
	return json_pack("{s:{s:s, s:b}, s:b, s:b, s:s?}", "rdma_device", "name", device, "is_software", software,
			 "is_virtual_machine", vm, "is_emulated_cpu", emulated, "accelerator", accelerator);
}

TEST(describe__hardware__nothing_to_excuse)
{
	assert_described(environment("mlx5_0", false, false, false, NULL), "RDMA device mlx5_0");
}

TEST(describe__rxe_native__no_hardware_figures)
{
	assert_described(environment("rxe0", true, false, false, NULL),
			 "software RDMA device rxe0: not hardware figures");
}

TEST(describe__rxe_in_tcg_vm__emulated_cpu_named)
{
	assert_described(environment("rxe0", true, true, true, "tcg"),
			 "software RDMA device rxe0, in a virtual machine, CPU emulated in software (tcg): "
			 "not hardware figures");
	assert_described(environment("rxe0", true, true, true, NULL),
			 "software RDMA device rxe0, in a virtual machine, CPU emulated in software (tcg): "
			 "not hardware figures");
}

TEST(describe__kvm__virtual_machine_but_no_emulation)
{
	assert_described(environment("rxe0", true, true, false, "kvm"),
			 "software RDMA device rxe0, in a virtual machine: not hardware figures");
	assert_described(environment("mlx5_1", false, true, false, "kvm"),
			 "RDMA device mlx5_1, in a virtual machine");
}

TEST(describe__no_device_or_unknown__said)
{
	assert_described(json_pack("{s:n, s:b}", "rdma_device", "is_virtual_machine", 0), "no RDMA device in use");
	assert_described(json_object(), "RDMA device ?");
}

/* In place of scripts/softroce, a script that writes its arguments to "out", one per line. `obstacle` is its answer to
 * `netns --check`; NULL: a network namespace is possible. */
static void make_script_with(const char *obstacle)
{
	FILE *f = fopen(below("scripts/softroce"), "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n[ \"$*\" != 'netns --check' ] || { echo '%s'; exit %d; }\n", obstacle ? obstacle : "",
		obstacle ? 3 : 0);
	fprintf(f, "printf '%%s\\n' \"$@\" >%s\n", below("out"));
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(below("scripts/softroce"), 0777), 0);
}

static void make_script(void)
{
	make_script_with("");
}

static const char *read_file(const char *path)
{
	static char text[4000];
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* Runs in a child, because it replaces the process. The child's exit status is 0 if it did, 98 if not. */
static int enter_in_child(int argc, char **argv)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		/* Not freopen, because exec would drop what it buffers. */
		if (dup2(open(below("errors"), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO) < 0)
			_exit(99);
		(void)!environment_enter(&c, argc, argv, err, sizeof(err));
		_exit(98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define ENTER(...) enter_in_child((int)N_ELEMENTS(((const char *[]){ __VA_ARGS__ })), \
				  (char **)(uintptr_t)(const char *[]){ __VA_ARGS__, NULL })

static int enter_here(void)
{
	char *argv[] = { (char *)(uintptr_t)"performance_test", NULL };

	return environment_enter(&c, 1, argv, err, sizeof(err));
}

TEST(enter__native_or_device_or_server__stays)
{
	c.environment = ENVIRONMENT_NATIVE;
	assert_int_equal(enter_here(), 0);
	c.environment = ENVIRONMENT_AUTO;
	c.server = "host";
	assert_int_equal(enter_here(), 0);
	c.server = NULL;
	c.device = "rxe0";
	assert_int_equal(enter_here(), 0);
	c.device = NULL;
	devices = 1;
	assert_int_equal(enter_here(), 0);
	devices = 0;
	setenv("RAMPART_VM", "1", 1);
	assert_int_equal(enter_here(), 0);
	/* For comparison, without RAMPART_VM. */
	unsetenv("RAMPART_VM");
	make_script();
	assert_int_equal(ENTER("pt"), 0);
}

TEST(enter__no_script__a_line_that_helps)
{
	c.environment = ENVIRONMENT_VM;
	devices = 1;	/* the VM was requested all the same */
	assert_int_equal(enter_here(), -ENODEV);
	assert_non_null(strstr(err, below("scripts/softroce")));
	assert_non_null(strstr(err, "scripts/softroce up"));
	assert_null(strchr(err, '\n'));
}

TEST(enter__vm__same_command_run_natively_there)
{
	char expected[PATH_MAX];

	make_script();
	c.environment = ENVIRONMENT_VM;
	assert_int_equal(ENTER("pt", "--clients", "7", "--environment", "vm", "--name", "a b", "--quiet"), 0);
	snprintf(expected, sizeof(expected), "vm\n--share\n%s\n--\n%s/performance_test\n--environment\nnative\n"
		 "--clients\n7\n--name\na b\n--quiet\n", dir, dir);
	assert_string_equal(read_file(below("out")), expected);
	assert_string_equal(read_file(below("errors")), "");
	assert_int_equal(ENTER("pt", "--environment=vm", "--clients=7"), 0);
	snprintf(expected, sizeof(expected), "vm\n--share\n%s\n--\n%s/performance_test\n--environment\nnative\n"
		 "--clients=7\n", dir, dir);
	assert_string_equal(read_file(below("out")), expected);
}

TEST(enter__auto_without_device__says_so_in_a_line)
{
	const char *said;

	make_script();
	assert_int_equal(ENTER("pt"), 0);
	said = read_file(below("errors"));
	assert_non_null(strstr(said, "no RDMA device"));
	assert_ptr_equal(strchr(said, '\n') + 1, said + strlen(said));
}

static void assert_runs_in_namespace(void)
{
	char expected[PATH_MAX];

	snprintf(expected, sizeof(expected), "netns\n--\n%s/performance_test\n--environment\nnative\n--quiet\n", dir);
	assert_string_equal(read_file(below("out")), expected);
}

TEST(enter__auto_and_namespace_possible__namespace_and_a_line_that_names_both)
{
	const char *said;

	make_script_with(NULL);
	assert_int_equal(ENTER("pt", "--quiet"), 0);
	assert_runs_in_namespace();
	said = read_file(below("errors"));
	assert_non_null(strstr(said, "--environment netns"));
	assert_non_null(strstr(said, "--environment vm"));
	assert_ptr_equal(strchr(said, '\n') + 1, said + strlen(said));
	/* A micro-VM has namespaces, too. */
	setenv("RAMPART_VM", "1", 1);
	assert_int_equal(ENTER("pt", "--quiet"), 0);
	assert_runs_in_namespace();
}

TEST(enter__auto_and_an_obstacle__micro_vm_and_a_line_that_names_it)
{
	make_script_with("kernel 6.1 has no module");
	assert_int_equal(ENTER("pt"), 0);
	assert_memory_equal(read_file(below("out")), "vm\n", 3);
	assert_non_null(strstr(read_file(below("errors")), "would be faster, but kernel 6.1 has no module\n"));
}

TEST(enter__auto_with_rails__micro_vm)
{
	make_script_with(NULL);
	c.vm_rails = 2;
	assert_int_equal(ENTER("pt"), 0);
	assert_memory_equal(read_file(below("out")), "vm\n", 3);
}

TEST(enter__netns__not_asked)
{
	make_script_with("kernel 6.1 has no module");
	c.environment = ENVIRONMENT_NETNS;
	assert_int_equal(ENTER("pt", "--environment", "netns", "--quiet"), 0);
	assert_runs_in_namespace();
	assert_string_equal(read_file(below("errors")), "");
}

TEST(enter__more_clients__more_memory)
{
	static const struct { uint64_t clients; const char *memory; } sizes[] = {
		{ 2001, "\n8G\n" }, { 12000, "\n8G\n" }, { 12001, "\n16G\n" },
	};

	make_script();
	c.environment = ENVIRONMENT_VM;
	for (size_t i = 0; i < N_ELEMENTS(sizes); i++) {
		c.clients = sizes[i].clients;
		assert_int_equal(ENTER("pt"), 0);
		assert_non_null(strstr(read_file(below("out")), sizes[i].memory));
	}
}

TEST(enter__few_clients__memory_left_to_the_script)
{
	make_script();
	c.environment = ENVIRONMENT_VM;
	c.clients = 2000;
	assert_int_equal(ENTER("pt"), 0);
	assert_null(strstr(read_file(below("out")), "--memory"));
}

TEST(enter__json_and_ca_elsewhere__their_folders_are_shared)
{
	char expected[3 * PATH_MAX];

	make_script();
	c.environment = ENVIRONMENT_VM;
	c.json = "/usr/r.json";
	c.ca = "ca.pem";
	assert_int_equal(ENTER("pt"), 0);
	snprintf(expected, sizeof(expected), "vm\n--share\n%s\n--share\n/usr\n--\n", dir);
	assert_memory_equal(read_file(below("out")), expected, strlen(expected));
	c.json = "-";
	c.ca = "/r.pem";
	assert_int_equal(ENTER("pt"), 0);
	snprintf(expected, sizeof(expected), "vm\n--share\n%s\n--share\n/\n--\n", dir);
	assert_memory_equal(read_file(below("out")), expected, strlen(expected));
}

TEST(enter__files_of_a_ci_system__their_folders_are_shared_and_the_variable_passed)
{
	char expected[3 * PATH_MAX];

	make_script();
	c.environment = ENVIRONMENT_VM;
	c.junit = "/usr/junit.xml";
	setenv("GITHUB_STEP_SUMMARY", "/etc/passwd", 1);
	assert_int_equal(ENTER("pt"), 0);
	snprintf(expected, sizeof(expected),
		 "vm\n--share\n%s\n--share\n/usr\n--share\n/etc\n--env\nGITHUB_STEP_SUMMARY\n--\n", dir);
	assert_memory_equal(read_file(below("out")), expected, strlen(expected));
	setenv("GITHUB_STEP_SUMMARY", "/dev/null", 1);	/* no regular file */
	assert_int_equal(ENTER("pt"), 0);
	snprintf(expected, sizeof(expected), "vm\n--share\n%s\n--share\n/usr\n--\n", dir);
	assert_memory_equal(read_file(below("out")), expected, strlen(expected));
}

TEST(enter__script_that_cannot_run__a_line)
{
	FILE *f = fopen(below("scripts/softroce"), "w");

	assert_non_null(f);
	fputs("#!/nonexistent/interpreter\n", f);
	fclose(f);
	chmod(below("scripts/softroce"), 0777);
	c.environment = ENVIRONMENT_VM;
	assert_int_equal(enter_here(), -ENOENT);
	assert_non_null(strstr(err, "cannot run"));
	assert_non_null(strstr(err, strerror(ENOENT)));
}

TEST(enter__too_many_arguments__refused)
{
	static char *argv[301];

	make_script();
	for (size_t i = 0; i < 300; i++)
		argv[i] = (char *)(uintptr_t)"--quiet";
	c.environment = ENVIRONMENT_VM;
	assert_int_equal(environment_enter(&c, 300, argv, err, sizeof(err)), -E2BIG);
	assert_true(strlen(err) > 10);
}

TEST_EACH(set_up, tear_down)
