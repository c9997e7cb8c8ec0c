/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface of a workload, which defines the operations that connected clients carry out. The workloads themselves are
 * in loadgen/workloads/, one file each.
 *
 * A workload begins as many operations as it is told to, and reports which have ended; traffic.c counts and times them.
 * Operations of one stream end in the order in which they began. Every function that takes a client is called on the
 * worker's thread.
 */
#ifndef RAMPART_LOADGEN_WORKLOAD_H
#define RAMPART_LOADGEN_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct loadgen_config;
struct traffic;
struct wclient;

#define WORKLOAD_STREAMS_MAX 2
#define WORKLOAD_KINDS_MAX 3
#define WORKLOAD_OPTIONS_MAX 2

/* Resources a workload needs from the server and from a client context. */
struct workload_needs {
	uint32_t message_bytes;		/* size of the largest SEND */
	uint32_t credits;		/* maximum number of SENDs in flight */
	uint64_t region_bytes;		/* 0: no region */
	uint32_t rma_depth;		/* maximum number of requests in flight on the region */
	size_t landing_bytes;		/* registered memory that each client reads into */
	bool landing_shared;		/* all clients share one landing memory, since the data read are not compared */
	bool write_imm;			/* some WRITEs have immediate data */
	bool window;			/* the server WRITEs to the landing memory */
};

/* A way to move the bytes of a part of an operation (lanes.h). A plan has up to LANE_MOVES_MAX moves, in turn. */
enum lane_move {
	LANE_WRITE,	/* writes the payload's text into the region */
	LANE_READ,	/* reads from the region into the landing memory */
	LANE_SEND,	/* sends the text in one-way messages */
	LANE_PUSH,	/* has the server WRITE from the region into the landing memory */
};

#define LANE_MOVES_MAX 2

struct lane_plan {
	uint8_t n;
	enum lane_move moves[LANE_MOVES_MAX];
	/* A one-way message follows the moves; its credit ends the part, as the server has then received all WRITEs.
	 * Otherwise the part ends with its last request, its last message's credit, or the answer to its PUSH. */
	bool tell;
	/* The last request of the first move, a WRITE, has immediate data. The part ends when both this WRITE's credit
	 * has arrived and the last request has completed. */
	bool imm;
};

struct workload {
	bool silent;			/* sends no first message: a client is live as soon as it is connected */
	bool tags;			/* its messages may carry tags (--message-auth) */
	bool joins;			/* several of its messages may share a SEND (--coalesce) */
	bool sums;			/* with --verify its messages end with a checksum */
	bool idle;			/* has no operations */
	bool chunks;			/* moves its operations in chunks of --chunk */
	uint8_t streams;		/* independent sequences of operations per client; 0: idle */
	/* Kinds of operations that have figures of their own; none: all operations are alike. The kind of an operation
	 * is kind_of(its number), or without kind_of the number of its stream. */
	const char *kind_names[WORKLOAD_KINDS_MAX];
	unsigned (*kind_of)(const struct loadgen_config *c, uint64_t number);
	uint32_t kind_bytes[WORKLOAD_KINDS_MAX];	/* size of the kind's operations; 0: the run's size */
	bool round_trip;		/* an operation is a message and a reply of the same size */
	const char *options[WORKLOAD_OPTIONS_MAX];	/* names of options that only this workload takes */
	uint64_t bytes_min, bytes_max, bytes_default;	/* size of an operation */
	uint32_t inflight_default;
	/* The request that rma_start makes: `rma` for every operation, or rma_of(its number). */
	enum ibv_wr_opcode rma;
	enum ibv_wr_opcode (*rma_of)(const struct loadgen_config *c, uint64_t number);
	/* Fills in the workload's defaults and checks its options. Called when the sizes are known; `inflight` is still
	 * 0 if the option was not given. 0, or -EINVAL with a line in `err`. May be NULL. */
	int (*prepare)(struct loadgen_config *c, char *err, size_t err_size);
	void (*needs)(const struct loadgen_config *c, struct workload_needs *out);
	/* Sets how the operations of a stream are carried out on lanes (lanes.h). NULL: the workload uses one
	 * connection, and so one device, per client. */
	void (*plan)(const struct loadgen_config *c, unsigned stream, struct lane_plan *out);
	/* Begins `n` operations of a stream, calling traffic_begin for each. */
	void (*start)(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n);
	/* Handlers of arrivals for a client, as in struct client_ops, on its `lane` (lanes.h). NULL: the server must
	 * not send this kind. */
	void (*on_reply)(struct traffic *t, struct wclient *wc, uint64_t sequence, const uint8_t *data, uint32_t bytes);
	void (*on_credit)(struct traffic *t, struct wclient *wc, uint32_t lane, uint32_t credits, uint64_t sequence);
	void (*on_ping)(struct traffic *t, struct wclient *wc, uint32_t number, const uint8_t *data, uint32_t bytes);
	void (*on_pushed)(struct traffic *t, struct wclient *wc, uint32_t lane, uint64_t sequence, const uint8_t *data,
			  uint32_t bytes);
	void (*on_rma)(struct traffic *t, struct wclient *wc, uint32_t lane, uint32_t n);
};

/* The parameters of a step, over all load hosts together. */
struct step_figures {
	uint64_t clients, bytes, repetition;
	uint64_t rate;	/* operations per second; 0: closed loop, or --rate-per-client */
};

/* Checks a step's parameters against the options. Both parameters from the command line and those announced by the
 * leader of several load hosts are checked here, so that no step runs with a message too short for its header, checksum
 * and tag. 0, or -EINVAL with a line in `err` that names the option and the values allowed. */
int workload_check_step(const struct loadgen_config *c, const struct step_figures *f, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
