/* The three questions of who has never seen the project: how many clients, what breaks first, what to buy. Each answer
 * says what it rests on, and says so where it is not known. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/report/sections/found.h"

/* --- what it rests on --- */

/* "workload echo, 64 bytes a message, over software RDMA on an emulated CPU" */
static const char *setting(struct page *p)
{
	const json_t *env = json_at(p->run, "environment.clients");
	const char *workload = json_text_at(p->run, "config.workload");
	bool software = json_is_true(json_at(env, "rdma_device.is_software"));
	bool emulated = json_is_true(json_at(env, "is_emulated_cpu"));
	bool idle = workload && (strcmp(workload, "idle") == 0 || strcmp(workload, "connect") == 0);

	return page_text(p, "workload %s%s%s%s%s", workload ? workload : "unknown",
			 idle || !p->points->n_sizes
				 ? ""
				 : page_text(p, ", %s a message", page_bytes(p, p->points->sizes[0])),
			 software || emulated ? ", over" : "",
			 software   ? " software RDMA"
			 : emulated ? " RDMA"
				    : "",
			 emulated   ? " on an emulated CPU: not hardware figures"
			 : software ? ": not hardware figures"
				    : "");
}

/* --- how many --- */

static const char *objective(struct page *p)
{
	const char *slo = json_text_at(p->run, "config.slo");

	return slo ? page_text(p, "the objective %s", slo) : "the objective";
}

static bool answer_by_objective(struct page *p, const char *question)
{
	struct found c;
	const char *proof;

	if (!found_read(p, "slo_capacity", &c) || !isfinite(c.clients))
		return false;
	proof = c.tries > 0 ? page_text(p, " (%s of %s tries)", page_count(p, c.passes), page_count(p, c.tries)) : "";
	if (c.at_least && isfinite(c.high))
		doc_answer(p->doc, DOC_WARN, NULL, question, page_text(p, "At least %s", page_count(p, c.clients)),
			   page_text(p,
				     "With %s %s was met%s; with %s the load generator was at its own limit, or too few "
				     "samples were taken to tell. Measured with %s.",
				     page_clients(p, c.clients), objective(p), proof, page_count(p, c.high),
				     setting(p)));
	else if (!isfinite(c.high))
		doc_answer(p->doc, DOC_GOOD, NULL, question, page_text(p, "At least %s", page_count(p, c.clients)),
			   page_text(p,
				     "With %s %s was met%s, and no more were tried: a larger --clients would look "
				     "further. Measured with %s.",
				     page_clients(p, c.clients), objective(p), proof, setting(p)));
	else
		doc_answer(p->doc, c.confirmed ? DOC_GOOD : DOC_WARN, NULL, question, page_count(p, c.clients),
			   page_text(p, "With %s %s was met%s, with %s it was not%s. Measured with %s.",
				     page_clients(p, c.clients), objective(p), proof, page_count(p, c.high),
				     c.confirmed ? "" : "; that is not confirmed, so read it as a range", setting(p)));
	return true;
}

/* True if a step with that many clients really failed, and was not merely undecided. */
static bool has_failed_objective(const struct points *points, double clients)
{
	const json_t *term;
	size_t t;

	for (size_t i = 0; i < points->n; i++)
		for (size_t k = 0; k < points->v[i].n && points->v[i].clients == clients; k++)
			json_array_foreach(json_at(points->v[i].steps[k], "slo"), t, term) {
				const char *result = json_text_at(term, "result");

				if (result && strcmp(result, "fail") == 0)
					return true;
			}
	return false;
}

