/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of rdma_client; a run carries out one. */
#ifndef RAMPART_CLIENT_COMMANDS_H
#define RAMPART_CLIENT_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/backoff.h"
#include "client/client.h"
#include "common/rdma/tuning.h"

struct hist;

/* `read` without --length reads at most this much, because its buffer is registered memory. */
#define READ_DEFAULT_BYTES 32768u

enum command { CMD_PING, CMD_SEND, CMD_WRITE, CMD_READ, CMD_INFO };
extern const char *const command_names[];	/* in the order of the enum, NULL-terminated */

struct command_config {
	const char *host;	/* as given */
	const char *name;	/* server name to verify; NULL: host */
	const char *ca, *cert, *key, *crl;
	const char *device;
	uint64_t port;
	uint64_t count;		/* ping: 0 is until interrupted */
	uint64_t interval_ns;
	uint64_t message_bytes;
	uint64_t offset, length;	/* of the region */
	uint64_t timeout_ns;
	uint64_t reconnect_ns;	/* a lost connection is tried again for so long; 0: never */
	struct tuning tuning;	/* --ack-timeout and --retry-count of it */
	int transport;			/* enum transport */
	int poll;
	int log_level;
	bool allow_redirect, verify, quiet, json;
	enum command command;
	const char *text;	/* send, write */
};

/* A running command. Owning thread: main. */
struct session {
	const struct command_config *cfg;
	const struct client_config *client;
	struct client_ctx *ctx;
	struct ep *ep;		/* the context's */
	struct client_conn *conn;	/* NULL: the next attempt is waited for */
	struct ev_loop *loop;
	ev_signal interrupt, terminate;
	ev_timer timer;		/* ping: next send; reply deadline; the next attempt to connect */
	struct backoff backoff;	/* of a lost connection */
	uint64_t outages, outage_sum_ns, outage_max_ns;	/* those that ended */
	uint64_t sent, received, repeated;	/* ping: messages; those whose reply was lost with a connection were sent again */
	uint64_t sent_ns;	/* when the message in flight was sent */
	struct hist *rtt;
	uint32_t buf;		/* write, read: the buffer; EP_NO_BUF: none */
	bool awaiting;		/* a reply or a completion is due before the timer */
	bool wrote;		/* write: it is written, and being read back */
	int exit_status;
};

/* Callbacks of the connection; `arg` is the session. */
extern const struct client_ops command_ops;

/* Connects, for the first time or again. */
void command_connect(struct session *s);
void command_interrupt(struct session *s);

#endif
