/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/dev.c: finding a device's address, opening it, and the advice when it
 * fails. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>

#include "common/rdma/cm.h"
#include "common/rdma/dev.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"

static char err[400];

static int set_up(void **state)
{
	(void)state;
	fake_reset();
	err[0] = '\0';
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fake_check();
	return 0;
}

static void set_gids(const char *const *texts, const enum ibv_gid_type *types, uint32_t n)
{
	fake_device.n_gids = n;
	for (uint32_t i = 0; i < n; i++) {
		struct addr a = unit_addr(texts[i], 0);

		fake_device.gids[i].gid_type = types[i];
		fake_device.gids[i].gid_index = i;
		fake_device.gids[i].port_num = 1;
		addr_to_bytes(&a, fake_device.gids[i].gid.raw);
	}
}

static void assert_local(const char *expected)
{
	struct addr a;
	char text[ADDR_TEXT_MAX];

	if (dev_local_addr(NULL, &a, err, sizeof(err)))
		fail_msg("%s", err);
	assert_string_equal(addr_host_text(&a, text), expected);
}

static void assert_no_local(const char *name, const char *word)
{
	struct addr a;

	assert_int_equal(dev_local_addr(name, &a, err, sizeof(err)), -ENODEV);
	assert_says(err, word);
}

TEST(count__devices__as_listed)
{
	assert_int_equal(dev_count(), 1);
	fake_device.devices = 3;
	assert_int_equal(dev_count(), 3);
	fake_fail_next("ibv_get_device_list", ENODEV);
	assert_int_equal(dev_count(), 0);
}

TEST(local_addr__several_gids__ipv4_first_never_link_local)
{
	static const char *const texts[] = { "fe80::1", "2001:db8::1", "10.0.0.9", "10.0.0.10" };
	static const enum ibv_gid_type v2[] = { IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V2,
						IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V2 };

	set_gids(texts, v2, 4);
	assert_local("10.0.0.9");
	set_gids(texts, v2, 2);
	assert_local("2001:db8::1");
}

TEST(local_addr__roce_v1__not_an_address)
{
	static const char *const texts[] = { "10.0.0.8", "10.0.0.9" };
	static const enum ibv_gid_type types[] = { IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2 };

	set_gids(texts, types, 2);
	assert_local("10.0.0.9");
	set_gids(texts, types, 1);
	assert_no_local(NULL, "no active port with an IP address");
}

TEST(local_addr__several_ports__only_an_active_one)
{
	static const char *const texts[] = { "10.0.0.8", "10.0.0.9" };
	static const enum ibv_gid_type v2[] = { IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V2 };

	set_gids(texts, v2, 2);
	fake_device.gids[0].port_num = 2; /* the fake device's only port is 1 */
	assert_local("10.0.0.9");
	fake_device.port.state = IBV_PORT_DOWN;
	assert_no_local(NULL, "no active port");
}

TEST(local_addr__nothing_usable__says_what_to_do)
{
	static const char *const texts[] = { "fe80::1" };
	static const enum ibv_gid_type v2[] = { IBV_GID_TYPE_ROCE_V2 };

	set_gids(texts, v2, 1);
	assert_no_local(NULL, "--bind");
	assert_no_local("fake0", "RDMA device fake0");
	assert_no_local("mlx5_7", "--device mlx5_7: no such");
	fake_device.devices = 0;
	assert_no_local(NULL, "scripts/softroce");
	fake_fail_next("ibv_get_device_list", ENODEV);
	assert_no_local(NULL, "scripts/softroce");
}

TEST(source_addr__loopback__itself_without_a_port)
{
	struct addr peer = unit_addr("127.0.0.1", 7471), a;

	assert_int_equal(dev_source_addr(&peer, &a), 0);
	assert_true(addr_same_host(&a, &peer));
	assert_int_equal(addr_port(&a), 0);
	peer = unit_addr("127.0.0.1", 0);
	assert_int_equal(dev_source_addr(&peer, &a), 0);
}