/* An objective was given, and no step met it. */
static bool answer_objective_missed(struct page *p, const char *question)
{
	double held = found_most_held(p->points);
	struct found c;

	if (!json_text_at(p->run, "config.slo") || !found_read(p, "slo_capacity", &c) || !isfinite(c.high))
		return false;
	if (has_failed_objective(p->points, c.high))
		doc_answer(p->doc, DOC_BAD, NULL, question,
			   c.high > 1 ? page_text(p, "Fewer than %s", page_count(p, c.high)) : "None",
			   page_text(p, "Not even %s met %s. Measured with %s.", page_clients(p, c.high), objective(p),
				     setting(p)));
	else
		doc_answer(p->doc, DOC_WARN, NULL, question, "Not known",
			   page_text(p,
				     "Whether %s is met could not be told: with %s there were too few samples, or the "
				     "load generator was at its own limit; a longer --duration or a machine of its own "
				     "would tell. %s held without a failure. Measured with %s.",
				     objective(p), page_clients(p, c.high),
				     isfinite(held) ? page_text(p, "%s were", page_clients(p, held)) : "None was",
				     setting(p)));
	return true;
}

/* Where it becomes slow, when nobody said how slow is too slow. */
static const char *knee_words(struct page *p)
{
	struct found c;

	found_knee(p, &c);
	if (!isfinite(c.clients) || c.at_least)
		return "";
	return page_text(p, " Each client does best up to about %s (the knee): %s", page_count(p, c.clients),
			 page_sentence(p, c.reason ? c.reason : "more do not pay"));
}

static void answer_how_many(struct page *p)
{
	static const char question[] = "How many clients?";
	double held = found_most_held(p->points);
	const struct point *bad = found_first_not_held(p->points);

	if (answer_by_objective(p, question) || answer_objective_missed(p, question))
		return;
	if (isfinite(held) && !bad)
		doc_answer(p->doc, DOC_PLAIN, NULL, question, page_text(p, "At least %s", page_count(p, held)),
			   page_text(p, "%s were held at once and nothing failed; the run did not look further, "
				     "--find-capacity would.%s %s Measured with %s.", page_clients(p, held), knee_words(p),
				     json_text_at(p->run, "config.slo") ?
				     "Each message size has an objective of its own: the criteria below say which were met." :
				     "How slow is too slow was not said: --slo does.", setting(p)));
	else if (isfinite(held))
		doc_answer(p->doc, DOC_WARN, NULL, question,
			   page_text(p, "%s to %s", page_count(p, held), page_count(p, bad->clients)),
			   page_text(p,
				     "%s were all held, of %s not all: --find-capacity would look between. Measured "
				     "with %s.",
				     page_clients(p, held), page_count(p, bad->clients), setting(p)));
	else if (bad)
		doc_answer(p->doc, DOC_BAD, NULL, question, page_text(p, "Fewer than %s", page_count(p, bad->clients)),
			   page_text(p,
				     "Not all of %s were held, and that was the smallest step: fewer (--steps) would "
				     "say how many are. Measured with %s.",
				     page_clients(p, bad->clients), setting(p)));
	else
		doc_answer(p->doc, DOC_WARN, NULL, question, "Not known", "The run came to no step.");
}

/* --- what breaks first --- */

static bool answer_by_failure(struct page *p, const char *question)
{
	struct found c;
	const char *side, *text, *meaning;

	if (!found_read(p, "first_hard_failure", &c) || !c.failure)
		return false;
	/* "the server's --max-clients" has said it. */
	side = strstr(found_resource_words(json_text_at(c.failure, "resource")), "server")
		       ? "" : page_text(p, " (%s)", found_side_words(json_text_at(c.failure, "side")));
	text = json_text_at(c.failure, "text");
	meaning = json_text_at(c.failure, "meaning");
	doc_answer(p->doc, DOC_BAD, NULL, question,
		   page_text(p, "%s%s, at %s", found_resource_words(json_text_at(c.failure, "resource")), side,
			     page_clients(p, isfinite(c.clients) ? c.clients : c.high)),
		   page_text(p, "%s%s%s", page_sentence(p, text ? text : "The run does not say more"),
			     meaning && (!text || !strstr(text, meaning))
				     ? page_text(p, " %s", page_sentence(p, meaning))
				     : "",
			     c.tries > 0 ? page_text(p, " Seen in %s of %s tries.", page_count(p, c.passes),
						     page_count(p, c.tries))
					 : ""));
	return true;
}

