/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options, and lines of a configuration file. See opts_value.h.
 *
 * Numbers are decimal digits: no sign, no space, no exponent. A number that does not fit in 64 bits is out of range.
 * Each parser returns NULL, or in words what is wrong with the text.
 */
#include "common/base/opts_value.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A suffix, and how many bytes or ns it stands for. */
struct unit {
	const char *suffix;
	uint64_t scale;
};

/* Largest first: a value is printed in the first unit that divides it. */
#define SIZE_UNITS 4
#define DURATION_UNITS 6
static const struct unit size_units[SIZE_UNITS] = {
	{ "G", UINT64_C(1) << 30 }, { "M", UINT64_C(1) << 20 }, { "k", UINT64_C(1) << 10 },
	{ "", 1 },
};
static const struct unit duration_units[DURATION_UNITS] = {
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
static const struct unit *find_unit(const char *suffix)
{
	for (size_t i = 0; i < DURATION_UNITS; i++)
		if (strcmp(suffix, duration_units[i].suffix) == 0)
			return &duration_units[i];
	return NULL;
}

/* Computes with integers: 0.1 is exactly 100,000,000 ns. */
static const char *parse_duration(const char *s, uint64_t *v)
{
	static const char syntax[] = "is not a duration (seconds, or suffix us, ms, s, m or h)";
	unsigned __int128 ns, fraction_ns;
	uint64_t fraction = 0, divisor = 1;
	bool fits, fraction_fits = true;
	const struct unit *unit;

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

/* Takes the whole number at *p, with its suffix if the option is a size. Otherwise as take_digits. */
static bool take_whole(const struct opt *o, const char **p, uint64_t *v, bool *fits)
{
	if (!take_digits(p, v, fits))
		return false;
	for (size_t i = 0; is_size(o) && i < SIZE_UNITS - 1; i++)
		if (**p == *size_units[i].suffix) {
			*fits &= !__builtin_mul_overflow(*v, size_units[i].scale, v);
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

/* Appends `v`, twice `v`, and so on up to `last`. Returns NULL, or what is wrong. */
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
	case OPT_CONFIG:
		((struct opt_config *)to)->path = s;
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

const char *opts_check_value(const struct opt *o, const char *s)
{
	struct opt alone = *o;
	union {
		uint64_t number;
		int index;
		bool flag;
		const char *text;
		struct opt_list list;
		struct opt_texts texts;
	} unused = { .list = { .n = 0 } };

	alone.offset = 0;
	return opts_store_value(&alone, s, &unused);
}

/* Removes blanks from both ends. A carriage return counts as blank, so that files from Windows can be read. */
static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\r");
	for (n = strlen(s); n && strchr(" \t\r", s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

const char *opts_split_line(char *line, size_t length, char **name, char **value)
{
	char *equals;

	static_assert(OPTS_LINE_BYTES == 1024, "the message below has this number");
	*name = *value = NULL;
	if (length > OPTS_LINE_BYTES)
		return "the line is too long; allowed: at most 1024 bytes";
	if (memchr(line, '\0', length))
		return "the line has a NUL byte; allowed: text";
	line[length] = '\0';
	line = trim(line);
	if (!*line || *line == '#')
		return NULL;
	equals = strchr(line, '=');
	if (equals) {
		*equals = '\0';
		*value = trim(equals + 1);
	}
	*name = trim(line);
	if (!**name || strpbrk(*name, " \t"))
		return "the line is not an option; allowed: NAME = VALUE, or NAME for an option without a value";
	return NULL;
}

bool opts_value_is_off(const struct opt *o, const char *value)
{
	uint64_t v, def;

	if (!o->def || (o->type != OPT_UINT && o->type != OPT_SIZE && o->type != OPT_DURATION))
		return false;
	return !parse_number(o, value, &v) && !parse_number(o, o->def, &def) && v == o->min && def == o->min;
}

static void in_units(uint64_t v, const struct unit *units, size_t n, char *out, size_t size)
{
	for (size_t i = 0; i < n; i++)
		if (v && v % units[i].scale == 0) {
			snprintf(out, size, "%" PRIu64 "%s", v / units[i].scale, units[i].suffix);
			return;
		}
	if (!v)
		snprintf(out, size, "0");
	else	/* a duration that is not a whole number of us */
		snprintf(out, size, "%" PRIu64 ".%03" PRIu64 "us", v / 1000, v % 1000);
}

static void bound_text(const struct opt *o, uint64_t v, char *out, size_t size)
{
	if (is_size(o))
		in_units(v, size_units, SIZE_UNITS, out, size);
	else if (o->type == OPT_DURATION)
		in_units(v, duration_units, DURATION_UNITS, out, size);
	else
		snprintf(out, size, "%" PRIu64, v);
}

static void range_text(const struct opt *o, char *out, size_t size)
{
	char min[32], max[32];

	bound_text(o, o->min, min, sizeof(min));
	bound_text(o, o->max, max, sizeof(max));
	if (o->max == UINT64_MAX)
		snprintf(out, size, "%s or more", min);
	else
		snprintf(out, size, "%s to %s", min, max);
}

static void choices_text(const struct opt *o, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; o->choices[i] && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : o->choices[i + 1] ? ", " :
					 " or ", o->choices[i]);
}

const char *opts_value_allowed(const struct opt *o, char out[OPTS_ALLOWED_MAX])
{
	char range[80];

	switch (o->type) {
	case OPT_FLAG:
		snprintf(out, OPTS_ALLOWED_MAX, "no value");
		break;
	case OPT_UINT:
	case OPT_SIZE:
	case OPT_DURATION:
		range_text(o, out, OPTS_ALLOWED_MAX);
		break;
	case OPT_STRING:
	case OPT_CONFIG:
		snprintf(out, OPTS_ALLOWED_MAX, "any text that is not empty");
		break;
	case OPT_TEXTS:
		snprintf(out, OPTS_ALLOWED_MAX, "any text that is not empty; the option at most %d times",
			 OPT_TEXTS_MAX);
		break;
	case OPT_CHOICE:
		choices_text(o, out, OPTS_ALLOWED_MAX);
		break;
	case OPT_LIST:
		range_text(o, range, sizeof(range));
		snprintf(out, OPTS_ALLOWED_MAX, "%s each, comma-separated, at most %d", range, OPT_LIST_MAX);
		break;
	case OPT_SIZES:
		range_text(o, range, sizeof(range));
		snprintf(out, OPTS_ALLOWED_MAX, "%s each, comma-separated; A-B is A, doubled up to B; at most %d",
			 range, OPT_LIST_MAX);
		break;
	}
	return out;
}
