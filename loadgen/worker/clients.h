/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles the events of the connections of a worker's clients: live, message, lost, closed. Owning thread: the
 * worker's.
 */
#ifndef RAMPART_LOADGEN_CLIENTS_H
#define RAMPART_LOADGEN_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/worker/connector.h"

/* The callbacks of the clients' connections; their argument is a struct rail. */
extern const struct client_ops clients_ops;

/* Closes the connections of clients `from` to `to` - 1, and gives up all clients that wait to connect. Returns how many
 * of the clients had a connection. */
uint32_t clients_close(struct connector *k, uint32_t from, uint32_t to);
/* Number of the step's clients that have a connection or are making one. */
uint64_t clients_left(const struct worker_stats *st);
/* Fails, with a timeout, the clients that still wait for a reply or a connection. */
void clients_abandon(struct connector *k);

#endif
