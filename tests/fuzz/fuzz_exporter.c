/* SPDX-License-Identifier: BSD-2-Clause */
/* HTTP requests for --metrics in all portions: until the status is known it is 0, and then it stays. The same bytes as
 * an address of --metrics. */
#include "common/metrics/exporter.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t whole = n < EXPORTER_REQUEST_BYTES ? n : EXPORTER_REQUEST_BYTES;
	char *text = input_text(data, n);
	char err[512];
	int last = 0;
	struct addr a;

	for (size_t i = 0; i <= whole; i += i < 256 || i == whole ? 1 : whole - i) {
		char *request = (char *)input_copy(data, i);
		bool openmetrics;
		int status = exporter_status(request, i, &openmetrics);

		assert(status == 0 || status == 200 || (status >= 400 && status <= 431));
		assert(!last || status == last);
		last = status;
		free(request);
	}
	if (!exporter_parse(text, &a, err, sizeof(err)))
		assert(a.len > 0);
	free(text);
	return 0;
}
