/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of rdma_client; each run executes one. */
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
	const char *host;	/* as given by the user */
	const char *name;	/* server name to verify; NULL: host */
	const char *ca, *cert, *key, *crl;
	const char *device;
	uint64_t port;
	uint64_t count;		/* ping: number of messages; 0: until interrupted */
	uint64_t interval_ns;
	uint64_t message_bytes;
	uint64_t offset, length;	/* in the region */
	uint64_t timeout_ns;
	uint64_t reconnect_ns;	/* how long to try to reconnect; 0: never */
	struct tuning tuning;	/* only --ack-timeout and --retry-count are used */
	int transport;			/* enum transport */
	int connect;			/* enum connect_way */
	int poll;
	int log_level;
	bool allow_redirect, verify, quiet, json;
	enum command command;
	const char *text;	/* send, write */
};

/* A command that is being executed. Owning thread: main. */
struct session {
	const struct command_config *cfg;
	const struct client_config *client;
	struct client_ctx *ctx;
	struct ep *ep;		/* the context's */
	struct client_conn *conn;	/* NULL: between two attempts to connect */
	struct ev_loop *loop;
	ev_signal interrupt, terminate;
	ev_timer timer;		/* deadline of an answer; ping: next send; next attempt to connect */
	struct backoff backoff;	/* pauses after a lost connection */
	uint64_t outages, outage_sum_ns, outage_max_ns;	/* outages that have ended */
	uint64_t sent, received, repeated;	/* ping: messages sent, replies, messages resent on a new connection */
	uint64_t sent_ns;	/* when the message in flight was sent */
	struct hist *rtt;
	uint32_t buf;		/* write, read: the buffer; EP_NO_BUF: none */
	bool awaiting;		/* a reply or completion must come before the timer fires */
	bool wrote;		/* write: written, now being read back */
	int exit_status;
};

/* Callbacks of the connection; `arg` is the session. */
extern const struct client_ops command_ops;

/* Connects, for the first time or again. */
void command_connect(struct session *s);
void command_interrupt(struct session *s);

#endif
