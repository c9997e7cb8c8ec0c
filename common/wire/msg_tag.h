/* SPDX-License-Identifier: BSD-2-Clause */
/* Message authentication: a tag at the end of every message of a connection that negotiated tags, AES-128-GMAC (NIST SP
 * 800-38D) with a key for each direction from the TLS exporter (docs/protocol.md, "Message tags").
 *
 * A message's nonce is its number in its direction. A reliable connection keeps the order, so both sides know the
 * number, and an omitted, repeated or moved message does not verify. Owning thread: the connection's.
 */
#ifndef RAMPART_COMMON_MSG_TAG_H
#define RAMPART_COMMON_MSG_TAG_H

#include <stdbool.h>
#include <stdint.h>

struct msg_tags;

#define MSG_TAG_BYTES 16
#define MSG_TAG_KEY_BYTES 16

/* Takes the keys of client and server, and overwrites them. Returns 0 or -ENOMEM. */
int msg_tags_new(uint8_t keys[2 * MSG_TAG_KEY_BYTES], bool is_client, struct msg_tags **out)
	__attribute__((warn_unused_result));
void msg_tags_free(struct msg_tags *t);	/* NULL-safe; overwrites the keys */

/* Writes the tag of the next message to send into its last MSG_TAG_BYTES. Returns 0 or -EIO. */
int msg_tag_write(struct msg_tags *t, uint8_t *message, uint32_t bytes) __attribute__((warn_unused_result));
/* True if this is the next message that the peer sent, unchanged. `bytes` is at least MSG_TAG_BYTES. */
bool msg_tag_check(struct msg_tags *t, const uint8_t *message, uint32_t bytes);

#endif
