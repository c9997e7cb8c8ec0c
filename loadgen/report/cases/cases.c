/* SPDX-License-Identifier: BSD-2-Clause */
/* See cases.h. */
#include "loadgen/report/cases/cases.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"

struct cases {
	json_t *root;	/* as cases_json; a suite also has `names`: {group and name: how many cases have it} */
	bool failed;
};

static void put_text(struct cases *c, json_t *o, const char *key, const char *text, bool lines)
{
	char *clean = text ? utf8_clean(text, lines) : NULL;

	if (text && (!clean || json_object_set_new(o, key, json_string(clean))))
		c->failed = true;
	free(clean);
}

int cases_new(const char *title, struct cases **out)
{
	struct cases *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->root = json_pack("{s:[]}", "suites");
	put_text(c, c->root, "title", title, false);
	if (!c->root || c->failed) {
		cases_free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

void cases_free(struct cases *c)
{
	if (c)
		json_decref(c->root);
	free(c);
}

static json_t *last_suite(const struct cases *c)
{
	const json_t *suites = json_object_get(c->root, "suites");
	size_t n = json_array_size(suites);

	return n ? json_array_get(suites, n - 1) : NULL;
}

void cases_suite(struct cases *c, const char *name, const char *started_at)
{
	json_t *o = json_pack("{s:[], s:{}}", "cases", "names");

	put_text(c, o, "name", name, false);
	put_text(c, o, "started_at", started_at, false);
	if (json_array_append_new(json_object_get(c->root, "suites"), o))
		c->failed = true;
}

/* CI systems know a case by its group and name, so no two cases of a suite may have the same ones. */
static void make_name_unique(struct cases *c, json_t *names, json_t *o)
{
	const char *name = json_text_at(o, "name");
	json_t *key = json_sprintf("%s\n%s", json_text_at(o, "group"), name);
	const char *text = json_string_value(key);
	json_int_t uses = text ? json_integer_value(json_object_get(names, text)) + 1 : 0;

	if (!text || json_object_set_new(names, text, json_integer(uses)) ||
	    (uses > 1 && json_object_set_new(o, "name", json_sprintf("%s (%lld)", name, (long long)uses))))
		c->failed = true;
	json_decref(key);
	/* The numbered name, too, may be that of another case. */
	if (uses > 1 && !c->failed)
		make_name_unique(c, names, o);
}

void cases_add(struct cases *c, const struct test_case *t)
{
	json_t *suite = last_suite(c), *o = json_pack("{s:i, s:f}", "result", (int)t->result, "seconds", t->seconds);

	put_text(c, o, "group", t->group, false);
	put_text(c, o, "name", t->name, false);
	put_text(c, o, "measured", t->measured, false);
	put_text(c, o, "wanted", t->wanted, false);
	put_text(c, o, "reason", t->reason, false);
	put_text(c, o, "detail", t->detail, true);
	if (!c->failed)
		make_name_unique(c, json_object_get(suite, "names"), o);
	if (json_array_append_new(json_object_get(suite, "cases"), o))
		c->failed = true;
}

bool cases_is_empty(const struct cases *c)
{
	return json_array_size(json_object_get(last_suite(c), "cases")) == 0;
}

void cases_fail(struct cases *c)
{
	c->failed = true;
}

const json_t *cases_json(const struct cases *c)
{
	return c->failed ? NULL : c->root;
}

enum case_result cases_result(const json_t *one)
{
	return (enum case_result)json_integer_value(json_object_get(one, "result"));
}

size_t cases_count(const json_t *suite, enum case_result result)
{
	const json_t *one;
	size_t i, n = 0;

	json_array_foreach(json_object_get(suite, "cases"), i, one) {
		n += cases_result(one) == result;
	}
	return n;
}
