/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings a data thread really works with. See observed.h. */
#include "common/observed/observed.h"

#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/build_info.h"
#include "common/host/place.h"
#include "common/rdma/cm.h"

void effective_set_device(struct effective *e, int node)
{
	counter_set(&e->device_node, node == PLACE_NO_NODE ? 0 : (uint64_t)node + 1);
}

void effective_begin(struct effective *e)
{
	counter_set(&e->tid, (uint64_t)gettid());
	counter_set(&e->cpu, (uint64_t)(sched_getcpu() + 1));
}

static void add_work(struct ep_work *sum, const struct ep_work *w)
{
	sum->requests += w->requests;
	sum->doorbells += w->doorbells;
	sum->signalled += w->signalled;
	sum->polls += w->polls;
	sum->empty_polls += w->empty_polls;
	sum->completions += w->completions;
}

void effective_count(struct effective *e, struct ep *const *eps, uint32_t n)
{
	struct ep_work sum = { 0 }, w;

	for (uint32_t i = 0; i < n; i++) {
		ep_get_work(eps[i], &w);
		add_work(&sum, &w);
	}
	counter_set(&e->requests, sum.requests);
	counter_set(&e->doorbells, sum.doorbells);
	counter_set(&e->signalled, sum.signalled);
	counter_set(&e->polls, sum.polls);
	counter_set(&e->empty_polls, sum.empty_polls);
	counter_set(&e->completions, sum.completions);
	counter_set(&e->inline_wanted, ep_inline_wanted(eps[0]));
	counter_set(&e->inline_granted, ep_inline_granted(eps[0]));
	counter_set(&e->relaxed, ep_relaxed(eps[0]) != 0);
	/* Not a system call (vdso(7)). Until the thread has started, another one calls this, and its CPU does not
	 * count. */
	if (counter_get(&e->tid))
		counter_set(&e->cpu, (uint64_t)(sched_getcpu() + 1));
}

static bool look_at_qp(struct effective *e, struct ibv_qp *qp)
{
	struct cm_qp_values v = { 0 };
	bool known = qp && !cm_read_qp(qp, &v) && v.path_mtu_bytes;

	counter_set(&e->path_mtu_bytes, v.path_mtu_bytes);
	counter_set(&e->ack_timeout, v.ack_timeout);
	counter_set(&e->retry_count, v.retry_count);
	counter_set(&e->rnr_retry, v.rnr_retry);
	counter_set(&e->rnr_timer, v.rnr_timer);
	counter_set(&e->traffic_class, v.traffic_class);
	counter_set(&e->service_level, v.service_level);
	counter_set(&e->gid_index, v.gid_index);
	counter_set(&e->qp_known, known);
	return known;
}

static bool look_at_socket(struct effective *e, const struct sock *s)
{
	struct tcp_values v = { 0 };
	bool ktls = false, known = s && sock_read_options(s, &v, &ktls);
	uint64_t part;

	counter_set(&e->nodelay, v.nodelay);
	counter_set(&e->quickack, v.quickack);
	counter_set(&e->send_buffer, v.send_buffer);
	counter_set(&e->receive_buffer, v.receive_buffer);
	counter_set(&e->busy_poll_us, v.busy_poll_us);
	counter_set(&e->zerocopy, v.zerocopy);
	counter_set(&e->mss, v.mss);
	counter_set(&e->ktls, ktls);
	for (size_t i = 0; i < sizeof(v.congestion) / sizeof(part); i++) {
		memcpy(&part, v.congestion + i * sizeof(part), sizeof(part));
		counter_set(&e->congestion[i], part);
	}
	counter_set(&e->tcp_known, known);
	return known;
}

bool effective_look(struct effective *e, const struct link *link, uint32_t credits)
{
	bool qp = look_at_qp(e, link && link_is_rdma(link) ? link->rc.qp : NULL);
	bool socket = look_at_socket(e, link && !link_is_rdma(link) ? &link->sock : NULL);

	counter_set(&e->credits, qp || socket ? credits : 0);
	return qp || socket;
}

void effective_add_work(const struct effective *e, struct ep_work *sum)
{
	const struct ep_work w = { counter_get(&e->requests), counter_get(&e->doorbells), counter_get(&e->signalled),
				   counter_get(&e->polls), counter_get(&e->empty_polls), counter_get(&e->completions) };

	add_work(sum, &w);
}

static json_t *number(const counter *c)
{
	return json_integer((json_int_t)counter_get(c));
}

