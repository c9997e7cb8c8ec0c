/* A TLS connection on an event loop: TCP connect, handshake, one frame at a time, goodbye.
 *
 * It owns the socket, the TLS object, the watcher of both, and the frame that is being written or read. The two ends
 * take turns (docs/protocol.md), so one buffer serves both directions: a frame is written whole before the next one is
 * read. What a frame means, and what follows it, is the owner's to say.
 *
 * A function that returns TLS_IO_WAIT has set the watcher. When the socket is ready, on_ready is called, and the owner
 * calls the same function again. Nothing here calls on_ready itself, and nothing blocks.
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

/* A longer frame, which only a report is, takes memory of its own. */
#define TLS_IO_FRAME_BYTES FRAME_REFUSE_BYTES_MAX

enum tls_io_status {
	TLS_IO_DONE,
	TLS_IO_WAIT,	/* call again when on_ready is called */
	TLS_IO_FAILED,	/* `failure` says why; only a goodbye, or a REFUSE after a frame that is not allowed, may follow */
};

/* Embedded by its owner, who reads `tls` (for keys, tickets and texts), `failure` and `frame` and writes nothing. */
struct tls_io {
	struct ev_loop *loop;
	void (*on_ready)(void *owner);
	void *owner;
	counter *bytes_in, *bytes_out;	/* of frames; NULL: not counted */
	ev_io watcher;
	int fd;			/* until `tls` owns it; else -1 */
	struct tls *tls;	/* NULL before the handshake and after the close */
	bool writing;		/* a frame is not written whole yet */
	bool said_bye;
	uint32_t done;		/* bytes of the frame that are written or read */
	uint32_t frame_bytes;	/* of the frame that is written */
	uint8_t *frame;		/* `small`, or on the heap */
	uint8_t small[TLS_IO_FRAME_BYTES];
	/* Without its stage. FAIL_CLOSED: the peer closed. FAIL_PROTOCOL: a frame header that is not allowed. Else what
	 * tls_failure says, or FAIL_ERRNO. */
	struct fail failure;
};

/* First of all; closed and unconnected then. The counters may be NULL. */
void tls_io_init(struct tls_io *io, struct ev_loop *loop, void (*on_ready)(void *owner), void *owner,
		 counter *bytes_in, counter *bytes_out);

/* Closes the socket, with what is written as far as the socket takes it; see tls_free. May be called twice;
 * it may connect again afterwards. */
void tls_io_close(struct tls_io *io);
bool tls_io_is_open(const struct tls_io *io);

/* Client: begins to connect, from the address `from` unless it is NULL; on_ready is called when the outcome is known.
 * 0 or the -errno of socket, bind or connect. */
int tls_io_connect(struct tls_io *io, const struct addr *to, const struct addr *from)
	__attribute__((warn_unused_result));
/* Client: 0 if the connection is made, or the -errno with which it failed. */
int tls_io_connected(const struct tls_io *io) __attribute__((warn_unused_result));
/* Client, once connected: ready for tls_io_handshake. 0 or -ENOMEM. */
int tls_io_start(struct tls_io *io, struct tls_ctx *ctx, const char *verify_name)
	__attribute__((warn_unused_result));

/* Server: takes the accepted socket, and has on_ready called when the client says something. 0, or -ENOMEM: the socket
 * is closed then. */
int tls_io_accept(struct tls_io *io, struct tls_ctx *ctx, int fd) __attribute__((warn_unused_result));

enum tls_io_status tls_io_handshake(struct tls_io *io) __attribute__((warn_unused_result));

/* Where to encode a frame of up to TLS_IO_FRAME_BYTES. What was read last is gone then. */
uint8_t *tls_io_frame(struct tls_io *io);
/* Begins to write the `n` bytes in tls_io_frame, or those at `heap`, which are freed in time. */
void tls_io_put(struct tls_io *io, size_t n);
void tls_io_put_heap(struct tls_io *io, uint8_t *heap, size_t n);
/* Writes what is left; DONE if there is nothing. The last bytes go out with what follows (tls.h). */
enum tls_io_status tls_io_write(struct tls_io *io) __attribute__((warn_unused_result));
/* DONE when the socket has taken all that was written. */
enum tls_io_status tls_io_flush(struct tls_io *io) __attribute__((warn_unused_result));

/* Reads the header of a frame of `max_bytes` at most; DONE again until the frame is read. */
enum tls_io_status tls_io_read_header(struct tls_io *io, uint32_t max_bytes, struct frame_header *h)
	__attribute__((warn_unused_result));
/* Reads the rest. DONE: all h->length bytes, header included, are in io->frame until the next frame is read or
 * written. */
enum tls_io_status tls_io_read_frame(struct tls_io *io, const struct frame_header *h)
	__attribute__((warn_unused_result));

/* Says the close_notify alert behind what is written, once. */
void tls_io_say_bye(struct tls_io *io);
/* Says goodbye and waits for the peer's: who closes first keeps the port in TIME_WAIT. True when nothing is left to wait
 * for, because the peer closed, said something, or is lost. */
bool tls_io_is_bye_answered(struct tls_io *io);

/* Has on_ready called when the socket is ready for `events` (EV_READ, EV_WRITE), or not any more (0). */
void tls_io_watch(struct tls_io *io, int events);

/* The failure in words: OpenSSL's, or "". Until the close. */
const char *tls_io_failure_text(const struct tls_io *io);

#endif
