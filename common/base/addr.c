/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses with ports. See addr.h. Nothing here sends anything or resolves names. */
#include "common/base/addr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t v4_mapped_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static void addr_set4(struct addr *out, const void *in4, uint16_t port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&out->ss;

	memset(out, 0, sizeof(*out));
	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	memcpy(&sin->sin_addr, in4, 4);
	out->len = sizeof(*sin);
}

static void addr_set6(struct addr *out, const void *in6, uint16_t port)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&out->ss;

	memset(out, 0, sizeof(*out));
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(port);
	memcpy(&sin6->sin6_addr, in6, 16);
	out->len = sizeof(*sin6);
}

/* Splits "fe80::1%2" into the address (`host`) and its interface's index (*scope). False if there is no valid index. */
static bool split_scope(const char *text, char host[INET6_ADDRSTRLEN], uint32_t *scope)
{
	size_t n = strcspn(text, "%");
	unsigned long index = 0;
	char *end;

	if (n >= INET6_ADDRSTRLEN || text[n + 1] < '1' || text[n + 1] > '9')
		return false;
	memcpy(host, text, n);
	host[n] = '\0';
	index = strtoul(text + n + 1, &end, 10);
	*scope = (uint32_t)index;
	return !*end && index <= INT32_MAX;
}

static int parse_scoped(const char *text, uint16_t port, struct addr *out)
{
	char host[INET6_ADDRSTRLEN];
	uint8_t bytes[16];
	uint32_t scope;
	struct addr a;

	if (!split_scope(text, host, &scope) || inet_pton(AF_INET6, host, bytes) != 1)
		return -EINVAL;
	addr_set6(&a, bytes, port);
	addr_set_scope(&a, scope);
	if (addr_scope(&a) != scope)
		return -EINVAL;
	*out = a;
	return 0;
}

int addr_parse(const char *text, uint16_t port, struct addr *out)
{
	uint8_t bytes[16];

	if (strchr(text, '%'))
		return parse_scoped(text, port, out);
	if (inet_pton(AF_INET, text, bytes) == 1)
		addr_set4(out, bytes, port);
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		addr_set6(out, bytes, port);
	else
		return -EINVAL;
	return 0;
}

int addr_from_sockaddr(const struct sockaddr *sa, struct addr *out)
{
	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	memset(out, 0, sizeof(*out));
	out->len = sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	memcpy(&out->ss, sa, out->len);
	return 0;
}

int addr_of_socket(int fd, struct addr *out)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (getsockname(fd, (struct sockaddr *)&ss, &len))
		return -errno;
	return addr_from_sockaddr((struct sockaddr *)&ss, out);
}

void addr_from_bytes(const uint8_t bytes[16], uint16_t port, struct addr *out)
{
	if (memcmp(bytes, v4_mapped_prefix, sizeof(v4_mapped_prefix)) == 0)
		addr_set4(out, bytes + 12, port);
	else
		addr_set6(out, bytes, port);
}

void addr_to_bytes(const struct addr *a, uint8_t out[16])
{
	if (a->ss.ss_family == AF_INET) {
		memcpy(out, v4_mapped_prefix, sizeof(v4_mapped_prefix));
		memcpy(out + 12, &((const struct sockaddr_in *)&a->ss)->sin_addr, 4);
	} else {
		memcpy(out, &((const struct sockaddr_in6 *)&a->ss)->sin6_addr, 16);
	}
}

uint16_t addr_port(const struct addr *a)
{
	if (a->ss.ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)&a->ss)->sin_port);
	return ntohs(((const struct sockaddr_in6 *)&a->ss)->sin6_port);
}

void addr_set_port(struct addr *a, uint16_t port)
{
	if (a->ss.ss_family == AF_INET)
		((struct sockaddr_in *)&a->ss)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&a->ss)->sin6_port = htons(port);
}

/* fe80::/10 (RFC 4291, 2.5.6) */
static bool is_link_local(const struct addr *a)
{
	const uint8_t *raw = ((const struct sockaddr_in6 *)&a->ss)->sin6_addr.s6_addr;

	return a->ss.ss_family == AF_INET6 && raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}

uint32_t addr_scope(const struct addr *a)
{
	return is_link_local(a) ? ((const struct sockaddr_in6 *)&a->ss)->sin6_scope_id : 0;
}

void addr_set_scope(struct addr *a, uint32_t scope)
{
	if (is_link_local(a))
		((struct sockaddr_in6 *)&a->ss)->sin6_scope_id = scope;
}

bool addr_same_host(const struct addr *a, const struct addr *b)
{
	uint8_t x[16], y[16];

	addr_to_bytes(a, x);
	addr_to_bytes(b, y);
	return memcmp(x, y, sizeof(x)) == 0;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

uint64_t addr_network(const struct addr *a)
{
	uint8_t b[16];
	uint64_t prefix, rest;

	addr_to_bytes(a, b);
	prefix = get64(b);
	rest = get64(b + 8);
	/* Link-local (fe80::/10; RFC 4291, 2.5.6): the last 48 bits tell hosts apart; the first 16 stay, so that the
	 * number equals no other network's. */
	if (prefix >> 54 == 0x3fa)
		return (prefix & ~(UINT64_MAX >> 16)) | (rest & UINT64_MAX >> 16);
	if (memcmp(b, v4_mapped_prefix, sizeof(v4_mapped_prefix)) == 0)
		return rest;	/* 0xffff and the address; as a prefix it is reserved (RFC 4291, 4) */
	return prefix ? prefix : 1;
}

bool addr_is_any(const struct addr *a)
{
	static const uint8_t any6[16];
	uint8_t x[16];

	addr_to_bytes(a, x);
	if (a->ss.ss_family == AF_INET)
		return memcmp(x + 12, any6, 4) == 0;
	return memcmp(x, any6, 16) == 0;
}

const char *addr_host_text(const struct addr *a, char text[ADDR_TEXT_MAX])
{
	const void *in;

	if (a->ss.ss_family == AF_INET)
		in = &((const struct sockaddr_in *)&a->ss)->sin_addr;
	else
		in = &((const struct sockaddr_in6 *)&a->ss)->sin6_addr;
	if (!inet_ntop(a->ss.ss_family, in, text, ADDR_TEXT_MAX))
		snprintf(text, ADDR_TEXT_MAX, "?");
	if (addr_scope(a))
		snprintf(text + strlen(text), ADDR_TEXT_MAX - strlen(text), "%%%u", addr_scope(a));
	return text;
}

const char *addr_text(const struct addr *a, char text[ADDR_TEXT_MAX])
{
	char host[ADDR_TEXT_MAX];

	addr_host_text(a, host);
	if (a->ss.ss_family == AF_INET)
		snprintf(text, ADDR_TEXT_MAX, "%.45s:%u", host, addr_port(a));
	else
		snprintf(text, ADDR_TEXT_MAX, "[%.54s]:%u", host, addr_port(a));
	return text;
}
