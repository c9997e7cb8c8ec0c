/* Bootstrap frames: what a decoder takes, the encoder writes, and is decoded again as the same. */
#include "common/wire/frame.h"
#include "tests/fuzz/input.h"

static void hello(const uint8_t *frame, size_t n)
{
	uint8_t again[FRAME_HELLO_BYTES];
	struct frame_hello h;
	const char *why = NULL;

	if (frame_decode_hello(frame, n, &h, &why)) {
		assert(why);
		return;
	}
	assert(frame_encode_hello(&h, again) == n && memcmp(again + FRAME_HEADER_BYTES, frame + FRAME_HEADER_BYTES,
							     n - FRAME_HEADER_BYTES) == 0);
}

static void grant(const uint8_t *frame, size_t n)
{
	uint8_t again[FRAME_GRANT_BYTES];
	struct frame_grant g;
	const char *why = NULL;

	if (frame_decode_grant(frame, n, &g, &why)) {
		assert(why);
		return;
	}
	assert(frame_encode_grant(&g, again) == n && memcmp(again + FRAME_HEADER_BYTES, frame + FRAME_HEADER_BYTES,
							     n - FRAME_HEADER_BYTES) == 0);
}

static void refuse(const uint8_t *frame, size_t n)
{
	uint8_t again[FRAME_REFUSE_BYTES_MAX];
	struct frame_refuse r, r2;
	const char *why = NULL;

	if (frame_decode_refuse(frame, n, &r, &why)) {
		assert(why);
		return;
	}
	assert(frame_encode_refuse(r.code, r.text, again) == n);
	assert(frame_decode_refuse(again, n, &r2, &why) == 0);
	assert(r2.code == r.code && strcmp(r2.text, r.text) == 0);
	assert(refuse_code_name(r.code));
}

static void control(const uint8_t *frame, size_t n)
{
	uint8_t again[FRAME_CONTROL_BYTES];
	enum control_what what;
	const char *why = NULL;

	if (frame_decode_control(frame, n, &what, &why)) {
		assert(why);
		return;
	}
	assert(frame_encode_control(what, again) == n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct frame_header h;
	uint8_t *frame;

	if (n < FRAME_HEADER_BYTES || frame_decode_header(data, FRAME_REPORT_BYTES_MAX, &h))
		return 0;
	assert(h.length >= FRAME_HEADER_BYTES && h.length <= FRAME_REPORT_BYTES_MAX);
	if (h.length > n)
		return 0;
	frame = input_copy(data, h.length);
	hello(frame, h.length);
	grant(frame, h.length);
	refuse(frame, h.length);
	control(frame, h.length);
	free(frame);
	return 0;
}
