/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a worker's clients as their connections are made, deliver messages, break and close. Owning thread: the
 * worker's.
 */
#ifndef RAMPART_LOADGEN_CLIENTS_H
#define RAMPART_LOADGEN_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/worker/connector.h"

/* The callbacks of the clients' connections; their argument is a struct rail. */
extern const struct client_ops clients_ops;

/* Closes the connections of the clients `from` and on, up to `to`. Clients that wait to connect are given up. */
void clients_close(struct connector *k, uint32_t from, uint32_t to);
/* True when no connection of the step is left. */
bool clients_are_gone(const struct worker_stats *st);
/* Clients that still wait for a reply or a connection fail with a timeout. */
void clients_abandon(struct connector *k);

#endif