/* Of the first of its runs that had one. */
static const json_t *first_failure(const struct point *point)
{
	const json_t *failure = NULL;

	for (size_t k = 0; k < point->n && !failure; k++)
		failure = json_array_get(json_at(point->steps[k], "failures"), 0);
	return failure;
}

/* The most frequent failure of the smallest step that lost clients. */
static bool answer_by_lost_clients(struct page *p, const char *question)
{
	const struct point *bad = found_first_not_held(p->points);
	const json_t *failure = bad ? first_failure(bad) : NULL;
	const char *code = json_text_at(failure, "code"), *stage = json_text_at(failure, "stage");
	const char *meaning = json_text_at(failure, "meaning");

	if (!bad)
		return false;
	doc_answer(p->doc, DOC_BAD, NULL, question,
		   page_text(p, "%s at %s", code ? code : "Clients were lost",
			     stage ? stage : page_clients(p, bad->clients)),
		   page_text(p, "With %s, %s were held.%s%s", page_clients(p, bad->clients),
			     page_count(p, point_range(bad, "connected_held").low < bad->clients
						   ? point_range(bad, "connected_held").low
						   : point_range(bad, "connected_held").value),
			     meaning ? " " : "", meaning ? meaning : ""));
	return true;
}

static const char *cpu_words(struct page *p)
{
	double share = found_cpu_share(p);

	if (found_server_cpu_share(p) > 0.9)
		return page_text(p, " The server used %s of its CPUs: they are what limits throughput.",
				 page_percent(p, found_server_cpu_share(p)));
	if (!(share > 0.9))
		return "";
	return page_text(p, " The CPUs of %s were %s busy: they are what limits throughput.",
			 found_share_machine(p) ? "the machine" : "the load generator's machine", page_percent(p, share));
}

static const char *projection_words(struct page *p)
{
	const json_t *first = json_array_get(p->limits, 0);
	double at = json_number_at(first, "projected_clients");

	if (!isfinite(at))
		return "";
	return page_text(p, " Of the limits the first to end would be %s (%s), projected at about %s.",
			 found_resource_words(json_text_at(first, "resource")),
			 found_side_words(json_text_at(first, "side")), page_clients(p, at));
}

/* What comes after the objective: a failure that was seen, or a limit that is foreseen. */
static const char *next_words(struct page *p)
{
	struct found hard;

	if (!found_read(p, "first_hard_failure", &hard) || !hard.failure || !isfinite(hard.clients))
		return page_text(p, " No client failed.%s", projection_words(p));
	return page_text(p, " Clients fail from %s on: %s.", page_count(p, hard.clients),
			 found_resource_words(json_text_at(hard.failure, "resource")));
}

/* The term of the objective that was missed with so many clients, in most of their runs or in any; NULL: none. */
static const json_t *missed_term(const struct point *point)
{
	const json_t *term;
	size_t t;

	for (size_t k = 0; k < point->n; k++)
		json_array_foreach(json_at(point->steps[k], "slo"), t, term) {
			const char *result = json_text_at(term, "result");

			if (result && strcmp(result, "fail") == 0)
				return term;
		}
	return NULL;
}

/* At the fewest clients with which the objective was no longer met; single runs below that were outvoted. */
static bool answer_by_broken_term(struct page *p, const char *question)
{
	const json_t *term = NULL;
	double at = NAN;
	struct found c;

	if (!found_read(p, "slo_capacity", &c))
		c.high = NAN;
	for (size_t i = 0; i < p->points->n && !term; i++) {
		if (isfinite(c.high) && p->points->v[i].clients != c.high)
			continue;
		term = missed_term(&p->points->v[i]);
		at = p->points->v[i].clients;
	}
	if (!term)
		return false;
	doc_answer(p->doc, DOC_WARN, NULL, question, page_text(p, "The objective %s", json_text_at(term, "expression") ?
			json_text_at(term, "expression") : ""),
		   page_text(p, "With %s it was %s: it is speed that ends, not connections.%s%s", page_clients(p, at),
			     page_in_unit(p, json_number_at(term, "measured"), json_text_at(term, "unit")), cpu_words(p),
			     next_words(p)));
	return true;
}

