/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes text of any origin fit for a report, or for a terminal. Any thread. */
#ifndef RAMPART_COMMON_UTF8_H
#define RAMPART_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Reads the character at `s`, which must not be the final zero, into *code. Returns its length in bytes. A byte that
 * begins no valid sequence (RFC 3629) is read as U+FFFD, length 1. */
size_t utf8_next(const char *s, uint32_t *code);

/* A copy of `s` that is valid UTF-8. Control characters and those that change the direction of writing become U+FFFD.
 * White space becomes a space; with `lines`, newlines and tabs stay. The caller frees it; NULL if memory runs out. */
char *utf8_clean(const char *s, bool lines) __attribute__((warn_unused_result));

/* For a terminal, which must not obey what came from a file or a peer: a copy of `s` in `out`, of `size` bytes, in which
 * control characters (ESC and those of C1, line ends too) and what is no UTF-8 are shown as \xNN, and characters that
 * change the direction of writing as \uNNNN. Cut between two characters if it does not fit. Returns `out`. */
const char *utf8_show(const char *s, char *out, size_t size);

/* The same for text of several lines: newlines stay. */
void utf8_print(const char *s, FILE *out);

/* Prints one line for people: `format` filled in, shown as utf8_show does, and a newline. So no text in it can begin another
 * line or control the terminal. Whatever has a text in it goes to a terminal through this, utf8_print or log_write;
 * scripts/check-structure finds printf calls that do not. */
void utf8_print_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How many characters `s` has. On a terminal that is the number of columns, unless it has wide or combining ones. */
size_t utf8_count(const char *s);

#endif
