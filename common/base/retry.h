/* SPDX-License-Identifier: BSD-2-Clause */
/* Repeats a call that fails because memory is short, for a limited time. One struct per such call; one thread. */
#ifndef RAMPART_COMMON_RETRY_H
#define RAMPART_COMMON_RETRY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"

#define RETRY_FOR_NS (10 * NS_PER_S)
#define RETRY_LOG_EVERY_NS NS_PER_S

struct retry {
	uint64_t since_ns;	/* time of the first failure since the call last worked; 0: it works */
	uint64_t logged_ns;
};

static inline void retry_worked(struct retry *r)
{
	r->since_ns = 0;
}

/* How long the call has been failing, in ns. */
static inline uint64_t retry_failing_ns(const struct retry *r)
{
	return r->since_ns ? clock_now_ns() - r->since_ns : 0;
}

/* Call after `what` failed with errno `err`. True if it should be tried again; false for errors that do not pass by
 * themselves, and after RETRY_FOR_NS of failures. Logs the failure, at most once a second. */
static inline bool retry_again(struct retry *r, const char *what, int err)
{
	uint64_t now = clock_now_ns();
	bool passes = err == ENOMEM || err == ENOBUFS;

	if (!r->since_ns)
		r->since_ns = now;
	if (!passes || now - r->since_ns >= RETRY_FOR_NS) {
		log_error("%s failed: %s", what, strerror(err));
		return false;
	}
	if (!r->logged_ns || now - r->logged_ns >= RETRY_LOG_EVERY_NS) {
		log_warn("%s failed: %s; trying again", what, strerror(err));
		r->logged_ns = now;
	}
	return true;
}

#endif
