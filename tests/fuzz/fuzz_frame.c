/* SPDX-License-Identifier: BSD-2-Clause */
/* Bootstrap frames: the encoder reproduces every frame that a decoder accepts. */
#include "common/wire/be.h"
#include "common/wire/frame.h"
#include "common/wire/record.h"
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
	struct frame_control request;
	const char *why = NULL;

	if (frame_decode_control(frame, n, &request, &why)) {
		assert(why);
		return;
	}
	assert((request.what == CONTROL_WATCH ? frame_encode_watch(request.interval_ms, again) :
		frame_encode_control(request.what, again)) == n);
	assert(memcmp(frame + FRAME_HEADER_BYTES, again + FRAME_HEADER_BYTES, n - FRAME_HEADER_BYTES) == 0);
}

/* Checks the header of a record on a socket. */
static void record(const uint8_t *bytes, size_t n)
{
	uint8_t again[RECORD_HEADER_BYTES];
	struct record r;

	if (n < sizeof(again) || record_decode(bytes, FRAME_MESSAGE_BYTES_MAX, &r))
		return;
	assert(r.bytes <= FRAME_MESSAGE_BYTES_MAX);
	record_encode(&r, again);
	assert(memcmp(bytes, again, sizeof(again)) == 0);
}

static void decode(const uint8_t *frame, size_t n)
{
	record(frame, n);
	hello(frame, n);
	grant(frame, n);
	refuse(frame, n);
	control(frame, n);
}

/* Mutations seldom keep the lengths right, so this repairs them: the frame's, and that of a REFUSE's text. */
static void decode_right_lengths(uint8_t *frame, size_t n)
{
	struct frame_header h;

	be_put32(frame, (uint32_t)n);
	be_put16(frame + 6, 0);
	assert(frame_decode_header(frame, FRAME_REPORT_BYTES_MAX, &h) == 0);
	decode(frame, n);
	if (n < FRAME_HEADER_BYTES + 4)
		return;
	be_put16(frame + FRAME_HEADER_BYTES + 2, (uint16_t)(n - FRAME_HEADER_BYTES - 4));
	refuse(frame, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct frame_header h;
	uint8_t *frame;

	if (n < FRAME_HEADER_BYTES)
		return 0;
	if (frame_decode_header(data, FRAME_REPORT_BYTES_MAX, &h) == 0 && h.length <= n) {
		assert(h.length >= FRAME_HEADER_BYTES);
		frame = input_copy(data, h.length);
		decode(frame, h.length);
		free(frame);
	}
	frame = input_copy(data, n);
	decode_right_lengths(frame, n);
	free(frame);
	return 0;
}
