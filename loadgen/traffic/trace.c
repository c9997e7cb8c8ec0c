/* SPDX-License-Identifier: BSD-2-Clause */
/* See trace.h. */
#include "loadgen/traffic/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct trace {
	uint64_t n, max, lost;
	struct trace_record records[];
};

int trace_new(uint64_t max, struct trace **out)
{
	struct trace *t = calloc(1, sizeof(*t) + max * sizeof(t->records[0]));

	if (!t)
		return -ENOMEM;
	t->max = max;
	*out = t;
	return 0;
}

void trace_free(struct trace *t)
{
	free(t);
}

void trace_clear(struct trace *t)
{
	t->n = t->lost = 0;
}

void trace_add(struct trace *t, const struct trace_record *r)
{
	if (t->n < t->max)
		t->records[t->n++] = *r;
	else
		t->lost++;
}

uint64_t trace_lost(const struct trace *t)
{
	return t->lost;
}

static int result(FILE *f)
{
	return !ferror(f) ? 0 : errno ? -errno : -EIO;
}

int trace_write_title(FILE *f)
{
	fputs("clients,bytes,repetition,client,operation,due_ns,sent_ns,end_ns\n", f);
	return result(f);
}

int trace_write(const struct trace *t, const struct trace_step *s, FILE *f)
{
	for (uint64_t i = 0; i < t->n; i++) {
		const struct trace_record *r = &t->records[i];

		fprintf(f,
			"%" PRIu32 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			"\n", s->clients, s->bytes, s->repetition, r->client * s->n_workers + s->worker, r->operation,
			r->due_ns - s->start_ns, r->sent_ns - s->start_ns, r->end_ns - s->start_ns);
	}
	return result(f);
}