static void answer_what_breaks(struct page *p)
{
	static const char question[] = "What breaks first?";
	double held = found_most_held(p->points);
	struct found knee;

	if ((found_slow_first(p) && answer_by_broken_term(p, question)) || answer_by_failure(p, question) ||
	    answer_by_lost_clients(p, question) || answer_by_broken_term(p, question))
		return;
	found_knee(p, &knee);
	if (!isfinite(held))
		doc_answer(p->doc, DOC_WARN, NULL, question, "Not known", "The run came to no step.");
	else if (isfinite(knee.clients) && !knee.at_least)
		doc_answer(p->doc, DOC_PLAIN, NULL, question, "Speed, not connections",
			   page_text(p, "Nothing failed up to %s. The knee is at %s: %s%s%s", page_clients(p, held),
				     page_count(p, knee.clients),
				     page_sentence(p, knee.reason ? knee.reason : "more clients do not pay"),
				     cpu_words(p), projection_words(p)));
	else
		doc_answer(p->doc, DOC_GOOD, NULL, question, page_text(p, "Nothing up to %s", page_count(p, held)),
			   page_text(p, "No client failed.%s%s%s",
				     knee.reason ? page_text(p, " As to speed: %s", page_sentence(p, knee.reason)) : "",
				     cpu_words(p), projection_words(p)));
}

/* --- what to buy --- */

/* What broke may be a setting, which costs less than a server. */
static const char *raise_words(struct page *p)
{
	static const char *const settings[] = { "max_clients", "nofile", "ports", "memlock" };
	const char *resource, *meaning;
	struct found c;

	if (found_slow_first(p) || !found_read(p, "first_hard_failure", &c) || !c.failure)
		return "";
	resource = json_text_at(c.failure, "resource");
	meaning = json_text_at(c.failure, "meaning");
	for (size_t i = 0; resource && meaning && i < sizeof(settings) / sizeof(settings[0]); i++)
		if (strcmp(resource, settings[i]) == 0)
			return page_text(p, " What broke is a setting, to be raised first: %s", page_sentence(p, meaning));
	return "";
}

static void answer_what_to_buy(struct page *p)
{
	static const char question[] = "What to buy for twice as many?";
	const json_t *row = json_array_get(json_at(p->plan_for_twice, "rows"), 0);
	double capacity = json_number_at(p->plan_for_twice, "capacity_clients"), hosts = json_number_at(row, "hosts");
	double cores = json_number_at(p->run, "environment.server.cores"),
	       bytes = json_number_at(p->run, "environment.server.memory_bytes");
	bool at_least = json_is_true(json_at(p->plan_for_twice, "at_least"));

	if (!isfinite(hosts) || !isfinite(capacity)) {
		doc_answer(p->doc, DOC_WARN, NULL, question, "Not known",
			   json_text_at(p->run, "config.slo")
				   ? "No number of clients is known to meet the objective, to count from."
				   : "It takes a step whose clients were held, to count from.");
		return;
	}
	doc_answer(p->doc, DOC_PLAIN, NULL, question,
		   page_text(p, "%s%s server%s like this one", at_least ? "At most " : "", page_count(p, hosts),
			     hosts == 1 ? "" : "s"),
		   page_text(p,
			     "For %s: %s on each, so that %s of what a server carries (%s%s) stays free. This one has "
			     "%s CPUs and %s; together they would use %s CPUs and %s, by the lines through the "
			     "steps.%s%s",
			     page_clients(p, json_number_at(row, "clients")),
			     page_count(p, json_number_at(row, "clients_per_host")),
			     p->headroom > 0 ? page_percent(p, p->headroom) : "nothing", at_least ? "at least " : "",
			     page_count(p, capacity), page_count(p, cores), page_bytes(p, bytes),
			     page_count(p, json_number_at(row, "cores")),
			     page_bytes(p, json_number_at(row, "memory_bytes")),
			     at_least ? " What one carries at most was not found, so fewer may do." : "",
			     raise_words(p)));
}

void answers_add(struct page *p)
{
	answer_how_many(p);
	answer_what_breaks(p);
	answer_what_to_buy(p);
}