static json_t *qp_json(const struct effective *e)
{
	uint64_t exponent = counter_get(&e->ack_timeout);

	if (!counter_get(&e->qp_known))
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path_mtu_bytes", number(&e->path_mtu_bytes),
			 "ack_timeout_ns", exponent ? json_integer((json_int_t)(UINT64_C(4096) << exponent)) :
			 json_null(),
			 "retry_count", number(&e->retry_count), "rnr_retry", number(&e->rnr_retry), "rnr_timer_ns",
			 json_integer((json_int_t)cm_rnr_timer_ns((uint8_t)counter_get(&e->rnr_timer))),
			 "traffic_class",
			 number(&e->traffic_class), "service_level", number(&e->service_level), "gid_index",
			 number(&e->gid_index));
}

static json_t *tcp_json(const struct effective *e)
{
	char congestion[TCP_CONGESTION_BYTES];

	if (!counter_get(&e->tcp_known))
		return json_null();
	for (size_t i = 0; i < sizeof(congestion) / sizeof(uint64_t); i++) {
		uint64_t part = counter_get(&e->congestion[i]);

		memcpy(congestion + i * sizeof(part), &part, sizeof(part));
	}
	congestion[sizeof(congestion) - 1] = '\0';
	return json_pack("{s:b, s:b, s:o, s:o, s:o, s:b, s:o, s:s, s:b}", "nodelay", (int)counter_get(&e->nodelay),
			 "quickack",
			 (int)counter_get(&e->quickack), "send_buffer_bytes", number(&e->send_buffer),
			 "receive_buffer_bytes",
			 number(&e->receive_buffer), "busy_poll_us", number(&e->busy_poll_us), "zerocopy",
			 (int)counter_get(&e->zerocopy), "mss_bytes", number(&e->mss), "congestion", congestion, "ktls",
			 (int)counter_get(&e->ktls));
}

json_t *effective_thread_json(const struct effective *e)
{
	json_t *o = place_thread_json(PLACE_SYS, (pid_t)counter_get(&e->tid), (int)counter_get(&e->cpu) - 1);
	uint64_t granted = counter_get(&e->inline_granted), node = counter_get(&e->device_node);

	if (!o)
		return NULL;
	json_object_set_new(o, "device_numa_node", node ? json_integer((json_int_t)node - 1) : json_null());
	json_object_set_new(o, "inline_wanted_bytes", number(&e->inline_wanted));
	json_object_set_new(o, "inline_granted_bytes",
			    granted == UINT32_MAX ? json_null() : json_integer((json_int_t)granted));
	json_object_set_new(o, "relaxed_ordering", json_boolean(counter_get(&e->relaxed)));
	json_object_set_new(o, "credits", counter_get(&e->credits) ? number(&e->credits) : json_null());
	json_object_set_new(o, "qp", qp_json(e));
	json_object_set_new(o, "tcp", tcp_json(e));
	return o;
}

json_t *effective_work_json(const struct ep_work *w)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "requests", (json_int_t)w->requests, "doorbells",
			 (json_int_t)w->doorbells, "signalled", (json_int_t)w->signalled, "polls", (json_int_t)w->polls,
			 "empty_polls", (json_int_t)w->empty_polls, "completions", (json_int_t)w->completions);
}

/* The release of rdma-core, such as "44.0", of the loaded libibverbs, from the end of its file's name
 * (libibverbs.so.1.14.44.0). NULL if the name does not contain it. */
static const char *rdma_core(char path[static PATH_MAX])
{
	static const char name[] = "libibverbs.so.";
	void *there = dlsym(RTLD_DEFAULT, "ibv_open_device");
	const char *begin, *end;
	Dl_info info;

	if (!there || !dladdr(there, &info) || !realpath(info.dli_fname, path))
		return NULL;
	begin = strstr(path, name);
	end = begin ? strrchr(begin, '.') : NULL;
	while (end && end > begin && end[-1] != '.')
		end--;
	/* The shorter name, libibverbs.so.1, has only the number of the interface. */
	return end && end > begin + sizeof(name) ? end : NULL;
}

void effective_describe(json_t *environment)
{
	char path[PATH_MAX];

	place_describe(PLACE_SYS, environment);
	json_object_set_new(environment, "libraries", json_pack("{s:s, s:s?}", "openssl", build_info_openssl(),
								"rdma_core",
			    rdma_core(path)));
}
