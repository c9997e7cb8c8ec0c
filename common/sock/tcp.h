/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of TCP sockets (tcp(7), socket(7)): those requested with --tcp, and those in effect on a socket.
 */
#ifndef RAMPART_COMMON_TCP_H
#define RAMPART_COMMON_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define TCP_CONGESTION_BYTES 16	/* a name with its final zero: the kernel's TCP_CA_NAME_MAX */

/* All zero is `default`: the kernel's settings plus TCP_NODELAY, so that a message does not wait for another one. */
struct tcp_options {
	bool delay;			/* TCP_NODELAY is off */
	bool quickack;			/* TCP_QUICKACK, set again after each read, because the kernel clears it */
	uint32_t send_buffer, receive_buffer;	/* SO_SNDBUF, SO_RCVBUF: bytes; 0: the kernel's, which grow as needed */
	uint32_t busy_poll_us;		/* SO_BUSY_POLL; 0: the system's */
	uint32_t zerocopy_bytes;	/* SO_ZEROCOPY: messages of at least this size are sent without a copy; 0:
					 * none */
	char congestion[TCP_CONGESTION_BYTES];	/* TCP_CONGESTION; empty: the system's */
};

/* Reads the value of --tcp: `default` or `tuned`, then options that differ from it, such as "tuned,zerocopy=64k". NULL
 * is `default`. Returns 0, or -EINVAL with a line in `err`. Pure. */
int tcp_parse(const char *text, struct tcp_options *out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* {nodelay, quickack, send_buffer_bytes, receive_buffer_bytes, busy_poll_us, zerocopy_bytes, congestion}; null: not
 * requested. NULL when out of memory. */
json_t *tcp_options_json(const struct tcp_options *o) __attribute__((warn_unused_result));

/* Sets the options of a connected socket, but not SO_ZEROCOPY, which TLS cannot use, because encrypting copies. Options
 * that the kernel refuses keep their value; tcp_read shows it. Makes system calls, so call it once per connection. */
void tcp_apply(int fd, const struct tcp_options *o);
/* Sets SO_ZEROCOPY. False: the kernel does not support it. */
bool tcp_skip_copies(int fd) __attribute__((warn_unused_result));
/* Sets TCP_QUICKACK. Call again after each read. Makes a system call. */
void tcp_ack_quickly(int fd);
/* Makes the next close discard unsent data and reset the connection. */
void tcp_abort_on_close(int fd);

/* The options in effect on a socket (getsockopt(2)). */
struct tcp_values {
	uint64_t nodelay, quickack, send_buffer, receive_buffer, busy_poll_us, zerocopy, mss;
	char congestion[TCP_CONGESTION_BYTES];
};
/* False: `fd` is not an open TCP socket. Makes system calls, so do not call it between messages. */
bool tcp_read(int fd, struct tcp_values *out) __attribute__((warn_unused_result));

/* A row of an option table; `AT` gives the offset of a const char *. */
#define TCP_OPT(AT) { .name = "tcp", .group = "data", .type = OPT_STRING, .offset = AT, .metavar = "OPTION,...", \
	.def_words = "default", \
	.help = "Socket options of clients over TCP and TLS: default or tuned, then changes to it.", \
	.more = "`default` is the kernel's settings plus TCP_NODELAY. Changes are `nodelay=on|off`, " \
	"`quickack=on|off`, `send-buffer=BYTES`, `receive-buffer=BYTES`, `busy-poll=MICROSECONDS`, `zerocopy=BYTES` " \
	"and `congestion=NAME` (docs/workloads.md, \"Beside TCP\")." }

#endif
