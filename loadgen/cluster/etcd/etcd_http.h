/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to etcd's JSON gateway over HTTP, by libcurl: asynchronous on a loop, or blocking for a thread with nothing
 * else to do. The result is JSON of limited size, or an error as a sentence. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_HTTP_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#define ETCD_WHY_MAX	512

/* Address and TLS files of an etcd. Constant after the first request. */
struct etcd_target {
	char name[300];			/* HOST:PORT, for messages */
	char base[320];			/* http://HOST:PORT/v3/ */
	char *ca, *cert, *key;		/* files for TLS; NULL: none */
	char unix_socket[108];		/* path of the socket to connect to; "": TCP */
	uint64_t patience_ns;		/* longest wait on a connection that owes an answer */
};

struct etcd_url;
/* Fills in the target of a URL; file names are copied. Returns 0 or -ENOMEM; call etcd_target_clear in both cases. */
int etcd_target_set(struct etcd_target *, const struct etcd_url *, const char *ca, const char *cert, const char *key)
	__attribute__((warn_unused_result));
void etcd_target_clear(struct etcd_target *);

enum etcd_outcome {
	ETCD_OK,		/* `body` is the answer */
	ETCD_NO,		/* etcd refused: see `code` and `why` */
	ETCD_LOGIN,		/* the authentication token is invalid or has expired */
	ETCD_AWAY,		/* no answer, or etcd cannot serve now: retry; the request may have taken effect */
	ETCD_NONSENSE,		/* the answer is invalid: not an etcd, or a broken one */
};

struct etcd_answer {
	enum etcd_outcome outcome;
	json_t *body;			/* an object; borrowed */
	int code;			/* ETCD_NO: gRPC's status code, 16 if a login is missing; 0 if etcd gave none */
	char why[ETCD_WHY_MAX];		/* a sentence that names etcd; "" for ETCD_OK */
};

/* Classifies an error of etcd: a gRPC status code with its message. */
void etcd_answer_error(const struct etcd_target *, int code, const char *message, struct etcd_answer *out);
/* Sets ETCD_NONSENSE; `what` describes the invalid answer. */
void etcd_answer_nonsense(const struct etcd_target *, const char *what, struct etcd_answer *out);

struct etcd_http;
struct etcd_call;

/* Runs on the given loop; NULL: on a loop of its own, for etcd_ask. */
int etcd_http_new(const struct etcd_target *, struct ev_loop *, struct etcd_http **out)
	__attribute__((warn_unused_result));
void etcd_http_free(struct etcd_http *);	/* all calls must have ended; NULL-safe */

struct etcd_call_events {
	/* A message of a stream; the body is borrowed. NULL: the call is not a stream. */
	void (*on_message)(void *arg, json_t *body);
	/* The call has ended and is freed. A stream that ends without an error gives ETCD_AWAY. */
	void (*on_end)(void *arg, const struct etcd_answer *);
};

/* POSTs `body` (taken over; NULL counts as out of memory) to `path` ("kv/txn") with an authentication token (or "").
 * The answer, or a message of a stream, has at most `answer_max` bytes; the call takes at most `limit_ns` (0: no
 * limit). Callbacks come from the loop. Returns 0 or -ENOMEM. */
int etcd_call_start(struct etcd_http *, const char *path, json_t *body, const char *token, size_t answer_max,
		    uint64_t limit_ns, const struct etcd_call_events *, void *arg, struct etcd_call **out)
	__attribute__((warn_unused_result));
/* Frees the call; no callback follows. NULL-safe. */
void etcd_call_cancel(struct etcd_call *);

/* On a loop of its own, by one thread. */

/* Like etcd_call_start, but waits for the answer, at most `limit_ns`. Its body stays valid until the next call. */
void etcd_ask(struct etcd_http *, const char *path, json_t *body, const char *token, uint64_t limit_ns,
	      struct etcd_answer *out);
/* Sleeps for `ns`, or until etcd_wake. */
void etcd_rest(struct etcd_http *, uint64_t ns);
/* Any thread: ends etcd_rest. */
void etcd_wake(struct etcd_http *);
/* Any thread: while `hang_up` is true, the current request and all later ones end as ETCD_AWAY. */
void etcd_hang_up(struct etcd_http *, bool hang_up);

#endif
