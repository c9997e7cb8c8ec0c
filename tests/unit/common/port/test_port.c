/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/port/port.c, on a folder that looks like /sys: is each counter read as it stands, and is what is
 * no counter left out? */
#include "tests/unit/helpers/unit.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/port/port.h"
#include "tests/unit/files/scratch.h"

#define PORT "class/infiniband/rxe0/ports/1/"
#define NETDEV "class/net/eth0/"

static char top[SCRATCH_MAX];

static const char *at(const char *path)
{
	static char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s/%s", top, path);
	return full;
}

static void put(const char *path, const char *text)
{
	scratch_put(top, path, text);
}

/* As rdma_rxe of Linux 6.1 has it, on an interface that does not know its speed. */
static void put_rxe(void)
{
	put(PORT "rate", "2.5 Gb/sec (1X SDR)\n");
	put(PORT "gids/0", "fe80:0000:0000:0000:5054:00ff:fe4d:0001\n");
	put(PORT "gids/1", "0000:0000:0000:0000:0000:ffff:0a4d:0001\n");
	put(PORT "gid_attrs/ndevs/0", "other\n");
	put(PORT "gid_attrs/ndevs/1", "eth0\n");
	put(PORT "hw_counters/sent_pkts", "1200\n");
	put(PORT "hw_counters/rcvd_pkts", "1100\n");
	put(PORT "hw_counters/lifespan", "10\n");
	put(NETDEV "speed", "-1\n");
	put(NETDEV "statistics/tx_bytes", "900000\n");
	put(NETDEV "statistics/rx_bytes", "800000\n");
	put(NETDEV "statistics/collisions", "0\n");
}

static int make_top(void **state)
{
	(void)state;
	return scratch_make(top);
}

static int remove_top(void **state)
{
	(void)state;
	return scratch_remove(top);
}

static struct port *open_port(const char *device)
{
	struct port_id id = { .device = device, .number = 1, .software = true };
	struct port *p;

	assert_int_equal(addr_parse("10.77.0.1", 0, &id.addr), 0);
	assert_int_equal(port_open(top, &id, &p), 0);
	return p;
}

static json_t *read_once(const char *device)
{
	struct port *p = open_port(device);
	json_t *o = port_read(p);

	assert_non_null(o);
	port_close(p);
	return o;
}

static void is_known(const json_t *o, const char *path, json_int_t v)
{
	const json_t *number = json_at(o, path);

	if (!json_is_integer(number) || json_integer_value(number) != v)
		fail_msg("%s is not %lld", path, (long long)v);
}

static void is_unknown(const json_t *o, const char *path)
{
	const json_t *v = json_at(o, path);

	if (v && !json_is_null(v))
		fail_msg("%s is known", path);
}

TEST(counters__of_rxe__all_by_name)
{
	json_auto_t *o = NULL;

	put_rxe();
	o = read_once("rxe0");
	assert_string_equal(json_text_at(o, "device"), "rxe0");
	assert_string_equal(json_text_at(o, "netdev"), "eth0");
	is_known(o, "port", 1);
	assert_true(json_is_true(json_at(o, "software")));
	is_known(o, "counters.sent_pkts", 1200);
	is_known(o, "counters.rcvd_pkts", 1100);
	assert_int_equal(json_object_size(json_at(o, "counters")), 2);
	is_known(o, "netdev_counters.tx_bytes", 900000);
	is_known(o, "netdev_counters.rx_bytes", 800000);
	assert_int_equal(json_object_size(json_at(o, "netdev_counters")), 2);
	assert_float_equal(json_number_at(o, "link_bits_per_s"), 2.5e9, 1);
	is_known(o, "link_lanes", 1);
	is_unknown(o, "netdev_bits_per_s");
}

TEST(counters__of_hardware__of_both_folders_and_the_interfaces_speed)
{
	json_auto_t *o = NULL;

	put_rxe();
	put(PORT "rate", "100 Gb/sec (4X EDR)\n");
	put(PORT "counters/port_xmit_data", "250\n");
	put(PORT "hw_counters/out_of_sequence", "3\n");
	put(NETDEV "speed", "100000\n");
	o = read_once("rxe0");
	is_known(o, "counters.port_xmit_data", 250);
	is_known(o, "counters.out_of_sequence", 3);
	assert_float_equal(json_number_at(o, "link_bits_per_s"), 100e9, 1);
	is_known(o, "link_lanes", 4);
	assert_float_equal(json_number_at(o, "netdev_bits_per_s"), 100e9, 1);
}

