/* SPDX-License-Identifier: BSD-2-Clause */
/* See pace.h. */
#include "loadgen/worker/pace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/param.h>

#include <infiniband/verbs.h>

#include "common/wire/frame.h"

#define WINDOW_START 8
#define LEAVING_CHUNK 64u	/* clients told to leave in one turn of the loop */

void pace_init(struct pace *p, uint32_t limit)
{
	*p = (struct pace){ .limit = limit, .window = limit < WINDOW_START ? limit : WINDOW_START };
}

uint32_t pace_window(const struct pace *p)
{
	return p->window < 1 ? 1 : (uint32_t)p->window;
}

void pace_on_success(struct pace *p)
{
	p->window += p->congested ? 1 / p->window : 1;
	if (p->window > p->limit)
		p->window = p->limit;
}

void pace_on_congestion(struct pace *p, uint64_t begun_ns, uint64_t now_ns)
{
	if (p->congested && begun_ns <= p->decreased_at_ns)
		return;
	p->congested = true;
	p->decreased_at_ns = now_ns;
	p->decreases++;
	p->window /= 2;
	if (p->window < 1)
		p->window = 1;
}

/* A server sends no reason when it closes a connection because a deadline (of the handshake, or of the connection for
 * messages) has expired, or because another connection needs the room. */
static bool is_hung_up(const struct fail *f)
{
	bool waits = f->stage == STAGE_TLS_HANDSHAKE || f->stage == STAGE_PSN_EXCHANGE ||
		f->stage == STAGE_RDMA_CONNECT ||
		     f->stage == STAGE_SOCKET_CONNECT;

	return waits && (f->kind == FAIL_CLOSED || f->code == ECONNRESET || f->code == EPIPE);
}

/* EAGAIN: all queue pairs of the client are in quarantine. The CM reports ETIMEDOUT as a status. REFUSE_BAD_SESSION:
 * the session expired before the connection request reached the server. Out of band no code says so: the queue pair
 * just does not answer. */
bool pace_is_congestion(const struct fail *f)
{
	switch (f->kind) {
	case FAIL_TIMEOUT:
		return f->stage < STAGE_TRAFFIC;
	case FAIL_REFUSED:
		return f->code == REFUSE_BUSY || f->code == REFUSE_BAD_SESSION;
	case FAIL_CM_STATUS:
		return abs(f->code) == ETIMEDOUT;
	case FAIL_ERRNO:
		return is_hung_up(f) ||
		       (f->stage < STAGE_TRAFFIC && (f->code == EAGAIN || f->code == ETIMEDOUT));
	case FAIL_CLOSED:
		return is_hung_up(f);
	case FAIL_WC_STATUS:
		return f->stage == STAGE_QP_EXCHANGE && f->code == IBV_WC_RETRY_EXC_ERR;
	case FAIL_NONE:
	case FAIL_TLS:
	case FAIL_CERTIFICATE:
	case FAIL_PROTOCOL:
	case FAIL_KIND_N:
		break;
	}
	return false;
}

void leaving_begin(struct leaving *l, uint64_t left)
{
	*l = (struct leaving){ .at_start = left, .then = left };
}

/* Clients that were told to leave and still have a connection. Those that were lost before they were told count as some
 * of them that have left. */
static uint64_t still_leaving(const struct leaving *l, uint64_t left)
{
	uint64_t gone = left < l->at_start ? l->at_start - left : 0;

	return l->told > gone ? l->told - gone : 0;
}

bool leaving_has_room(const struct leaving *l, uint64_t left)
{
	return still_leaving(l, left) < LEAVING_MAX;
}

uint32_t leaving_portion(struct leaving *l, uint64_t left, uint32_t untold)
{
	bool some_left = left < l->then;

	l->then = left;
	if (leaving_has_room(l, left))
		return MIN(untold, LEAVING_CHUNK);
	return some_left ? 0 : MIN(untold, LEAVING_MAX);
}
