/* SPDX-License-Identifier: BSD-2-Clause */
/* How much a peer may send over a TLS connection: in a turn of the loop, in its handshake, and beside application data.
 * Pure: it only counts and decides; tls.c asks OpenSSL and acts.
 *
 * Owning thread: that of the connection.
 */
#ifndef RAMPART_COMMON_TLS_LIMITS_H
#define RAMPART_COMMON_TLS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of a turn, and of a handshake, in which a client sends five records (with certificates about 4 KB). */
#define TLS_TURN_RECORDS 8
#define TLS_TURN_BYTES 65536
#define TLS_HANDSHAKE_RECORDS 64
#define TLS_HANDSHAKE_BYTES 65536
/* Maximum size of a peer's certificate chain. Four certificates with RSA keys of 4,096 bits take about 8 KB. */
#define TLS_CHAIN_BYTES_MAX (12 << 10)
/* Records without application data after the handshake: key updates (RFC 8446, 4.6.3), tickets, alerts. A peer may
 * send TLS_EXTRA_RECORDS, plus one per TLS_RECORDS_PER_EXTRA records; rampart needs fewer (TLS_KEY_RECORDS). */
#define TLS_EXTRA_RECORDS 8
#define TLS_RECORDS_PER_EXTRA 65536
/* Records that an end sends with one key. AES-GCM is good for 2^24.5 (RFC 8446, 5.5). */
#define TLS_KEY_RECORDS (1u << 23)

/* Embedded; all zero for a new connection. */
struct tls_limits {
	uint32_t turn_records, turn_bytes;	/* since the turn began */
	uint32_t handshake_records, handshake_bytes;
	uint32_t extra_records;
	uint64_t records;	/* all records after the handshake */
	bool shook_hands;	/* set by the owner */
};

/* Counts a record of `bytes`, header included, when its header has arrived. */
void tls_limits_count_record(struct tls_limits *l, uint32_t bytes);
/* Counts a record that turned out to have no application data. Does nothing during the handshake. */
void tls_limits_count_extra(struct tls_limits *l);
/* True if nothing more may be read until tls_limits_begin_turn. */
bool tls_limits_turn_is_over(const struct tls_limits *l);
void tls_limits_begin_turn(struct tls_limits *l);
/* Returns the limit that the peer exceeded, in words that follow "it sent"; NULL: none. */
const char *tls_limits_excess(const struct tls_limits *l);

#endif
