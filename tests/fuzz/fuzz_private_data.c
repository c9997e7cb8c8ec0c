/* SPDX-License-Identifier: BSD-2-Clause */
/* Private data of any length in the connection manager's REQ, REP and REJ. */
#include "common/wire/auth.h"
#include "tests/fuzz/input.h"

static void proof(enum pdata_kind kind, const uint8_t *data, size_t n)
{
	uint8_t again[PDATA_PROOF_BYTES];
	struct pdata_proof p;

	if (pdata_decode_proof(kind, data, n, &p))
		return;
	pdata_encode_proof(kind, &p, again);
	assert(n >= sizeof(again) && memcmp(again, data, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *copy = input_copy(data, n), again[PDATA_REJECT_BYTES];
	uint16_t code;

	proof(PDATA_REQUEST, copy, n);
	proof(PDATA_REPLY, copy, n);
	if (pdata_decode_reject(copy, n, &code) == 0) {
		pdata_encode_reject(code, again);
		assert(n >= sizeof(again) && memcmp(again, copy, 6) == 0);
		assert(refuse_code_name(code));
	}
	free(copy);
	return 0;
}
