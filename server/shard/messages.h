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

/* A completion of the endpoint of `shard` (struct shard). */
void messages_on_wc(void *shard, const struct ibv_wc *wc);

/* A record from a client's socket, in `buf`, which is taken. */
void messages_on_record(struct conn *c, uint32_t buf, const struct record *r);

/* Tells a live client that the server stops, behind all that was answered so far; returns the credits that it is owed.
 * What it sends from now on is still answered. False if no buffer is free: to be tried again. May end the connection. */
bool messages_say_goodbye(struct conn *c) __attribute__((warn_unused_result));

#endif
