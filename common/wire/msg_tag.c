/* SPDX-License-Identifier: BSD-2-Clause */
/* Message authentication. See msg_tag.h. */
#include "common/wire/msg_tag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "common/wire/be.h"

#define NONCE_BYTES 12

/* One direction. The context keeps the expanded key. */
struct side {
	EVP_CIPHER_CTX *ctx;
	uint64_t number;	/* number of the next message */
};

struct msg_tags {
	struct side send, receive;
};

static int init_side(struct side *s, const uint8_t *key)
{
	s->ctx = EVP_CIPHER_CTX_new();
	if (!s->ctx || EVP_EncryptInit_ex(s->ctx, EVP_aes_128_gcm(), NULL, key, NULL) != 1)
		return -ENOMEM;
	return 0;
}

int msg_tags_new(uint8_t keys[2 * MSG_TAG_KEY_BYTES], bool is_client, struct msg_tags **out)
{
	const uint8_t *client = keys, *server = keys + MSG_TAG_KEY_BYTES;
	struct msg_tags *t = calloc(1, sizeof(*t));
	bool made = t && init_side(&t->send, is_client ? client : server) == 0 &&
		    init_side(&t->receive, is_client ? server : client) == 0;

	OPENSSL_cleanse(keys, 2 * MSG_TAG_KEY_BYTES);
	if (!made) {
		msg_tags_free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void msg_tags_free(struct msg_tags *t)
{
	if (!t)
		return;
	EVP_CIPHER_CTX_free(t->send.ctx);
	EVP_CIPHER_CTX_free(t->receive.ctx);
	free(t);
}

/* Authenticates the whole message and encrypts none of it. */
static int tag_of(struct side *s, const uint8_t *message, uint32_t bytes, uint8_t tag[MSG_TAG_BYTES])
{
	uint8_t nonce[NONCE_BYTES] = { 0 };
	int n;

	be_put64(nonce + NONCE_BYTES - 8, s->number++);
	if (EVP_EncryptInit_ex(s->ctx, NULL, NULL, NULL, nonce) != 1 ||
	    EVP_EncryptUpdate(s->ctx, NULL, &n, message, (int)bytes) != 1 ||
	    EVP_EncryptFinal_ex(s->ctx, tag, &n) != 1 ||
	    EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_AEAD_GET_TAG, MSG_TAG_BYTES, tag) != 1)
		return -EIO;
	return 0;
}

int msg_tag_write(struct msg_tags *t, uint8_t *message, uint32_t bytes)
{
	return tag_of(&t->send, message, bytes - MSG_TAG_BYTES, message + bytes - MSG_TAG_BYTES);
}

bool msg_tag_check(struct msg_tags *t, const uint8_t *message, uint32_t bytes)
{
	uint8_t tag[MSG_TAG_BYTES];

	return tag_of(&t->receive, message, bytes - MSG_TAG_BYTES, tag) == 0 &&
	       CRYPTO_memcmp(tag, message + bytes - MSG_TAG_BYTES, MSG_TAG_BYTES) == 0;
}
