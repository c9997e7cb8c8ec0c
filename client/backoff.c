/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides when a client that lost its connection connects again. See backoff.h. */
#include "client/backoff.h"

#include <errno.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/wire/frame.h"

#define PAUSE_MIN_NS (100 * NS_PER_MS)
#define PAUSE_MAX_NS (10 * NS_PER_S)

void backoff_begin(struct backoff *b, uint64_t now_ns)
{
	b->lost_ns = now_ns;
	b->attempts = 0;
	/* Mix in the address: clients that lose their connections at the same moment must draw different pauses. */
	b->random ^= now_ns ^ (uintptr_t)b;
}

static bool refusal_may_pass(int code)
{
	return code != REFUSE_BAD_REQUEST && code != REFUSE_BAD_VERSION && code != REFUSE_UNSUPPORTED &&
	       code != REFUSE_BAD_HMAC && code != REFUSE_BAD_ADDRESS && code != REFUSE_NOT_ALLOWED;
}

static bool may_pass(const struct fail *f)
{
	switch (f->kind) {
	case FAIL_REFUSED:
		return refusal_may_pass(f->code);
	case FAIL_ERRNO:
		return f->code != ENODEV;
	case FAIL_CM_STATUS:
	case FAIL_WC_STATUS:
	case FAIL_TIMEOUT:
	case FAIL_CLOSED:
		return true;
	case FAIL_NONE:
	case FAIL_TLS:
	case FAIL_CERTIFICATE:
	case FAIL_PROTOCOL:
	case FAIL_KIND_N:
		break;
	}
	return false;
}

static uint64_t pause_ns(struct backoff *b)
{
	uint64_t most = b->attempts < 7 ? MIN(PAUSE_MIN_NS << b->attempts, PAUSE_MAX_NS) : PAUSE_MAX_NS;

	b->attempts++;
	return most / 2 + random_next(&b->random) % (most / 2 + 1);
}

bool backoff_wait(struct backoff *b, uint64_t limit_ns, uint64_t now_ns, uint64_t *at_ns)
{
	uint64_t end_ns = b->lost_ns + limit_ns, next_ns;

	if (!b->lost_ns || now_ns >= end_ns)
		return false;
	next_ns = now_ns + pause_ns(b);
	*at_ns = MIN(next_ns, end_ns);
	return true;
}

bool backoff_next(struct backoff *b, const struct fail *fail, uint64_t limit_ns, uint64_t now_ns, uint64_t *at_ns)
{
	return may_pass(fail) && backoff_wait(b, limit_ns, now_ns, at_ns);
}

uint64_t backoff_end(struct backoff *b, uint64_t now_ns)
{
	uint64_t outage_ns = now_ns - b->lost_ns;

	b->lost_ns = 0;
	return outage_ns;
}
