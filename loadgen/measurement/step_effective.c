/* SPDX-License-Identifier: BSD-2-Clause */
/* The work that a step actually did (requests, doorbells, polls), whatever the options asked for. See step.h. */
#include "loadgen/measurement/step.h"
#include "loadgen/worker/worker.h"

#include <math.h>

#include "common/base/json_at.h"
#include "common/observed/observed.h"

/* A side's work over the measured time; NAN: not known. */
struct work {
	double requests, doorbells, signalled, polls, empty_polls, completions;
};

static double span(const struct step *s, uint64_t begin, uint64_t end)
{
	return s->begin.now_ns && s->end.now_ns ? (double)(end - begin) : NAN;
}

static struct work generator_work(const struct step *s)
{
	const struct ep_work *a = &s->begin.work, *b = &s->end.work;

	return (struct work){ span(s, a->requests, b->requests), span(s, a->doorbells, b->doorbells),
			      span(s, a->signalled, b->signalled), span(s, a->polls, b->polls),
			      span(s, a->empty_polls, b->empty_polls), span(s, a->completions, b->completions) };
}

static struct work server_work(const struct step *s)
{
	return (struct work){ step_server_delta(s, "effective.requests"), step_server_delta(s, "effective.doorbells"),
			      step_server_delta(s, "effective.signalled"), step_server_delta(s, "effective.polls"),
			      step_server_delta(s, "effective.empty_polls"),
			      step_server_delta(s, "effective.completions") };
}

static json_t *side_json(const struct work *w, json_t *threads)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "requests", json_whole(w->requests),
			 "doorbells", json_whole(w->doorbells), "requests_per_doorbell",
			 json_number(w->requests / w->doorbells), "signalled_ratio",
			 json_number(w->signalled / w->requests), "polls", json_whole(w->polls), "empty_polls",
			 json_whole(w->empty_polls), "completions", json_whole(w->completions), "completions_per_poll",
			 json_number(w->completions / (w->polls - w->empty_polls)), "threads", threads);
}

/* `threads` come from the last report made while the clients were connected. */
static json_t *server_json(const struct step *s)
{
	json_t *threads = json_at(s->end.server ? s->end.server : s->held, "effective.threads");
	struct work w = server_work(s);

	return threads ? side_json(&w, json_incref(threads)) : json_null();
}

json_t *step_effective_json(const struct step *s, struct worker *const *workers, uint32_t n_workers)
{
	struct work w = generator_work(s);
	json_t *threads = json_array();

	for (uint32_t i = 0; i < n_workers; i++)
		json_array_append_new(threads, effective_thread_json(&worker_stats(workers[i])->effective));
	return json_pack("{s:o, s:o}", "server", server_json(s), "generator", side_json(&w, threads));
}
