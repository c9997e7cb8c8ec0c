/* SPDX-License-Identifier: BSD-2-Clause */
/* See report_rig.h. */
#include "tests/unit/helpers/report_rig.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hist/hist.h"
#include "common/hist/hist_io.h"
#include "loadgen/analysis/baseline.h"
#include "tests/unit/files/scratch.h"
#include "tests/unit/helpers/unit.h"

static char dir[SCRATCH_MAX];

int report_rig_set_up(void **state)
{
	(void)state;
	return scratch_make(dir) == 0 && chdir(dir) == 0 && mkdir(REPORT_RIG_DIR, 0700) == 0 ? 0 : -1;
}

int report_rig_tear_down(void **state)
{
	(void)state;
	return chdir("/") || scratch_remove(dir) ? -1 : 0;
}

static FILE *open_in(const char *folder, const char *name)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	mkdir(folder, 0700);
	f = fopen(path, "w");
	assert_non_null(f);
	return f;
}

void report_rig_file(const char *folder, const char *name, const char *contents)
{
	FILE *f = open_in(folder, name);

	assert_true(fputs(contents, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void report_rig_run(const char *folder, const json_t *run)
{
	FILE *f = open_in(folder, "run.json");

	assert_int_equal(json_dumpf(run, f, 0), 0);
	assert_int_equal(fclose(f), 0);
}

void report_rig_histogram(const char *folder, const char *name, unsigned count, uint64_t unit_ns)
{
	char file[128];
	struct hist *h;
	FILE *f;

	assert_int_equal(hist_new(&h), 0);
	for (unsigned i = 1; i <= count; i++)
		hist_record(h, i * unit_ns);
	snprintf(file, sizeof(file), "%s.hlog", name);
	f = open_in(folder, file);
	assert_int_equal(hist_write_hlog_header(0, f), 0);
	assert_int_equal(hist_write_hlog_interval(h, NULL, 0, 1, f), 0);
	assert_int_equal(fclose(f), 0);
	hist_free(h);
}

enum report_result report_rig_make(const json_t *run)
{
	const struct report_options o = { .dir = REPORT_RIG_DIR, .headroom = REPORT_HEADROOM,
					  .min_effect = BASELINE_MIN_EFFECT };
	enum report_result result;
	char err[1024] = "";

	report_rig_run(REPORT_RIG_DIR, run);
	result = report_make(&o, stderr, err, sizeof(err));
	if (result != REPORT_MADE)
		fail_msg("%d: %s", (int)result, err);
	return result;
}

const char *report_rig_read(const char *folder, const char *name)
{
	static char text[1 << 20];
	char path[PATH_MAX];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("no %s", path);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* The character that a reference stands for; 0: none that a page has. */
static char referred(const char **at)
{
	static const struct { const char *text; char c; } references[] = {
		{ "&lt;", '<' }, { "&gt;", '>' }, { "&amp;", '&' }, { "&quot;", '"' }, { "&#39;", '\'' },
		{ "&#160;", ' ' },
	};

	for (size_t i = 0; i < N_ELEMENTS(references); i++)
		if (strncmp(*at, references[i].text, strlen(references[i].text)) == 0) {
			*at += strlen(references[i].text);
			return references[i].c;
		}
	return 0;
}

/* How an element's level changes with the tag: by 1 for its start, -1 for its end. */
static int level_of(const char *tag, const char *name, size_t n)
{
	bool end = tag[1] == '/';

	if (strncmp(tag + 1 + end, name, n) != 0 || isalnum((unsigned char)tag[1 + end + n]))
		return 0;
	return end ? -1 : 1;
}

/* The text of the element with the id, tags taken out. False if the page has none. */
static bool text_of(const char *page, const char *id, char *out, size_t size)
{
	char anchor[128];
	const char *at, *tag;
	int level = 0;
	size_t n = 0, name_size;

	snprintf(anchor, sizeof(anchor), " id=\"%s\"", id);
	at = strstr(page, anchor);
	if (!at)
		return false;
	for (tag = at; *tag != '<'; tag--)
		;
	name_size = strcspn(tag + 1, " >");
	for (at = tag; *at && n + 2 < size; ) {
		char c = *at == '&' ? referred(&at) : 0;

		if (!c && *at == '<') {
			level += level_of(at, tag + 1, name_size);
			at += strcspn(at, ">") + 1;
			out[n++] = ' ';
			if (level == 0)
				break;
		} else {
			out[n++] = c ? c : *at++;
		}
	}
	out[n] = '\0';
	return true;
}

/* The figure, not as a part of a longer one. */
static const char *find_figure(const char *text, const char *figure)
{
	size_t n = strlen(figure);

	for (const char *at = text; (at = strstr(at, figure)); at++) {
		bool begins = at == text || !strchr(".,", at[-1]) || !isdigit((unsigned char)*at);
		bool ends = !isalnum((unsigned char)at[n]) && !(strchr(".,", at[n]) &&
								isdigit((unsigned char)at[n + 1]));

		if (begins && ends && (at == text || !isalnum((unsigned char)at[-1])))
			return at + n;
	}
	return NULL;
}

static void look(const char *folder, const char *id, va_list figures)
{
	char text[8192];
	const char *at = text, *figure;

	if (!text_of(report_rig_read(folder, "report.html"), id, text, sizeof(text)))
		fail_msg("no statement %s", id);
	while ((figure = va_arg(figures, const char *))) {
		const char *next = find_figure(at, figure);

		if (!next)
			fail_msg("%s: no '%s' in '%.400s'", id, figure, at);
		at = next;
	}
}

void report_rig_look(const char *folder, const char *id, ...)
{
	va_list ap;

	va_start(ap, id);
	look(folder, id, ap);
	va_end(ap);
}

void report_rig_expect(const json_t *run, const char *id, ...)
{
	va_list ap;

	report_rig_make(run);
	va_start(ap, id);
	look(REPORT_RIG_DIR, id, ap);
	va_end(ap);
}

void report_rig_expect_none(const json_t *run, const char *id)
{
	char text[8192];

	report_rig_make(run);
	if (text_of(report_rig_read(REPORT_RIG_DIR, "report.html"), id, text, sizeof(text)))
		fail_msg("%s: %s", id, text);
}

bool report_rig_has_row(const char *folder, const char *table, const char *row)
{
	char name[128];

	snprintf(name, sizeof(name), "tables/%s.csv", table);
	for (const char *line = report_rig_read(folder, name); (line = strchr(line, '\n')); ) {
		const char *found = strstr(++line, row);

		if (found && found < line + strcspn(line, "\r\n"))
			return true;
	}
	return false;
}

void report_rig_expect_row(const json_t *run, const char *table, const char *row)
{
	report_rig_make(run);
	if (!report_rig_has_row(REPORT_RIG_DIR, table, row))
		fail_msg("no '%s' in %s", row, table);
}
