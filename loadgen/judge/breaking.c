/* See breaking.h. */
#include "loadgen/judge/breaking.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "common/wire/frame.h"
#include "loadgen/step/step.h"

/* System calls fail at the generator: the server's own failures reach it as refusals. */
static void of_errno(const struct fail *f, const char **resource, const char **side)
{
	*side = "generator";
	switch (f->code) {
	case EMFILE:
	case ENFILE: *resource = "nofile"; return;
	case ENOMEM: *resource = f->stage == STAGE_QP_SETUP ? "queue_pairs" : "memory"; return;
	case EAGAIN: *resource = "memory"; return;
	case ENOSPC: *resource = "queue_pairs"; return;
	case EADDRNOTAVAIL: *resource = "ports"; return;
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE: *resource = "server"; *side = "server"; return;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ETIMEDOUT: *resource = "peer"; *side = "network"; return;
	default: *resource = "unknown"; *side = "unknown"; return;
	}
}

static const char *of_refusal(int code)
{
	switch (code) {
	case REFUSE_FULL: return "max_clients";
	case REFUSE_NO_RESOURCES: return "server_resources";
	case REFUSE_BUSY: return "queue_pairs";
	case REFUSE_BAD_SESSION: return "time";		/* granted, and expired before the client came back */
	case REFUSE_DRAINING:
	case REFUSE_INTERNAL: return "server";
	default: return "unknown";
	}
}

void breaking_resource(const struct fail *f, const char **resource, const char **side)
{
	*resource = "unknown";
	*side = "unknown";
	switch (f->kind) {
	case FAIL_ERRNO:
		of_errno(f, resource, side);
		break;
	case FAIL_REFUSED:
		*resource = of_refusal(f->code);
		*side = "server";
		break;
	case FAIL_TIMEOUT:
		/* Whoever was late is not known, but before TLS is done it is the server that has not come to it. */
		*resource = f->stage <= STAGE_TLS_HANDSHAKE ? "handshakes" : "time";
		*side = f->stage <= STAGE_PSN_EXCHANGE ? "server" : "unknown";
		break;
	case FAIL_CLOSED:
		*resource = f->stage <= STAGE_PSN_EXCHANGE ? "handshakes" : "server";
		*side = "server";
		break;
	case FAIL_CM_STATUS:
		*resource = "time";
		break;
	case FAIL_WC_STATUS:
		*resource = f->code == IBV_WC_RNR_RETRY_EXC_ERR ? "receive_buffers" : "peer";
		*side = f->code == IBV_WC_RNR_RETRY_EXC_ERR ? "server" : "network";
		break;
	case FAIL_TLS:
	case FAIL_CERTIFICATE:
	case FAIL_PROTOCOL:
	case FAIL_NONE:
	case FAIL_KIND_N:
		break;
	}
}

/* A resource is worth more as an explanation than a time that ran out because of it. */
static int rank(const char *resource)
{
	if (strcmp(resource, "unknown") == 0)
		return 0;
	if (strcmp(resource, "time") == 0 || strcmp(resource, "peer") == 0 || strcmp(resource, "server") == 0)
		return 1;
	return strcmp(resource, "handshakes") == 0 ? 2 : 3;
}

static void explain(const struct step *s, struct breaking *b)
{
	for (uint32_t i = 0; i < s->failures.n; i++) {
		const struct fail *f = &s->failures.rows[i].fail;
		uint64_t count = counter_get(&s->failures.rows[i].count);
		const char *resource, *side;

		breaking_resource(f, &resource, &side);
		if (rank(resource) < rank(b->resource) ||
		    (b->has_failure && rank(resource) == rank(b->resource) && count <= b->count))
			continue;
		b->has_failure = true;
		b->fail = *f;
		b->count = count;
		b->resource = resource;
		b->side = side;
	}
}

void breaking_of(const struct step *s, enum stop_reason reason, const char *detail, struct breaking *out)
{
	char code[96];

	memset(out, 0, sizeof(*out));
	out->reason = reason;
	out->resource = reason == STOP_STEP_TIMEOUT ? "time" : "unknown";
	out->side = "unknown";
	explain(s, out);
	if (reason == STOP_SERVER_LOST) {
		out->resource = "server";
		out->side = "server";
	} else if (reason == STOP_GENERATOR_FAILED) {
		out->resource = "device";
		out->side = "generator";
	}
	if (reason == STOP_SERVER_LOST || reason == STOP_GENERATOR_FAILED || !out->has_failure)
		snprintf(out->text, sizeof(out->text), "%u clients: %u held; %s", s->target, s->connected_held,
			 detail[0] ? detail : stop_reason_names[reason]);
	else
		snprintf(out->text, sizeof(out->text), "%u clients: %u held; %s at %s (%llu times): %s", s->target,
			 s->connected_held, fail_code_text(&out->fail, code, sizeof(code)), stage_names[out->fail.stage],
			 (unsigned long long)out->count, fail_advice(&out->fail));
}

json_t *breaking_json(const struct breaking *b)
{
	char code[96];

	return json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:I, s:s, s:s}", "reason", stop_reason_names[b->reason], "resource",
			 b->resource, "side", b->side, "stage", b->has_failure ? stage_names[b->fail.stage] : NULL, "code",
			 b->has_failure ? fail_code_text(&b->fail, code, sizeof(code)) : NULL, "count",
			 (json_int_t)b->count, "meaning", b->has_failure ? fail_advice(&b->fail) : "", "text", b->text);
}
