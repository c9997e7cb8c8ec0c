/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings that were asked for and did not take effect. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_UNTAKEN_H
#define RAMPART_LOADGEN_ANALYSIS_UNTAKEN_H

#include <stddef.h>

#include <jansson.h>

/* Compares what each side asked for (`tuning` and `tcp` of its config; NULL: not known) with what the threads of a step
 * had (its `effective`), and appends what differs and is not in `list` yet: {setting ("--path-mtu", "--tcp zerocopy"),
 * side ("server", "generator"), asked, got}, both texts. What is not known does not differ. Returns how many were
 * appended; the list holds nothing half done if memory runs out. */
size_t untaken_add(json_t *list, const json_t *generator_config, const json_t *server_config, const json_t *step);

/* An element in words: "--inline: 4096 bytes were asked for, the generator got 512 bytes". Returns `out`. */
const char *untaken_text(const json_t *element, char *out, size_t size);

#endif
