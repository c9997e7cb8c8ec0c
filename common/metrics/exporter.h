/* SPDX-License-Identifier: BSD-2-Clause */
/* An HTTP server for one document, /metrics, which programs such as Prometheus read every few seconds.
 *
 * It answers GET only, one request a connection (RFC 9112). At most EXPORTER_CONNS connections are open, each for at
 * most EXPORTER_S seconds. One more takes the place of the oldest that has not sent its request whole, or of one that
 * has not taken its answer within a second; otherwise it is closed. A library would have to do the same: libmicrohttpd,
 * for one, limits a connection's silence only, so that one byte a second would keep a place for good.
 *
 * The document is made on the loop's thread, at most every EXPORTER_CACHE_NS, however often it is asked for.
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

/* The document, which the exporter frees, and its length; NULL if memory runs out. */
typedef char *exporter_document(void *arg, bool openmetrics, size_t *len);

/* Listens at `at` and serves on `loop`, whose thread must make all calls. The caller owns *out. 0 or -errno, with a
 * line in `err`. */
int exporter_new(struct ev_loop *loop, const struct addr *at, exporter_document *document, void *arg,
		 struct exporter **out, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Closes all connections. NULL-safe. */
void exporter_free(struct exporter *e);
/* The address that was bound, with the port that the system chose if `at` had 0. */
const struct addr *exporter_addr(const struct exporter *e);

/* The status that the `n` bytes of a request deserve: 0 if more bytes are needed, 200, or an error. *openmetrics: its
 * Accept header names OpenMetrics. Pure. */
int exporter_status(const char *request, size_t n, bool *openmetrics);

/* Reads the value of --metrics: "PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT"; without an address, that of the loopback
 * interface (127.0.0.1). 0, or -EINVAL with a line in `err`. */
int exporter_parse(const char *text, struct addr *out, char *err, size_t err_size) __attribute__((warn_unused_result));

#endif
