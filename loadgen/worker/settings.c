/* SPDX-License-Identifier: BSD-2-Clause */
/* See settings.h. */
#include "loadgen/worker/settings.h"

#include "common/base/log.h"
#include "common/rdma/ep.h"
#include "loadgen/striping/stripe.h"
#include "loadgen/traffic/traffic.h"

static void log_inline(const struct traffic *t)
{
	const uint32_t asked = t->cfg->tuning.inline_bytes, wanted = ep_inline_wanted(t->ep);
	const uint32_t taken = ep_inline_bytes(t->ep);

	if (asked == 0)
		log_debug("worker %u: inline: off (--inline off)", t->worker);
	else if (ep_inline_granted(t->ep) == UINT32_MAX)
		log_debug("worker %u: inline: not known, because no client is connected", t->worker);
	else if (taken < wanted)
		log_debug("worker %u: inline: the device allows %u of %u bytes asked for (--inline)", t->worker, taken,
			  wanted);
	else if (wanted < asked)
		log_debug("worker %u: inline: %u bytes, the largest message, of up to %u (--inline)", t->worker, taken,
			  asked);
	else
		log_debug("worker %u: inline: up to %u bytes, as asked (--inline)", t->worker, taken);
}

static void log_doorbells(const struct traffic *t)
{
	uint32_t most = ep_post_list(t->ep);

	if (most > 1)
		log_debug("worker %u: doorbells: up to %u sends of a connection share one (--post-list)", t->worker,
			  most);
	else
		log_debug("worker %u: doorbells: each send rings one of its own (--post-list 1)", t->worker);
}

static void log_rails(const struct traffic *t)
{
	uint32_t used = stripe_rails(t->bytes, t->n_rails, t->cfg->stripe_min_bytes);

	if (used < t->n_rails)
		log_debug("worker %u: rails reduced from %u to %u for %llu bytes (--stripe-min %llu)", t->worker,
			  t->n_rails, used, (unsigned long long)t->bytes,
			  (unsigned long long)t->cfg->stripe_min_bytes);
	else
		log_debug("worker %u: rails: all %u carry a part of each %llu bytes (--stripe-min %llu)", t->worker,
			  used, (unsigned long long)t->bytes, (unsigned long long)t->cfg->stripe_min_bytes);
}

void settings_log(const struct traffic *t)
{
	if (t->cfg->transport != TRANSPORT_RDMA)
		return;
	log_inline(t);
	log_doorbells(t);
	if (t->n_rails > 1)
		log_rails(t);
}
