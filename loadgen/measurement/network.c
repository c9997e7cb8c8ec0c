/* SPDX-License-Identifier: BSD-2-Clause */
/* Growth of port counters, under names common to all drivers. See network.h. */
#include "loadgen/measurement/network.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/rails.h"
#include "common/port/figures.h"
#include "common/port/port.h"

#define UNKNOWN_RATIO 0.9	/* an interface that saw a smaller share of the device's packets did not carry them */

struct growth {
	double v[PORT_FIGURES];
	bool loopback;
	const char *bytes_source, *packets_source, *line_source;	/* NULL: not known */
	double other_packets, line_bits_per_s, used_ratio;
};

/* Seconds between two readings, by the monotonic clock of the machine that made both; NAN: not known. */
static double window_of(const json_t *begin, const json_t *end)
{
	const json_t *from = json_object_get(begin, "read_ns"), *to = json_object_get(end, "read_ns");
	json_int_t a = json_integer_value(from), b = json_integer_value(to);

	return json_is_integer(from) && json_is_integer(to) && a >= 0 && b > a ? (double)(b - a) / 1e9 : NAN;
}

/* A number from 0 to 2^53, else NAN: the report of a server is not trusted. */
static double amount(const json_t *o, const char *name)
{
	double v = json_number_at(o, name);

	return v >= 0 && v < 0x1p53 ? v : NAN;
}

/* A software device sends through its network interface, unless both ends are on one machine: then the driver delivers
 * the packets itself, or the kernel's loopback interface carries them. */
static void add_netdev(struct growth *g, const json_t *begin, const json_t *end)
{
	double out = port_growth_at(begin, end, "tx_packets"), in = port_growth_at(begin, end, "rx_packets");

	if (g->v[PORT_PACKETS_OUT] + g->v[PORT_PACKETS_IN] > 0 && out +
	    in < UNKNOWN_RATIO * (g->v[PORT_PACKETS_OUT] + g->v[PORT_PACKETS_IN]))
		g->loopback = true;
	if (g->loopback)
		return;
	g->v[PORT_BYTES_OUT] = port_growth_at(begin, end, "tx_bytes");
	g->v[PORT_BYTES_IN] = port_growth_at(begin, end, "rx_bytes");
	if (isfinite(g->v[PORT_BYTES_OUT] + g->v[PORT_BYTES_IN]))
		g->bytes_source = "netdev";
	if (isfinite(g->v[PORT_PACKETS_OUT] + g->v[PORT_PACKETS_IN])) {
		g->other_packets = fmax(out + in - g->v[PORT_PACKETS_OUT] - g->v[PORT_PACKETS_IN], 0);
		return;
	}
	g->v[PORT_PACKETS_OUT] = out;
	g->v[PORT_PACKETS_IN] = in;
	if (isfinite(out + in))
		g->packets_source = "netdev";
}

static void find_line(struct growth *g, const json_t *end, double window_s)
{
	g->line_bits_per_s = port_line_bits_per_s(end, &g->line_source);
	g->used_ratio = fmax(g->v[PORT_BYTES_OUT], g->v[PORT_BYTES_IN]) * 8 / window_s / g->line_bits_per_s;
}

