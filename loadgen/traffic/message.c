/* Messages of a workload. See message.h. */
#include "loadgen/traffic/message.h"

#include <sys/param.h>

#include "common/wire/msg.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/workload.h"

void message_needs(const struct loadgen_config *c, struct workload_needs *out)
{
	/* A first message has nothing but header and tag. */
	out->message_bytes = (uint32_t)MAX(c->message_bytes, MSG_HEADER_BYTES + MSG_TAG_BYTES);
	out->credits = (uint32_t)c->inflight;
}
