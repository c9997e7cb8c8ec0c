/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses with ports: parsing, comparing, printing. Pure, except addr_of_socket. Any thread, on a struct that no
 * other thread writes. */
#ifndef RAMPART_COMMON_ADDR_H
#define RAMPART_COMMON_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* An AF_INET or AF_INET6 socket address; `len` is what bind and connect want. All zero means no address. */
struct addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

#define ADDR_TEXT_MAX 64	/* room for any address as text, with its port and the final zero */

/* Reads a numeric IPv4 or IPv6 address, a link-local one with the index of its interface ("fe80::1%2"); names are not
 * resolved. Returns 0, or -EINVAL and leaves *out alone. */
int addr_parse(const char *text, uint16_t port, struct addr *out) __attribute__((warn_unused_result));

/* Copies an AF_INET or AF_INET6 socket address. Returns 0, or -EAFNOSUPPORT and leaves *out alone. */
int addr_from_sockaddr(const struct sockaddr *sa, struct addr *out) __attribute__((warn_unused_result));

/* Reads the local address and port of a socket (getsockname). Returns 0; or -EAFNOSUPPORT or another -errno, and
 * leaves *out alone. */
int addr_of_socket(int fd, struct addr *out) __attribute__((warn_unused_result));

/* An address from and to 16 bytes in network order. IPv4 is IPv4-mapped (RFC 4291, 2.5.5.2), as in the GIDs of RoCE. */
void addr_from_bytes(const uint8_t bytes[16], uint16_t port, struct addr *out);
void addr_to_bytes(const struct addr *a, uint8_t out[16]);

/* The port, in the byte order of this machine. */
uint16_t addr_port(const struct addr *a);
void addr_set_port(struct addr *a, uint16_t port);

/* The interface (its index) that a link-local IPv6 address is of; 0: none, and for all other addresses. */
uint32_t addr_scope(const struct addr *a);
/* Sets it, of a link-local IPv6 address; others stay as they are. */
void addr_set_scope(struct addr *a, uint32_t scope);

/* True if both are one host; ports do not count, and an IPv4-mapped address is the IPv4 address. */
bool addr_same_host(const struct addr *a, const struct addr *b);
/* What counts as one peer, whatever its port, as a number that is never 0: an IPv4 address; of an IPv6 address the first
 * 64 bits, all of which one host can take addresses from. Link-local addresses share these, so each is a peer of its own. */
uint64_t addr_network(const struct addr *a);
/* True for 0.0.0.0 and ::. */
bool addr_is_any(const struct addr *a);

/* Writes the address to `text`, which is returned: "10.0.0.1" or "2001:db8::1"; of a link-local one with its interface
 * "fe80::1%2". */
const char *addr_host_text(const struct addr *a, char text[ADDR_TEXT_MAX]);
/* The same with the port: "10.0.0.1:7471" or "[2001:db8::1]:7471". */
const char *addr_text(const struct addr *a, char text[ADDR_TEXT_MAX]);

#endif
