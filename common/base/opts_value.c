/* Values of command-line options. See opts_value.h.
 *
 * Numbers are decimal digits only: no sign, no space, no exponent, and what does not fit in 64 bits is out of range.
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
static const char not_whole[] = "is not a whole number";

/* Takes the digits at *p. False if there are none. What does not fit makes *fits false. */
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

static const struct opts_unit *find_unit(const char *suffix, const struct opts_unit *units, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(suffix, units[i].suffix) == 0)
			return &units[i];
	return NULL;
}

static const char *parse_uint(const char *s, uint64_t *v)
{
	bool fits;

	if (!take_digits(&s, v, &fits) || *s)
		return not_whole;
	return fits ? NULL : not_allowed;
}

static const char *parse_size(const char *s, uint64_t *v)
{
	const struct opts_unit *unit;
	bool fits;

	if (!take_digits(&s, v, &fits))
		return "is not a number of bytes (suffix k, M or G)";
	unit = find_unit(s, opts_size_units, OPTS_SIZE_UNITS);
	if (!unit)
		return "is not a number of bytes (suffix k, M or G)";
	if (!fits || __builtin_mul_overflow(*v, unit->scale, v))
		return not_allowed;
	return NULL;
}

/* In integers throughout: 0.1 is exactly 100,000,000 ns. */
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
	unit = find_unit(s, opts_duration_units, OPTS_DURATION_UNITS);
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

static const char *parse_number(const struct opt *o, const char *s, uint64_t *v)
{
	const char *problem;

	if (o->type == OPT_SIZE)
		problem = parse_size(s, v);
	else if (o->type == OPT_DURATION)
		problem = parse_duration(s, v);
	else
		problem = parse_uint(s, v);
	return problem ? problem : check_range(o, *v);
}

static const char *list_add(const struct opt *o, struct opt_list *list, uint64_t v)
{
	if (check_range(o, v))
		return not_allowed;
	if (list->n == OPT_LIST_MAX)
		return "is too long";
	list->v[list->n++] = v;
	return NULL;
}

static const char *parse_list(const struct opt *o, const char *s, struct opt_list *list)
{
	const char *problem;

	list->n = 0;
	for (;;) {
		uint64_t v;
		bool fits;

		if (!take_digits(&s, &v, &fits) || (*s && *s != ','))
			return "is not a list of whole numbers";
		problem = fits ? list_add(o, list, v) : not_allowed;
		if (problem || !*s++)
			return problem;
	}
}

/* The text up to `end` as a size. */
static const char *parse_size_of(const char *s, const char *end, uint64_t *v)
{
	char text[32];

	if ((size_t)(end - s) >= sizeof(text))
		return not_allowed;
	memcpy(text, s, (size_t)(end - s));
	text[end - s] = '\0';
	return parse_size(text, v);
}

/* One size, or A-B. */
static const char *parse_size_range(const struct opt *o, const char *s, const char *end, struct opt_list *list)
{
	const char *dash = memchr(s, '-', (size_t)(end - s)), *problem;
	uint64_t v, last;

	problem = parse_size_of(s, dash ? dash : end, &v);
	last = v;
	if (!problem && dash)
		problem = parse_size_of(dash + 1, end, &last);
	if (!problem && (v == 0 || last < v || check_range(o, last)))
		problem = not_allowed;
	for (; !problem && v <= last; v *= 2)
		problem = list_add(o, list, v);
	return problem;
}

static const char *parse_sizes(const struct opt *o, const char *s, struct opt_list *list)
{
	const char *problem = NULL;

	list->n = 0;
	while (!problem) {
		size_t n = strcspn(s, ",");

		problem = parse_size_range(o, s, s + n, list);
		if (!s[n])
			break;
		s += n + 1;
	}
	return problem;
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
	case OPT_CHOICE:
		problem = parse_choice(o, s, &index);
		if (!problem)
			*(int *)to = index;
		break;
	case OPT_LIST:
	case OPT_SIZES:
		problem = o->type == OPT_LIST ? parse_list(o, s, &list) : parse_sizes(o, s, &list);
		if (!problem)
			*(struct opt_list *)to = list;
		break;
	}
	return problem;
}
