/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges the steps that ran by the success criteria. Pure. */
#ifndef RAMPART_LOADGEN_VERDICT_H
#define RAMPART_LOADGEN_VERDICT_H

#include <jansson.h>

#include "loadgen/config/slo.h"
#include "loadgen/measurement/step.h"

enum criterion_result { CRITERION_PASS, CRITERION_FAIL, CRITERION_INCONCLUSIVE, CRITERION_NOT_JUDGED };

/* Inputs of a step's success criteria besides the step. */
struct verdict_terms {
	const char *excuse;		/* why times are not judged (verdict_excuse); NULL: they are */
	uint32_t whole_before;		/* see graceful_judge */
	const char *fewest, *slowest;	/* of step_fewest_text, step_slowest_text; NULL or "": no server is worse */
};

/* Why times measured here say nothing about hardware, judged by the environments in run.json, either of which may be
 * NULL: "emulated CPU" or "software RDMA"; NULL if times are those of hardware. Static text. */
const char *verdict_excuse(const json_t *server, const json_t *clients);

/* Appends a step's criteria to `verdict`: docs/results.md, "verdict[]". */
void verdict_add_step(json_t *verdict, const struct step *s, const struct verdict_terms *terms);

/* Appends a criterion for each term of the SLO. */
void verdict_add_slo(json_t *verdict, const struct slo *slo, const struct step *s);

/* Appends the result of a search: `criterion` is what was looked for (capacity, rate), `clients` the number found (0:
 * none) or the number with which the rate was found, `measured` the result in words. */
void verdict_add_capacity(json_t *verdict, const char *criterion, uint32_t clients, const char *measured,
			  enum criterion_result result);

/* Appends whether verified data arrived as sent; appends nothing if no data were verified. */
void verdict_add_integrity(json_t *verdict, const struct step *s);

/* Appends whether all live connections had PSNs of their own and, where they were read back (--verify), whether the
 * queue pairs had the agreed ones; appends nothing if no PSNs were exchanged, as over sockets. */
void verdict_add_psns(json_t *verdict, const struct step *s);

/* Appends `inconclusive` if the generator stood still or replies stalled; appends nothing otherwise. */
void verdict_add_undisturbed(json_t *verdict, const struct step *s);

/* Appends `inconclusive` for a step that was cut short by something that is not the server's fault. */
void verdict_add_not_judged(json_t *verdict, const struct step *s, const char *why);

/* Appends `inconclusive` for a step that the ramp did not reach. */
void verdict_add_not_reached(json_t *verdict, uint32_t clients);

/* The worst result of all judged criteria: fail over inconclusive over pass; inconclusive without any. */
enum criterion_result verdict_overall(const json_t *verdict);

#endif
