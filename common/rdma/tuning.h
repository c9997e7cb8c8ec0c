/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings of the data path that both programs have as options. Pure, but for tuning_start_thread.
 */
#ifndef RAMPART_COMMON_TUNING_H
#define RAMPART_COMMON_TUNING_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <jansson.h>

#include "common/rdma/cm.h"

/* What --inline auto means: a message of this size or less is copied into the send queue. */
#define TUNING_INLINE_AUTO 220u
#define TUNING_INLINE_MAX 4096u
#define TUNING_CPUS_MAX 1024
#define TUNING_NOT_SET UINT64_MAX

/* Where threads run without a list of CPUs: anywhere, or on the CPUs of their device's NUMA node. */
enum tuning_numa { TUNING_NUMA_OFF, TUNING_NUMA_AUTO };
extern const char *const tuning_numa_names[];	/* in the order of the enum, NULL-terminated */

struct tuning {
	const char *inline_text;	/* --inline: auto, off or a number of bytes */
	uint64_t post_list;		/* sends with one doorbell, at most */
	uint64_t signal_every;		/* a completion for so many sends; 0: as suits each */
	uint64_t srq_depth;		/* receive buffers of a thread, at most; 0: what is needed */
	uint64_t cq_depth;		/* entries of a completion queue, at most; 0: the device's */
	int path_mtu;			/* index in tuning_mtu_names */
	const char *cpu_list;		/* NULL: threads run where the system puts them, or where `numa` says */
	int numa;			/* enum tuning_numa */
	bool realtime;
	uint64_t ack_timeout_ns;	/* as asked; the device's is the next 4.096 us x 2^n */
	uint64_t retry_count;
	uint64_t rnr_retry;		/* 7: without end */
	uint64_t rnr_timer_ns;		/* as asked; the device's is the next of IBTA's table */
	uint64_t traffic_class, dscp, service_level, gid_index;	/* TUNING_NOT_SET: as the system has it */

	/* derived by tuning_check */
	struct cm_retry retry;
	struct cm_fabric fabric;
	uint32_t inline_bytes;
	uint16_t cpus[TUNING_CPUS_MAX];
	uint32_t n_cpus;
};

extern const char *const tuning_mtu_names[];	/* auto, 256, ..., 4096; NULL-terminated */

void tuning_defaults(struct tuning *t);

/* 0, or -EINVAL with a line in `err` that names the option and what is allowed. */
int tuning_check(struct tuning *t, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Reads the value `text` of --`option`, a list of CPUs. 0, or -EINVAL with a line in `err` that names the option. */
int tuning_read_cpus(const char *option, const char *text, uint16_t cpus[TUNING_CPUS_MAX], uint32_t *n, char *err,
		     size_t err_size) __attribute__((warn_unused_result));

/* The acknowledge timeout that takes effect. After tuning_check. */
uint64_t tuning_ack_timeout_ns(const struct tuning *t);

/* 0 for auto. */
enum ibv_mtu tuning_mtu(const struct tuning *t);

/* The object `tuning` of run.json's config and of INFO. After tuning_check. NULL when out of memory. */
json_t *tuning_json(const struct tuning *t) __attribute__((warn_unused_result));

/* Starts the `index`-th thread of a program on its CPU of the list, which is gone through in turn, or with `numa` on
 * any of those `beside` its device (NULL: none are known, it runs anywhere), and as a realtime thread if wanted. Its
 * name is "ROLE INDEX", as ps(1) and samples show it. 0, or -errno with a line in `err` that says what to do. */
int tuning_start_thread(const struct tuning *t, const char *role, uint32_t index, const cpu_set_t *beside,
			pthread_t *out, void *(*run)(void *), void *arg, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Rows of an option table, in the order of their names; `AT` gives the offset of a field of struct tuning. */
#define TUNING_OPT_ACK_TIMEOUT(AT) { .name = "ack-timeout", .type = OPT_DURATION, .offset = AT(ack_timeout_ns), \
	.min = NS_PER_MS, .max = 10 * NS_PER_S, .metavar = "TIME", .def = "268ms", \
	.help = "Time until what is not acknowledged is sent again, rounded up to 4.096 us times a power of two." }
#define TUNING_OPT_CPU_LIST(AT) { .name = "cpu-list", .type = OPT_STRING, .offset = AT(cpu_list), \
	.metavar = "LIST", .help = "CPUs for the threads, one each, in turn: 0,2,4-7." }
