/* SPDX-License-Identifier: BSD-2-Clause */
/* The sections of the report. Each adds statements, tables and charts that are computed from the page's runs and
 * analyses. If something was not measured, the section says so. */
#ifndef RAMPART_LOADGEN_REPORT_SECTIONS_H
#define RAMPART_LOADGEN_REPORT_SECTIONS_H

#include "loadgen/report/sections/page.h"

void section_verdict(struct page *p);		/* the answers, capacities, criteria */
void section_steps(struct page *p);		/* tables of the figures of each step */
void section_throughput(struct page *p);
void section_latency(struct page *p);
void section_offered(struct page *p);		/* only for a sweep of rates */
void section_stages(struct page *p);		/* stages of connecting */
void section_distribution(struct page *p);
void section_time(struct page *p);
void section_failures(struct page *p);
void section_resources(struct page *p);
/* The resources whose use differs from the plan by more than 15 %, with both figures; "" if there are none. */
const char *resources_plan_missed(struct page *p);
void section_servers(struct page *p);		/* only for runs with several servers */
void section_machines(struct page *p);		/* samples of both ends over time */
void section_hosts(struct page *p);		/* only for runs on several load hosts */
void section_network(struct page *p);
void section_limits(struct page *p);
void section_checks(struct page *p);		/* Little's law, schedule lag */
void section_plan(struct page *p);
void section_effective(struct page *p);		/* what really ran */
/* Adds an item for each setting that did not take effect in a run. Returns how many. */
size_t effective_say_untaken(struct page *p, const json_t *run, const char *id);
void section_baselines(struct page *p);
/* For a row of a comparison of two runs: the figure's name in words, the figure of one side with its range, and the
 * tone of the verdict. */
const char *baseline_metric_words(const json_t *row);
const char *baseline_figure(struct page *p, const json_t *estimate, const char *unit);
enum doc_tone baseline_tone(const json_t *row);
void section_origin(struct page *p);		/* environment, command, files */

/* The summary that is printed when a run ends: a table of the steps, caveats about them, capacity and verdict. `where`
 * describes the environment. */
void summary_add(struct page *p, const char *where);
/* The summary's table, and its lines of caveats. */
void steps_table(struct page *p);
void steps_say_caveats(struct page *p);
void table_capacities(struct page *p);		/* as in the verdict */

/* Two tables: one-way times, and operations by direction or kind. Part of the section on latency. */
void parts_add(struct page *p);

/* The answers to a newcomer's three questions; part of the verdict. */
void answers_add(struct page *p);

#endif
