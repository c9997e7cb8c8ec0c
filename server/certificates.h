/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's certificate, key, CA and revocation list. They are read at start, at SIGHUP, and with --watch-certs when
 * they have changed; a reload takes effect in all shards or in none.
 *
 * Replaced contexts are freed here, within a second of the end of their last connection, so that no shard spends time
 * on it (unless memory for the reference ran out).
 *
 * Each reading makes new ticket keys, so that no client can resume a session that the new CA or list would refuse. Main
 * thread.
 */
#ifndef RAMPART_SERVER_CERTIFICATES_H
#define RAMPART_SERVER_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

#include <ev.h>
#include <jansson.h>

struct certificates;
struct server;

/* server->cfg must be set; server->certificates becomes *out. 0 or -ENOMEM. */
int certificates_new(struct server *server, struct ev_loop *loop, struct certificates **out)
	__attribute__((warn_unused_result));
void certificates_free(struct certificates *c);	/* NULL-safe */

/* Reads the files and draws the ticket keys; shard_make_tls uses both until certificates_end, which wipes them. 0 or
 * -errno, with a line in `err`; the caller must call certificates_end either way. */
int certificates_begin(struct certificates *c, char *err, size_t err_size) __attribute__((warn_unused_result));
void certificates_end(struct certificates *c);

/* Call it when the shards have their contexts and do not run yet. Notes the expiry dates and warns of problems with the
 * files. From then on the files are read again at SIGHUP, or when they change (--watch-certs), and warnings of expiry
 * are logged once a day and at the expiry. */
void certificates_start(struct certificates *c);

/* Reads the files and offers new contexts to all shards. False, with a line in the log, if the files cannot be used:
 * the old contexts then stay in use. The log's lines begin with `why`. */
bool certificates_reload(struct certificates *c, const char *why);

/* The earliest expiry in the server's certificate chain, and the earliest expiry of a revocation list, in seconds since
 * 1970; INT64_MAX: not known. `c` may be NULL. */
void certificates_dates(const struct certificates *c, int64_t *certificate, int64_t *list);
/* The object `certificates` of STATS. `c` may be NULL: unknown. */
json_t *certificates_json(const struct certificates *c);
/* The earliest expiry in the server's certificate chain, as in reports; null if it is not known. */
json_t *certificates_expiry_json(const struct certificates *c);

#endif