static void grow(struct growth *g, const json_t *begin, const json_t *end, double window_s, bool loopback)
{
	const json_t *a = json_object_get(begin, "counters"), *b = json_object_get(end, "counters");
	bool software = json_is_true(json_object_get(end, "software"));

	*g = (struct growth){ .loopback = loopback, .other_packets = NAN, .line_bits_per_s = NAN };
	for (size_t i = 0; i < PORT_FIGURES; i++)
		g->v[i] = port_figure_growth(&port_figures[i], a, b);
	if (isfinite(g->v[PORT_BYTES_OUT] + g->v[PORT_BYTES_IN]))
		g->bytes_source = "rdma_counters";
	if (isfinite(g->v[PORT_PACKETS_OUT] + g->v[PORT_PACKETS_IN]))
		g->packets_source = "rdma_counters";
	if (software && !g->bytes_source)
		add_netdev(g, json_object_get(begin, "netdev_counters"), json_object_get(end, "netdev_counters"));
	/* A port does not carry what its device sends to itself, but a software device still counts the packets. */
	if (g->loopback) {
		g->v[PORT_BYTES_OUT] = g->v[PORT_BYTES_IN] = NAN;
		g->bytes_source = "loopback";
		if (!software) {
			g->v[PORT_PACKETS_OUT] = g->v[PORT_PACKETS_IN] = NAN;
			g->packets_source = "loopback";
		}
	}
	find_line(g, end, window_s);
}

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static void set_figures(json_t *o, const struct growth *g, double window_s)
{
	json_object_set_new(o, "loopback", json_boolean(g->loopback));
	json_object_set_new(o, "bytes_source", text_or_null(g->bytes_source));
	json_object_set_new(o, "packets_source", text_or_null(g->packets_source));
	for (size_t i = 0; i < PORT_FIGURES; i++)
		json_object_set_new(o, port_figures[i].name, json_whole(g->v[i]));
	json_object_set_new(o, "bytes_out_per_s", json_number(g->v[PORT_BYTES_OUT] / window_s));
	json_object_set_new(o, "bytes_in_per_s", json_number(g->v[PORT_BYTES_IN] / window_s));
	json_object_set_new(o, "other_packets", json_whole(g->other_packets));
	json_object_set_new(o, "line_bits_per_s", json_number(g->line_bits_per_s));
	json_object_set_new(o, "used_ratio", json_number(g->used_ratio));
}

/* True for a name that a file below /sys can have: the report of a server is not trusted. */
static bool is_name(const char *name)
{
	size_t n = 0;

	while (n < 64 && (isalnum((unsigned char)name[n]) || strchr("_-.", name[n])) && name[n])
		n++;
	return n > 0 && name[n] == '\0';
}

static json_t *raw_json(const json_t *begin, const json_t *end)
{
	json_t *o = json_object(), *v;
	const char *name;
	double by;

	json_object_foreach((json_t *)end, name, v) {
		by = port_growth(json_object_get(begin, name), v);
		if (isfinite(by) && is_name(name) && json_object_size(o) < PORT_FILES_MAX)
			json_object_set_new(o, name, json_whole(by));
	}
	return o;
}

static json_t *copy_text(const json_t *o, const char *name)
{
	const char *text = json_text_at(o, name);

	return text && is_name(text) ? json_string(text) : json_null();
}

/* Copies a date if it has the form that port_read_all writes. */
static json_t *copy_moment(const json_t *o)
{
	const char *text = json_text_at(o, "read_at");

	return text && strlen(text) == 24 && strspn(text, "0123456789-T:.Z") == 24 ? json_string(text) : json_null();
}

static json_t *port_json(const json_t *begin, const json_t *end, const struct growth *g, double window_s)
{
	json_t *o = json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "device", copy_text(end, "device"),
			      "port",
		json_whole(amount(end, "port")), "netdev", copy_text(end, "netdev"), "software",
		json_is_true(json_object_get(end, "software")), "link_bits_per_s",
		json_number(amount(end, "link_bits_per_s")), "link_lanes", json_whole(amount(end, "link_lanes")),
		"line_source", text_or_null(g->line_source), "counters",
		raw_json(json_object_get(begin, "counters"), json_object_get(end, "counters")), "netdev_counters",
		raw_json(json_object_get(begin, "netdev_counters"), json_object_get(end, "netdev_counters")));

	set_figures(o, g, window_s);
	return o;
}

static const char *same_or_mixed(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0 ? a : a && b ? "mixed" : NULL;
}

static void add_growth(struct growth *sum, const struct growth *g)
{
	for (size_t i = 0; i < PORT_FIGURES; i++)
		sum->v[i] += g->v[i];
	sum->loopback |= g->loopback;
	sum->bytes_source = same_or_mixed(sum->bytes_source, g->bytes_source);
	sum->packets_source = same_or_mixed(sum->packets_source, g->packets_source);
	sum->other_packets += g->other_packets;
	sum->line_bits_per_s += g->line_bits_per_s;
	sum->used_ratio = fmax(sum->used_ratio, g->used_ratio);
}

