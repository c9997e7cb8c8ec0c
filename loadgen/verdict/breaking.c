/* SPDX-License-Identifier: BSD-2-Clause */
/* See breaking.h. */
#include "loadgen/verdict/breaking.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include <infiniband/verbs.h>

#include "common/wire/frame.h"
#include "loadgen/measurement/step.h"

const char *const stop_reason_names[] = {
	[STOP_NOT] = "none",
	[STOP_MAX_REACHED] = "max_reached",
	[STOP_ERROR_RATE] = "error_rate",
	[STOP_STEP_TIMEOUT] = "step_timeout",
	[STOP_RESOURCE_EXHAUSTED] = "resource_exhausted",
	[STOP_ABORTED] = "aborted",
	[STOP_SERVER_LOST] = "server_lost",
	[STOP_GENERATOR_FAILED] = "generator_failed",
	[STOP_GENERATOR_SATURATED] = "generator_saturated",
	[STOP_MEMORY_FLOOR] = "memory_floor",
	[STOP_CPU_FLOOR] = "cpu_floor",
	[STOP_HOST_LOST] = "host_lost",
};
static_assert(sizeof(stop_reason_names) / sizeof(stop_reason_names[0]) == STOP_N, "a name per reason");

enum stop_reason stop_reason_of(const char *name)
{
	for (int i = 0; name && i < STOP_N; i++)
		if (strcmp(name, stop_reason_names[i]) == 0)
			return (enum stop_reason)i;
	return STOP_NOT;
}

static void describe_failure(const struct step *s, const struct fail *f, const char *side, char *text,
			     size_t size)
{
	char code[96];

	if (f)
		snprintf(text, size, "%u clients: %u not held; %s at %s%s: %s", s->target,
			 s->target - s->connected_held, fail_code_text(f, code, sizeof(code)),
			 stage_names[f->stage], side, fail_advice(f));
	else
		snprintf(text, size, "%u clients: %u of them were not held", s->target,
			 s->target - s->connected_held);
}

static bool is_generator_shortage(const struct fail *f)
{
	return f->kind == FAIL_ERRNO && (f->code == ENOMEM || f->code == EMFILE || f->code == EAGAIN ||
					 f->code == EADDRNOTAVAIL || f->code == ENOSPC);
}

static bool is_server_shortage(const struct fail *f)
{
	return f->kind == FAIL_REFUSED && f->code == REFUSE_NO_RESOURCES;
}

/* The most frequent failure that shows a shortage on either side; NULL when there is none. */
static const struct fail *shortage(const struct step *s)
{
	const struct fail *found = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; i < s->failures.n; i++) {
		const struct fail *f = &s->failures.rows[i].fail;
		uint64_t count = counter_get(&s->failures.rows[i].count);

		if ((is_generator_shortage(f) || is_server_shortage(f)) && count > most) {
			most = count;
			found = f;
		}
	}
	return found;
}

/* Clients that can be held. Those of a lost host do not count: otherwise they would end a ramp that goes on. */
static uint64_t expected(const struct step *s)
{
	return s->hosts.host_lost ? MIN(s->hosts.clients, s->target) : s->target;
}

enum stop_reason stop_judge_step(const struct step *s, char *text, size_t size)
{
	const struct fail *f = shortage(s);
	struct fail top;
	uint64_t count;

	text[0] = '\0';
	if (s->connected_held * 100.0 >= (double)expected(s) * 99.0 && !s->step_timeout)
		return STOP_NOT;
	if (f) {
		describe_failure(s, f, is_server_shortage(f) ? " (server)" : " (generator)", text, size);
		return STOP_RESOURCE_EXHAUSTED;
	}
	describe_failure(s, fail_table_top(&s->failures, &top, &count) ? &top : NULL, "", text, size);
	return s->step_timeout ? STOP_STEP_TIMEOUT : STOP_ERROR_RATE;
}

/* An errno comes from the generator's own system calls; failures of the server arrive as refusals. */
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
	case REFUSE_BAD_SESSION: return "time";		/* the session expired before the client's RDMA request came */
	case REFUSE_STALE:
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
		/* A timeout does not tell who was late; before TLS is done, the server has not got to this client. */
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
		/* A session that has expired looks like a network that lets no packets through. */
		if (f->stage == STAGE_QP_EXCHANGE) {
			*resource = "time";
			break;
		}
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

