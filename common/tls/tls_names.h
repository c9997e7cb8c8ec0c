/* SPDX-License-Identifier: BSD-2-Clause */
/* Names in certificates (subject alternative names, RFC 5280, 4.2.1.6), and lists of allowed names.
 *
 * A list is text: patterns separated by commas. A pattern is an IP address, a URI or a DNS name; the first label of a
 * DNS name may be `*`, which stands for one label of any text. Pure.
 */
#ifndef RAMPART_COMMON_TLS_NAMES_H
#define RAMPART_COMMON_TLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/types.h>

/* Returns 0, or -EINVAL with a line in `err` that names the option and the invalid pattern. */
int tls_names_check(const char *option, const char *patterns, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* True if one of the certificate's DNS names, IP addresses or URIs is in the list. False without a certificate. The
 * subject itself does not count (RFC 6125, 6.4.4). */
bool tls_names_allow(const char *patterns, const X509 *cert);

#endif
