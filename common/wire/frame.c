/* SPDX-License-Identifier: BSD-2-Clause */
/* Bootstrap frames: encoding and range-checked decoding. No I/O; layouts in docs/protocol.md. */
#include "common/wire/frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/be.h"
#include "common/wire/psn.h"

static void put_header(uint8_t *buf, size_t length, enum frame_type type)
{
	be_put32(buf, (uint32_t)length);
	buf[4] = FRAME_VERSION;
	buf[5] = (uint8_t)type;
	be_put16(buf + 6, 0);
}

const char *refuse_code_name(uint32_t code)
{
	switch (code) {
	case REFUSE_BUSY: return "busy";
	case REFUSE_FULL: return "full";
	case REFUSE_BAD_REQUEST: return "bad_request";
	case REFUSE_BAD_VERSION: return "bad_version";
	case REFUSE_PSN_CONFLICT: return "psn_conflict";
	case REFUSE_DRAINING: return "draining";
	case REFUSE_UNSUPPORTED: return "unsupported";
	case REFUSE_INTERNAL: return "internal";
	case REFUSE_NOT_ALLOWED: return "not_allowed";
	case REFUSE_BAD_SESSION: return "bad_session";
	case REFUSE_BAD_HMAC: return "bad_hmac";
	case REFUSE_BAD_ADDRESS: return "bad_address";
	case REFUSE_NO_RESOURCES: return "no_resources";
	case REFUSE_STALE: return "stale";
	default: return "unknown";
	}
}

static void put_qp(const struct frame_qp *qp, uint8_t *buf)
{
	memcpy(buf, qp->gid, FRAME_GID_BYTES);
	be_put32(buf + 16, qp->qpn);
	be_put16(buf + 20, qp->lid);
	buf[22] = qp->mtu;
	buf[23] = qp->reads;
}

static void get_qp(const uint8_t *buf, struct frame_qp *out)
{
	memcpy(out->gid, buf, FRAME_GID_BYTES);
	out->qpn = be_get32(buf + 16);
	out->lid = be_get16(buf + 20);
	out->mtu = buf[22];
	out->reads = buf[23];
}

size_t frame_encode_hello(const struct frame_hello *h, uint8_t *buf)
{
	put_header(buf, FRAME_HELLO_BYTES, FRAME_HELLO);
	be_put32(buf + 8, h->message_bytes);
	be_put16(buf + 12, h->queue_depth);
	be_put16(buf + 14, h->features);
	be_put32(buf + 16, h->psn);
	be_put32(buf + 20, h->region_bytes);
	be_put64(buf + 24, h->window.addr);
	be_put32(buf + 32, h->window.bytes);
	be_put32(buf + 36, h->window.rkey);
	put_qp(&h->qp, buf + 40);
	return FRAME_HELLO_BYTES;
}

size_t frame_encode_grant(const struct frame_grant *g, uint8_t *buf)
{
	put_header(buf, FRAME_GRANT_BYTES, FRAME_GRANT);
	memcpy(buf + 8, g->session, FRAME_SESSION_BYTES);
	be_put32(buf + 24, g->psn);
	be_put32(buf + 28, g->message_bytes);
	be_put16(buf + 32, g->credits);
	be_put16(buf + 34, g->features);
	addr_to_bytes(&g->rdma, buf + 36);
	be_put16(buf + 52, addr_port(&g->rdma));
	be_put16(buf + 54, 0);
	be_put32(buf + 56, g->expires_ms);
	be_put64(buf + 60, g->region_addr);
	be_put32(buf + 68, g->region_bytes);
	be_put32(buf + 72, g->region_rkey);
	be_put32(buf + 76, 0);
	put_qp(&g->qp, buf + 80);
	return FRAME_GRANT_BYTES;
}

size_t frame_encode_refuse(uint16_t code, const char *text, uint8_t *buf)
{
	size_t n = strnlen(text, FRAME_REFUSE_TEXT_MAX);

	put_header(buf, FRAME_HEADER_BYTES + 4 + n, FRAME_REFUSE);
	be_put16(buf + 8, code);
	be_put16(buf + 10, (uint16_t)n);
	memcpy(buf + 12, text, n);
	return FRAME_HEADER_BYTES + 4 + n;
}

size_t frame_encode_bad_version(uint8_t theirs, uint8_t *buf)
{
	char text[FRAME_REFUSE_TEXT_MAX + 1];
	size_t n;

	snprintf(text, sizeof(text),
		 "the server speaks wire version %d, the client %u: both need programs of the same version",
		 FRAME_VERSION, theirs);
	n = frame_encode_refuse(REFUSE_BAD_VERSION, text, buf);
	buf[4] = theirs;
	return n;
}

static size_t encode_control(enum control_what what, uint16_t interval_ms, uint8_t *buf)
{
	put_header(buf, FRAME_CONTROL_BYTES, FRAME_CONTROL);
	be_put16(buf + 8, (uint16_t)what);
	be_put16(buf + 10, interval_ms);
	return FRAME_CONTROL_BYTES;
}

