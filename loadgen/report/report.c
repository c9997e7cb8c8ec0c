/* SPDX-License-Identifier: BSD-2-Clause */
/* The report on a run. See report.h. */
#include "loadgen/report/report.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"
#include "loadgen/analysis/baseline.h"
#include "loadgen/analysis/curve.h"
#include "loadgen/analysis/limits.h"
#include "loadgen/analysis/growth.h"
#include "loadgen/report/sections/sections.h"

static json_t *plan_of(const struct page *p, const double *clients, size_t n, double growth)
{
	const struct growth_options o = { .headroom = p->headroom, .growth = growth, .clients = clients,
					  .n_clients = n };

	return growth_analysis(p->run, &o);
}

static void analyse(struct page *p, const struct report_options *o)
{
	json_t *knee = json_at(p->run, "analysis.capacity.knee");
	double twice;

	p->knee = json_is_object(knee) ? json_incref(knee) : curve_knee_json(json_at(p->run, "steps"), false);
	p->limits = limits_analysis(p->run);
	p->plan = plan_of(p, o->n_plan ? o->plan : NULL, o->n_plan, o->growth);
	twice = 2 * json_number_at(p->plan, "capacity_clients");
	if (isfinite(twice))
		p->plan_for_twice = plan_of(p, &twice, 1, 0);
	p->failed |= !p->knee || !p->limits || !p->plan || (isfinite(twice) && !p->plan_for_twice);
}

static void say_differences(const struct page_baseline *b, struct page *p, FILE *warnings)
{
	const json_t *d;
	size_t i;

	json_array_foreach(b->differences, i, d) {
		utf8_print_line(warnings, "%s: %.250s: %.1000s there, %.1000s here", b->label,
				page_json(p, json_at(d, "field")),
				page_json(p, json_at(d, "base")), page_json(p, json_at(d, "run")));
	}
}

static int open_baseline(struct page *p, const struct report_baseline *o, char *err, size_t err_size)
{
	struct page_baseline *b = &p->baselines[p->n_baselines];
	int ret = source_open(o->dir, &b->source, err, err_size);

	if (ret)
		return ret;
	p->n_baselines++;
	b->label = o->label ? o->label : p->n_baselines > 1 ? page_text(p, "base%zu", p->n_baselines) : "base";
	if (points_new(b->source->run, &b->points))
		return -ENOMEM;
	b->differences = baseline_differences(b->source->run, p->run);
	return 0;
}

static void say_unread(const struct source *s, FILE *warnings)
{
	if (!s->unread_errno)
		return;
	utf8_print_line(warnings, "performance_test report: %s/%s cannot be read: %s; the report lacks what is in it",
			s->dir, s->unread,
			s->unread_errno == EINVAL ? "it is damaged, or not a file" : strerror(s->unread_errno));
}

/* Prints the differences of all baselines before it refuses the report. */
static int open_baselines(struct page *p, const struct report_options *o, FILE *warnings, char *err, size_t err_size)
{
	bool unlike = false;

	for (size_t i = 0; i < o->n_baselines; i++) {
		struct page_baseline *b = &p->baselines[i];
		int ret = open_baseline(p, &o->baselines[i], err, err_size);

		if (ret)
			return ret;
		if (json_array_size(b->differences) == 0 || o->any_environment)
			continue;
		say_differences(b, p, warnings);
		unlike = true;
	}
	if (!unlike)
		return 0;
	snprintf(err, err_size,
		 "these runs differ in environment or configuration, which alone can change figures; --any-environment "
		 "compares them anyway");
	return -EINVAL;
}

/* A run that ended early and lacks steps of its baseline is worse, whatever the other steps show. */
static bool fell_short(const json_t *run, const json_t *comparison)
{
	const char *status = json_text_at(run, "run.status");
	const json_t *missing;
	size_t i;

	json_array_foreach(json_at(comparison, "missing"), i, missing) {
		if (strcmp(page_text_at(missing, "in", ""), "run") == 0 && status && strcmp(status, "completed") != 0)
			return true;
	}
	return false;
}

/* Returns true if the run is worse than one of the baselines. */
static bool compare_baselines(struct page *p)
{
	struct baseline_side run = { .run = p->run, .hist = source_histogram, .arg = p->source };
	const struct baseline_options options = { .min_effect = p->min_effect };
	bool regression = false;

	for (size_t i = 0; i < p->n_baselines; i++) {
		struct page_baseline *b = &p->baselines[i];
		struct baseline_side base = { .run = b->source->run, .hist = source_histogram, .arg = b->source };

		b->comparison = baseline_compare(&base, &run, &options);
		p->failed |= !b->comparison;
		regression |= json_is_true(json_at(b->comparison, "regression")) || fell_short(p->run, b->comparison);
	}
	return regression;
}

