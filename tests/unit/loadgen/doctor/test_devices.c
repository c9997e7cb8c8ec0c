/* Unit tests of loadgen/doctor/devices.c and finding.c: machines made of files in a folder. */
#include "tests/unit/helpers/unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/paths.h"
#include "loadgen/doctor/devices.h"
#include "tests/unit/files/scratch.h"

#define PORT "/sys/class/infiniband/rxe0/ports/1"

static char root[SCRATCH_MAX];
static struct findings found;

/* A file of the made-up machine. */
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
	devices_check(root, &found);
}

static const struct finding *finding_of(const char *check, enum finding_status status)
{
	for (size_t i = 0; i < found.n; i++)
		if (strcmp(found.v[i].check, check) == 0 && found.v[i].status == status)
			return &found.v[i];
	return NULL;
}

static void mended_by(const char *check, const char *mend)
{
	const struct finding *f = finding_of(check, FINDING_WRONG);

	assert_non_null(f);
	assert_string_equal(f->mend, mend);
	assert_int_equal(findings_status(&found), 1);
}

static int set_up(void **state)
{
	(void)state;
	if (scratch_make(root))
		return -1;
	put("/sys/class/net/eth0/type", "1\n");
	put("/sys/class/net/eth0/operstate", "up\n");
	put("/sys/class/net/eth0/mtu", "9000\n");
	put(PORT "/state", "4: ACTIVE\n");
	put(PORT "/gid_attrs/ndevs/0", "eth0\n");
	put(PORT "/gids/0", "fe80:0000:0000:0000:0200:00ff:fe00:0001\n");
	put(PORT "/gids/1", "0000:0000:0000:0000:0000:ffff:0a4d:0001\n");
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n");
	put("/dev/infiniband/uverbs0", "");
	put("/dev/infiniband/rdma_cm", "");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(root);
	return 0;
}

static void devices__all_is_there__fine(void **state)
{
	(void)state;
	look();
	for (size_t i = 0; i < found.n; i++)
		assert_int_equal(found.v[i].status, FINDING_FINE);
	assert_int_equal(found.n, 5);
	assert_non_null(strstr(finding_of("gid", FINDING_FINE)->what, "10.77.0.1"));
	assert_int_equal(findings_status(&found), 0);
}

static void devices__none__mend_makes_one_on_an_interface(void **state)
{
	char path[PATH_MAX], away[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s/sys/class/infiniband", root);
	snprintf(away, sizeof(away), "%s/away", root);
	assert_int_equal(rename(path, away), 0);
	look();
	mended_by("device", "modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0");
}

static void devices__port_down__mend_sets_the_interface_up(void **state)
{
	(void)state;
	put(PORT "/state", "1: DOWN\n");
	look();
	mended_by("link", "ip link set eth0 up");
}

static void devices__no_ipv4__mend_adds_an_address(void **state)
{
	(void)state;
	put(PORT "/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	look();
	mended_by("gid", "ip address add 10.77.0.1/16 dev eth0");
	/* With a global IPv6 address others with IPv6 can come. */
	put(PORT "/gids/1", "2001:0db8:0000:0000:0000:0000:0000:0001\n");
	look();
	assert_null(finding_of("gid", FINDING_WRONG));
	assert_non_null(finding_of("gid", FINDING_NOTE));
}

static void devices__small_mtu__mend_sets_it(void **state)
{
	(void)state;
	put("/sys/class/net/eth0/mtu", "1280\n");
	look();
	mended_by("mtu", "ip link set eth0 mtu 1500");
}

static void devices__mtu_is_no_number__unknown(void **state)
{
	(void)state;
	put("/sys/class/net/eth0/mtu", "15x\n");
	look();
	assert_non_null(finding_of("mtu", FINDING_UNKNOWN));
	assert_int_equal(findings_status(&found), 3);
}

static void devices__file_missing__mend_loads_its_module(void **state)
{
	char path[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s/dev/infiniband/rdma_cm", root);
	assert_int_equal(unlink(path), 0);
	look();
	mended_by("access", "modprobe rdma_ucm");
}

static void devices__netdev_is_a_command__not_in_a_mend(void **state)
{
	(void)state;
	put(PORT "/gid_attrs/ndevs/0", "x;reboot\n");
	put(PORT "/state", "1: DOWN\n");
	look();
	mended_by("link", "");
}

static void findings__too_many__not_complete(void **state)
{
	json_t *o;

	(void)state;
	memset(&found, 0, sizeof(found));
	for (int i = 0; i < FINDINGS_MAX + 1; i++)
		findings_add(&found, "x", FINDING_FINE, NULL, "%d", i);
	assert_int_equal(findings_status(&found), 3);
	o = findings_json(&found);
	assert_true(json_is_false(json_object_get(o, "complete")));
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(devices__all_is_there__fine, set_up, tear_down),
		cmocka_unit_test_setup_teardown(devices__none__mend_makes_one_on_an_interface, set_up, tear_down),
		cmocka_unit_test_setup_teardown(devices__port_down__mend_sets_the_interface_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(devices__no_ipv4__mend_adds_an_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(devices__small_mtu__mend_sets_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(devices__mtu_is_no_number__unknown, set_up, tear_down),
		cmocka_unit_test_setup_teardown(devices__file_missing__mend_loads_its_module, set_up, tear_down),
		cmocka_unit_test_setup_teardown(devices__netdev_is_a_command__not_in_a_mend, set_up, tear_down),
		cmocka_unit_test(findings__too_many__not_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
