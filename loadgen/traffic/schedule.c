/* SPDX-License-Identifier: BSD-2-Clause */
/* See schedule.h. */
#include "loadgen/traffic/schedule.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/random.h"

struct schedule {
	uint32_t n, max;
	struct schedule_entry heap[];	/* invariant: entry i is not due before its parent, (i - 1) / 2 */
};

int schedule_new(uint32_t max, struct schedule **out)
{
	struct schedule *s = calloc(1, sizeof(*s) + max * sizeof(s->heap[0]));

	if (!s)
		return -ENOMEM;
	s->max = max;
	*out = s;
	return 0;
}

void schedule_free(struct schedule *s)
{
	free(s);
}

void schedule_clear(struct schedule *s)
{
	s->n = 0;
}

uint32_t schedule_count(const struct schedule *s)
{
	return s->n;
}

void schedule_add(struct schedule *s, double due_ns, uint32_t client)
{
	uint32_t i = s->n++;

	assert(i < s->max);
	while (i > 0 && s->heap[(i - 1) / 2].due_ns > due_ns) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = (struct schedule_entry){ due_ns, client };
}

const struct schedule_entry *schedule_first(const struct schedule *s)
{
	return s->n ? &s->heap[0] : NULL;
}

void schedule_remove_first(struct schedule *s)
{
	struct schedule_entry last = s->heap[--s->n];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < s->n) {
		if (child + 1 < s->n && s->heap[child + 1].due_ns < s->heap[child].due_ns)
			child++;
		if (s->heap[child].due_ns >= last.due_ns)
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
}

double schedule_exponential_ns(double mean_ns, uint64_t *state)
{
	/* 53 random bits in (0, 1]; 0 has no logarithm. */
	double u = ((double)(random_next(state) >> 11) + 1) / 9007199254740992.;

	return -log(u) * mean_ns;
}
