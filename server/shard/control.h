/* Control sessions: reports on the whole server as JSON (docs/protocol.md, "Reports").
 */
#ifndef RAMPART_SERVER_CONTROL_H
#define RAMPART_SERVER_CONTROL_H

#include "common/wire/frame.h"

struct conn;

/* Prepares the answer to a control request in c->report. 0 or -ENOMEM. */
int control_answer(struct conn *c, enum control_what what) __attribute__((warn_unused_result));

#endif