/* How well a resource explains a failure: a named resource better than a timeout, which may be its consequence. */
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

/* True if slowness alone can have caused the failure that was found. */
static bool may_be_slowness(const struct breaking *b)
{
	const struct fail *f = &b->fail;

	return !b->has_failure || f->kind == FAIL_TIMEOUT || f->kind == FAIL_CLOSED || f->kind == FAIL_CM_STATUS ||
	       f->kind == FAIL_WC_STATUS || (f->kind == FAIL_ERRNO && f->code == ETIMEDOUT) ||
	       (f->kind == FAIL_REFUSED && f->code == REFUSE_BAD_SESSION);
}

/* Names lack of memory as the cause of failures that slowness alone can cause. */
static void explain_by_memory(const struct step *s, const struct breaking_memory *memory, struct breaking *b)
{
	char code[96];

	b->resource = "memory";
	b->side = memory->of_server ? "server" : "generator";
	b->meaning = "add memory, hold fewer clients, or end a run before this with --memory-floor";
	snprintf(b->text, sizeof(b->text), "%u clients: %u held; %s", s->target, s->connected_held, memory->text);
	if (b->has_failure)
		snprintf(b->text + strlen(b->text), sizeof(b->text) - strlen(b->text), ", and clients failed: %s at %s "
			 "(%llu times)", fail_code_text(&b->fail, code, sizeof(code)), stage_names[b->fail.stage],
			 (unsigned long long)b->count);
}

void breaking_of(const struct step *s, enum stop_reason reason, const char *detail,
		 const struct breaking_memory *memory, struct breaking *out)
{
	char code[96];

	memset(out, 0, sizeof(*out));
	out->reason = reason;
	out->resource = reason == STOP_STEP_TIMEOUT ? "time" : "unknown";
	out->side = "unknown";
	explain(s, out);
	out->meaning = out->has_failure ? fail_advice(&out->fail) : "";
	if (reason == STOP_SERVER_LOST) {
		out->resource = "server";
		out->side = "server";
	} else if (reason == STOP_HOST_LOST) {
		out->resource = "host";
		out->side = "generator";
	} else if (reason == STOP_GENERATOR_FAILED) {
		out->resource = "device";
		out->side = "generator";
	} else if (s->floor != FLOOR_NONE) {
		out->resource = s->floor == FLOOR_MEMORY ? "memory" : "cpu";
		out->side = s->floor_of_server ? "server" : "generator";
	}
	if ((reason == STOP_ERROR_RATE || reason == STOP_STEP_TIMEOUT) && s->floor == FLOOR_NONE &&
	    may_be_slowness(out) && memory->text[0]) {
		explain_by_memory(s, memory, out);
		return;
	}
	/* A floor that cut the step short explains the missing clients; the recorded failures do not. */
	if (reason == STOP_SERVER_LOST || reason == STOP_HOST_LOST || reason == STOP_GENERATOR_FAILED ||
	    s->floor != FLOOR_NONE || !out->has_failure)
		snprintf(out->text, sizeof(out->text), "%u clients: %u held; %s", s->target, s->connected_held,
			 detail[0] ? detail : stop_reason_names[reason]);
	else
		snprintf(out->text, sizeof(out->text), "%u clients: %u held; %s at %s (%llu times): %s", s->target,
			 s->connected_held, fail_code_text(&out->fail, code, sizeof(code)),
			 stage_names[out->fail.stage], (unsigned long long)out->count, fail_advice(&out->fail));
}

json_t *breaking_json(const struct breaking *b)
{
	char code[96];

	return json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:I, s:s, s:s}", "reason", stop_reason_names[b->reason],
			 "resource",
			 b->resource, "side", b->side, "stage", b->has_failure ? stage_names[b->fail.stage] : NULL,
			 "code", b->has_failure ? fail_code_text(&b->fail, code, sizeof(code)) : NULL, "count",
			 (json_int_t)b->count, "meaning", b->meaning, "text", b->text);
}
