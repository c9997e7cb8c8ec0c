/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/worker/settings.c: the lines on inline data, doorbells and rails, with their reasons. */
#include "tests/unit/files/log_watch.h"
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/rdma/ep.h"
#include "loadgen/traffic/traffic.h"
#include "loadgen/worker/settings.h"

struct ep {
	uint32_t wanted, taken, granted, post_list;
};

uint32_t ep_inline_wanted(const struct ep *ep)
{
	return ep->wanted;
}

uint32_t ep_inline_bytes(const struct ep *ep)
{
	return ep->taken;
}

uint32_t ep_inline_granted(const struct ep *ep)
{
	return ep->granted;
}

uint32_t ep_post_list(const struct ep *ep)
{
	return ep->post_list;
}

static struct loadgen_config cfg;

/* Logs the settings, and checks that each text is in the lines and that there are `n` of them. */
static void assert_logged(struct ep ep, uint32_t n_rails, uint64_t bytes, int n, const char *a, const char *b,
			  const char *c)
{
	const struct traffic t = { .cfg = &cfg, .ep = &ep, .n_rails = n_rails, .worker = 3, .bytes = bytes };
	const char *const parts[] = { a, b, c };
	char text[2048] = "";
	int lines;

	log_watch_begin("settings");
	log_init("test", LOG_LVL_DEBUG);
	settings_log(&t);
	lines = log_watch_read(text, sizeof(text));
	log_watch_end();
	assert_int_equal(lines, n);
	for (int i = 0; i < n; i++)
		if (!strstr(text, parts[i]))
			fail_msg("'%s' does not say '%s'", text, parts[i]);
}

static int set_up(void **state)
{
	(void)state;
	cfg = (struct loadgen_config){ .stripe_min_bytes = 16 << 10, .tuning.inline_bytes = 512 };
	return 0;
}

TEST(settings__reduced__what_and_why)
{
	assert_logged((struct ep){ 512, 220, 220, 16 }, 4, 32768, 3,
		      "worker 3: inline: the device allows 220 of 512 bytes asked for (--inline)",
		      "worker 3: doorbells: up to 16 sends of a connection share one (--post-list)",
		      "worker 3: rails reduced from 4 to 2 for 32768 bytes (--stripe-min 16384)");
}

TEST(settings__as_asked__said_too)
{
	cfg.stripe_min_bytes = 8 << 10;
	assert_logged((struct ep){ 512, 512, 600, 1 }, 4, 32768, 3, "inline: up to 512 bytes, as asked",
		      "doorbells: each send rings one of its own (--post-list 1)",
		      "rails: all 4 carry a part of each 32768 bytes (--stripe-min 8192)");
	assert_logged((struct ep){ 64, 64, 512, 2 }, 1, 64, 2,
		      "inline: 64 bytes, the largest message, of up to 512", "doorbells: up to 2 ", NULL);
	assert_logged((struct ep){ 512, 512, UINT32_MAX, 2 }, 1, 64, 2, "inline: not known", "doorbells: ", NULL);
	cfg.tuning.inline_bytes = 0;
	assert_logged((struct ep){ 0, 0, 512, 2 }, 1, 64, 2, "inline: off (--inline off)", "doorbells: ", NULL);
}

TEST(settings__over_sockets__no_line)
{
	cfg.transport = TRANSPORT_TLS;
	assert_logged((struct ep){ 0 }, 1, 64, 0, NULL, NULL, NULL);
}

TEST_EACH(set_up, NULL)
