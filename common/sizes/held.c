/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that peers can make a server hold. See held.h. */
#include "common/sizes/held.h"

#include "common/rdma/ep.h"
#include "common/sizes/sizes.h"
#include "common/wire/frame.h"

#define PAGE_BYTES 4096u
/* OpenSSL's state of a connection, and a TLS record (RFC 8446, 5.1) that has come in part. */
#define TLS_BYTES (37u << 10)

/* A client holds as many buffers as it has credits, one more for a record that has come in part, and one for a GOODBYE; and as
 * many as its credits again while the kernel sends from them. */
static uint64_t buffers_of_client(const struct held_server *s)
{
	return s->credits * (s->zerocopy ? 2 : 1) + 2;
}

void held_by_server(const struct held_server *s, struct held_row out[HELD_N])
{
	uint64_t clients = s->rails * s->clients, tls = s->shards * s->handshakes + (s->tls ? clients : 0);

	out[HELD_REGISTERED] = (struct held_row){ "registered message buffers", "shard", s->slab_bytes ? s->shards : 0,
						  s->slab_bytes };
	out[HELD_REGIONS] = (struct held_row){ "regions", "client", s->slab_bytes ? clients : 0,
					       (s->region_bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1) };
	out[HELD_SOCKET_BUFFERS] = (struct held_row){ "message buffers over sockets", "client", s->sockets ? clients : 0,
						      buffers_of_client(s) * ep_stride(s->message_bytes, false) };
	out[HELD_TLS] = (struct held_row){ "TLS connections", "connection", tls, TLS_BYTES };
	out[HELD_REPORTS] = (struct held_row){ "reports that are not read", "control session", SIZES_CONTROL_SESSIONS_MAX,
					       FRAME_REPORT_BYTES_MAX };
	out[HELD_MARKS] = (struct held_row){ "marks of control sessions", "server", 1, HELD_MARKS_BYTES };
}

uint64_t held_bytes(const struct held_row *row)
{
	return row->number * row->each_bytes;
}

uint64_t held_sum(const struct held_row rows[HELD_N])
{
	uint64_t sum = 0;

	for (int i = 0; i < HELD_N; i++)
		sum += held_bytes(&rows[i]);
	return sum;
}
