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

/* With --inline auto, a message of at most this size is copied into the send queue. */
#define TUNING_INLINE_AUTO 220u
#define TUNING_INLINE_MAX 4096u
#define TUNING_CPUS_MAX 1024
#define TUNING_NOT_SET UINT64_MAX

/* Where threads run without a list of CPUs: anywhere, or on the CPUs of their device's NUMA node. */
enum tuning_numa { TUNING_NUMA_OFF, TUNING_NUMA_AUTO };
extern const char *const tuning_numa_names[];	/* in the order of the enum, NULL-terminated */

/* Whether memory is registered with relaxed ordering. `auto` and `on` do so unless the device is software; with `on` a
 * run says then that it did not take effect. */
enum tuning_relaxed { TUNING_RELAXED_AUTO, TUNING_RELAXED_ON, TUNING_RELAXED_OFF };
extern const char *const tuning_relaxed_names[];	/* in the order of the enum, NULL-terminated */

struct tuning {
	const char *inline_text;	/* --inline: auto, off or a number of bytes */
	uint64_t post_list;		/* maximum number of sends posted with one doorbell */
	uint64_t signal_every;		/* one completion per this many sends; 0: chosen for each use */
	uint64_t srq_depth;		/* maximum number of messages in flight to a thread; 0: what credits need */
	uint64_t cq_depth;		/* maximum number of entries of a completion queue; 0: the device's */
	int path_mtu;			/* index in tuning_mtu_names */
	const char *cpu_list;		/* NULL: threads run where the system puts them, or where `numa` says */
	int numa;			/* enum tuning_numa */
	bool realtime;
	int relaxed_ordering;		/* enum tuning_relaxed */
	uint64_t ack_timeout_ns;	/* as requested; the device rounds it up to 4.096 us x 2^n */
	uint64_t retry_count;
	uint64_t rnr_retry;		/* 7: without limit */
	uint64_t rnr_timer_ns;		/* as requested; rounded up to a time of IBTA table 45 */
	uint64_t traffic_class, dscp, service_level, gid_index;	/* TUNING_NOT_SET: the system's */

	/* derived by tuning_check */
	struct cm_retry retry;
	struct cm_fabric fabric;
	uint32_t inline_bytes;
	uint16_t cpus[TUNING_CPUS_MAX];
	uint32_t n_cpus;
};

extern const char *const tuning_mtu_names[];	/* auto, 256, ..., 4096; NULL-terminated */

/* Sets the defaults of the rows below, and TUNING_NOT_SET where that means the system's. */
void tuning_defaults(struct tuning *t);

/* Checks the settings. Returns 0, or -EINVAL with a line in `err` that names the option and what is allowed. */
int tuning_check(struct tuning *t, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Reads the value `text` of --`option`, a list of CPUs. Returns 0, or -EINVAL with a line in `err` that names it. */
int tuning_read_cpus(const char *option, const char *text, uint16_t cpus[TUNING_CPUS_MAX], uint32_t *n, char *err,
		     size_t err_size) __attribute__((warn_unused_result));

/* The acknowledge timeout that takes effect. Call after tuning_check. */
uint64_t tuning_ack_timeout_ns(const struct tuning *t);

/* The upper limit of the path MTU; 0: auto, the path's own. */
enum ibv_mtu tuning_mtu(const struct tuning *t);

/* The object `tuning` of run.json's config and of INFO. Call after tuning_check. NULL when out of memory. */
json_t *tuning_json(const struct tuning *t) __attribute__((warn_unused_result));

/* Starts the `index`-th thread of a program: with a list, on one CPU of it (each in turn); else, with `numa`, on any of
 * the CPUs `beside` its device (NULL: unknown, it runs anywhere); with `realtime`, as a realtime thread. Names it "ROLE
 * INDEX", as ps(1) and samples show. Returns 0, or -errno with a line in `err` that says what to do. */
int tuning_start_thread(const struct tuning *t, const char *role, uint32_t index, const cpu_set_t *beside,
			pthread_t *out, void *(*run)(void *), void *arg, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Rows of an option table, in the order of their names; `AT` gives the offset of a field of struct tuning. */
#define TUNING_OPT_ACK_TIMEOUT(AT) { .name = "ack-timeout", .group = "data", .type = OPT_DURATION, \
	.offset = AT(ack_timeout_ns), .min = NS_PER_MS, .max = 10 * NS_PER_S, .metavar = "TIME", .def = "268ms", \
	.help = "Time after which the device retransmits what was not acknowledged.", \
	.more = "Rounded up to 4.096 us x 2^n (67.1 ms, 134 ms, 268 ms, 537 ms and so on). Each side has its own " \
	"value. A device may wait up to four times as long." }
#define TUNING_OPT_CPU_LIST(AT) { .name = "cpu-list", .group = "data", .type = OPT_STRING, .offset = AT(cpu_list), \
	.metavar = "LIST", .def_words = "any CPU", .excludes = "numa=auto", .per_host = true, \
	.help = "CPUs to pin threads to, one for each thread in turn, such as 0,2,4-7." }
