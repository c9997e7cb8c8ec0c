/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of the resources that the server and its machine use, for sessions that watch (docs/protocol.md, "WATCH").
 *
 * The files of /proc are open while somebody watches. Requests within 50 ms share one sample, so many watchers cost no
 * more than one that asks every 50 ms. Shards are not asked for anything: gauges have the values that they published
 * last. Owning thread: the main thread.
 */
#ifndef RAMPART_SERVER_SAMPLES_H
#define RAMPART_SERVER_SAMPLES_H

#include <stdint.h>

#include <jansson.h>

struct sampler;
struct server;

/* All zero: nobody watches. */
struct samples {
	const struct server *server;
	uint32_t watchers;
	struct sampler *sampler;	/* NULL while nobody watches, or after an allocation failed */
	json_t *newest;			/* NULL: none */
	uint64_t newest_ns;		/* when it was taken */
};

/* Counts one more watcher. */
void samples_begin(struct samples *s);
/* Counts one watcher less; the last one frees the resources. */
void samples_end(struct samples *s);
/* A sample that is at most 50 ms old. Borrowed; the caller may set members of its own. NULL when out of memory. */
json_t *samples_take(struct samples *s);

#endif
