/* SPDX-License-Identifier: BSD-2-Clause */
/* See shared_options.h. */
#include "loadgen/run/shared_options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 256	/* options of a command line taken over from the leader */

json_t *shared_options(const struct opts_spec *spec, int argc, char **argv)
{
	json_t *a = json_array();

	for (int i = 1; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		const char *value = strchr(argv[i], '=');
		char name[NAME_MAX];
		const struct opt *o;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(argv[i] + 2, "="), argv[i] + 2);
		o = opts_find(spec, name);
		if (!o)
			break;
		value = o->type == OPT_FLAG ? "" : value ? value + 1 : i + 1 < argc ? argv[++i] : "";
		if (!o->per_host && json_array_append_new(a, json_pack("[s, s]", o->name, value))) {
			json_decref(a);
			return NULL;
		}
	}
	return a;
}

static const char *text_at(const json_t *options, size_t i, size_t k)
{
	const char *text = json_string_value(json_array_get(json_array_get(options, i), k));

	return text ? text : "";
}

/* The value of the n-th occurrence (from 0) of an option; NULL: there is none. */
static const char *value_of(const json_t *options, const char *name, size_t n)
{
	for (size_t i = 0; i < json_array_size(options); i++)
		if (strcmp(text_at(options, i, 0), name) == 0 && n-- == 0)
			return text_at(options, i, 1);
	return NULL;
}

const char *shared_options_value(const json_t *options, const char *name)
{
	return value_of(options, name, 0);
}

/* True if `b` has every option of `a` with the same value. Otherwise describes the first difference in `what`. */
static bool is_within(const json_t *a, const json_t *b, const char *whose_a, const char *whose_b, char *what,
		      size_t size)
{
	for (size_t i = 0; i < json_array_size(a); i++) {
		const char *name = text_at(a, i, 0), *mine = text_at(a, i, 1), *theirs;
		size_t before = 0;

		for (size_t k = 0; k < i; k++)
			before += strcmp(text_at(a, k, 0), name) == 0;
		theirs = value_of(b, name, before);
		if (theirs && strcmp(theirs, mine) == 0)
			continue;
		if (theirs)
			snprintf(what, size, "--%.40s is %.60s %s and %.60s %s", name, mine, whose_a, theirs, whose_b);
		else
			snprintf(what, size, "--%.40s%s%.60s is given %s and not %s", name, *mine ? " " : "", mine,
				 whose_a, whose_b);
		return false;
	}
	return true;
}

bool shared_options_agree(const json_t *leader, const json_t *host, bool all, char *what, size_t size)
{
	return is_within(host, leader, "on the joining host", "on the leader", what, size) &&
	       (!all || is_within(leader, host, "on the leader", "on the joining host", what, size));
}

/* One option as one argument, on the heap; NULL with a line in `err`. */
static char *option_word(const struct opts_spec *spec, const json_t *options, size_t i, char *err, size_t size)
{
	const char *name = text_at(options, i, 0), *value = text_at(options, i, 1);
	const struct opt *o = opts_find(spec, name);
	char *w;

	if (!o || o->per_host || strlen(value) > 4096) {
		snprintf(err, size, "the leader gives --%.40s, which is not an option for all hosts", name);
		return NULL;
	}
	w = malloc(strlen(name) + strlen(value) + 4);
	if (!w)
		snprintf(err, size, "this machine is out of memory");
	else if (o->type == OPT_FLAG)
		sprintf(w, "--%s", name);
	else
		sprintf(w, "--%s=%s", name, value);
	return w;
}

char **shared_options_join(const struct opts_spec *spec, int argc, char **argv, const json_t *leader, int *joined,
			   char *err, size_t size)
{
	json_t *mine = shared_options(spec, argc, argv);
	size_t n = json_array_size(leader);
	char **v = n <= OPTIONS_MAX ? calloc((size_t)argc + n + 1, sizeof(*v)) : NULL;
	int used = argc;

	snprintf(err, size, n > OPTIONS_MAX ? "the leader gives too many options" : "this machine is out of memory");
	if (!mine || !v)
		goto fail;
	memcpy(v, argv, (size_t)argc * sizeof(*v));
	for (size_t i = 0; i < n; i++) {
		if (value_of(mine, text_at(leader, i, 0), 0))
			continue;
		v[used] = option_word(spec, leader, i, err, size);
		if (!v[used])
			goto fail;
		used++;
	}
	json_decref(mine);
	*joined = used;
	return v;
fail:
	for (int i = argc; v && i < used; i++)
		free(v[i]);
	free(v);
	json_decref(mine);
	return NULL;
}