TEST(open__address_of_a_device__described)
{
	struct addr local = unit_addr("127.0.0.1", 7471);
	struct dev d;

	assert_int_equal(dev_open(&local, "fake0", true, &d, err, sizeof(err)), 0);
	assert_ptr_equal(d.ctx, fake_context());
	assert_string_equal(d.name, "fake0");
	assert_int_equal(d.port_num, 1);
	assert_int_equal(d.attr.max_cqe, 32767);
	assert_int_equal(d.port.state, IBV_PORT_ACTIVE);
	assert_true(addr_same_host(&d.addr, &local));
	assert_int_equal(addr_port(&d.addr), 0);
	dev_close(&d);
	assert_null(d.anchor);
	dev_close(&d);
}

/* Elsewhere queue pairs cannot be programmed for a port ahead of the connection. */
TEST(ethernet_port__link_layers__its_number_or_zero)
{
	static const struct {
		uint8_t link_layer, expected;
	} cases[] = {
		{ IBV_LINK_LAYER_ETHERNET, 2 },
		{ IBV_LINK_LAYER_INFINIBAND, 0 },
		{ IBV_LINK_LAYER_UNSPECIFIED, 0 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct dev d = { .port_num = 2, .port = { .link_layer = cases[i].link_layer } };

		assert_int_equal(dev_ethernet_port(&d), cases[i].expected);
	}
}

static void assert_open_fails(const char *name, int ret, const char *word)
{
	struct addr local = unit_addr("10.0.0.1", 0);
	struct dev d;

	assert_int_equal(dev_open(&local, name, true, &d, err, sizeof(err)), ret);
	assert_says(err, word);
	assert_int_equal(fake_objects(), 0);
}

TEST(open__each_way_to_fail__released_and_explained)
{
	fake_fail_next("rdma_create_id", ENODEV);
	assert_open_fails(NULL, -ENODEV, "scripts/softroce");
	fake_fail_next("rdma_create_id", EACCES);
	assert_open_fails(NULL, -EACCES, "/dev/infiniband");
	fake_fail_next("rdma_bind_addr", EADDRNOTAVAIL);
	assert_open_fails(NULL, -EADDRNOTAVAIL, "address 10.0.0.1 is not this machine's");
	fake_fail_next("ibv_query_device", EIO);
	assert_open_fails(NULL, -EIO, "cannot query RDMA device fake0");
	fake_fail_next("ibv_query_port", EIO);
	assert_open_fails(NULL, -EIO, "cannot query RDMA device fake0");
	assert_open_fails("other0", -ENODEV, "--device other0: address 10.0.0.1 belongs to fake0");
	fake_cm.no_device = true;
	assert_open_fails(NULL, -ENODEV, "no RDMA device has address 10.0.0.1");
}

/* As where there is no /dev/infiniband/rdma_cm, and in a container whose addresses the connection manager rejects. */
TEST(open__without_librdmacm__by_the_gid_table)
{
	static const struct {
		const char *call;
		int err;
	} cases[] = { { "rdma_create_id", ENODEV }, { "rdma_bind_addr", EADDRNOTAVAIL } };
	struct addr local = unit_addr("127.0.0.1", 7471), other = unit_addr("10.0.0.1", 0);
	struct dev d;

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		fake_fail_next(cases[i].call, cases[i].err);
		assert_int_equal(dev_open(&local, "fake0", false, &d, err, sizeof(err)), 0);
		assert_null(d.anchor);
		assert_ptr_equal(d.ctx, fake_context());
		assert_int_equal(d.port_num, 1);
		assert_memory_equal(d.gid.raw, fake_device.gids[0].gid.raw, sizeof(d.gid.raw));
		dev_close(&d);
		assert_int_equal(fake_objects(), 0);
	}
	fake_fail_next("rdma_create_id", ENODEV);
	assert_int_equal(dev_open(&local, NULL, true, &d, err, sizeof(err)), -ENODEV);
	fake_cm.no_device = true;
	assert_int_equal(dev_open(&other, NULL, false, &d, err, sizeof(err)), -ENODEV);
	fake_fail_next("ibv_open_device", EACCES);
	assert_int_equal(dev_open(&local, NULL, false, &d, err, sizeof(err)), -ENODEV);
}