static bool is_same_port(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "device"), json_object_get(b, "device")) &&
	       json_equal(json_object_get(a, "port"), json_object_get(b, "port"));
}

json_t *network_side_json(const json_t *begin, const json_t *end, bool loopback)
{
	const json_t *a = json_object_get(begin, "ports"), *b = json_object_get(end, "ports");
	double window_s = window_of(begin, end);
	size_t n = json_array_size(b);
	struct growth sum, g;
	json_t *o, *ports;

	if (n == 0 || n > RAILS_MAX || n != json_array_size(a) || !(window_s > 0))
		return json_null();
	o = json_object();
	ports = json_array();
	for (size_t i = 0; i < n; i++) {
		const json_t *first = json_array_get(a, i), *last = json_array_get(b, i);

		grow(&g, is_same_port(first, last) ? first : NULL, last, window_s, loopback);
		json_array_append_new(ports, port_json(first, last, &g, window_s));
		if (i == 0)
			sum = g;
		else
			add_growth(&sum, &g);
	}
	json_object_set_new(o, "began_at", copy_moment(begin));
	json_object_set_new(o, "ended_at", copy_moment(end));
	json_object_set_new(o, "window_s", json_number(window_s));
	set_figures(o, &sum, window_s);
	json_object_set_new(o, "ports", ports);
	return o;
}

static const char *const sources[] = { "rdma_counters", "netdev", "loopback", "mixed" };

/* NULL: not known. */
static const char *source_at(const json_t *side, const char *name)
{
	const char *text = json_text_at(side, name);

	for (size_t i = 0; text && i < sizeof(sources) / sizeof(sources[0]); i++)
		if (strcmp(text, sources[i]) == 0)
			return sources[i];
	return NULL;
}

static void read_growth(const json_t *side, struct growth *g)
{
	for (size_t i = 0; i < PORT_FIGURES; i++)
		g->v[i] = amount(side, port_figures[i].name);
	g->loopback = json_is_true(json_object_get(side, "loopback"));
	g->bytes_source = source_at(side, "bytes_source");
	g->packets_source = source_at(side, "packets_source");
	g->other_packets = amount(side, "other_packets");
	g->line_bits_per_s = amount(side, "line_bits_per_s");
	g->used_ratio = amount(side, "used_ratio");
}

bool network_side_is_sound(const json_t *side)
{
	static const char *const others[] = { "other_packets", "line_bits_per_s", "used_ratio" };

	if (json_is_null(side))
		return true;
	if (!(amount(side, "window_s") > 0) || !json_is_boolean(json_object_get(side, "loopback")))
		return false;
	for (size_t i = 0; i < PORT_FIGURES; i++)
		if (!json_is_null(json_object_get(side, port_figures[i].name)) &&
		    isnan(amount(side, port_figures[i].name)))
			return false;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!json_is_null(json_object_get(side, others[i])) && isnan(amount(side, others[i])))
			return false;
	return (json_is_null(json_object_get(side, "bytes_source")) || source_at(side, "bytes_source")) &&
	       (json_is_null(json_object_get(side, "packets_source")) || source_at(side, "packets_source"));
}

json_t *network_side_merge(const json_t *a, const json_t *b)
{
	double window_s = amount(b, "window_s");
	struct growth sum, g;
	json_t *o;

	if (json_is_null(a) || !json_is_object(b))
		return json_null();
	read_growth(b, &sum);
	if (a) {
		window_s = fmax(window_s, amount(a, "window_s"));
		read_growth(a, &g);
		add_growth(&sum, &g);
	}
	o = json_pack("{s:n, s:n, s:o, s:[]}", "began_at", "ended_at", "window_s", json_number(window_s), "ports");
	set_figures(o, &sum, window_s);
	return o;
}
