/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/tls/tls_names.c: lists of names, and certificates that have some of them or try to. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/tls/tls_names.h"
#include "tests/unit/helpers/certs.h"

static struct certs certs;

static int group_set_up(void **state)
{
	(void)state;
	return certs_make(&certs);
}

static int group_tear_down(void **state)
{
	(void)state;
	certs_remove(&certs);
	return 0;
}

static X509 *cert_of(const char *san)
{
	struct certs_wish wish = { .name = "named", .san = san, .valid_s = 60 };
	struct certs_pair pair;
	X509 *x;
	FILE *f;

	assert_int_equal(certs_issue(&certs, &wish, &pair), 0);
	f = fopen(pair.cert, "r");
	assert_non_null(f);
	x = PEM_read_X509(f, NULL, NULL, NULL);
	fclose(f);
	assert_non_null(x);
	return x;
}

TEST(check__lists__taken_or_refused_by_name)
{
	static const char *const good[] = {
		"a", "a.example.org", "*.example.org", "10.0.0.1", "::1", "spiffe://x/y,b.example.org,*.b", "A_b-c",
	};
	static const char *const bad[] = {
		"", ",", "a,", ",a", "a,,b", "*", "*.", "a.*", "*a.b", "*.*.b", "a b", "a\n", "a\x1b[2J",
		"\xc3\xa4.org",
	};
	char err[300], longest[300];

	assert_int_equal(tls_names_check("allow-names", NULL, err, sizeof(err)), 0);
	for (size_t i = 0; i < N_ELEMENTS(good); i++)
		assert_int_equal(tls_names_check("allow-names", good[i], err, sizeof(err)), 0);
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		assert_int_equal(tls_names_check("allow-names", bad[i], err, sizeof(err)), -EINVAL);
		assert_says(err, "--allow-names: '");
		/* Nothing that a terminal obeys. */
		for (const char *p = err; *p; p++)
			assert_in_range(*p, ' ', '~');
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[255] = '\0';
	assert_int_equal(tls_names_check("allow-names", longest, err, sizeof(err)), 0);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[256] = '\0';
	assert_int_equal(tls_names_check("allow-names", longest, err, sizeof(err)), -EINVAL);
}

TEST(allow__certificates__exact_or_one_label)
{
	static const struct {
		const char *patterns, *san;
		bool allowed;
	} cases[] = {
		{ "app.example.org", "DNS:app.example.org", true },
		{ "app.example.org", "DNS:APP.Example.ORG", true },
		{ "app.example.org", "DNS:xapp.example.org", false },
		{ "app.example.org", "DNS:app.example.org.evil.net", false },
		{ "app.example.org", "DNS:other.net,DNS:app.example.org", true },
		{ "x.net,app.example.org", "DNS:app.example.org", true },
		{ "x.net,app.example.org", "DNS:net,DNS:app", false },
		{ "*.example.org", "DNS:app.example.org", true },
		{ "*.example.org", "DNS:example.org", false },
		{ "*.example.org", "DNS:.example.org", false },
		{ "*.example.org", "DNS:a.b.example.org", false },
		{ "*.example.org", "DNS:app.example.orgx", false },
		{ "*.example.org", "DNS:appexample.org", false },
		/* A certificate may not name all of a domain, and so all patterns in it. */
		{ "*.example.org", "DNS:*.example.org", false },
		{ "app.example.org", "DNS:*.example.org", false },
		{ "10.0.0.1", "IP:10.0.0.1", true },
		{ "10.0.0.1", "IP:10.0.0.2", false },
		{ "10.0.0.1", "IP:::a00:1", false },
		{ "fe80::1", "IP:fe80:0:0:0:0:0:0:1", true },
		{ "spiffe://x/y", "URI:spiffe://x/y", true },
		{ "spiffe://x/y", "URI:spiffe://x/Y", false },
		{ "spiffe://x/y", "URI:spiffe://x/y/z", false },
		/* Names of other kinds, and the subject, do not count. */
		{ "named", "DNS:other", false },
		{ "a@example.org", "email:a@example.org", false },
		{ "1.2.3.4", "RID:1.2.3.4", false },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		X509 *x = cert_of(cases[i].san);

		if (tls_names_allow(cases[i].patterns, x) != cases[i].allowed)
			fail_msg("'%s' and %s", cases[i].patterns, cases[i].san);
		X509_free(x);
	}
}

TEST(allow__no_certificate_or_no_names__no)
{
	X509 *x = cert_of(NULL);

	assert_false(tls_names_allow("named", x));
	assert_false(tls_names_allow("*.b", NULL));
	X509_free(x);
}

/* A name with a zero in it, which ends a C string early. */
TEST(allow__name_with_a_zero__no)
{
	static const char name[] = "app.example.org\0.evil.net";
	X509 *x = X509_new();
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	GENERAL_NAME *n = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();

	assert_int_equal(ASN1_STRING_set(text, name, sizeof(name) - 1), 1);
	GENERAL_NAME_set0_value(n, GEN_DNS, text);
	assert_int_equal(sk_GENERAL_NAME_push(names, n), 1);
	assert_int_equal(X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0), 1);
	assert_false(tls_names_allow("app.example.org", x));
	GENERAL_NAMES_free(names);
	X509_free(x);
}

TEST_GROUP(group_set_up, group_tear_down)
