/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that hold queue pair numbers in their host's connection manager, so that it refuses them as stale for other
 * connections. Each mode holds them until the process is killed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/adversary/link.h"

#define LINKS_MAX 64u

static struct link links[LINKS_MAX];

static uint32_t how_many(const struct rogue *r)
{
	int n = r->arg ? atoi(r->arg) : 1;

	return n < 1 ? 1 : n > (int)LINKS_MAX ? LINKS_MAX : (uint32_t)n;
}

/* Makes the server end the connection and send a disconnect request, which nobody answers. */
static bool is_cut_off(struct link *l)
{
	static const uint8_t no_message[64];

	return link_send(l, no_message, sizeof(no_message)) && link_wait(l, link_has_ended);
}

static int keep_ids(struct rogue *r, const struct mode *m)
{
	uint32_t n = how_many(r);

	(void)m;
	for (uint32_t i = 0; i < n; i++) {
		if (link_new(r, &links[i]))
			return no_answer("no verbs resources");
		if (!link_connect(&links[i], &links[i].hello))
			return ROGUE_NO_ANSWER;
		if (!is_cut_off(&links[i]))
			return no_answer("the server goes on");
	}
	answer("%u cut off", n);
	pause();
	return ROGUE_ANSWERED;
}

/* Does everything that comes before the request. */
static bool prepare(struct rogue *r, struct link *l)
{
	if (link_new(r, l) || !link_grant(l, NULL))
		return false;
	wire_close(&l->wire);
	return link_resolve(l, 0);
}

/* Sends a request that is correct except for the claimed QP number. */
static bool request(struct link *l, uint32_t qpn)
{
	uint8_t data[PDATA_PROOF_BYTES];

	l->claimed_qpn = qpn;
	link_proof(l, l->keys.client, qpn, data);
	return link_request(l, data, sizeof(data));
}

/* Claims the QP number ARG. */
static int claim(struct rogue *r, const struct mode *m)
{
	(void)m;
	if (!r->arg || !prepare(r, &links[0]))
		return no_answer("no session");
	(void)!request(&links[0], (uint32_t)strtoul(r->arg, NULL, 0));
	link_answer(&links[0]);
	pause();
	return ROGUE_ANSWERED;
}

/* Claims the next ARG numbers that the device will give out. */
static int claim_next(struct rogue *r, const struct mode *m)
{
	uint32_t n = how_many(r), last = 0, accepted = 0;

	(void)m;
	for (uint32_t i = 0; i < n; i++) {
		if (!prepare(r, &links[i]))
			return no_answer("no session");
		last = rc_qpn(&links[i].rc) > last ? rc_qpn(&links[i].rc) : last;
	}
	for (uint32_t i = 0; i < n; i++)
		accepted += request(&links[i], last + 1 + i) && links[i].event.type == CM_CONNECT_RESPONSE;
	answer("%u accepted", accepted);
	pause();
	return ROGUE_ANSWERED;
}

const struct mode stale_modes[] = {
	{ "keep-ids", .run = keep_ids },
	{ "claim", .run = claim },
	{ "claim-next", .run = claim_next },
	{ NULL },
};
