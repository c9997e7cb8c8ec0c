/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges whether a step met its service level objectives (loadgen/config/slo.h). Pure. */
#ifndef RAMPART_LOADGEN_SLO_JUDGE_H
#define RAMPART_LOADGEN_SLO_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "loadgen/config/slo.h"

struct step;

enum slo_result { SLO_PASS, SLO_FAIL, SLO_INCONCLUSIVE };
extern const char *const slo_result_names[];	/* pass, fail, inconclusive */

/* Judges a term for a step, after step_collect. `measured` gets the figure in the limit's unit, or NAN with too few
 * samples. With too few samples the term is met if all of them are within the limit, and missed if a step that meets
 * the term would show so many beyond the limit by chance in fewer than 5 of 100 cases; otherwise, and without a sample,
 * the result is inconclusive. */
enum slo_result slo_judge_term(const struct slo_term *t, const struct step *s, double *measured);

/* The worst result of all terms, SLO_FAIL over SLO_INCONCLUSIVE; SLO_PASS without a term. */
enum slo_result slo_judge(const struct slo *slo, const struct step *s);

/* [{expression, metric, unit, limit, measured, result}], or null without a term. NULL when out of memory. */
json_t *slo_json(const struct slo *slo, const struct step *s);

/* Writes the value `v` with its unit ("1.25 ms", "0.3 %", "12000 a second"), or if it is NAN, the reason for `result`.
 * Returns `text`. */
const char *slo_value_text(const struct slo_term *t, enum slo_result result, double v, char *text, size_t size);

/* True if the step has at least one sample for each latency of the terms. */
bool slo_has_samples(const struct slo *slo, const struct step *s);

#endif
