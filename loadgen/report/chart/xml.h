/* Text within HTML and SVG. */
#ifndef RAMPART_LOADGEN_REPORT_XML_H
#define RAMPART_LOADGEN_REPORT_XML_H

#include <stdint.h>
#include <stdio.h>

/* Writes a text (valid UTF-8) so that nothing in it is markup, in an element or an attribute. Of a text with more than
 * `max` characters the first max - 1 and an ellipsis. Errors stay with `out` (ferror). */
void xml_write(FILE *out, const char *text, size_t max);

#endif
