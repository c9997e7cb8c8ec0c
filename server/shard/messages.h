/* SPDX-License-Identifier: BSD-2-Clause */
/* The data path of a shard: checks and answers clients' messages. Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_MESSAGES_H
#define RAMPART_SERVER_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct conn;
struct record;

/* Handles a completion of the endpoint of `shard` (struct shard). */
void messages_on_wc(void *shard, const struct ibv_wc *wc);

/* Handles a record from a client's socket; `buf` holds it and belongs to this function. */
void messages_on_record(struct conn *c, uint32_t buf, const struct record *r);

/* Tells a live client that the server stops, after all answers sent so far, and returns the credits it is owed. Later
 * messages are still answered. False if no buffer is free: call it again later. May end the connection. */
bool messages_say_goodbye(struct conn *c) __attribute__((warn_unused_result));

#endif
