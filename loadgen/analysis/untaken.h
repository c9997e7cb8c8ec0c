/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings that were requested and did not take effect. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_UNTAKEN_H
#define RAMPART_LOADGEN_ANALYSIS_UNTAKEN_H

#include <stddef.h>

#include <jansson.h>

/* Compares each side's requested settings (`tuning` and `tcp` of its config; NULL: not known) with those in effect in
 * the threads of a step (its `effective`), and appends new differences to `list`: {setting ("--path-mtu",
 * "--tcp zerocopy"), side ("server", "generator"), asked, got (both texts)}. Unknown values do not differ. Returns how
 * many were appended; if memory runs out, the list has no incomplete elements. */
size_t untaken_add(json_t *list, const json_t *generator_config, const json_t *server_config, const json_t *step);

/* Writes an element in words: "--inline: asked for 4096 bytes, the generator got 512 bytes". Returns `out`. */
const char *untaken_text(const json_t *element, char *out, size_t size);

#endif