TEST(json__open_device__name_link_and_limits)
{
	struct addr local = unit_addr("127.0.0.1", 0);
	struct dev d;
	json_t *o;

	assert_int_equal(dev_open(&local, NULL, true, &d, err, sizeof(err)), 0);
	o = dev_json(&d);
	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "name")), "fake0");
	assert_string_equal(json_string_value(json_object_get(o, "link")), "ethernet");
	assert_string_equal(json_string_value(json_object_get(o, "address")), "127.0.0.1");
	assert_int_equal(json_integer_value(json_object_get(o, "path_mtu_bytes")), 1024);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(o, "limits"), "max_cqe")),
		32767);
	assert_false(json_boolean_value(json_object_get(o, "is_software")));
	json_decref(o);
	dev_close(&d);
}

/* The device at 127.0.0.1, opened for a user who chose this of the path. */
static int fit(const struct cm_fabric *f, struct dev *d)
{
	struct addr local = unit_addr("127.0.0.1", 0);

	assert_int_equal(dev_open(&local, NULL, true, d, err, sizeof(err)), 0);
	return dev_fit_fabric(d, f, err, sizeof(err));
}

TEST(fit__gid_index__address_of_that_entry)
{
	static const char *const texts[] = { "fe80::1", "127.0.0.1", "127.0.0.2" };
	static const enum ibv_gid_type types[] = { IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2 };
	static const char *const addresses[] = { NULL, "127.0.0.1", "127.0.0.2" };
	char text[ADDR_TEXT_MAX];
	struct dev d;

	set_gids(texts, types, 3);
	for (uint8_t i = 1; i < 3; i++) {
		const struct cm_fabric f = { .has_gid_index = true, .gid_index = i };

		assert_int_equal(fit(&f, &d), 0);
		assert_string_equal(addr_host_text(&d.addr, text), addresses[i]);
		dev_close(&d);
	}
}

TEST(fit__what_does_not__one_line_that_names_the_option)
{
	static const char *const texts[] = { "fe80::1", "127.0.0.1" };
	static const enum ibv_gid_type types[] = { IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V2 };
	static const struct {
		struct cm_fabric f;
		uint8_t link;
		int ret;
		const char *words;
	} cases[] = {
		{ { .has_gid_index = true, .gid_index = 9 }, IBV_LINK_LAYER_ETHERNET, -EINVAL,
		  "--gid-index: device fake0 has no entry 9" },
		{ { .has_gid_index = true }, IBV_LINK_LAYER_ETHERNET, -EINVAL,
		  "--gid-index: entry 0 of device fake0 is fe80::1" },
		{ { .has_gid_index = true }, IBV_LINK_LAYER_INFINIBAND, -EAFNOSUPPORT,
		  "--gid-index: the link of device fake0 is InfiniBand" },
		{ { .has_service_level = true, .service_level = 8 }, IBV_LINK_LAYER_ETHERNET, -EINVAL,
		  "allowed: 0 to 7" },
		{ { .has_service_level = true, .service_level = 8 }, IBV_LINK_LAYER_INFINIBAND, 0, "" },
		{ { .has_service_level = true, .service_level = 7 }, IBV_LINK_LAYER_ETHERNET, 0, "" },
	};
	struct dev d;

	set_gids(texts, types, 2);
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		fake_device.port.link_layer = cases[i].link;
		err[0] = '\0';
		assert_int_equal(fit(&cases[i].f, &d), cases[i].ret);
		assert_says(err, cases[i].words);
		dev_close(&d);
	}
}

TEST_EACH(set_up, tear_down)
