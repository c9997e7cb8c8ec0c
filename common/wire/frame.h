/* SPDX-License-Identifier: BSD-2-Clause */
/* Bootstrap frames, wire version 3, exchanged inside TLS (docs/protocol.md, "Bootstrap frames").
 *
 * Every frame starts with an 8-byte header: u32 length of the whole frame, u8 version, u8 type,
 * u16 zero. All fields are big-endian. Encoding writes a complete frame; decoding checks every
 * field's range. Pure: no I/O, any thread.
 */
#ifndef RAMPART_COMMON_FRAME_H
#define RAMPART_COMMON_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/wire/transport.h"

#define FRAME_VERSION 3
#define FRAME_HEADER_BYTES 8
#define FRAME_SESSION_BYTES 16
#define FRAME_REFUSE_TEXT_MAX 160

/* Application protocol name in TLS (RFC 7301), length-prefixed as OpenSSL takes it. */
#define FRAME_ALPN "\x09rampart/3"
/* The previous version's name. Both ends know it only to tell the versions apart, and speak nothing else of that
 * version (docs/protocol.md, "Versions"). */
#define FRAME_ALPN_BEFORE "\x09rampart/2"

enum frame_type {
	FRAME_HELLO = 1,	/* client: asks for a connection */
	FRAME_GRANT = 2,	/* server: the parameters of the connection */
	FRAME_REFUSE = 3,	/* server: a refusal, with a code and a text */
	FRAME_CONTROL = 4,	/* client: asks for a report */
	FRAME_REPORT = 5,	/* server: a JSON text */
};

/* Frame sizes, header included. */
#define FRAME_HELLO_BYTES 64
#define FRAME_GRANT_BYTES 104
#define FRAME_REFUSE_BYTES_MAX (FRAME_HEADER_BYTES + 4 + FRAME_REFUSE_TEXT_MAX)
#define FRAME_CONTROL_BYTES 12
#define FRAME_REPORT_BYTES_MAX (1u << 20)
/* The longest frame a client may send; a longer one is refused before it is read. */
#define FRAME_FROM_CLIENT_MAX FRAME_HELLO_BYTES

#define FRAME_MESSAGE_BYTES_MIN 16u
#define FRAME_MESSAGE_BYTES_MAX (1u << 20)
#define FRAME_QUEUE_DEPTH_MAX 1024u
#define FRAME_REGION_BYTES_MAX (1u << 31)	/* also the limit of a window */

enum frame_feature {
	FRAME_FEATURE_REGION = 1 << 0,	/* a memory region for one-sided access */
	FRAME_FEATURE_TICKET = 1 << 1,	/* a TLS session ticket with the GRANT; an offer, which a server may ignore */
	FRAME_FEATURE_TAGS = 1 << 2,	/* every message carries a tag (msg_tag.h) */
	FRAME_FEATURE_WINDOW = 1 << 3,	/* on request, the server WRITEs from the region to the client's window */
	FRAME_FEATURE_WRITE_IMM = 1 << 4,	/* a WRITE with immediate data is a one-way message that asks for its
						 * credit */
	FRAME_FEATURE_ALL_CREDITS = 1 << 5,	/* the client needs all of queue_depth, and cannot work with less */
	/* With one of these two, messages go over a socket and not over RDMA: without PSNs, region or window. */
	FRAME_FEATURE_TCP = 1 << 6,	/* a TCP connection to GRANT's address */
	FRAME_FEATURE_TLS = 1 << 7,	/* this TLS connection */
	FRAME_FEATURE_OOB = 1 << 8,	/* HELLO and GRANT describe the queue pairs; without rdmacm (CONNECT_OOB) */
	FRAME_FEATURE_MORE = 1 << 9,	/* another HELLO follows on this TLS connection, for another RDMA connection */
};
#define FRAME_QPS_MAX 8u	/* most RDMA connections that one TLS connection bootstraps */
#define FRAME_FEATURES_SOCKET (FRAME_FEATURE_TCP | FRAME_FEATURE_TLS)
#define FRAME_FEATURES_KNOWN \
	(FRAME_FEATURE_REGION | FRAME_FEATURE_TICKET | FRAME_FEATURE_TAGS | FRAME_FEATURE_WINDOW | \
	 FRAME_FEATURE_WRITE_IMM | FRAME_FEATURE_ALL_CREDITS | FRAME_FEATURES_SOCKET | FRAME_FEATURE_OOB | \
	 FRAME_FEATURE_MORE)

/* Reasons why a server refuses. The numbers are those on the wire; refuse_code_name returns the names. */
enum refuse_code {
	REFUSE_BUSY = 1,		/* no PSN or queue pair is available now: try again later */
	REFUSE_FULL = 2,		/* the configured number of clients is connected */
	REFUSE_BAD_REQUEST = 3,		/* a frame or field that is not allowed */
	REFUSE_BAD_VERSION = 4,		/* a wire version that this server does not speak */
	REFUSE_PSN_CONFLICT = 5,	/* the PSN is taken: draw again, same TLS connection */
	REFUSE_DRAINING = 6,		/* the server is stopping */
	REFUSE_UNSUPPORTED = 7,		/* a feature or size this server does not offer */
	REFUSE_INTERNAL = 8,		/* the server failed; its log says why */
	REFUSE_NOT_ALLOWED = 9,		/* the client's certificate has no name that may connect */
	/* The following are sent in the private data of an RDMA connection reject (and REFUSE_BUSY may be);
	 * REFUSE_NO_RESOURCES also in a REFUSE frame. An expired session is a REFUSE_BAD_SESSION. */
	REFUSE_BAD_SESSION = 16,	/* unknown, used or expired session id */
	REFUSE_BAD_HMAC = 17,		/* the request is not from the session's owner */
	REFUSE_BAD_ADDRESS = 18,	/* not the address the TLS session came from */
	REFUSE_NO_RESOURCES = 19,	/* no queue pair, region, receive buffer or memory is left */
	REFUSE_STALE = 20,		/* the client's connection manager calls the server's queue pair number stale */
};