#define TUNING_OPT_CQ_DEPTH(AT) { .name = "cq-depth", .type = OPT_UINT, .offset = AT(cq_depth), .min = 256, \
	.max = 1u << 22, .metavar = "N", .def = "the device's", \
	.help = "Entries of a completion queue, at most; a thread has as many queues as it needs." }
#define TUNING_OPT_DSCP(AT) { .name = "dscp", .type = OPT_UINT, .offset = AT(dscp), .min = 0, .max = 63, \
	.metavar = "N", .def = "the system's", \
	.help = "Differentiated services code point of RDMA packets; --traffic-class is 4 times as much." }
#define TUNING_OPT_GID_INDEX(AT) { .name = "gid-index", .type = OPT_UINT, .offset = AT(gid_index), .min = 0, .max = 255, \
	.metavar = "N", .def = "that of the address", \
	.help = "Entry of the device's GID table: its address and kind (RoCE v1 or v2) are used." }
#define TUNING_OPT_RNR_RETRY(AT) { .name = "rnr-retry", .type = OPT_UINT, .offset = AT(rnr_retry), .min = 0, .max = 7, \
	.metavar = "N", .def = "7", \
	.help = "Times that a message is sent again to a receiver that is not ready; 7: without end." }
#define TUNING_OPT_RNR_TIMER(AT) { .name = "rnr-timer", .type = OPT_DURATION, .offset = AT(rnr_timer_ns), .min = 10 * NS_PER_US, \
	.max = 655360 * NS_PER_US, .metavar = "TIME", .def = "5.12ms", \
	.help = "How long a receiver that is not ready has senders wait, rounded up to what devices know." }
#define TUNING_OPT_SERVICE_LEVEL(AT) { .name = "service-level", .type = OPT_UINT, .offset = AT(service_level), .min = 0, \
	.max = 15, .metavar = "N", .def = "the system's", \
	.help = "Service level of RDMA packets; on Ethernet their priority, 0 to 7." }
#define TUNING_OPT_TRAFFIC_CLASS(AT) { .name = "traffic-class", .type = OPT_UINT, .offset = AT(traffic_class), .min = 0, \
	.max = 255, .metavar = "N", .def = "the system's", \
	.help = "Traffic class (TOS) of RDMA packets." }
#define TUNING_OPT_INLINE(AT) { .name = "inline", .type = OPT_STRING, .offset = AT(inline_text), \
	.metavar = "auto|off|BYTES", .def = "auto", \
	.help = "Largest message or write that is copied into the send queue; auto is 220." }
#define TUNING_OPT_NUMA(AT) { .name = "numa", .type = OPT_CHOICE, .offset = AT(numa), \
	.choices = tuning_numa_names, .metavar = "off|auto", .def = "off", \
	.help = "auto: keep the threads on the CPUs of their device's NUMA node." }
#define TUNING_OPT_PATH_MTU(AT) { .name = "path-mtu", .type = OPT_CHOICE, .offset = AT(path_mtu), \
	.choices = tuning_mtu_names, .metavar = "MTU", .def = "auto", \
	.help = "Bytes of a packet, at most; auto is what the path allows." }
#define TUNING_OPT_POST_LIST(AT) { .name = "post-list", .type = OPT_UINT, .offset = AT(post_list), .min = 1, \
	.max = EP_POST_LIST_MAX, .metavar = "N", .def = "16", \
	.help = "Sends of a connection posted with one doorbell, at most; only those that are there anyway." }
#define TUNING_OPT_REALTIME(AT) { .name = "realtime", .type = OPT_FLAG, .offset = AT(realtime), \
	.help = "Run the threads with realtime priority (SCHED_FIFO 1)." }
#define TUNING_OPT_RETRY_COUNT(AT) { .name = "retry-count", .type = OPT_UINT, .offset = AT(retry_count), .min = 1, \
	.max = 7, .metavar = "N", .def = "6", \
	.help = "Times that it is sent again before the connection is given up; 7 never ends on Soft-RoCE." }
#define TUNING_OPT_SIGNAL_EVERY(AT) { .name = "signal-every", .type = OPT_UINT, .offset = AT(signal_every), \
	.min = 0, .max = 128, .metavar = "N", .def = "0", \
	.help = "Ask for a completion for every N-th send; 0: for each that holds a buffer or is waited for, else seldom." }
#define TUNING_OPT_SRQ_DEPTH(AT) { .name = "srq-depth", .type = OPT_UINT, .offset = AT(srq_depth), .min = 1, \
	.max = 1u << 20, .metavar = "N", .def = "what the clients' credits need", \
	.help = "Messages that all clients of a thread together may have in flight, at most." }

#endif
