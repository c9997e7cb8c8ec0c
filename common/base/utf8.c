/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes text of any origin fit for a report or a terminal. See utf8.h. */
#include "common/base/utf8.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT 0xfffdu
#define REPLACEMENT_UTF8 "\xef\xbf\xbd"

/* The length of a sequence that starts with this byte; 0 if no sequence can. */
static size_t length_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

size_t utf8_next(const char *s, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char first = (unsigned char)*s;
	size_t n = length_of(first);
	uint32_t c = n == 1 ? first : first & (0x7fu >> n);

	*code = REPLACEMENT;
	if (n == 0)
		return 1;
	for (size_t i = 1; i < n; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 1;
	*code = c;
	return n;
}

static bool is_unfit(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == REPLACEMENT || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfffe || c == 0xffff;
}

static bool is_space(uint32_t c)
{
	return c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

char *utf8_clean(const char *s, bool lines)
{
	/* At worst each byte becomes U+FFFD, which has three bytes. */
	char *out = malloc(3 * strlen(s) + 1), *p = out;
	uint32_t c;

	if (!out)
		return NULL;
	for (size_t n; *s; s += n) {
		n = utf8_next(s, &c);
		if (is_space(c))
			*p++ = lines && (c == '\n' || c == '\t') ? (char)c : ' ';
		else if (is_unfit(c))
			p = mempcpy(p, REPLACEMENT_UTF8, sizeof(REPLACEMENT_UTF8) - 1);
		else
			p = mempcpy(p, s, n);
	}
	*p = '\0';
	return out;
}

#define SHOWN_MAX 8

/* Writes to `out` the form in which the character at `s` is shown, and to *shown the length of that form. Returns the
 * length of the character itself. */
static size_t show_one(const char *s, char out[SHOWN_MAX], size_t *shown)
{
	uint32_t c;
	size_t n = utf8_next(s, &c);

	if (c == REPLACEMENT && n == 1) {
		c = (unsigned char)*s;
	} else if (c == REPLACEMENT || !is_unfit(c)) {
		memcpy(out, s, n);
		*shown = n;
		return n;
	}
	*shown = (size_t)snprintf(out, SHOWN_MAX, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
	return n;
}

const char *utf8_show(const char *s, char *out, size_t size)
{
	char one[SHOWN_MAX];
	size_t at = 0, n;

	while (*s) {
		s += show_one(s, one, &n);
		if (at + n >= size)
			break;
		memcpy(out + at, one, n);
		at += n;
	}
	out[at] = '\0';
	return out;
}

static void print_shown(const char *s, FILE *out, bool lines)
{
	char one[SHOWN_MAX];
	size_t n;

	while (*s) {
		if (lines && *s == '\n') {
			putc(*s++, out);
			continue;
		}
		s += show_one(s, one, &n);
		fwrite(one, 1, n, out);
	}
}

void utf8_print(const char *s, FILE *out)
{
	print_shown(s, out, true);
}

void utf8_print_line(FILE *out, const char *format, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	print_shown(text ? text : "(a line is missing: out of memory)", out, false);
	putc('\n', out);
	free(text);
}

size_t utf8_count(const char *s)
{
	size_t count = 0;
	uint32_t c;

	for (; *s; count++)
		s += utf8_next(s, &c);
	return count;
}

void utf8_hex(const uint8_t *bytes, size_t n, char *out)
{
	out[0] = '\0';
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}