/* "busy", "full", ...; "unknown" for any other number. */
const char *refuse_code_name(uint32_t code);

/* The transport that the features ask for. They must be valid. */
enum transport frame_transport(uint16_t features);

struct frame_header {
	uint32_t length;	/* of the whole frame */
	uint8_t version;
	uint8_t type;		/* as received; may not be in enum frame_type */
};

/* Memory of the client that the server may WRITE to. */
struct frame_window {
	uint64_t addr;
	uint32_t bytes;
	uint32_t rkey;
};

#define FRAME_GID_BYTES 16

/* A queue pair, as the other end needs to know it to connect without rdmacm. */
struct frame_qp {
	uint8_t gid[FRAME_GID_BYTES];	/* of its port; on Ethernet an IP address, IPv4 as ::ffff:a.b.c.d */
	uint32_t qpn;
	uint16_t lid;		/* on InfiniBand, else 0 */
	uint8_t mtu;		/* the port's, as enum ibv_mtu: 1 to 5 */
	uint8_t reads;		/* READs and atomics outstanding: in HELLO as wanted, in GRANT as granted */
};

struct frame_hello {
	uint32_t message_bytes;	/* largest message the client wants to send */
	uint16_t queue_depth;	/* messages the client wants to have in flight */
	uint16_t features;
	uint32_t psn;		/* of the client's send queue; 0 without RDMA */
	uint32_t region_bytes;	/* the smallest region the client can use; 0: any, or no region is requested */
	struct frame_window window;	/* all 0 without FRAME_FEATURE_WINDOW */
	struct frame_qp qp;	/* all 0 without FRAME_FEATURE_OOB */
};

struct frame_grant {
	uint8_t session[FRAME_SESSION_BYTES];
	uint32_t psn;		/* of the server's send queue; 0 without RDMA */
	uint32_t message_bytes;	/* largest message, at least the requested size */
	uint16_t credits;	/* messages the client may have in flight */
	uint16_t features;
	struct addr rdma;	/* address for the RDMA or TCP connection; with FRAME_FEATURE_TLS or _OOB, this one's */
	uint32_t expires_ms;	/* time left to connect */
	uint64_t region_addr;	/* one-sided region; all 0 without FRAME_FEATURE_REGION */
	uint32_t region_bytes;
	uint32_t region_rkey;
	struct frame_qp qp;	/* all 0 without FRAME_FEATURE_OOB */
};

struct frame_refuse {
	uint16_t code;
	char text[FRAME_REFUSE_TEXT_MAX + 1];	/* printable ASCII */
};

enum control_what {
	CONTROL_STATS = 1,	/* statistics snapshot */
	CONTROL_INFO = 2,	/* version, limits, environment */
	CONTROL_MARK = 3,	/* start a new interval for this session's stage histograms; same answer as STATS */
	CONTROL_WATCH = 4,	/* a sample of the server's resources per interval, until the session ends */
};

/* Interval between two samples. */
#define FRAME_WATCH_MS_MIN 100u
#define FRAME_WATCH_MS_MAX 60000u

struct frame_control {
	enum control_what what;
	uint16_t interval_ms;	/* CONTROL_WATCH only; otherwise 0 */
};

/* Encoders write a whole frame into buf, which must hold the type's size, and return that size. */
size_t frame_encode_hello(const struct frame_hello *h, uint8_t *buf);
size_t frame_encode_grant(const struct frame_grant *g, uint8_t *buf);
size_t frame_encode_refuse(uint16_t code, const char *text, uint8_t *buf);
/* A REFUSE `bad_version` that names both versions, in the version of the frame that it answers, because a client reads
 * only its own version. REFUSE has the same layout in all versions. */
size_t frame_encode_bad_version(uint8_t theirs, uint8_t *buf);
size_t frame_encode_control(enum control_what what, uint8_t *buf);	/* not CONTROL_WATCH */
size_t frame_encode_watch(uint16_t interval_ms, uint8_t *buf);
/* Writes only the header; `json_bytes` bytes of text follow it. */
size_t frame_encode_report_header(uint32_t json_bytes, uint8_t *buf);

/* Decodes the header from FRAME_HEADER_BYTES bytes. Returns 0, or -EPROTO for a length below the header's or above
 * `max_bytes`, or a reserved field that is not zero. The caller checks version and type. */
int frame_decode_header(const uint8_t *buf, uint32_t max_bytes, struct frame_header *out)
	__attribute__((warn_unused_result));

/* Decoders take a whole frame of `n` bytes whose header was decoded. They return 0, or -EPROTO with *why set to static
 * text that names the invalid field and what is allowed. */
int frame_decode_hello(const uint8_t *buf, size_t n, struct frame_hello *out, const char **why)
	__attribute__((warn_unused_result));
int frame_decode_grant(const uint8_t *buf, size_t n, struct frame_grant *out, const char **why)
	__attribute__((warn_unused_result));
int frame_decode_refuse(const uint8_t *buf, size_t n, struct frame_refuse *out, const char **why)
	__attribute__((warn_unused_result));
int frame_decode_control(const uint8_t *buf, size_t n, struct frame_control *out, const char **why)
	__attribute__((warn_unused_result));

#endif
