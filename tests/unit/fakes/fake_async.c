/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of the fake device. See fake_verbs.h. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_objects.h"
#include "tests/unit/fakes/fake_verbs.h"

#define EVENTS_MAX 64

static struct ibv_async_event events[EVENTS_MAX];
static uint32_t head, n_events, unacked;
static int end_err, fd = -1;

void fake_async_reset(struct ibv_context *ctx)
{
	if (fd >= 0)
		close(fd);
	/* Blocking, as the library opens it. */
	fd = eventfd(0, EFD_SEMAPHORE);
	ctx->async_fd = fd;
	head = n_events = unacked = 0;
	end_err = 0;
}

void fake_async_check(void)
{
	if (unacked)
		fake_violation("%u asynchronous events not acked", unacked);
}

static void push(const struct ibv_async_event *e)
{
	uint64_t one = 1;

	if (n_events == EVENTS_MAX || write(fd, &one, sizeof(one)) != sizeof(one)) {
		fake_violation("too many asynchronous events");
		return;
	}
	events[(head + n_events++) % EVENTS_MAX] = *e;
}

void fake_async_qp(struct ibv_qp *qp, enum ibv_event_type type)
{
	push(&(struct ibv_async_event){ .element.qp = qp, .event_type = type });
}

void fake_async_cq(struct ibv_cq *cq)
{
	push(&(struct ibv_async_event){ .element.cq = cq, .event_type = IBV_EVENT_CQ_ERR });
}

void fake_async_of_srq(struct ibv_srq *srq, enum ibv_event_type type)
{
	push(&(struct ibv_async_event){ .element.srq = srq, .event_type = type });
}

void fake_async_srq(enum ibv_event_type type)
{
	fake_async_of_srq(fake_srq(), type);
}

void fake_async_device(enum ibv_event_type type)
{
	push(&(struct ibv_async_event){ .element.port_num = 1, .event_type = type });
}

void fake_async_end(int err)
{
	uint64_t one = 1;

	end_err = err;
	if (write(fd, &one, sizeof(one)) != sizeof(one))
		fake_violation("too many asynchronous events");
}

uint32_t fake_async_waiting(void)
{
	return n_events;
}

static bool is_of_qp(enum ibv_event_type type)
{
	return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

/* As the kernel does when a queue pair is destroyed whose events were not read. */
void fake_async_forget(const struct ibv_qp *qp)
{
	uint32_t n = n_events;

	n_events = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct ibv_async_event e = events[(head + i) % EVENTS_MAX];
		uint64_t one;

		if (!is_of_qp(e.event_type) || e.element.qp != qp)
			events[(head + n_events++) % EVENTS_MAX] = e;
		else if (read(fd, &one, sizeof(one)) != sizeof(one))
			fake_violation("an asynchronous event was lost");
	}
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	FAKE_GUARD;
	uint64_t one;

	if (n_events == 0 && end_err) {
		errno = end_err;
		return -1;
	}
	if (read(ctx->async_fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	*event = events[head];
	head = (head + 1) % EVENTS_MAX;
	n_events--;
	unacked++;
	if (is_of_qp(event->event_type))
		((struct fake_qp *)event->element.qp)->events++;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	FAKE_GUARD;
	unacked--;
	if (is_of_qp(event->event_type))
		((struct fake_qp *)event->element.qp)->events--;
}
