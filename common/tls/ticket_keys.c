/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of session tickets. See ticket_keys.h. */
#include "common/tls/ticket_keys.h"

#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

/* Maximum number of epochs that one call advances a ring by; one that was unused for longer needs several calls. */
#define STEPS_MAX 100000

int ticket_seed_new(uint64_t now_ns, uint64_t rotate_ns, struct ticket_seed *out)
{
	out->start_ns = now_ns;
	out->rotate_ns = rotate_ns;
	return RAND_bytes(out->chain, sizeof(out->chain)) == 1 ? 0 : -EIO;
}

void ticket_seed_wipe(struct ticket_seed *s)
{
	OPENSSL_cleanse(s, sizeof(*s));
}

static int derive(const uint8_t chain[TICKET_KEY_BYTES], const char *what, uint8_t out[TICKET_KEY_BYTES])
{
	unsigned int n = TICKET_KEY_BYTES;

	return HMAC(EVP_sha256(), chain, TICKET_KEY_BYTES, (const uint8_t *)what, strlen(what), out, &n) ?
	       0 : -ENOMEM;
}

static int derive_key(const uint8_t chain[TICKET_KEY_BYTES], struct ticket_key *out)
{
	uint8_t name[TICKET_KEY_BYTES];
	int ret = derive(chain, "rampart ticket name", name);

	if (!ret)
		ret = derive(chain, "rampart ticket cipher", out->cipher);
	if (!ret)
		ret = derive(chain, "rampart ticket mac", out->mac);
	memcpy(out->name, name, TICKET_NAME_BYTES);
	return ret;
}

int ticket_ring_init(struct ticket_ring *r, const struct ticket_seed *seed)
{
	memset(r, 0, sizeof(*r));
	memcpy(r->chain, seed->chain, sizeof(r->chain));
	r->start_ns = seed->start_ns;
	r->rotate_ns = seed->rotate_ns;
	return derive_key(r->chain, &r->current);
}

void ticket_ring_wipe(struct ticket_ring *r)
{
	OPENSSL_cleanse(r, sizeof(*r));
}

static int step(struct ticket_ring *r)
{
	uint8_t next[TICKET_KEY_BYTES];
	struct ticket_key key;
	int ret = derive(r->chain, "rampart ticket chain", next);

	if (!ret)
		ret = derive_key(next, &key);
	if (!ret) {
		memcpy(r->chain, next, sizeof(r->chain));
		r->previous = r->current;
		r->has_previous = true;
		r->current = key;
		r->epoch++;
	}
	OPENSSL_cleanse(next, sizeof(next));
	OPENSSL_cleanse(&key, sizeof(key));
	return ret;
}

/* Brings the ring to the epoch of `now_ns`. */
static int advance(struct ticket_ring *r, uint64_t now_ns)
{
	uint64_t epoch = now_ns > r->start_ns ? (now_ns - r->start_ns) / r->rotate_ns : 0;
	int ret = 0;

	for (uint32_t i = 0; r->epoch < epoch && i < STEPS_MAX && !ret; i++)
		ret = step(r);
	return ret;
}

uint64_t ticket_ring_step(struct ticket_ring *r, uint64_t now_ns)
{
	uint64_t next_ns;

	/* A failed derivation is tried again in the next epoch, or when a ticket comes. */
	(void)!advance(r, now_ns);
	next_ns = r->start_ns + (r->epoch + 1) * r->rotate_ns;
	return next_ns > now_ns ? next_ns - now_ns : r->rotate_ns;
}

const struct ticket_key *ticket_ring_seal(struct ticket_ring *r, uint64_t now_ns)
{
	return advance(r, now_ns) ? NULL : &r->current;
}

const struct ticket_key *ticket_ring_open(struct ticket_ring *r, uint64_t now_ns,
					  const uint8_t name[TICKET_NAME_BYTES], bool *renew)
{
	*renew = false;
	if (advance(r, now_ns))
		return NULL;
	if (CRYPTO_memcmp(name, r->current.name, TICKET_NAME_BYTES) == 0)
		return &r->current;
	if (!r->has_previous || CRYPTO_memcmp(name, r->previous.name, TICKET_NAME_BYTES) != 0)
		return NULL;
	*renew = true;
	return &r->previous;
}