#define TUNING_OPT_CQ_DEPTH(AT) { .name = "cq-depth", .group = "data", .type = OPT_UINT, .offset = AT(cq_depth), \
	.min = 256, .max = 1u << 22, .metavar = "N", .def_words = "the device's", \
	.help = "Maximum number of entries of a completion queue.", \
	.more = "A thread makes as many completion queues for sends as its queue pairs need, at most 63, and one for " \
	"all receives. A low limit means more queues first, then fewer receive buffers and clients." }
#define TUNING_OPT_DSCP(AT) { .name = "dscp", .group = "data", .type = OPT_UINT, .offset = AT(dscp), .min = 0, \
	.max = 63, .metavar = "N", .def_words = "the system's", .excludes = "traffic-class", \
	.help = "Differentiated services code point of RDMA packets: --traffic-class divided by 4." }
#define TUNING_OPT_GID_INDEX(AT) { .name = "gid-index", .group = "data", .type = OPT_UINT, .offset = AT(gid_index), \
	.min = 0, .max = 255, .metavar = "N", .def_words = "that of the address", \
	.help = "Index in the device's GID table, which decides address and RoCE version.", \
	.more = "The table is `/sys/class/infiniband/DEVICE/ports/1/gids`. An index is refused if the link is " \
	"InfiniBand, if there is no such entry, or if its address family is not that of the peer's address; with " \
	"`--bind` it must be the entry of that address." }
#define TUNING_OPT_RNR_RETRY(AT) { .name = "rnr-retry", .group = "data", .type = OPT_UINT, .offset = AT(rnr_retry), \
	.min = 0, .max = 7, .metavar = "N", .def = "7", \
	.help = "How often to resend to a receiver that is not ready; 7: without limit.", \
	.more = "After that the connection is given up (`wc:rnr_retry_exceeded`)." }
#define TUNING_OPT_RNR_TIMER(AT) { .name = "rnr-timer", .group = "data", .type = OPT_DURATION, \
	.offset = AT(rnr_timer_ns), .min = 10 * NS_PER_US, .max = 655360 * NS_PER_US, .metavar = "TIME", \
	.def = "5.12ms", .help = "How long a receiver that is not ready makes senders wait.", \
	.more = "Rounded up to a time of the InfiniBand specification (IBTA table 45)." }
#define TUNING_OPT_SERVICE_LEVEL(AT) { .name = "service-level", .group = "data", .type = OPT_UINT, \
	.offset = AT(service_level), .min = 0, .max = 15, .metavar = "N", .def_words = "the system's", \
	.help = "Service level of RDMA packets.", \
	.more = "On Ethernet it is their priority, 0 to 7, which only packets with a VLAN tag carry; Soft-RoCE " \
	"ignores it." }
#define TUNING_OPT_TRAFFIC_CLASS(AT) { .name = "traffic-class", .group = "data", .type = OPT_UINT, \
	.offset = AT(traffic_class), .min = 0, .max = 255, .metavar = "N", .def_words = "the system's", \
	.help = "Traffic class (in IPv4: TOS) of RDMA packets.", \
	.more = "It is 4 times the DSCP plus the ECN bits. Without it, a server answers clients that come through " \
	"rdmacm with the traffic class of their request." }
