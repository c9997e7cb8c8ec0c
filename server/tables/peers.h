/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts connections by the address they come from, and finds the address that has the most.
 *
 * An address is an IPv4 address or an IPv6 /64 (addr_network). The table has an entry for an address while it holds
 * something. The table's size is fixed at the start, so peers cannot make it grow; an entry takes memory from its first
 * use. All calls take constant time, except that peers_next may look at as many lists as an address can have TLS
 * connections. The hash is keyed with random numbers, so peers cannot choose addresses that share a chain.
 *
 * A shard has a table of its own connections. With --max-per-address the server has one more for all shards; any thread
 * may call peers_take, peers_give and peers_count on it. The other functions are for the thread that owns the table.
 */
#ifndef RAMPART_SERVER_PEERS_H
#define RAMPART_SERVER_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct peer;
struct peers;

/* The kinds of holds, each counted separately. */
enum peers_kind {
	PEERS_TLS,	/* TLS connections that are open */
	PEERS_CLIENTS,	/* shard's table: grants without a connection; server's table: all admitted clients */
	PEERS_WAITING,	/* shard's table: accepted sockets that wait for room (listen.c) */
	PEERS_ARRIVING,	/* shard's table: TCP connections that have not proved their session yet (arrive.c) */
	PEERS_KIND_N,
};

/* One counted hold; embedded in its owner, all 0 at first. */
struct peer_hold {
	struct peer *peer;	/* NULL: not counted */
	TAILQ_ENTRY(peer_hold) entry;
};

/* Makes a table for at most `max` holds of each kind and `max` addresses. 0; -ENOMEM; -EIO without random numbers. */
int peers_new(uint32_t max, struct peers **out) __attribute__((warn_unused_result));
/* NULL-safe. */
void peers_free(struct peers *p);

/* Counts `h` as the youngest hold of the address. False, without counting, if the address has `most` already. */
bool peers_take(struct peers *p, enum peers_kind kind, uint64_t network, struct peer_hold *h, uint32_t most)
	__attribute__((warn_unused_result));
/* Stops counting `h`. No-op if it is not counted. */
void peers_give(struct peers *p, enum peers_kind kind, struct peer_hold *h);

/* Number of holds of the address. */
uint32_t peers_count(struct peers *p, enum peers_kind kind, uint64_t network);
/* The highest number of holds of any address. */
uint32_t peers_most(const struct peers *p, enum peers_kind kind);
/* True if no address has more holds than that of `h`, which is counted. */
bool peers_has_most(const struct peers *p, enum peers_kind kind, const struct peer_hold *h);
/* The oldest hold of an address that has the most. NULL if nothing is counted. */
struct peer_hold *peers_oldest(const struct peers *p, enum peers_kind kind);
/* The youngest hold of the address that has the most; of several such addresses, the last to reach that number. NULL if
 * nothing is counted. */
struct peer_hold *peers_youngest(const struct peers *p, enum peers_kind kind);
/* Makes a counted hold the youngest of its address, and moves the address behind those with as many: peers_oldest then
 * returns another hold. */
void peers_rejuvenate(struct peers *p, enum peers_kind kind, struct peer_hold *h);

/* The next socket to let in: the oldest PEERS_WAITING of an address with the fewest PEERS_TLS. NULL if none waits. */
struct peer_hold *peers_next(struct peers *p);

/* Notes that a client of the address made progress. No-op if the address holds nothing. */
void peers_note_progress(struct peers *p, uint64_t network, uint64_t now_ns);
/* When the address last made progress; 0: not since it began to hold something. */
uint64_t peers_progress_ns(struct peers *p, uint64_t network);

#endif
