/* SPDX-License-Identifier: BSD-2-Clause */
/* The success criteria, checked against the steps that ran. Pure. */
#ifndef RAMPART_LOADGEN_VERDICT_H
#define RAMPART_LOADGEN_VERDICT_H

#include <jansson.h>

#include "loadgen/config/slo.h"
#include "loadgen/step/step.h"

enum criterion_result { CRITERION_PASS, CRITERION_FAIL, CRITERION_INCONCLUSIVE, CRITERION_NOT_JUDGED };

/* What the success criteria of a step depend on besides the step. */
struct verdict_terms {
	const char *excuse;		/* why times are not judged (verdict_excuse); NULL: they are */
	uint32_t whole_before;		/* as graceful_judge takes it */
	const char *fewest, *slowest;	/* of several servers, those that were worse than others (step_fewest_text); NULL or "": none */
};

/* Why a time measured here says nothing about hardware: "emulated CPU" or "software RDMA", of the environments in run.json,
 * either of which may be NULL; NULL: it does. Static text. */
const char *verdict_excuse(const json_t *server, const json_t *clients);

/* Appends a step's criteria to `verdict`: docs/results.md, "verdict[]". */
void verdict_add_step(json_t *verdict, const struct step *s, const struct verdict_terms *terms);

/* The terms of the SLO. */
void verdict_add_slo(json_t *verdict, const struct slo *slo, const struct step *s);

/* Of a search, once: what was looked for (capacity, rate), the number of clients found (0: none) or that the rate was found
 * with, and in words what was measured. */
void verdict_add_capacity(json_t *verdict, const char *criterion, uint32_t clients, const char *measured,
			  enum criterion_result result);

/* Only whether what was checked came as it was sent; nothing if nothing was checked. */
void verdict_add_integrity(json_t *verdict, const struct step *s);

/* Whether the generator ran all the time and replies came: inconclusive if not, and nothing if they did. */
void verdict_add_undisturbed(json_t *verdict, const struct step *s);

/* A step that was cut short by something that is not the server's fault: inconclusive. */
void verdict_add_not_judged(json_t *verdict, const struct step *s, const char *why);

/* A step the ramp did not come to: inconclusive. */
void verdict_add_not_reached(json_t *verdict, uint32_t clients);

/* Worst result of all that were judged: fail over inconclusive over pass; inconclusive when there is none. */
enum criterion_result verdict_overall(const json_t *verdict);

#endif
