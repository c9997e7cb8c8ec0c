/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of TCP sockets. See tcp.h. */
#include "common/sock/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>

/* socket(7): the kernel takes ints. */
#define BYTES_MAX (1u << 30)
#define BUSY_POLL_US_MAX 1000000u

enum kind { KIND_SWITCH, KIND_OPPOSITE, KIND_BYTES, KIND_MICROSECONDS, KIND_NAME };

static const struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	const char *allowed;
} keys[] = {
	{ "nodelay", KIND_OPPOSITE, offsetof(struct tcp_options, delay), "on or off" },
	{ "quickack", KIND_SWITCH, offsetof(struct tcp_options, quickack), "on or off" },
	{ "send-buffer", KIND_BYTES, offsetof(struct tcp_options, send_buffer), "1 to 1G bytes, such as 4M" },
	{ "receive-buffer", KIND_BYTES, offsetof(struct tcp_options, receive_buffer), "1 to 1G bytes, such as 4M" },
	{ "busy-poll", KIND_MICROSECONDS, offsetof(struct tcp_options, busy_poll_us), "1 to 1000000 microseconds" },
	{ "zerocopy", KIND_BYTES, offsetof(struct tcp_options, zerocopy_bytes), "1 to 1G bytes, such as 64k" },
	{ "congestion", KIND_NAME, offsetof(struct tcp_options, congestion), "a name of up to 15 characters, as in "
	  "/proc/sys/net/ipv4/tcp_available_congestion_control" },
};

static const struct tcp_options as_default;
/* Common settings of programs that need short round trips and full pipes. */
static const struct tcp_options as_tuned = { .quickack = true, .busy_poll_us = 50, .send_buffer = 4u << 20,
					     .receive_buffer = 4u << 20 };

/* False: the text is not a number from 1 to `max`. */
static bool read_number(const char *text, uint64_t max, bool suffix, void *out)
{
	static const char suffixes[] = "kKmMgG";
	const char *s;
	char *end;
	uint64_t v;
	uint32_t n;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	s = *end && suffix ? strchr(suffixes, *end) : NULL;
	if (s && v <= max)
		v <<= 10 * ((s - suffixes) / 2 + 1);
	if (errno || end[s != NULL] || v < 1 || v > max)
		return false;
	n = (uint32_t)v;
	memcpy(out, &n, sizeof(n));
	return true;
}

static bool read_switch(const char *text, const char *set, const char *clear, void *out)
{
	bool on = strcmp(text, set) == 0;

	if (!on && strcmp(text, clear) != 0)
		return false;
	memcpy(out, &on, sizeof(on));
	return true;
}

static bool read_name(const char *text, void *out)
{
	size_t n = strlen(text);

	if (n < 1 || n >= TCP_CONGESTION_BYTES)
		return false;
	memcpy(out, text, n + 1);
	return true;
}

static bool read_value(const struct key *k, const char *text, struct tcp_options *o)
{
	void *out = (char *)o + k->offset;

	switch (k->kind) {
	case KIND_SWITCH:
		return read_switch(text, "on", "off", out);
	case KIND_OPPOSITE:
		return read_switch(text, "off", "on", out);
	case KIND_BYTES:
		return read_number(text, BYTES_MAX, true, out);
	case KIND_MICROSECONDS:
		return read_number(text, BUSY_POLL_US_MAX, false, out);
	case KIND_NAME:
		return read_name(text, out);
	}
	return false;
}

static const struct key *key_find(const char *name)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

/* Reads one element of the list, and cuts it at its "=". */
static int take_element(char *element, bool first, struct tcp_options *o, char *err, size_t err_size)
{
	char *value = strchr(element, '=');
	const struct key *k;

	if (first && (strcmp(element, "default") == 0 || strcmp(element, "tuned") == 0)) {
		*o = *element == 't' ? as_tuned : as_default;
		return 0;
	}
	if (value)
		*value++ = '\0';
	k = key_find(element);
	if (k && value && read_value(k, value, o))
		return 0;
	if (k)
		snprintf(err, err_size, "--tcp: %s=%s is not allowed; allowed: %s", k->name, value ? value : "",
			 k->allowed);
	else
		snprintf(err, err_size,
			 "--tcp: '%s' is not allowed; allowed: default or tuned (only first), nodelay=, quickack=, "
			 "send-buffer=, receive-buffer=, busy-poll=, zerocopy=, congestion=", element);
	return -EINVAL;
}

int tcp_parse(const char *text, struct tcp_options *out, char *err, size_t err_size)
{
	char copy[256], *rest = copy;
	int ret = 0;

	*out = as_default;
	if (!text)
		return 0;
	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy)) {
		snprintf(err, err_size, "--tcp: the value is too long; allowed: at most 255 characters");
		return -EINVAL;
	}
	for (bool first = true; rest && !ret; first = false)
		ret = take_element(strsep(&rest, ","), first, out, err, err_size);
	return ret;
}

static json_t *if_asked(uint32_t n)
{
	return n ? json_integer((json_int_t)n) : json_null();
}

json_t *tcp_options_json(const struct tcp_options *o)
{
	return json_pack("{s:b, s:b, s:o, s:o, s:o, s:o, s:s?}", "nodelay", !o->delay, "quickack", o->quickack,
			 "send_buffer_bytes", if_asked(o->send_buffer), "receive_buffer_bytes",
			 if_asked(o->receive_buffer),
			 "busy_poll_us", if_asked(o->busy_poll_us), "zerocopy_bytes", if_asked(o->zerocopy_bytes),
			 "congestion", *o->congestion ? o->congestion : NULL);
}

static void set(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

void tcp_apply(int fd, const struct tcp_options *o)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, !o->delay);
	if (o->quickack)
		tcp_ack_quickly(fd);
	if (o->send_buffer)
		set(fd, SOL_SOCKET, SO_SNDBUF, (int)o->send_buffer);
	if (o->receive_buffer)
		set(fd, SOL_SOCKET, SO_RCVBUF, (int)o->receive_buffer);
	if (o->busy_poll_us)
		set(fd, SOL_SOCKET, SO_BUSY_POLL, (int)o->busy_poll_us);
	if (*o->congestion)
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o->congestion, (socklen_t)strlen(o->congestion));
}

bool tcp_skip_copies(int fd)
{
	const int on = 1;

	return setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) == 0;
}

void tcp_ack_quickly(int fd)
{
	set(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
}

void tcp_abort_on_close(int fd)
{
	const struct linger none = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

/* 0 where the kernel does not know the option. */
static uint64_t get(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int v = 0;

	return getsockopt(fd, level, name, &v, &len) || v < 0 ? 0 : (uint64_t)v;
}

bool tcp_read(int fd, struct tcp_values *out)
{
	socklen_t len = sizeof(out->congestion) - 1;

	memset(out, 0, sizeof(*out));
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, out->congestion, &len))
		return false;
	out->nodelay = get(fd, IPPROTO_TCP, TCP_NODELAY);
	out->quickack = get(fd, IPPROTO_TCP, TCP_QUICKACK);
	out->send_buffer = get(fd, SOL_SOCKET, SO_SNDBUF);
	out->receive_buffer = get(fd, SOL_SOCKET, SO_RCVBUF);
	out->busy_poll_us = get(fd, SOL_SOCKET, SO_BUSY_POLL);
	out->zerocopy = get(fd, SOL_SOCKET, SO_ZEROCOPY);
	out->mss = get(fd, IPPROTO_TCP, TCP_MAXSEG);
	return true;
}