static int make_document(struct page *p)
{
	static void (*const sections[])(struct page *) = {
		section_verdict, section_steps, section_throughput, section_latency, section_offered, section_stages,
		section_distribution, section_time, section_failures, section_hosts, section_resources, section_servers,
		section_machines, section_network, section_limits, section_checks, section_plan, section_baselines,
		section_effective, section_origin,
	};
	int ret = doc_new(page_text(p, "Capacity report: %s", p->source->id),
			  page_text(p,
				    "What a load test of an RDMA server found: workload %s, started %s. Everything "
				    "below is computed from the run's own figures.",
				    page_text_at(p->run, "config.workload", "unknown"),
				    page_json(p, json_at(p->run, "run.started_at"))),
			  &p->doc);

	if (ret)
		return ret;
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		sections[i](p);
	return page_failed(p) ? -ENOMEM : 0;
}

static void close_page(struct page *p)
{
	for (size_t i = 0; i < p->n_baselines; i++) {
		json_decref(p->baselines[i].comparison);
		json_decref(p->baselines[i].differences);
		points_free(p->baselines[i].points);
		source_close(p->baselines[i].source);
	}
	json_decref(p->plan_for_twice);
	json_decref(p->plan);
	json_decref(p->limits);
	json_decref(p->knee);
	points_free(p->points);
	source_close(p->source);
	doc_free(p->doc);
	page_free(p);
}

/* The prefix of the report's links to the run's files: "" if the report is in the run's folder, else that folder. */
static const char *files_prefix(struct page *p, const struct report_options *o)
{
	char path[PATH_MAX];

	if (!o->output || !realpath(o->dir, path))
		return "";
	return page_text(p, "%s/", path);
}

static int open_page(struct page *p, const struct report_options *o, char *err, size_t err_size)
{
	int ret = source_open(o->dir, &p->source, err, err_size);

	if (ret)
		return ret;
	p->run = p->source->run;
	p->headroom = o->headroom;
	p->growth = o->growth;
	p->min_effect = o->min_effect;
	p->files_prefix = files_prefix(p, o);
	return points_new(p->run, &p->points);
}

int report_print(const struct doc *d, enum report_format format, FILE *out)
{
	static int (*const forms[])(const struct doc *, FILE *) = {
		[REPORT_TEXT] = doc_write_text, [REPORT_MARKDOWN] = doc_write_markdown, [REPORT_HTML] = doc_write_html,
	};

	return forms[format](d, out);
}

enum report_result report_make(const struct report_options *o, FILE *warnings, char *err, size_t err_size)
{
	enum report_result result = REPORT_FAILED;
	struct page p = { .n_baselines = 0 };
	int ret = open_page(&p, o, err, err_size);

	if (!ret)
		ret = open_baselines(&p, o, warnings, err, err_size);
	if (!ret) {
		analyse(&p, o);
		result = compare_baselines(&p) ? REPORT_REGRESSION : REPORT_MADE;
		ret = make_document(&p);
		say_unread(p.source, warnings);
		for (size_t i = 0; i < p.n_baselines; i++)
			say_unread(p.baselines[i].source, warnings);
	}
	if (!ret && json_memory_was_short())
		ret = -ENOMEM;
	if (ret == -ENOMEM)
		snprintf(err, err_size, "out of memory");
	if (ret) {
		result = REPORT_FAILED;
		goto out;
	}
	if (doc_write_files(p.doc, o->output ? o->output : o->dir, err, err_size)) {
		result = REPORT_UNWRITTEN;
	} else if (o->out && report_print(p.doc, o->format, o->out)) {
		snprintf(err, err_size, "cannot write the report to stdout: %s", strerror(errno));
		result = REPORT_FAILED;
	}
out:
	close_page(&p);
	return result;
}

int report_write(const char *dir, FILE *out, char *err, size_t err_size)
{
	const struct report_options o = { .dir = dir, .headroom = REPORT_HEADROOM, .min_effect = BASELINE_MIN_EFFECT,
					  .out = out };
	enum report_result result = report_make(&o, stderr, err, err_size);

	return result == REPORT_UNWRITTEN ? -EIO : result == REPORT_FAILED ? -EINVAL : 0;
}

int report_summary(const json_t *run, const char *where, FILE *out)
{
	struct page p = { .run = run, .knee = json_incref(json_at(run, "analysis.capacity.knee")) };
	int ret = points_new(run, &p.points);

	if (!ret)
		ret = doc_new(NULL, NULL, &p.doc);
	if (!ret) {
		summary_add(&p, where);
		ret = page_failed(&p) ? -ENOMEM : report_print(p.doc, REPORT_TEXT, out);
	}
	close_page(&p);
	return ret;
}
