/* SPDX-License-Identifier: BSD-2-Clause */
/* How much a peer may send over a TLS connection. See tls_limits.h. */
#include "common/tls/tls_limits.h"

#define TEXT(number) #number
#define TEXT_OF(macro) TEXT(macro)

void tls_limits_count_record(struct tls_limits *l, uint32_t bytes)
{
	l->turn_records++;
	l->turn_bytes += bytes;
	l->records += l->shook_hands;
	l->handshake_records += !l->shook_hands;
	l->handshake_bytes += l->shook_hands ? 0 : bytes;
}

void tls_limits_count_extra(struct tls_limits *l)
{
	l->extra_records += l->shook_hands;
}

bool tls_limits_turn_is_over(const struct tls_limits *l)
{
	return l->turn_records > TLS_TURN_RECORDS || l->turn_bytes > TLS_TURN_BYTES || tls_limits_excess(l);
}

void tls_limits_begin_turn(struct tls_limits *l)
{
	l->turn_records = l->turn_bytes = 0;
}

const char *tls_limits_excess(const struct tls_limits *l)
{
	if (l->handshake_records > TLS_HANDSHAKE_RECORDS)
		return "a handshake of more than " TEXT_OF(TLS_HANDSHAKE_RECORDS) " records";
	if (l->handshake_bytes > TLS_HANDSHAKE_BYTES)
		return "a handshake of more than " TEXT_OF(TLS_HANDSHAKE_BYTES) " bytes";
	if (l->extra_records > TLS_EXTRA_RECORDS + l->records / TLS_RECORDS_PER_EXTRA)
		return "more than " TEXT_OF(TLS_EXTRA_RECORDS) " records without data after the handshake, plus one "
		       "per " TEXT_OF(TLS_RECORDS_PER_EXTRA) " records (key updates or the like)";
	return NULL;
}
