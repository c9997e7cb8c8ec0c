/* SPDX-License-Identifier: BSD-2-Clause */
/* A control session with a server: asks for reports, which come as JSON over TLS, or watches samples. One request at a
 * time; nothing blocks. Owning thread: the one that runs the loop makes all calls and receives all callbacks. */
#ifndef RAMPART_CLIENT_CONTROL_H
#define RAMPART_CLIENT_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "common/base/addr.h"
#include "common/wire/fail.h"
#include "common/wire/frame.h"

struct control;

struct control_config {
	struct addr server;
	const char *verify_name;
	const char *ca_file, *cert_file, *key_file, *crl_file;	/* all but the first may be NULL */
	uint64_t timeout_ns;	/* for connecting, and for each request */
};

/* The answer to a request. `report` is valid during the call. NULL: the request failed, and the session is closed; the
 * next request opens a new one. `fail` then has the stage (STAGE_PSN_EXCHANGE for the request itself) and:
 * FAIL_ERRNO	connecting failed, or out of memory
 * FAIL_TLS, FAIL_CERTIFICATE	the handshake failed; `text` says how
 * FAIL_REFUSED	the server refused; `text` has its words
 * FAIL_TIMEOUT	no answer within timeout_ns
 * FAIL_PROTOCOL	the answer is no report, or samples come much faster than was asked for
 * FAIL_CLOSED	the server closed the session, perhaps before the request */
typedef void control_on_report_fn(void *arg, json_t *report, const struct fail *fail, const char *text);

/* Loads the TLS files; connects only with the first request. Returns 0, or the error of tls_ctx_new with a line in
 * `err`. `cfg` is copied, but its strings are not. */
int control_new(const struct control_config *cfg, struct ev_loop *loop, control_on_report_fn *on_report,
		void *arg, struct control **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* NULL-safe. Closes the session; on_report is not called for a request that is under way. */
void control_free(struct control *c);

/* Starts a request; false if one is under way. on_report is called later, not from here, and may call this. */
bool control_request(struct control *c, enum control_what what) __attribute__((warn_unused_result));
/* Asks the server for samples of its resources, the first one at once and one per interval (FRAME_WATCH_MS_MIN to
 * _MAX): on_report is called with each, until a failure (see above; FAIL_TIMEOUT: no sample within the interval and
 * timeout_ns) or control_free. Such a session takes no request. False if a request is under way, or if the session had
 * one before. */
bool control_watch(struct control *c, uint16_t interval_ms) __attribute__((warn_unused_result));
bool control_is_busy(const struct control *c);

#endif
