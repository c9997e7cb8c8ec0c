/* A control session with a server: asks for reports as JSON over TLS. One request at a time; nothing
 * blocks. Owning thread: the loop's. */
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
	const char *ca_file, *cert_file, *key_file;
	uint64_t timeout_ns;	/* for connecting, and for each request */
};

/* The answer to a request. `report` is borrowed for the call; NULL when it failed, with the reason in
 * `fail` and, if the server gave words, in `text`. After a failure the session is closed, and the next
 * request opens a new one. */
typedef void control_on_report_fn(void *arg, json_t *report, const struct fail *fail, const char *text);

/* Loads the TLS files; connects only with the first request. 0 or -errno with a line in `err`. */
int control_new(const struct control_config *cfg, struct ev_loop *loop, control_on_report_fn *on_report,
		void *arg, struct control **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
void control_free(struct control *c);

/* False if a request is under way. May be called from on_report. */
bool control_request(struct control *c, enum control_what what) __attribute__((warn_unused_result));
bool control_is_busy(const struct control *c);

#endif
