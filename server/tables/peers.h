/* SPDX-License-Identifier: BSD-2-Clause */
/* Who holds how much: connections counted by the address they come from, and the address that holds most.
 *
 * An address is an IPv4 address or an IPv6 /64 (addr_network). An entry of the table exists while its address holds
 * something, and all memory is allocated at the start, so no peer decides how much there is. Everything takes constant
 * time; only peers_next may look at as many lists as an address can have TLS connections. The hash is keyed with random
 * numbers, so that peers cannot choose addresses that share a chain.
 *
 * A shard has a table of its own connections. With --max-per-address the server has one more for all shards: any thread
 * calls peers_take, peers_give and peers_count. The other functions are for the thread that owns the table.
 */
#ifndef RAMPART_SERVER_PEERS_H
#define RAMPART_SERVER_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct peer;
struct peers;

/* What is counted, each by itself. */
enum peers_kind {
	PEERS_TLS,	/* TLS connections that are open */
	PEERS_CLIENTS,	/* in a shard's table: grants without an RDMA connection; in the server's: all admitted clients */
	PEERS_WAITING,	/* in a shard's table: sockets that were accepted and wait for room (listen.c) */
	PEERS_ARRIVING,	/* in a shard's table: TCP connections that have not shown yet whose they are (arrive.c) */
	PEERS_KIND_N,
};

/* One that is counted; embedded by its owner, and all 0 at first. */
struct peer_hold {
	struct peer *peer;	/* NULL: not counted */
	TAILQ_ENTRY(peer_hold) entry;
};

/* For at most `max` holds of each kind, of at most `max` addresses. 0; -ENOMEM; -EIO without random numbers. */
int peers_new(uint32_t max, struct peers **out) __attribute__((warn_unused_result));
/* NULL-safe. */
void peers_free(struct peers *p);

/* Counts `h` as the youngest of the address. False, and nothing is counted, if the address holds `most` already. */
bool peers_take(struct peers *p, enum peers_kind kind, uint64_t network, struct peer_hold *h, uint32_t most)
	__attribute__((warn_unused_result));
/* Counts `h` no longer. Nothing if it is not counted. */
void peers_give(struct peers *p, enum peers_kind kind, struct peer_hold *h);

/* How many the address holds. */
uint32_t peers_count(struct peers *p, enum peers_kind kind, uint64_t network);
/* The most that any address holds. */
uint32_t peers_most(const struct peers *p, enum peers_kind kind);
/* True if no other address holds more than that of `h`, which is counted. */
bool peers_has_most(const struct peers *p, enum peers_kind kind, const struct peer_hold *h);
/* The oldest one of an address that holds most. NULL if nothing is counted. */
struct peer_hold *peers_oldest(const struct peers *p, enum peers_kind kind);
/* The youngest one of the address that holds most; of those that hold as many, of the one that came last. NULL if nothing
 * is counted. */
struct peer_hold *peers_youngest(const struct peers *p, enum peers_kind kind);
/* Makes a counted one the youngest of its address, and puts that address behind those that hold as many: peers_oldest
 * then looks at another one. */
void peers_rejuvenate(struct peers *p, enum peers_kind kind, struct peer_hold *h);

/* Whose turn it is: the oldest PEERS_WAITING of an address that has the fewest PEERS_TLS. NULL if none waits. */
struct peer_hold *peers_next(struct peers *p);

/* Something of the address got on. Nothing if the address holds nothing. */
void peers_note_progress(struct peers *p, uint64_t network, uint64_t now_ns);
/* When that was; 0: never since the address holds something. */
uint64_t peers_progress_ns(struct peers *p, uint64_t network);

#endif
