/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of TCP sockets (tcp(7), socket(7)): what was asked for with --tcp, and what a socket has.
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
	bool quickack;			/* TCP_QUICKACK, set again after each read: the kernel takes it back */
	uint32_t send_buffer, receive_buffer;	/* SO_SNDBUF, SO_RCVBUF: bytes; 0: the kernel's, which grow as needed */
	uint32_t busy_poll_us;		/* SO_BUSY_POLL; 0: the system's */
	uint32_t zerocopy_bytes;	/* SO_ZEROCOPY: messages from this size on are sent from where they are; 0: none */
	char congestion[TCP_CONGESTION_BYTES];	/* TCP_CONGESTION; empty: the system's */
};

/* Reads the value of --tcp: `default` or `tuned`, and options that differ from it, such as "tuned,zerocopy=64k". NULL is
 * `default`. 0, or -EINVAL with a line in `err`. Pure. */
int tcp_parse(const char *text, struct tcp_options *out, char *err, size_t err_size) __attribute__((warn_unused_result));

/* {nodelay, quickack, send_buffer_bytes, receive_buffer_bytes, busy_poll_us, zerocopy_bytes, congestion}; null: not asked
 * for. NULL when out of memory. */
json_t *tcp_options_json(const struct tcp_options *o) __attribute__((warn_unused_result));

/* Sets the options of a connected socket, except SO_ZEROCOPY, because encrypting copies anyway. Options that the kernel
 * refuses keep their value; tcp_read shows it. Makes several system calls, so call it once per connection. */
void tcp_apply(int fd, const struct tcp_options *o);
/* SO_ZEROCOPY. False: the kernel has none. */
bool tcp_skip_copies(int fd) __attribute__((warn_unused_result));
/* TCP_QUICKACK again, after a read. A system call. */
void tcp_ack_quickly(int fd);
/* Discards data not sent yet: the next close resets the connection. */
void tcp_abort_on_close(int fd);

/* The options in effect on a socket (getsockopt(2)). */
struct tcp_values {
	uint64_t nodelay, quickack, send_buffer, receive_buffer, busy_poll_us, zerocopy, mss;
	char congestion[TCP_CONGESTION_BYTES];
};
/* False: it is no TCP socket, or closed. System calls, so not between messages. */
bool tcp_read(int fd, struct tcp_values *out) __attribute__((warn_unused_result));

/* A row of an option table; `AT` gives the offset of a const char *. */
#define TCP_OPT(AT) { .name = "tcp", .group = "data", .type = OPT_STRING, .offset = AT, .metavar = "OPTION,...", \
	.def_words = "default", \
	.help = "Socket options of clients over TCP and TLS: default or tuned, then changes to that.", \
	.more = "`default` is the kernel's, with TCP_NODELAY. Changes are `nodelay=on|off`, `quickack=on|off`, " \
	"`send-buffer=BYTES`, `receive-buffer=BYTES`, `busy-poll=MICROSECONDS`, `zerocopy=BYTES` and " \
	"`congestion=NAME` (docs/workloads.md, \"Beside TCP\")." }

#endif