TEST(a_reading__after_the_counter_moved__is_the_new_one)
{
	struct port *p;
	json_t *o;

	put_rxe();
	p = open_port("rxe0");
	put(PORT "hw_counters/sent_pkts", "1201\n");
	o = port_read(p);
	is_known(o, "counters.sent_pkts", 1201);
	json_decref(o);
	/* Its files stay open: what was removed from the folder is read all the same, and takes no descriptor. */
	assert_int_equal(unlink(at(PORT "hw_counters/sent_pkts")), 0);
	o = port_read(p);
	is_known(o, "counters.sent_pkts", 1201);
	json_decref(o);
	port_close(p);
}

TEST(counters__that_are_none__left_out)
{
	static const char *const bad[] = { "", "\n", "-5\n", "+5\n", " 5\n", "0x10\n", "5 packets\n", "text\n", "1e3\n",
					   "nan\n",
		"9223372036854775808\n", "99999999999999999999999999999999999999999\n", "N/A (no PMA)\n" };
	char path[PATH_MAX], dots[200];
	json_auto_t *o = NULL;

	put_rxe();
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		snprintf(path, sizeof(path), PORT "hw_counters/bad%zu", i);
		put(path, bad[i]);
	}
	memset(dots, '7', sizeof(dots));
	dots[sizeof(dots) - 1] = '\0';
	put(PORT "hw_counters/long", dots);
	put(PORT "hw_counters/na me", "1\n");
	put(PORT "hw_counters/.hidden", "1\n");
	put(PORT "hw_counters/folder/x", "1\n");
	put(PORT "hw_counters/largest", "9223372036854775807\n");
	assert_int_equal(mkfifo(at(PORT "hw_counters/fifo"), 0600), 0);
	assert_int_equal(symlink("nowhere", at(PORT "hw_counters/dangling")), 0);
	o = read_once("rxe0");
	is_known(o, "counters.largest", INT64_MAX);
	is_known(o, "counters.sent_pkts", 1200);
	assert_int_equal(json_object_size(json_at(o, "counters")), 3);
}

TEST(rates__that_are_none__null)
{
	static const char *const bad[] = { "", "fast\n", "-1 Gb/sec (4X EDR)\n", "nan Gb/sec (4X EDR)\n",
					   "inf Gb/sec (4X X)\n",
		"0 Gb/sec (4X SDR)\n", "1e99 Gb/sec (4X EDR)\n", "100\n" };
	json_t *o;

	put_rxe();
	put(NETDEV "speed", "4294967295\n");
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		put(PORT "rate", bad[i]);
		o = read_once("rxe0");
		is_unknown(o, "link_bits_per_s");
		is_unknown(o, "link_lanes");
		is_unknown(o, "netdev_bits_per_s");
		json_decref(o);
	}
}

TEST(interfaces__by_the_address_or_the_first)
{
	json_t *o;

	put_rxe();
	put(PORT "gids/1", "0000:0000:0000:0000:0000:ffff:0a4d:0002\n");
	o = read_once("rxe0");
	assert_string_equal(json_text_at(o, "netdev"), "other");
	assert_int_equal(json_object_size(json_at(o, "netdev_counters")), 0);
	json_decref(o);
	put(PORT "gid_attrs/ndevs/0", "../../../etc\n");
	o = read_once("rxe0");
	is_unknown(o, "netdev");
	json_decref(o);
}

TEST(nothing_there__all_unknown)
{
	static const char *const names[] = { "rxe0", "", "../x", "a/b" };

	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		json_t *o = read_once(names[i]);

		is_unknown(o, "netdev");
		is_unknown(o, "link_bits_per_s");
		assert_int_equal(json_object_size(json_at(o, "counters")), 0);
		assert_int_equal(json_object_size(json_at(o, "netdev_counters")), 0);
		json_decref(o);
	}
	port_close(NULL);
}

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

TEST(a_folder_of_many__as_many_as_there_is_room_for_and_all_closed)
{
	unsigned before, n = 0;
	struct port *p;
	char path[PATH_MAX];

	put_rxe();
	for (int i = 0; i < 2 * PORT_FILES_MAX; i++) {
		snprintf(path, sizeof(path), PORT "hw_counters/many%d", i);
		put(path, "1\n");
	}
	before = open_descriptors();
	p = open_port("rxe0");
	n = open_descriptors();
	assert_in_range(n, before + PORT_FILES_MAX / 2, before + PORT_FILES_MAX);
	json_decref(port_read(p));
	assert_int_equal(open_descriptors(), n);
	port_close(p);
	assert_int_equal(open_descriptors(), before);
}

TEST_EACH(make_top, remove_top)