size_t frame_encode_control(enum control_what what, uint8_t *buf)
{
	return encode_control(what, 0, buf);
}

size_t frame_encode_watch(uint16_t interval_ms, uint8_t *buf)
{
	return encode_control(CONTROL_WATCH, interval_ms, buf);
}

size_t frame_encode_report_header(uint32_t json_bytes, uint8_t *buf)
{
	put_header(buf, FRAME_HEADER_BYTES + json_bytes, FRAME_REPORT);
	return FRAME_HEADER_BYTES;
}

int frame_decode_header(const uint8_t *buf, uint32_t max_bytes, struct frame_header *out)
{
	out->length = be_get32(buf);
	out->version = buf[4];
	out->type = buf[5];
	if (out->length < FRAME_HEADER_BYTES || out->length > max_bytes || be_get16(buf + 6) != 0)
		return -EPROTO;
	return 0;
}

static int bad(const char **why, const char *text)
{
	*why = text;
	return -EPROTO;
}

static bool memory_is_valid(uint64_t addr, uint32_t bytes)
{
	return bytes > 0 && bytes <= FRAME_REGION_BYTES_MAX && addr <= UINT64_MAX - bytes;
}

/* A window needs a region, because the server writes from the region to it. */
static bool hello_window_is_valid(const struct frame_hello *h)
{
	if (!(h->features & FRAME_FEATURE_WINDOW))
		return !h->window.addr && !h->window.bytes && !h->window.rkey;
	return (h->features & FRAME_FEATURE_REGION) && memory_is_valid(h->window.addr, h->window.bytes);
}

/* A write with immediate data needs memory to write to, and has no place for a tag. */
static bool features_are_valid(uint16_t features)
{
	const uint16_t one_sided = FRAME_FEATURE_REGION | FRAME_FEATURE_WINDOW | FRAME_FEATURE_WRITE_IMM;

	if (features & ~FRAME_FEATURES_KNOWN)
		return false;
	if ((features & FRAME_FEATURES_SOCKET) &&
	    ((features & FRAME_FEATURES_SOCKET) == FRAME_FEATURES_SOCKET ||
	     (features & (one_sided | FRAME_FEATURE_OOB | FRAME_FEATURE_MORE))))
		return false;
	return !(features & FRAME_FEATURE_WRITE_IMM) ||
	       ((features & FRAME_FEATURE_REGION) && !(features & FRAME_FEATURE_TAGS));
}

enum transport frame_transport(uint16_t features)
{
	if (features & FRAME_FEATURE_TCP)
		return TRANSPORT_TCP;
	return features & FRAME_FEATURE_TLS ? TRANSPORT_TLS : TRANSPORT_RDMA;
}

static bool psn_is_valid(uint32_t psn, uint16_t features)
{
	return features & FRAME_FEATURES_SOCKET ? psn == 0 : psn <= PSN_MASK;
}

/* QP numbers 0 and 1 are special in InfiniBand (IBTA 3.9), and 2^24 - 1 stands for a multicast group. */
static bool qp_is_valid(const struct frame_qp *qp, uint16_t features)
{
	static const struct frame_qp none;

	if (!(features & FRAME_FEATURE_OOB))
		return memcmp(qp->gid, none.gid, FRAME_GID_BYTES) == 0 && !qp->qpn && !qp->lid && !qp->mtu &&
		       !qp->reads;
	return qp->qpn > 1 && qp->qpn < 0xffffff && qp->mtu >= 1 && qp->mtu <= 5;
}

int frame_decode_hello(const uint8_t *buf, size_t n, struct frame_hello *out, const char **why)
{
	if (n != FRAME_HELLO_BYTES)
		return bad(why, "HELLO length: must be 64");
	out->message_bytes = be_get32(buf + 8);
	out->queue_depth = be_get16(buf + 12);
	out->features = be_get16(buf + 14);
	out->psn = be_get32(buf + 16);
	out->region_bytes = be_get32(buf + 20);
	out->window.addr = be_get64(buf + 24);
	out->window.bytes = be_get32(buf + 32);
	out->window.rkey = be_get32(buf + 36);
	get_qp(buf + 40, &out->qp);
	if (out->message_bytes < FRAME_MESSAGE_BYTES_MIN || out->message_bytes > FRAME_MESSAGE_BYTES_MAX)
		return bad(why, "HELLO message size: must be 16 to 1048576");
	if (out->queue_depth < 1 || out->queue_depth > FRAME_QUEUE_DEPTH_MAX)
		return bad(why, "HELLO queue depth: must be 1 to 1024");
	if (!features_are_valid(out->features))
		return bad(why, "HELLO features: bits 0 to 9 are known; bit 4 needs bit 0, excludes bit 2; bit 6 or 7 "
				"excludes the other and bits 0, 3, 4, 8, 9");
	if (!psn_is_valid(out->psn, out->features))
		return bad(why, "HELLO psn: must be below 2^24, and 0 without RDMA");
	if (!hello_window_is_valid(out))
		return bad(why, "HELLO window: size must be 1 to 2^31, with a region; all 0 without the feature");
	if (out->region_bytes > (out->features & FRAME_FEATURE_REGION ? FRAME_REGION_BYTES_MAX : 0))
		return bad(why, "HELLO region size: must be 0 to 2^31; 0 without the feature");
	if (!qp_is_valid(&out->qp, out->features))
		return bad(why, "HELLO queue pair: number 2 to 2^24 - 2, MTU 1 to 5; all 0 without the feature");
	return 0;
}

