/* SPDX-License-Identifier: BSD-2-Clause */
/* The URL of a run's etcd. See bus_url.h. */
#include "loadgen/cluster/etcd/bus_url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* Takes from *p as many bytes of `allowed` and of letters and digits as there are. 0, or -EINVAL if that is none, or more
 * than `max`. */
static int take(const char **p, const char *allowed, char *out, size_t max)
{
	size_t n = 0;

	while ((*p)[n] && (strchr(letters, (*p)[n]) || strchr(allowed, (*p)[n])))
		n++;
	if (n == 0 || n > max)
		return -EINVAL;
	memcpy(out, *p, n);
	out[n] = '\0';
	*p += n;
	return 0;
}

static int take_host(const char **p, struct bus_url *u)
{
	u->brackets = **p == '[';
	if (!u->brackets)
		return take(p, ".-_", u->host, BUS_HOST_MAX);
	(*p)++;
	if (take(p, ":.%", u->host, BUS_HOST_MAX) || **p != ']')
		return -EINVAL;
	(*p)++;
	return 0;
}

static int take_port(const char **p, struct bus_url *u)
{
	char *end;
	unsigned long port;

	if (**p != ':' || !strchr("0123456789", (*p)[1]))
		return -EINVAL;
	port = strtoul(*p + 1, &end, 10);
	if (port < 1 || port > 65535)
		return -EINVAL;
	u->port = (uint16_t)port;
	*p = end;
	return 0;
}

static const char *parse(const char *p, struct bus_url *u)
{
	memset(u, 0, sizeof(*u));
	u->tls = strncmp(p, "etcds://", 8) == 0;
	if (!u->tls && strncmp(p, "etcd://", 7) != 0)
		return "it begins neither with etcd:// nor with etcds://";
	p += u->tls ? 8 : 7;
	if (take_host(&p, u))
		return "it names no host (a name, an IPv4 address, or an IPv6 address in brackets)";
	if (take_port(&p, u))
		return "it names no port from 1 to 65535 behind the host";
	if (*p++ != '/' || take(&p, "._-", u->run, BUS_RUN_MAX))
		return "it names no run behind the port: 1 to 64 of A-Z a-z 0-9 . _ -";
	if (!*p)
		return NULL;
	if (strncmp(p, "?token=", 7) != 0)
		return "what follows the run is not ?token=SECRET";
	p += 7;
	if (take(&p, "._~-", u->token, BUS_TOKEN_MAX) || *p)
		return "the token is not 1 to 128 of A-Z a-z 0-9 . _ ~ -";
	return NULL;
}

int bus_url_parse(const char *text, struct bus_url *out, char *err, size_t err_size)
{
	const char *wrong = parse(text, out);

	if (!wrong)
		return 0;
	snprintf(err, err_size, "'%.*s': %s (allowed: etcd://HOST:PORT/RUN[?token=SECRET], or etcds:// for TLS)",
		 (int)strcspn(text, "?"), text, wrong);
	return -EINVAL;
}

const char *bus_url_public(const struct bus_url *u, char text[BUS_URL_MAX])
{
	snprintf(text, BUS_URL_MAX, "etcd%s://%s%s%s:%u/%s", u->tls ? "s" : "", u->brackets ? "[" : "", u->host,
		 u->brackets ? "]" : "", u->port, u->run);
	return text;
}

const char *bus_url_secret(const struct bus_url *u, char text[BUS_URL_MAX])
{
	size_t n = strlen(bus_url_public(u, text));

	if (u->token[0])
		snprintf(text + n, BUS_URL_MAX - n, "?token=%s", u->token);
	return text;
}

bool bus_url_redact(char *argument)
{
	char *token = strstr(argument, "?token=");

	if (!token || !strstr(argument, "etcd"))
		return false;
	token += strlen("?token=");
	memset(token, '*', strlen(token));
	return true;
}
