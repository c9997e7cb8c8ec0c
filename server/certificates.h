/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's certificate, key, CA and revocation list: read at start and again when SIGHUP comes, for all shards at once
 * or for none.
 *
 * Contexts that were replaced are freed here, a second after their last connection at the latest, and by no shard.
 *
 * Each reading begins session tickets anew, so that nobody resumes a session that the new CA or list would not let begin.
 * Main thread.
 */
#ifndef RAMPART_SERVER_CERTIFICATES_H
#define RAMPART_SERVER_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

#include <ev.h>
#include <jansson.h>

struct certificates;
struct server;

/* server->cfg is known; server->certificates becomes *out. 0 or -ENOMEM. */
int certificates_new(struct server *server, struct ev_loop *loop, struct certificates **out)
	__attribute__((warn_unused_result));
void certificates_free(struct certificates *c);	/* NULL-safe */

/* Reads the files and draws the keys of tickets; shard_make_tls uses both until certificates_end, which wipes them. 0 or
 * -errno, with a line in `err`; certificates_end is owed either way. */
int certificates_begin(struct certificates *c, char *err, size_t err_size) __attribute__((warn_unused_result));
void certificates_end(struct certificates *c);

/* The shards are made, with contexts of what was read, and do not run yet: notes how long it is good, warns of what is
 * wrong with it, and from now on reads it again at SIGHUP and warns of what expires, once a day and at its end. */
void certificates_start(struct certificates *c);

/* As SIGHUP does: offers new contexts to all shards, or logs a line and leaves all as it is. True if it did. */
bool certificates_reload(struct certificates *c);

/* The object `certificates` of STATS. `c` may be NULL: unknown. */
json_t *certificates_json(const struct certificates *c);
/* When the first of the server's certificates expires, as in reports; null if that is not known. */
json_t *certificates_expiry_json(const struct certificates *c);

#endif
