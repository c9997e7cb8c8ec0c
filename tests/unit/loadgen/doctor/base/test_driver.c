/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/doctor/base/driver.c: the kernel's answers as bytes, and loopback, about which nothing is
 * reported. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/doctor/base/driver.h"

struct answer {
	struct nlmsghdr h;
	struct dcbmsg dcb;
	struct rtattr name;
	char text[16];
	struct rtattr ieee;	/* contains the rest */
	struct rtattr ets;
	uint32_t nothing;
	struct rtattr pfc_head;
	struct ieee_pfc pfc;
};

static struct answer good(void)
{
	struct answer a;

	memset(&a, 0, sizeof(a));
	a.h = (struct nlmsghdr) { .nlmsg_len = sizeof(a), .nlmsg_type = RTM_GETDCB };
	a.dcb.cmd = DCB_CMD_IEEE_GET;
	a.name = (struct rtattr) { .rta_len = RTA_LENGTH(sizeof(a.text)), .rta_type = DCB_ATTR_IFNAME };
	a.ieee.rta_type = DCB_ATTR_IEEE | NLA_F_NESTED;
	a.ieee.rta_len = sizeof(a) - offsetof(struct answer, ieee);
	a.ets = (struct rtattr) { .rta_len = RTA_LENGTH(sizeof(a.nothing)), .rta_type = DCB_ATTR_IEEE_ETS };
	a.pfc_head = (struct rtattr) { .rta_len = RTA_LENGTH(sizeof(a.pfc)), .rta_type = DCB_ATTR_IEEE_PFC };
	a.pfc.pfc_en = 1 << 3;
	return a;
}

TEST(pfc__answer__priorities)
{
	struct answer a = good();
	uint8_t priorities = 0xff;

	/* The struct must have no padding here, because the kernel sends none. */
	assert_int_equal(offsetof(struct answer, pfc) - offsetof(struct answer, pfc_head), RTA_LENGTH(0));
	assert_int_equal(driver_pfc_of(&a, sizeof(a), &priorities), 0);
	assert_int_equal(priorities, 1 << 3);
}

TEST(pfc__not_in_the_answer__not_supported)
{
	struct answer a = good();
	uint8_t priorities = 0xff;

	a.pfc_head.rta_type = DCB_ATTR_IEEE_MAXRATE;
	assert_int_equal(driver_pfc_of(&a, sizeof(a), &priorities), -EOPNOTSUPP);
	assert_int_equal(priorities, 0);
	a.ieee.rta_type = DCB_ATTR_CEE;
	assert_int_equal(driver_pfc_of(&a, sizeof(a), &priorities), -EOPNOTSUPP);
}

TEST(pfc__error__as_the_kernel_says)
{
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
	} a = { .h = { .nlmsg_len = sizeof(a), .nlmsg_type = NLMSG_ERROR }, .e = { .error = -ENODEV } };
	uint8_t priorities;

	assert_int_equal(driver_pfc_of(&a, sizeof(a), &priorities), -ENODEV);
	a.e.error = 0;
	assert_int_equal(driver_pfc_of(&a, sizeof(a), &priorities), -EBADMSG);
}

/* Whatever length the answer claims, only its real bytes are read; sanitizers would notice more. */
TEST(pfc__cut_anywhere__no_priorities)
{
	uint8_t priorities;

	for (size_t n = 0; n < sizeof(struct answer); n++) {
		struct answer a = good();
		char *copy = malloc(n + 1);

		assert_non_null(copy);
		memcpy(copy, &a, n);
		assert_int_equal(driver_pfc_of(copy, n, &priorities), -EBADMSG);
		if (n >= sizeof(a.h)) {
			a.h.nlmsg_len = (uint32_t)n;
			memcpy(copy, &a, n);
			assert_int_not_equal(driver_pfc_of(copy, n, &priorities), 0);
		}
		free(copy);
	}
}

TEST(loopback__has_neither)
{
	struct driver_pause pause;
	uint8_t priorities;

	assert_int_equal(driver_pause("lo", &pause), -EOPNOTSUPP);
	assert_int_equal(driver_pause("none-such", &pause), -ENODEV);
	assert_int_equal(driver_pfc("lo", &priorities), -EOPNOTSUPP);
}
