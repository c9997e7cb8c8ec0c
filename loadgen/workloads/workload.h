/* What the clients of a run do once they are connected: a table with one file (wl_*.c) for each workload. To add
 * one, write its file, and name it in WORKLOADS and in the Makefile.
 *
 * A workload begins operations when it is told how many may begin, and says which have ended; counting, timing and
 * starting anew is for traffic.c. Operations of one stream end in the order they were begun. Everything here is
 * called on the worker's thread.
 */
#ifndef RAMPART_LOADGEN_WORKLOAD_H
#define RAMPART_LOADGEN_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct lane_plan;
struct loadgen_config;
struct wclient;
struct worker;

#define WORKLOADS(X) \
	X(echo) X(pingpong) X(small) X(large) X(duplex) X(write) X(read) X(atomic) X(mixed) X(connect) X(idle)

#define WORKLOAD_STREAMS_MAX 2

/* What a workload needs of server and client context. */
struct workload_needs {
	uint32_t message_bytes;		/* largest SEND */
	uint32_t credits;		/* SENDs in flight */
	uint64_t region_bytes;		/* 0: no region */
	uint32_t rma_depth;		/* requests on the region under way */
	size_t landing_bytes;		/* registered memory for what comes back, for each client */
	bool landing_shared;		/* one for all clients: nobody looks at what comes */
	bool window;			/* the server WRITEs there */
};

struct workload {
	const char *help;		/* for --help: one line */
	bool silent;			/* no first message: connected is connected */
	bool tags;			/* its messages may carry tags */
	bool joins;			/* and several may share a SEND */
	bool idle;			/* there is nothing to do: no operations, and nothing to measure of them */
	bool chunks;			/* moves its operations in chunks of --chunk */
	uint8_t streams;		/* 0 for idle ones */
	const char *stream_names[WORKLOAD_STREAMS_MAX];	/* where there is more than one */
	uint64_t bytes_min, bytes_max, bytes_default;	/* of an operation */
	uint32_t inflight_default;
	/* The kind of what rma_start begins: of all, or of each operation. */
	enum ibv_wr_opcode rma;
	enum ibv_wr_opcode (*rma_of)(const struct loadgen_config *c, uint64_t number);
	void (*needs)(const struct loadgen_config *c, struct workload_needs *out);
	/* A line why it cannot run with these options, or NULL. May be NULL itself. */
	const char *(*objection)(const struct loadgen_config *c);
	/* How the operations of a stream are carried out on lanes (lanes.h), where they are: these workloads use all
	 * rails. */
	void (*plan)(const struct loadgen_config *c, unsigned stream, struct lane_plan *out);
	/* Begins `n` operations of a stream, which is how many may, now; traffic_begin for each. */
	void (*start)(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n);
	/* What comes for a client, as in struct client_ops; `rail` is the one it came by. NULL: nothing of the kind. */
	void (*on_reply)(struct worker *w, struct wclient *wc, uint64_t sequence, const uint8_t *data, uint32_t bytes);
	void (*on_credit)(struct worker *w, struct wclient *wc, uint32_t rail, uint32_t credits, uint64_t sequence);
	void (*on_ping)(struct worker *w, struct wclient *wc, uint32_t number, const uint8_t *data, uint32_t bytes);
	void (*on_pushed)(struct worker *w, struct wclient *wc, uint32_t rail, uint64_t sequence);
	void (*on_rma)(struct worker *w, struct wclient *wc, uint32_t rail, uint32_t n);
};

#define X(name) extern const struct workload workload_##name;
WORKLOADS(X)
#undef X

extern const struct workload *const workloads[];
extern const char *const workload_names[];	/* in the same order, NULL-terminated */

/* Of messages of the run's size, `inflight` at a time. */
void workload_needs_messages(const struct loadgen_config *c, struct workload_needs *out);
/* Of operations of the run's size on the region, `inflight` at a time. */
void workload_needs_region(const struct loadgen_config *c, struct workload_needs *out);

#endif
