/* The success criteria, checked against the steps that ran. Pure. */
#ifndef RAMPART_LOADGEN_VERDICT_H
#define RAMPART_LOADGEN_VERDICT_H

#include <jansson.h>

#include "loadgen/config/slo.h"
#include "loadgen/step/step.h"

enum criterion_result { CRITERION_PASS, CRITERION_FAIL, CRITERION_INCONCLUSIVE };

/* Appends a step's criteria to `verdict`: [{clients, repetition, criterion, required, measured, result}]. */
void verdict_add_step(json_t *verdict, const struct step *s);

/* The terms of the SLO. */
void verdict_add_slo(json_t *verdict, const struct slo *slo, const struct step *s);

/* Of a search for capacity, once: the number of clients found (0: none), and in words what was measured. */
void verdict_add_capacity(json_t *verdict, uint32_t clients, const char *measured, enum criterion_result result);

/* Only whether what was checked came as it was sent; nothing if nothing was checked. */
void verdict_add_integrity(json_t *verdict, const struct step *s);

/* Whether the generator ran all the time and replies came: inconclusive if not, and nothing if they did. */
void verdict_add_undisturbed(json_t *verdict, const struct step *s);

/* A step that was cut short by something that is not the server's fault: inconclusive. */
void verdict_add_not_judged(json_t *verdict, const struct step *s, const char *why);

/* A step the ramp did not come to: inconclusive. */
void verdict_add_not_reached(json_t *verdict, uint32_t clients);

/* Worst result of all: fail over inconclusive over pass; inconclusive when there is none. */
enum criterion_result verdict_overall(const json_t *verdict);

#endif
