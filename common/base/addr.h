/* IP addresses with ports, in the forms the programs need. Pure; any thread. */
#ifndef RAMPART_COMMON_ADDR_H
#define RAMPART_COMMON_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

#define ADDR_TEXT_MAX 64

/* Parses a numeric IPv4 or IPv6 address. Returns 0 or -EINVAL. */
int addr_parse(const char *text, uint16_t port, struct addr *out) __attribute__((warn_unused_result));

/* Copies an AF_INET or AF_INET6 socket address. Returns 0 or -EAFNOSUPPORT. */
int addr_from_sockaddr(const struct sockaddr *sa, struct addr *out) __attribute__((warn_unused_result));

/* From 16 bytes, an IPv4 address being IPv4-mapped (RFC 4291, 2.5.5.2), as RoCE GIDs have it. */
void addr_from_bytes(const uint8_t bytes[16], uint16_t port, struct addr *out);
/* To 16 bytes, IPv4 as IPv4-mapped. */
void addr_to_bytes(const struct addr *a, uint8_t out[16]);

uint16_t addr_port(const struct addr *a);
void addr_set_port(struct addr *a, uint16_t port);
bool addr_same_host(const struct addr *a, const struct addr *b);
bool addr_is_any(const struct addr *a);
bool addr_is_loopback(const struct addr *a);

/* "10.0.0.1" and "10.0.0.1:7471" or "[fe80::1]:7471". Return `text`. */
const char *addr_host_text(const struct addr *a, char text[ADDR_TEXT_MAX]);
const char *addr_text(const struct addr *a, char text[ADDR_TEXT_MAX]);

#endif
