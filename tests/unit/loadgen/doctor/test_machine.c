/* Unit tests of loadgen/doctor/machine.c: machines made of files in a folder. */
#include "tests/unit/helpers/unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"
#include "loadgen/doctor/machine.h"
#include "tests/unit/files/scratch.h"

#define GOVERNOR "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"

static char root[SCRATCH_MAX];
static struct findings found;

static void put(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	*strrchr(full, '/') = '\0';
	assert_int_equal(path_make_dirs(full), 0);
	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void look(void)
{
	memset(&found, 0, sizeof(found));
	machine_check(root, &found);
}

static int set_up(void **state)
{
	(void)state;
	return scratch_make(root);
}

static int tear_down(void **state)
{
	(void)state;
	return scratch_remove(root);
}

static void machine__nothing_special__nothing_said(void **state)
{
	(void)state;
	put("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
	look();
	assert_int_equal(found.n, 0);
}

static void machine__container_and_wsl__noted(void **state)
{
	(void)state;
	put("/run/.containerenv", "");
	put("/proc/sys/kernel/osrelease", "5.15.90.1-Microsoft-standard-WSL2\n");
	look();
	assert_int_equal(found.n, 2);
	assert_string_equal(found.v[0].check, "container");
	assert_string_equal(found.v[1].check, "wsl");
	assert_int_equal(findings_status(&found), 0);
}

static void machine__governor__noted_unless_performance(void **state)
{
	(void)state;
	put(GOVERNOR, "powersave\n");
	look();
	assert_int_equal(found.n, 1);
	assert_int_equal(found.v[0].status, FINDING_NOTE);
	assert_non_null(strstr(found.v[0].what, "powersave"));
	assert_non_null(strstr(found.v[0].mend, "performance"));
	put(GOVERNOR, "performance\n");
	look();
	assert_int_equal(found.v[0].status, FINDING_FINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(machine__nothing_special__nothing_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(machine__container_and_wsl__noted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(machine__governor__noted_unless_performance, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("doctor_machine", tests, NULL, NULL);
}
