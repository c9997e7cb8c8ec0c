/* SPDX-License-Identifier: BSD-2-Clause */
/* A TLS connection on an event loop: TCP connect, handshake, one frame at a time, close_notify.
 *
 * It owns the socket, the TLS object, the watcher, and the frame being written or read. The two ends take turns
 * (docs/protocol.md), so one buffer serves both directions: a frame is written whole before the next one is read. The
 * owner decides what a frame means and what follows it.
 *
 * A function that returns TLS_IO_WAIT has set the watcher, or a timer if it continues in the loop's next turn
 * (TLS_MORE). When the socket is ready, or that turn has come, the loop calls on_ready, and the owner calls the same
 * function again. Nothing blocks, and no function here calls on_ready.
 *
 * Owning thread: the loop's.
 */
#ifndef RAMPART_COMMON_TLS_IO_H
#define RAMPART_COMMON_TLS_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#include "common/base/addr.h"
#include "common/base/counter.h"
#include "common/tls/tls.h"
#include "common/wire/fail.h"
#include "common/wire/frame.h"

/* Longer frames, which can only be reports, are kept on the heap. */
#define TLS_IO_FRAME_BYTES FRAME_REFUSE_BYTES_MAX

enum tls_io_status {
	TLS_IO_DONE,
	TLS_IO_WAIT,	/* call again when on_ready is called */
	TLS_IO_FAILED,	/* see `failure`; after FAIL_PROTOCOL a frame may still be written, otherwise only close */
};

/* Made by its owner, which reads `tls` (for keys, tickets and texts), `failure` and `frame`, and writes nothing. */
struct tls_io {
	struct ev_loop *loop;
	void (*on_ready)(void *owner);
	void *owner;
	counter *bytes_in, *bytes_out;	/* bytes of frames; NULL: not counted */
	ev_io watcher;
	ev_timer again;		/* continues in the loop's next turn */
	int fd;			/* until `tls` owns it; else -1 */
	struct tls *tls;	/* NULL before the handshake and after the close */
	bool writing;		/* a frame is not completely written */
	bool said_bye;
	uint32_t done;		/* bytes of the frame written or read so far */
	uint32_t frame_bytes;	/* size of the frame being written */
	uint8_t *frame;		/* `small`, or on the heap */
	uint8_t small[TLS_IO_FRAME_BYTES];
	/* Kind and code; the owner sets the stage. FAIL_CLOSED: the peer closed. FAIL_PROTOCOL: an invalid frame
	 * header. FAIL_ERRNO, ENOMEM: no memory for a long frame. Otherwise as tls_failure. */
	struct fail failure;
};

/* Call this first. The counters may be NULL. */
void tls_io_init(struct tls_io *io, struct ev_loop *loop, void (*on_ready)(void *owner), void *owner,
		 counter *bytes_in, counter *bytes_out);

/* Closes the socket without close_notify; see tls_free. May be called twice. `io` may then connect or accept again. */
void tls_io_close(struct tls_io *io);
/* Server, before the handshake: FAIL_CLOSED if the client closed its side, FAIL_TIMEOUT if it sent nothing for `ns`,
 * else FAIL_NONE. Needed because connections wait in the listener's backlog, and accepted ones for their turn. */
enum fail_kind tls_io_abandoned(const struct tls_io *io, uint64_t ns);
bool tls_io_is_open(const struct tls_io *io);

/* Client: starts to connect, from the address `from` unless it is NULL; on_ready is called when the outcome is known.
 * Returns 0 or the -errno of socket, bind or connect. */
int tls_io_connect(struct tls_io *io, const struct addr *to, const struct addr *from)
	__attribute__((warn_unused_result));
/* Client: returns 0 if the connection is established, or the -errno with which it failed. */
int tls_io_connected(const struct tls_io *io) __attribute__((warn_unused_result));
/* Client, once connected: hands the socket to the caller. This end is closed afterwards. */
int tls_io_take_socket(struct tls_io *io);
/* Client, once connected: prepares for tls_io_handshake. Returns 0 or -ENOMEM. */
int tls_io_start(struct tls_io *io, struct tls_ctx *ctx, const char *verify_name)
	__attribute__((warn_unused_result));

/* Server: takes over the accepted socket and calls on_ready when the client has sent something. Returns 0, or -ENOMEM
 * after closing the socket. */
int tls_io_accept(struct tls_io *io, struct tls_ctx *ctx, int fd) __attribute__((warn_unused_result));

/* Hands the TLS connection to the caller, for tls_io_adopt on another loop, possibly on another thread. No frame may be
 * left to write. This end is closed afterwards. */
struct tls *tls_io_release(struct tls_io *io);
/* Call after tls_io_init: continues the connection where the other loop left it. A frame may already be readable. */
void tls_io_adopt(struct tls_io *io, struct tls *tls);

enum tls_io_status tls_io_handshake(struct tls_io *io) __attribute__((warn_unused_result));

/* Returns the memory in which to encode a frame of up to TLS_IO_FRAME_BYTES. Overwrites the frame read last. */
uint8_t *tls_io_frame(struct tls_io *io);
/* Makes the `n` bytes in tls_io_frame, or those at `heap`, the frame to write. Frees `heap` when the frame is written
 * or the connection is closed. */
void tls_io_put(struct tls_io *io, size_t n);
void tls_io_put_heap(struct tls_io *io, uint8_t *heap, size_t n);
/* Writes the rest of the frame; also returns DONE if there is none. The end may be held back (tls.h): flush it unless a
 * read follows. */
enum tls_io_status tls_io_write(struct tls_io *io) __attribute__((warn_unused_result));
/* Sends the held-back bytes. */
enum tls_io_status tls_io_flush(struct tls_io *io) __attribute__((warn_unused_result));

/* Reads the header of a frame of at most `max_bytes`. Until the frame is read, further calls return DONE and the same
 * header. */
enum tls_io_status tls_io_read_header(struct tls_io *io, uint32_t max_bytes, struct frame_header *h)
	__attribute__((warn_unused_result));
/* Reads the rest of the frame. DONE: all its h->length bytes, header included, are in io->frame until the next frame is
 * read or written. */
enum tls_io_status tls_io_read_frame(struct tls_io *io, const struct frame_header *h)
	__attribute__((warn_unused_result));

/* Writes the close_notify alert behind all written data; further calls do nothing. */
void tls_io_say_bye(struct tls_io *io);
/* Writes the close_notify alert and waits for the peer to close first, so that this end has no port in TIME_WAIT.
 * True when nothing is left to wait for: the peer closed, sent more, or is lost. False: call again in on_ready. */
bool tls_io_is_bye_answered(struct tls_io *io);

/* Sets the watcher: on_ready is called when the socket is ready for `events` (EV_READ or EV_WRITE); 0: never. If one of
 * the functions above returned TLS_IO_WAIT, call it again afterwards, whatever the socket's state. */
void tls_io_watch(struct tls_io *io, int events);

/* `failure` in words, or ""; valid until the close. */
const char *tls_io_failure_text(const struct tls_io *io);

#endif
