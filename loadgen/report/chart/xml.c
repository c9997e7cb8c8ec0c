/* SPDX-License-Identifier: BSD-2-Clause */
/* Text within HTML and SVG. See xml.h. */
#include "loadgen/report/chart/xml.h"

#include "common/base/utf8.h"

void xml_write(FILE *out, const char *text, size_t max)
{
	bool cut = utf8_count(text) > max;
	uint32_t code;

	for (size_t n, left = cut ? max - 1 : max; *text && left > 0; text += n, left--) {
		n = utf8_next(text, &code);
		switch (*text) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		case '\'': fputs("&#39;", out); break;
		default: fwrite(text, 1, n, out);
		}
	}
	if (cut)
		fputs("\xe2\x80\xa6", out);
}
