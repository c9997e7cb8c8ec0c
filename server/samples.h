/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of what the server and its machine use, for the sessions that watch it (docs/protocol.md, "WATCH").
 *
 * The files of /proc are open while somebody watches. Samples that are asked for at about the same time are one, so
 * that many watchers cost no more than one that wants a sample each 50 ms. Nothing is asked of a shard: gauges are
 * those that it published last.
 * Owning thread: the main thread.
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
	struct sampler *sampler;	/* NULL while nobody watches, or until there is memory for it */
	json_t *newest;			/* NULL: none */
	uint64_t newest_ns;		/* when it was taken */
};

/* One more watches. */
void samples_begin(struct samples *s);
/* One of them does not any more. */
void samples_end(struct samples *s);
/* A sample of this moment, or of at most 50 ms ago. Borrowed, and the caller may set members of its own; NULL when out
 * of memory. */
json_t *samples_take(struct samples *s);

#endif
