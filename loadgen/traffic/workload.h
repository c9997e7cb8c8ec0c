/* SPDX-License-Identifier: BSD-2-Clause */
/* What the clients of a run do once they are connected: the operations of a workload, and what it needs. The workloads
 * themselves are in loadgen/workloads/, one file each.
 *
 * A workload begins operations when it is told how many may begin, and says which have ended; traffic.c counts and times
 * them. Operations of one stream end in the order in which they began. Every function that takes a client is called on
 * the worker's thread.
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

/* What a workload needs of the server and of a client context. */
struct workload_needs {
	uint32_t message_bytes;		/* largest SEND */
	uint32_t credits;		/* SENDs in flight */
	uint64_t region_bytes;		/* 0: no region */
	uint32_t rma_depth;		/* requests on the region in flight */
	size_t landing_bytes;		/* registered memory that each client reads into */
	bool landing_shared;		/* one landing memory for all clients, because nobody compares what is read */
	bool write_imm;			/* some WRITEs have immediate data */
	bool window;			/* the server WRITEs to the landing memory */
};

/* What is done with the bytes of a part of an operation (lanes.h), one move after the other. */
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
	/* A one-way message follows the moves, and its credit ends the part: the server has received all that was
	 * written. Else the part ends with its last request, the last message's credit, or the answer to its PUSH. */
	bool tell;
	/* The last request of the first move, a WRITE, has immediate data. The part ends with its credit and with its last
	 * request, whichever comes later. */
	bool imm;
};

struct workload {
	bool silent;			/* sends no first message: a client is live as soon as it is connected */
	bool tags;			/* its messages may carry tags (--message-auth) */
	bool joins;			/* several of its messages may share a SEND (--coalesce) */
	bool sums;			/* with --verify its messages end with a checksum */
	bool idle;			/* has no operations */
	bool chunks;			/* moves its operations in chunks of --chunk */
	uint8_t streams;		/* kinds of operations that a client has in flight apart from each other; 0: idle */
	/* Kinds of operations that have figures of their own; none: all are alike. An operation is of the kind that kind_of
	 * says, by its number, or of its stream's. */
	const char *kind_names[WORKLOAD_KINDS_MAX];
	unsigned (*kind_of)(const struct loadgen_config *c, uint64_t number);
	uint32_t kind_bytes[WORKLOAD_KINDS_MAX];	/* of an operation of the kind; 0: the run's size */
	bool round_trip;		/* an operation is a message and another of the same size that comes back */
	const char *options[WORKLOAD_OPTIONS_MAX];	/* names of options that only this workload takes */
	uint64_t bytes_min, bytes_max, bytes_default;	/* of an operation */
	uint32_t inflight_default;
	/* The request that rma_start makes: of every operation, or of each by its number. */
	enum ibv_wr_opcode rma;
	enum ibv_wr_opcode (*rma_of)(const struct loadgen_config *c, uint64_t number);
	/* Fills in defaults of its own and checks its options, when the sizes are known; `inflight` is still 0 if it was
	 * not given. 0, or -EINVAL with a line in `err`. May be NULL. */
	int (*prepare)(struct loadgen_config *c, char *err, size_t err_size);
	void (*needs)(const struct loadgen_config *c, struct workload_needs *out);
	/* How the operations of a stream are carried out on lanes (lanes.h). NULL: the workload uses one connection of
	 * a client, and so one device. */
	void (*plan)(const struct loadgen_config *c, unsigned stream, struct lane_plan *out);
	/* Begins `n` operations of a stream, with traffic_begin for each. */
	void (*start)(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n);
	/* What arrives for a client, as in struct client_ops, on the connection on `rail`. NULL: the server may not send
	 * it. */
	void (*on_reply)(struct traffic *t, struct wclient *wc, uint64_t sequence, const uint8_t *data, uint32_t bytes);
	void (*on_credit)(struct traffic *t, struct wclient *wc, uint32_t rail, uint32_t credits, uint64_t sequence);
	void (*on_ping)(struct traffic *t, struct wclient *wc, uint32_t number, const uint8_t *data, uint32_t bytes);
	void (*on_pushed)(struct traffic *t, struct wclient *wc, uint32_t rail, uint64_t sequence, const uint8_t *data,
			  uint32_t bytes);
	void (*on_rma)(struct traffic *t, struct wclient *wc, uint32_t rail, uint32_t n);
};

/* The figures of a step, of all load hosts together. */
struct step_figures {
	uint64_t clients, bytes, repetition;
	uint64_t rate;	/* operations a second; 0: closed loop, or --rate-per-client */
};

/* Checks a step's figures against the options. The command line's figures and those that the leader of several load hosts
 * announces go through here alike, so no step is prepared with a message too short for its header, checksum and tag. 0, or
 * -EINVAL with a line in `err` that names the figure and what is allowed. */
int workload_check_step(const struct loadgen_config *c, const struct step_figures *f, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
