/* SPDX-License-Identifier: BSD-2-Clause */
/* Text within HTML and SVG. */
#ifndef RAMPART_LOADGEN_REPORT_XML_H
#define RAMPART_LOADGEN_REPORT_XML_H

#include <stdint.h>
#include <stdio.h>

/* Writes valid UTF-8 as the text of an element or an attribute, with markup escaped. A text of more than `max`
 * characters is cut to max - 1 and an ellipsis. The caller checks for errors with ferror(out). */
void xml_write(FILE *out, const char *text, size_t max);

#endif
