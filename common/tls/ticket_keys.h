/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys that seal TLS session tickets (RFC 5077, 4; RFC 8446, 4.6.1), so that the server keeps no state for sessions
 * that may be resumed.
 *
 * Time is divided into epochs. The keys of an epoch are derived from those of the epoch before by a one-way step
 * (HMAC), and only those of the current and the previous epoch are kept, so an attacker who learns them cannot open
 * older tickets. All rings made from one seed derive the same keys. So each shard has a ring of its own, without a
 * lock, and shards resume each other's sessions. Owning thread: one per ring. No I/O; the caller passes the time.
 */
#ifndef RAMPART_COMMON_TICKET_KEYS_H
#define RAMPART_COMMON_TICKET_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#define TICKET_NAME_BYTES 16
#define TICKET_KEY_BYTES 32

struct ticket_key {
	uint8_t name[TICKET_NAME_BYTES];	/* sent in the ticket, in clear */
	uint8_t cipher[TICKET_KEY_BYTES];
	uint8_t mac[TICKET_KEY_BYTES];
};

struct ticket_seed {
	uint8_t chain[TICKET_KEY_BYTES];	/* random; wipe it when all rings are initialized */
	uint64_t start_ns;
	uint64_t rotate_ns;			/* length of an epoch; above 0 */
};

struct ticket_ring {
	uint8_t chain[TICKET_KEY_BYTES];	/* chain key of the current epoch, from which the next one is derived */
	uint64_t start_ns, rotate_ns;
	uint64_t epoch;
	struct ticket_key current, previous;
	bool has_previous;
};

/* Makes a fresh random seed. Returns 0 or -EIO. */
int ticket_seed_new(uint64_t now_ns, uint64_t rotate_ns, struct ticket_seed *out)
	__attribute__((warn_unused_result));
void ticket_seed_wipe(struct ticket_seed *s);

/* Returns 0 or -ENOMEM. */
int ticket_ring_init(struct ticket_ring *r, const struct ticket_seed *seed) __attribute__((warn_unused_result));
void ticket_ring_wipe(struct ticket_ring *r);

/* Advances the ring to the epoch of `now_ns`, which wipes the keys of older epochs. Sealing and opening do the same, so
 * this is for times without either. Returns the time until the next step, above 0. */
uint64_t ticket_ring_step(struct ticket_ring *r, uint64_t now_ns);

/* The key to seal with at `now_ns`. NULL: keys could not be derived (out of memory). */
const struct ticket_key *ticket_ring_seal(struct ticket_ring *r, uint64_t now_ns);

/* The key named `name`, with which a ticket was sealed in this epoch or the previous one; NULL: the ticket is older, or
 * of another server. *renew: it is of the previous epoch, so the client should get a new one. */
const struct ticket_key *ticket_ring_open(struct ticket_ring *r, uint64_t now_ns,
					  const uint8_t name[TICKET_NAME_BYTES], bool *renew);

#endif
