/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's lanes, for the workloads that move large buffers: its connections, --qps on each rail, and the parts of
 * operations in flight on them. Lane n is on rail n modulo the number of rails. Owning thread: the worker's.
 *
 * An operation is striped over as many lanes as rails are alive (stripe.h), and operations take the lanes in turn. A
 * part is carried out on one lane, in chunks; the parts of a stream on a lane end in the order in which they began. An
 * operation ends when all of its parts, and all operations before it, have ended. If a lane is lost, its parts start
 * anew on other lanes.
 *
 * Every lane has a region of its own, in which an operation has the place it would have if there were one lane only.
 */
#ifndef RAMPART_LOADGEN_LANES_H
#define RAMPART_LOADGEN_LANES_H

#include <stdint.h>

#include "loadgen/traffic/traffic.h"

struct client_conn;
struct lane;
struct part;

/* Memory for the lanes of a worker's clients. */
struct lanes {
	struct lane *lanes;
	struct part *parts;
};

/* Makes lanes for the clients of `t`, if the workload has plans. 0 or -ENOMEM; call lanes_release in either case. */
int lanes_init(struct lanes *l, struct traffic *t) __attribute__((warn_unused_result));
void lanes_release(struct lanes *l);

/* Sets the sizes of region and landing memory that lanes need; the caller sets message size and credits. */
void lanes_needs(const struct loadgen_config *c, struct workload_needs *out);

/* Clears the client's lanes before it begins to connect. */
void lanes_reset(struct wclient *wc);
/* The rail of a lane; functions here take a lane by its index. */
static inline uint32_t lanes_rail(const struct traffic *t, uint32_t index)
{
	return index % t->n_rails;
}

/* Call when a connection begins: lets the server WRITE to the client's landing memory, if the workload needs that. */
void lanes_use_window(const struct wclient *wc, uint32_t index, struct client_conn *c);
/* Call when a connection is live. */
void lanes_add(struct wclient *wc, uint32_t index, struct client_conn *c);
/* Call when a live connection failed: moves its parts to the other lanes. */
void lanes_lose(struct wclient *wc, uint32_t index);
/* Call when a connection was closed normally, or failed before it was live. */
void lanes_remove(struct wclient *wc, uint32_t index, const struct client_conn *c);
/* The live connection of a lane; any live connection; the number of live connections. NULL: none. */
struct client_conn *lanes_conn_on(const struct wclient *wc, uint32_t index);
struct client_conn *lanes_conn(const struct wclient *wc);
uint32_t lanes_alive(const struct wclient *wc);

/* Starts timing what each connection carries out; call when measuring begins. */
void lanes_measure(struct traffic *t);
/* Publishes how the connections' mean times are distributed; call right before traffic_stop. */
void lanes_publish_times(struct traffic *t);

/* Implementations of struct workload's functions, for workloads that have plans. */
void lanes_start(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n);
void lanes_on_credit(struct traffic *t, struct wclient *wc, uint32_t index, uint32_t credits, uint64_t sequence);
void lanes_on_pushed(struct traffic *t, struct wclient *wc, uint32_t index, uint64_t sequence, const uint8_t *data,
		     uint32_t bytes);
void lanes_on_rma(struct traffic *t, struct wclient *wc, uint32_t index, uint32_t n);

#endif