static bool grant_region_is_valid(const struct frame_grant *g)
{
	if (!(g->features & FRAME_FEATURE_REGION))
		return !g->region_addr && !g->region_bytes && !g->region_rkey;
	return memory_is_valid(g->region_addr, g->region_bytes);
}

int frame_decode_grant(const uint8_t *buf, size_t n, struct frame_grant *out, const char **why)
{
	if (n != FRAME_GRANT_BYTES)
		return bad(why, "GRANT length: must be 104");
	memcpy(out->session, buf + 8, FRAME_SESSION_BYTES);
	out->psn = be_get32(buf + 24);
	out->message_bytes = be_get32(buf + 28);
	out->credits = be_get16(buf + 32);
	out->features = be_get16(buf + 34);
	addr_from_bytes(buf + 36, be_get16(buf + 52), &out->rdma);
	out->expires_ms = be_get32(buf + 56);
	out->region_addr = be_get64(buf + 60);
	out->region_bytes = be_get32(buf + 68);
	out->region_rkey = be_get32(buf + 72);
	get_qp(buf + 80, &out->qp);
	if (out->message_bytes < FRAME_MESSAGE_BYTES_MIN || out->message_bytes > FRAME_MESSAGE_BYTES_MAX)
		return bad(why, "GRANT message size: must be 16 to 1048576");
	if (out->credits < 1 || out->credits > FRAME_QUEUE_DEPTH_MAX)
		return bad(why, "GRANT credits: must be 1 to 1024");
	if (!features_are_valid(out->features))
		return bad(why, "GRANT features: bits 0 to 9 are known; bit 4 needs bit 0, excludes bit 2; bit 6 or 7 "
				"excludes the other and bits 0, 3, 4, 8, 9");
	if (!psn_is_valid(out->psn, out->features))
		return bad(why, "GRANT psn: must be below 2^24, and 0 without RDMA");
	if (addr_port(&out->rdma) == 0 || addr_is_any(&out->rdma))
		return bad(why, "GRANT address: must be an address and a port");
	if (!grant_region_is_valid(out))
		return bad(why, "GRANT region: size must be 1 to 2^31, all 0 without the feature");
	if (!qp_is_valid(&out->qp, out->features))
		return bad(why, "GRANT queue pair: number 2 to 2^24 - 2, MTU 1 to 5; all 0 without the feature");
	if (be_get16(buf + 54) != 0 || be_get32(buf + 76) != 0)
		return bad(why, "GRANT reserved: must be 0");
	return 0;
}

int frame_decode_refuse(const uint8_t *buf, size_t n, struct frame_refuse *out, const char **why)
{
	size_t text_n;

	if (n < FRAME_HEADER_BYTES + 4)
		return bad(why, "REFUSE length: must be at least 12");
	out->code = be_get16(buf + 8);
	text_n = be_get16(buf + 10);
	if (text_n > FRAME_REFUSE_TEXT_MAX || n != FRAME_HEADER_BYTES + 4 + text_n)
		return bad(why, "REFUSE text: must be up to 160 bytes and end the frame");
	for (size_t i = 0; i < text_n; i++) {
		uint8_t c = buf[12 + i];

		out->text[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
	}
	out->text[text_n] = '\0';
	return 0;
}

int frame_decode_control(const uint8_t *buf, size_t n, struct frame_control *out, const char **why)
{
	uint16_t what, interval_ms;

	if (n != FRAME_CONTROL_BYTES)
		return bad(why, "CONTROL length: must be 12");
	what = be_get16(buf + 8);
	interval_ms = be_get16(buf + 10);
	if (what < CONTROL_STATS || what > CONTROL_WATCH)
		return bad(why, "CONTROL request: must be 1 to 4");
	if (what == CONTROL_WATCH ? interval_ms < FRAME_WATCH_MS_MIN || interval_ms > FRAME_WATCH_MS_MAX :
	    interval_ms != 0)
		return bad(why, "CONTROL interval: must be 100 to 60000 ms with WATCH, else 0");
	*out = (struct frame_control){ .what = (enum control_what)what, .interval_ms = interval_ms };
	return 0;
}