#define TUNING_OPT_INLINE(AT) { .name = "inline", .group = "data", .type = OPT_STRING, .offset = AT(inline_text), \
	.metavar = "auto|off|BYTES", .def = "auto", \
	.help = "Largest message or WRITE that is copied into the send queue; auto: 220.", \
	.more = "At most 4096. The buffer of such a message is free at once, and no completion is needed. If the " \
	"device refuses this size, the largest power of two that it accepts is used, or nothing is copied." }
#define TUNING_OPT_NUMA(AT) { .name = "numa", .group = "data", .type = OPT_CHOICE, .offset = AT(numa), \
	.choices = tuning_numa_names, .metavar = "off|auto", .def = "off", .per_host = true, \
	.help = "auto: keep the threads on the CPUs of their device's NUMA node.", \
	.more = "It uses only CPUs that the process may use (`taskset`, cpusets). With several devices, threads use " \
	"their nodes in turn. For a device without a node (most Soft-RoCE devices) nothing changes; a line says so." }
#define TUNING_OPT_PATH_MTU(AT) { .name = "path-mtu", .group = "data", .type = OPT_CHOICE, .offset = AT(path_mtu), \
	.choices = tuning_mtu_names, .metavar = "MTU", .def = "auto", \
	.help = "Largest payload of a packet in bytes; auto: what the path allows.", \
	.more = "Both sides need the same value: it is not negotiated, and devices refuse WRITEs and READs in " \
	"packets of another size." }
#define TUNING_OPT_POST_LIST(AT) { .name = "post-list", .group = "data", .type = OPT_UINT, .offset = AT(post_list), \
	.min = 1, .max = EP_POST_LIST_MAX, .metavar = "N", .def = "16", \
	.help = "Maximum number of sends of a connection that are posted with one doorbell.", \
	.more = "Sends that result from one batch of completions are posted together; none is delayed for that." }
#define TUNING_OPT_REALTIME(AT) { .name = "realtime", .group = "data", .type = OPT_FLAG, .offset = AT(realtime), \
	.per_host = true, .help = "Run the threads with realtime priority (SCHED_FIFO 1).", \
	.more = "Needs root, CAP_SYS_NICE or a limit of at least 1 (`ulimit -r`)." }
#define TUNING_OPT_RELAXED_ORDERING(AT) { .name = "relaxed-ordering", .group = "data", .type = OPT_CHOICE, \
	.offset = AT(relaxed_ordering), .choices = tuning_relaxed_names, .metavar = "auto|on|off", .def = "auto", \
	.help = "Let the PCI bus reorder what the device writes to memory; auto: unless it is a software device.", \
	.more = "A completion is still written after the data that it is for (docs/tuning.md)." }
#define TUNING_OPT_RETRY_COUNT(AT) { .name = "retry-count", .group = "data", .type = OPT_UINT, \
	.offset = AT(retry_count), .min = 1, .max = 7, .metavar = "N", .def = "6", \
	.help = "How often to retransmit before the connection is given up.", \
	.more = "Then the reason is `wc:retry_exceeded`. A dead peer is noticed after (`--retry-count` + 1) times " \
	"`--ack-timeout`, if something is sent to it: 1.9 s with the defaults on Soft-RoCE, up to four times that on " \
	"other devices. On Soft-RoCE 7 means without limit." }
#define TUNING_OPT_SIGNAL_EVERY(AT) { .name = "signal-every", .group = "data", .type = OPT_UINT, \
	.offset = AT(signal_every), .min = 0, .max = 128, .metavar = "N", .def = "0", \
	.help = "Every N-th send asks for a completion; 0: only sends that hold a buffer do.", \
	.more = "With 0 each request on a region asks for one too, and other sends do only as often as needed to " \
	"keep the send queue from filling up. In any case each third of the send queue has a completion." }
#define TUNING_OPT_SRQ_DEPTH(AT) { .name = "srq-depth", .group = "data", .type = OPT_UINT, .offset = AT(srq_depth), \
	.min = 1, .max = 1u << 20, .metavar = "N", .def_words = "what the clients' credits need", \
	.help = "Maximum number of messages that all clients of a thread together have in flight.", \
	.more = "The shared receive queue has 64 more entries. To keep to the limit, the server grants its clients " \
	"fewer credits, but at least 1 each." }

#endif
