/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses with ports: parsing, comparing, printing. Pure, except addr_of_socket. Any thread, on a struct that no
 * other thread writes. */
#ifndef RAMPART_COMMON_ADDR_H
#define RAMPART_COMMON_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* An AF_INET or AF_INET6 socket address; `len` is its length for bind and connect. All zero means no address. */
struct addr {
	/* A sockaddr_storage would take 100 bytes more, and every client has an address. */
	union {
		sa_family_t ss_family;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
	} ss;
	socklen_t len;
};

#define ADDR_TEXT_MAX 64	/* room for any address as text, with its port and the final zero */

/* Reads a numeric IPv4 or IPv6 address; a link-local one needs the index of its interface ("fe80::1%2"). Does not
 * resolve names. Returns 0, or -EINVAL with *out unchanged. */
int addr_parse(const char *text, uint16_t port, struct addr *out) __attribute__((warn_unused_result));

/* Copies an AF_INET or AF_INET6 socket address. Returns 0, or -EAFNOSUPPORT with *out unchanged. */
int addr_from_sockaddr(const struct sockaddr *sa, struct addr *out) __attribute__((warn_unused_result));

/* Reads the local address and port of a socket (getsockname). Returns 0, or -EAFNOSUPPORT or -errno with *out
 * unchanged. */
int addr_of_socket(int fd, struct addr *out) __attribute__((warn_unused_result));

/* Convert from and to 16 bytes in network order. IPv4 is IPv4-mapped (RFC 4291, 2.5.5.2), as in the GIDs of RoCE. */
void addr_from_bytes(const uint8_t bytes[16], uint16_t port, struct addr *out);
void addr_to_bytes(const struct addr *a, uint8_t out[16]);

/* The port, in the byte order of this machine. */
uint16_t addr_port(const struct addr *a);
void addr_set_port(struct addr *a, uint16_t port);

/* Interface index of a link-local IPv6 address; 0: none, and for all other addresses. */
uint32_t addr_scope(const struct addr *a);
/* Sets the interface index of a link-local IPv6 address; leaves other addresses unchanged. */
void addr_set_scope(struct addr *a, uint32_t scope);

/* True if both are the same host; ports do not count, and an IPv4-mapped address equals the IPv4 address. */
bool addr_same_host(const struct addr *a, const struct addr *b);
/* A number, never 0, that is equal for addresses that count as one peer, on any port: an IPv4 address, or the first 64
 * bits of an IPv6 address, because one host can use all addresses with that prefix. Each link-local address is a peer
 * of its own. */
uint64_t addr_network(const struct addr *a);
/* True for 0.0.0.0 and ::. */
bool addr_is_any(const struct addr *a);

/* Writes the address to `text`, which is returned: "10.0.0.1", "2001:db8::1", or if link-local "fe80::1%2". */
const char *addr_host_text(const struct addr *a, char text[ADDR_TEXT_MAX]);
/* The same with the port: "10.0.0.1:7471" or "[2001:db8::1]:7471". */
const char *addr_text(const struct addr *a, char text[ADDR_TEXT_MAX]);

#endif
