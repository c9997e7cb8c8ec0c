/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of command-line options. See opts_value.h.
 *
 * Numbers are decimal digits: no sign, no space, no exponent. A number that does not fit in 64 bits is out of range.
 * Each parser returns NULL, or in words what is wrong with the text.
 */
#include "common/base/opts_value.h"

#include <stdbool.h>
#include <string.h>

const struct opts_unit opts_size_units[OPTS_SIZE_UNITS] = {
	{ "G", UINT64_C(1) << 30 }, { "M", UINT64_C(1) << 20 }, { "k", UINT64_C(1) << 10 },
	{ "", 1 },
};
const struct opts_unit opts_duration_units[OPTS_DURATION_UNITS] = {
	{ "h", UINT64_C(3600000000000) }, { "m", UINT64_C(60000000000) },
	{ "s", UINT64_C(1000000000) },	  { "ms", UINT64_C(1000000) },
	{ "us", UINT64_C(1000) },	  { "", UINT64_C(1000000000) },
};

static const char not_allowed[] = "is not allowed";

/* Takes the digits at *p; false if there are none. *fits is false if the number needs more than 64 bits. */
static bool take_digits(const char **p, uint64_t *v, bool *fits)
{
	const char *start = *p;

	*v = 0;
	*fits = true;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(*v, 10, v) ||
		    __builtin_add_overflow(*v, (uint64_t)(**p - '0'), v))
			*fits = false;
	return *p != start;
}

/* NULL if no unit of time has the suffix. */
static const struct opts_unit *find_unit(const char *suffix)
{
	for (size_t i = 0; i < OPTS_DURATION_UNITS; i++)
		if (strcmp(suffix, opts_duration_units[i].suffix) == 0)
			return &opts_duration_units[i];
	return NULL;
}

/* Computes with integers: 0.1 is exactly 100,000,000 ns. */
static const char *parse_duration(const char *s, uint64_t *v)
{
	static const char syntax[] = "is not a duration (seconds, or suffix us, ms, s, m or h)";
	unsigned __int128 ns, fraction_ns;
	uint64_t fraction = 0, divisor = 1;
	bool fits, fraction_fits = true;
	const struct opts_unit *unit;

	if (!take_digits(&s, v, &fits))
		return syntax;
	if (*s == '.') {
		const char *start = ++s;

		if (!take_digits(&s, &fraction, &fraction_fits))
			return syntax;
		for (; start < s && fraction_fits; start++)
			fraction_fits = !__builtin_mul_overflow(divisor, 10, &divisor);
	}
	unit = find_unit(s);
	if (!unit)
		return syntax;
	fraction_ns = (unsigned __int128)fraction * unit->scale;
	if (!fraction_fits || fraction_ns % divisor)
		return "is finer than a nanosecond";
	ns = (unsigned __int128)*v * unit->scale + fraction_ns / divisor;
	if (!fits || ns > UINT64_MAX)
		return not_allowed;
	*v = (uint64_t)ns;
	return NULL;
}

static const char *check_range(const struct opt *o, uint64_t v)
{
	return v < o->min || v > o->max ? not_allowed : NULL;
}

static bool is_size(const struct opt *o)
{
	return o->type == OPT_SIZE || o->type == OPT_SIZES;
}

/* Takes the whole number at *p, and its suffix if the option is a size; false if there is none. *fits as above. */
static bool take_whole(const struct opt *o, const char **p, uint64_t *v, bool *fits)
{
	if (!take_digits(p, v, fits))
		return false;
	for (size_t i = 0; is_size(o) && i < OPTS_SIZE_UNITS - 1; i++)
		if (**p == *opts_size_units[i].suffix) {
			*fits &= !__builtin_mul_overflow(*v, opts_size_units[i].scale, v);
			(*p)++;
			break;
		}
	return true;
}

static const char *explain_syntax(const struct opt *o)
{
	if (is_size(o))
		return "is not a number of bytes (suffix k, M or G)";
	return o->type == OPT_LIST ? "is not a list of whole numbers" : "is not a whole number";
}

static const char *parse_whole(const struct opt *o, const char *s, uint64_t *v)
{
	bool fits;

	if (!take_whole(o, &s, v, &fits) || *s)
		return explain_syntax(o);
	return fits ? NULL : not_allowed;
}

static const char *parse_number(const struct opt *o, const char *s, uint64_t *v)
{
	const char *problem = o->type == OPT_DURATION ? parse_duration(s, v) : parse_whole(o, s, v);

	return problem ? problem : check_range(o, *v);
}

/* Adds `v`, and its doubles up to `last`. */
static const char *list_add(const struct opt *o, struct opt_list *list, uint64_t v, uint64_t last)
{
	if (last < v || (!v && last) || check_range(o, v) || check_range(o, last))
		return not_allowed;
	do {
		if (list->n == OPT_LIST_MAX)
			return "is too long";
		list->v[list->n++] = v;
		v *= 2;
	} while (v && v <= last);
	return NULL;
}

/* Numbers, or sizes and ranges of sizes. */
static const char *parse_list(const struct opt *o, const char *s, struct opt_list *list)
{
	list->n = 0;
	for (;;) {
		bool fits, last_fits = true, ok;
		const char *problem;
		uint64_t v, last;

		ok = take_whole(o, &s, &v, &fits);
		last = v;
		if (ok && o->type == OPT_SIZES && *s == '-') {
			s++;
			ok = take_whole(o, &s, &last, &last_fits);
		}
		if (!ok || (*s && *s != ','))
			return explain_syntax(o);
		problem = fits && last_fits ? list_add(o, list, v, last) : not_allowed;
		if (problem || !*s++)
			return problem;
	}
}

static const char *parse_choice(const struct opt *o, const char *s, int *index)
{
	for (int i = 0; o->choices[i]; i++)
		if (strcmp(s, o->choices[i]) == 0) {
			*index = i;
			return NULL;
		}
	return not_allowed;
}

static const char *add_text(struct opt_texts *texts, const char *s)
{
	if (texts->n == OPT_TEXTS_MAX)
		return "is one too many";
	texts->v[texts->n++] = s;
	return NULL;
}

const char *opts_store_value(const struct opt *o, const char *s, void *config)
{
	void *to = (char *)config + o->offset;
	const char *problem = NULL;
	struct opt_list list;
	uint64_t number;
	int index;

	switch (o->type) {
	case OPT_FLAG:
		*(bool *)to = true;
		break;
	case OPT_UINT:
	case OPT_SIZE:
	case OPT_DURATION:
		problem = parse_number(o, s, &number);
		if (!problem)
			*(uint64_t *)to = number;
		break;
	case OPT_STRING:
		*(const char **)to = s;
		break;
	case OPT_TEXTS:
		problem = add_text(to, s);
		break;
	case OPT_CHOICE:
		problem = parse_choice(o, s, &index);
		if (!problem)
			*(int *)to = index;
		break;
	case OPT_LIST:
	case OPT_SIZES:
		problem = parse_list(o, s, &list);
		if (!problem)
			*(struct opt_list *)to = list;
		break;
	}
	return problem;
}
