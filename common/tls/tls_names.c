/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of names that certificates may have. See tls_names.h. */
#include "common/tls/tls_names.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <openssl/x509v3.h>

#define NAME_MAX_BYTES 255
#define IP_BYTES_MAX 16

struct text {
	const char *at;
	size_t n;
};

/* The next pattern of a list. False at its end. */
static bool next_pattern(const char **list, struct text *out)
{
	if (!*list)
		return false;
	*out = (struct text){ *list, strcspn(*list, ",") };
	*list = out->at[out->n] ? out->at + out->n + 1 : NULL;
	return true;
}

/* True if all characters are printable and no spaces, so that a message can repeat the text safely. */
static bool is_printable(struct text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!isgraph((unsigned char)t.at[i]))
			return false;
	return true;
}

static bool is_pattern(struct text t)
{
	const char *star = memchr(t.at, '*', t.n);

	if (t.n == 0 || t.n > NAME_MAX_BYTES || !is_printable(t))
		return false;
	return !star || (star == t.at && t.n > 2 && t.at[1] == '.' && !memchr(t.at + 1, '*', t.n - 1));
}

int tls_names_check(const char *option, const char *patterns, char *err, size_t err_size)
{
	struct text t;

	while (next_pattern(&patterns, &t))
		if (!is_pattern(t)) {
			snprintf(err, err_size,
				 "--%s: '%.*s' is not allowed; allowed: DNS names, which may begin with *., "
				 "IP addresses and URIs, separated by commas", option, is_printable(t) ? (int)t.n : 0,
				 t.at);
			return -EINVAL;
		}
	return 0;
}

static bool is_same(struct text a, struct text b, bool any_case)
{
	return a.n == b.n && (any_case ? strncasecmp(a.at, b.at, a.n) : memcmp(a.at, b.at, a.n)) == 0;
}

/* `*.example.org` stands for a.example.org, not for example.org or a.b.example.org. */
static bool dns_matches(struct text pattern, struct text name)
{
	const char *dot;

	if (memchr(name.at, '*', name.n))
		return false;
	if (pattern.at[0] != '*')
		return is_same(pattern, name, true);
	dot = memchr(name.at, '.', name.n);
	if (!dot || dot == name.at)
		return false;
	return is_same((struct text){ pattern.at + 1, pattern.n - 1 },
		       (struct text){ dot, name.n - (size_t)(dot - name.at) }, true);
}

static bool ip_matches(struct text pattern, struct text ip)
{
	char text[INET6_ADDRSTRLEN];
	unsigned char bytes[IP_BYTES_MAX];
	int family = ip.n == 4 ? AF_INET : AF_INET6;

	if ((ip.n != 4 && ip.n != IP_BYTES_MAX) || pattern.n >= sizeof(text))
		return false;
	memcpy(text, pattern.at, pattern.n);
	text[pattern.n] = '\0';
	return inet_pton(family, text, bytes) == 1 && memcmp(bytes, ip.at, ip.n) == 0;
}

/* `name` comes from the certificate: any bytes, of any length. */
static bool matches(struct text pattern, int type, struct text name)
{
	switch (type) {
	case GEN_DNS:
		return dns_matches(pattern, name);
	case GEN_IPADD:
		return ip_matches(pattern, name);
	case GEN_URI:
		return is_same(pattern, name, false);
	default:
		return false;
	}
}

static bool name_is_allowed(const char *patterns, const GENERAL_NAME *name)
{
	int type;
	const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
	struct text pattern, text;

	if (type != GEN_DNS && type != GEN_IPADD && type != GEN_URI)
		return false;
	text = (struct text){ (const char *)ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value) };
	while (text.at && next_pattern(&patterns, &pattern))
		if (matches(pattern, type, text))
			return true;
	return false;
}

bool tls_names_allow(const char *patterns, const X509 *cert)
{
	GENERAL_NAMES *names = cert ? X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL) : NULL;
	bool allowed = false;

	for (int i = 0; i < sk_GENERAL_NAME_num(names) && !allowed; i++)
		allowed = name_is_allowed(patterns, sk_GENERAL_NAME_value(names, i));
	GENERAL_NAMES_free(names);
	return allowed;
}
