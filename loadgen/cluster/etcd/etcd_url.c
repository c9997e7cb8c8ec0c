/* SPDX-License-Identifier: BSD-2-Clause */
/* The URL of a run's etcd. See etcd_url.h. */
#include "loadgen/cluster/etcd/etcd_url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* Copies the leading bytes of *p that are letters, digits or in `allowed` to `out`, and moves *p past them. 0, or
 * -EINVAL if there are none or more than `max`. */
static int take_part(const char **p, const char *allowed, char *out, size_t max)
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

static int take_host(const char **p, char host[ETCD_HOST_MAX + 3])
{
	if (**p != '[')
		return take_part(p, ".-_", host, ETCD_HOST_MAX);
	*host = *(*p)++;
	if (take_part(p, ":.%", host + 1, ETCD_HOST_MAX) || *(*p)++ != ']')
		return -EINVAL;
	memcpy(host + strlen(host), "]", 2);
	return 0;
}

static int take_port(const char **p, struct etcd_url *u)
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

static const char *parse(const char *p, struct etcd_url *u)
{
	memset(u, 0, sizeof(*u));
	u->tls = strncmp(p, "etcds://", 8) == 0;
	if (!u->tls && strncmp(p, "etcd://", 7) != 0)
		return "it begins with neither etcd:// nor etcds://";
	p += u->tls ? 8 : 7;
	if (take_host(&p, u->host))
		return "it has no host (a name, an IPv4 address, or an IPv6 address in brackets)";
	if (take_port(&p, u))
		return "it has no port from 1 to 65535 after the host";
	if (*p++ != '/' || take_part(&p, "._-", u->run, ETCD_RUN_MAX))
		return "no run name (1 to 64 of A-Z a-z 0-9 . _ -) follows the port";
	if (!*p)
		return NULL;
	if (strncmp(p, "?token=", 7) != 0)
		return "what follows the run is not ?token=SECRET";
	p += 7;
	if (take_part(&p, "._~-", u->token, ETCD_TOKEN_MAX) || *p)
		return "the token is not 1 to 128 of A-Z a-z 0-9 . _ ~ -";
	return NULL;
}

int etcd_url_parse(const char *text, struct etcd_url *out, char *err, size_t err_size)
{
	const char *wrong = parse(text, out);

	if (!wrong)
		return 0;
	snprintf(err, err_size, "'%.*s': %s (allowed: etcd://HOST:PORT/RUN[?token=SECRET], or etcds:// for TLS)",
		 (int)strcspn(text, "?"), text, wrong);
	return -EINVAL;
}

const char *etcd_url_secret(const struct etcd_url *u, char text[ETCD_URL_MAX])
{
	snprintf(text, ETCD_URL_MAX, "etcd%s://%s:%u/%s%s%s", u->tls ? "s" : "", u->host, u->port, u->run,
		 u->token[0] ? "?token=" : "", u->token);
	return text;
}

void etcd_url_redact(char *argument)
{
	char *token = strstr(argument, "?token=");

	if (!token || !strstr(argument, "etcd"))
		return;
	token += strlen("?token=");
	memset(token, '*', strlen(token));
}
