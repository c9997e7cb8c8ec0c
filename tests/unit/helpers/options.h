/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of performance_test as a test gives them: parsed, checked, and applied to their workload. */
#ifndef RAMPART_TEST_OPTIONS_H
#define RAMPART_TEST_OPTIONS_H

#include "loadgen/config/config.h"

/* The result of the last call below. */
extern struct loadgen_config options;
extern char options_err[400];

/* The defaults, and no message. A cmocka set-up. */
int options_reset(void **state);
/* Parses options separated by spaces. */
enum opts_result options_parse(const char *arguments);
/* Checks what was parsed. 0, or -EINVAL with a line in options_err. */
int options_check(void);

/* From the defaults on: the options are taken, */
void options_taken(const char *arguments);
/* or refused with one line that begins with what is wrong, by the check and not by the parser, */
void options_refused(const char *arguments, const char *beginning);
/* or with exactly this text, by the parser. */
void options_parser_refuses(const char *arguments, const char *text);

#endif
