/* SPDX-License-Identifier: BSD-2-Clause */
/* An HTTP server for one document, /metrics, which programs such as Prometheus read every few seconds.
 *
 * It answers only GET, one request per connection (RFC 9112). At most EXPORTER_CONNS connections are open, each for at
 * most EXPORTER_S seconds. A further connection takes the place of the oldest one whose request is incomplete, or that
 * has not taken its answer within a second; if there is none, the new one is closed. A library would not help:
 * libmicrohttpd only limits how long a connection is silent, so a client that sends a byte a second keeps its place.
 *
 * The document is made on the loop's thread, at most once per EXPORTER_CACHE_NS, however often it is requested.
 */
#ifndef RAMPART_COMMON_EXPORTER_H
#define RAMPART_COMMON_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/addr.h"
#include "common/base/clock.h"

#define EXPORTER_CONNS		4
#define EXPORTER_S		5.
#define EXPORTER_CACHE_NS	(100 * NS_PER_MS)
#define EXPORTER_REQUEST_BYTES	4096	/* maximum size of a request with its headers */

struct ev_loop;
struct exporter;

/* Returns the document, which the exporter frees, and sets *len to its length; NULL if memory runs out. */
typedef char *exporter_document(void *arg, bool openmetrics, size_t *len);

/* Listens at `at` and serves on `loop`, whose thread must make all calls. The caller owns *out. Returns 0, or -errno
 * with a line in `err`. */
int exporter_new(struct ev_loop *loop, const struct addr *at, exporter_document *document, void *arg,
		 struct exporter **out, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Closes all connections. NULL-safe. */
void exporter_free(struct exporter *e);
/* The address that was bound, with the port that the system chose if `at` had 0. */
const struct addr *exporter_addr(const struct exporter *e);

/* Returns the HTTP status for a request, of which `n` bytes have arrived: 0 if more bytes are needed, 200, or an error.
 * *openmetrics: its Accept header names OpenMetrics. Pure. */
int exporter_status(const char *request, size_t n, bool *openmetrics);

/* Reads the value of --metrics: "PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT"; without an address, that of the loopback
 * interface (127.0.0.1). Returns 0, or -EINVAL with a line in `err`. */
int exporter_parse(const char *text, struct addr *out, char *err, size_t err_size) __attribute__((warn_unused_result));

#endif
