/* Text that came from anywhere, made fit for a report. Pure but for memory. */
#ifndef RAMPART_LOADGEN_REPORT_UTF8_H
#define RAMPART_LOADGEN_REPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at `s`, which is not its end: returns its bytes. What is no UTF-8 (RFC 3629) is one byte and U+FFFD. */
size_t utf8_next(const char *s, uint32_t *code);

/* A copy that is valid UTF-8, the caller's to free; NULL when out of memory. Control characters, and those that turn
 * the direction of what follows, become U+FFFD; white space becomes a space, but `lines` keeps newlines and tabs. */
char *utf8_clean(const char *s, bool lines) __attribute__((warn_unused_result));

/* How many characters a text has; as many columns on a terminal, but for wide and combining ones. */
size_t utf8_count(const char *s);

#endif
