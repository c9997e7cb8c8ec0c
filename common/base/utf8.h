/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes text of any origin fit for a report, or for a terminal. Any thread. */
#ifndef RAMPART_COMMON_UTF8_H
#define RAMPART_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Reads the character at `s`, which must not be the final zero, into *code. Returns its length in bytes. A byte that
 * starts no valid sequence (RFC 3629) is read as U+FFFD, length 1. */
size_t utf8_next(const char *s, uint32_t *code);

/* A copy of `s` in valid UTF-8. Control characters and those that change the writing direction become U+FFFD. White
 * space becomes a space; with `lines`, newlines and tabs stay. The caller frees it; NULL if memory runs out. */
char *utf8_clean(const char *s, bool lines) __attribute__((warn_unused_result));

/* Copies `s` to `out`, of `size` bytes, for a terminal, which must not obey text from a file or a peer. Control
 * characters (ESC, C1 and line ends too) and invalid UTF-8 are shown as \xNN, and characters that change the writing
 * direction as \uNNNN. Truncated between two characters if it does not fit. Returns `out`. */
const char *utf8_show(const char *s, char *out, size_t size);

/* Prints text in the same form, but keeps newlines. */
void utf8_print(const char *s, FILE *out);

/* Prints one line for people: the formatted text, escaped as by utf8_show, and a newline. So no text in it can start
 * another line or control the terminal. Output with inserted text must use this, utf8_print or log_write;
 * scripts/check-structure finds printf calls that do not. */
void utf8_print_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Number of characters of `s`: the columns on a terminal, unless there are wide or combining characters. */
size_t utf8_count(const char *s);

/* Writes `n` bytes as lower-case hexadecimal digits and a final zero to `out`, of 2 * n + 1 bytes. */
void utf8_hex(const uint8_t *bytes, size_t n, char *out);

#endif
