/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses lists of servers. See targets.h. No I/O. */
#include "loadgen/config/targets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 64	/* bytes of the input that an error repeats */

/* Parses a port, which must be the whole text. False if it is not a port. */
static bool parse_port(const char *text, uint16_t *out)
{
	unsigned long port;

	if (!*text || strlen(text) > 5 || strspn(text, "0123456789") != strlen(text))
		return false;
	port = strtoul(text, NULL, 10);
	*out = (uint16_t)port;
	return port >= 1 && port <= UINT16_MAX;
}

/* Splits t->name into HOST and PORT. Returns NULL, or a static text that names the fault. */
static const char *take_apart(struct target *t)
{
	const char *host = t->name, *colon = strchr(host, ':'), *end, *port = NULL;

	if (*host == '[') {
		end = strchr(++host, ']');
		if (!end || (end[1] && end[1] != ':'))
			return "has a bracket that is not closed";
		port = end[1] ? end + 2 : NULL;
	} else {
		/* An IPv6 address has at least two colons. */
		if (colon && strchr(colon + 1, ':'))
			colon = NULL;
		end = colon ? colon : host + strlen(host);
		port = colon ? colon + 1 : NULL;
	}
	if (end == host)
		return "has an empty name";
	if ((size_t)(end - host) >= sizeof(t->host))
		return "has a name that is too long";
	memcpy(t->host, host, (size_t)(end - host));
	t->host[end - host] = '\0';
	return port && !parse_port(port, &t->port) ? "has an invalid port" : NULL;
}

static bool has(const struct targets *targets, const struct target *t)
{
	for (uint32_t i = 0; i < targets->n; i++)
		if (targets->v[i].port == t->port && strcmp(targets->v[i].host, t->host) == 0)
			return true;
	return false;
}

static const char *append(struct targets *targets, const char *name, size_t len, uint16_t port)
{
	struct target t = { .port = port };
	const char *problem;

	if (len >= sizeof(t.name))
		return "has a name that is too long";
	if (targets->n == TARGETS_MAX)
		return "has too many servers";
	memcpy(t.name, name, len);
	problem = take_apart(&t);
	if (problem)
		return problem;
	if (has(targets, &t))
		return "has a server twice";
	targets->v[targets->n++] = t;
	return NULL;
}

int targets_parse(const char *option, const char *list, uint16_t port, struct targets *out, char *err, size_t err_size)
{
	const char *problem = NULL, *p = list;

	memset(out, 0, sizeof(*out));
	while (p && !problem) {
		size_t len = strcspn(p, ",");

		problem = append(out, p, len, port);
		p = p[len] ? p + len + 1 : NULL;
	}
	if (!problem)
		return 0;
	snprintf(err, err_size, "--%s: '%.*s%s' %s; allowed: 1 to %d different servers, comma-separated, each HOST or "
		 "HOST:PORT, an IPv6 address as [ADDRESS]:PORT", option, SHOWN_MAX, list,
		 strlen(list) > SHOWN_MAX ? "..." : "",
		 problem, TARGETS_MAX);
	return -EINVAL;
}

bool targets_allow(const struct targets *allowed, const char *host, uint16_t port)
{
	for (uint32_t i = 0; i < allowed->n; i++)
		if (strcmp(allowed->v[i].host, host) == 0 && (!allowed->v[i].port || allowed->v[i].port == port))
			return true;
	return false;
}
