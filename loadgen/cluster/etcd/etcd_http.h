/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to etcd's JSON gateway over HTTP, by libcurl: on a loop, or blocking for a thread that has nothing else to do. What
 * comes back is bounded in size and is JSON, or it is an error in words. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_HTTP_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#define ETCD_WHY_MAX	512

/* Where etcd is. Not changed once requests are made. */
struct etcd_target {
	char name[300];			/* HOST:PORT, for messages */
	char base[320];			/* http://HOST:PORT/v3/ */
	char *ca, *cert, *key;		/* of the target; NULL: none */
	char unix_socket[108];		/* etcd is asked over it; "": over TCP */
	uint64_t patience_ns;		/* for how long a connection may say nothing that it owes */
};

struct etcd_url;
/* The etcd of a URL; files of TLS are copied. 0 or -ENOMEM, after which it is to be cleared too. */
int etcd_target_set(struct etcd_target *, const struct etcd_url *, const char *ca, const char *cert, const char *key)
	__attribute__((warn_unused_result));
void etcd_target_clear(struct etcd_target *);

enum etcd_outcome {
	ETCD_OK,		/* `body` is the answer */
	ETCD_NO,		/* etcd says no: `code`, `why` */
	ETCD_LOGIN,		/* the authentication's token is not, or no more, valid */
	ETCD_AWAY,		/* no answer, or etcd cannot serve at the moment: to be tried again; it may have taken place */
	ETCD_NONSENSE,		/* this is no etcd, or a broken one */
};

struct etcd_answer {
	enum etcd_outcome outcome;
	json_t *body;			/* an object; borrowed */
	int code;			/* ETCD_NO: gRPC's status code, 16 without a login; 0 if etcd gave none */
	char why[ETCD_WHY_MAX];		/* a sentence that names etcd; "" for ETCD_OK */
};

/* What an error of etcd means: a gRPC status code with its message. */
void etcd_answer_error(const struct etcd_target *, int code, const char *message, struct etcd_answer *out);
/* ETCD_NONSENSE, and what is wrong with it. */
void etcd_answer_nonsense(const struct etcd_target *, const char *what, struct etcd_answer *out);

struct etcd_http;
struct etcd_call;

/* On a loop; NULL: on one of its own, for etcd_ask. */
int etcd_http_new(const struct etcd_target *, struct ev_loop *, struct etcd_http **out) __attribute__((warn_unused_result));
void etcd_http_free(struct etcd_http *);	/* no call may be left; NULL-safe */

struct etcd_call_events {
	/* A stream's message; the body is borrowed. NULL: the call is no stream. */
	void (*on_message)(void *arg, json_t *body);
	/* It is over, and freed. A stream that ends well is ETCD_AWAY. */
	void (*on_end)(void *arg, const struct etcd_answer *);
};

/* POSTs `body` (taken; NULL counts as memory that ran out) to `path` ("kv/txn") with the authentication's token, or "". The
 * answer, or a message of a stream, may have `answer_max` bytes, and the call takes `limit_ns` at most; 0: no limit. Callbacks come
 * from the loop. 0 or -ENOMEM. */
int etcd_call_start(struct etcd_http *, const char *path, json_t *body, const char *token, size_t answer_max, uint64_t limit_ns,
		    const struct etcd_call_events *, void *arg, struct etcd_call **out) __attribute__((warn_unused_result));
/* No callback follows; freed. NULL-safe. */
void etcd_call_cancel(struct etcd_call *);

/* ---- On a loop of its own, by one thread */

/* As etcd_call_start, but waits for the answer, `limit_ns` at most; its body is kept until the next call. */
void etcd_ask(struct etcd_http *, const char *path, json_t *body, const char *token, uint64_t limit_ns, struct etcd_answer *out);
/* Waits for that time, or until it is woken. */
void etcd_rest(struct etcd_http *, uint64_t ns);
/* Any thread: ends etcd_rest. */
void etcd_wake(struct etcd_http *);
/* Any thread: makes a request that waits end as ETCD_AWAY, and each one that begins, until `hang_up` is false again. */
void etcd_hang_up(struct etcd_http *, bool hang_up);

#endif
