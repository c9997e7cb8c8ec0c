/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for a port's counters that are common to all drivers, and their values from readings (common/port/port.h).
 * Pure. */
#ifndef RAMPART_COMMON_PORT_FIGURES_H
#define RAMPART_COMMON_PORT_FIGURES_H

#include <jansson.h>

/* Indices of port_figures[] that callers need by name. */
enum { PORT_BYTES_OUT, PORT_BYTES_IN, PORT_PACKETS_OUT, PORT_PACKETS_IN, PORT_FIGURES = 14 };

#define PORT_COUNTERS_MAX 3

extern const struct port_figure {
	const char *name, *help;
	struct {
		const char *names[PORT_COUNTERS_MAX];	/* counters that are added up */
		double unit;
	} of[4];				/* the first element with any counter present is used */
} port_figures[PORT_FIGURES];

/* A figure's value in the `counters` of a reading, and its growth between two. NAN if a reading has no counter of it,
 * or one did not grow (port_growth). */
double port_figure_value(const struct port_figure *f, const json_t *counters);
double port_figure_growth(const struct port_figure *f, const json_t *begin, const json_t *end);

/* A counter's growth, allowing for one wrap at 2^32. NAN if it stands at UINT32_MAX, because 32-bit counters of
 * InfiniBand ports stop there (IBTA 16.1.3.5), or if it went back in any other way. */
double port_growth(const json_t *begin, const json_t *end);
/* The same for a member of two objects. */
double port_growth_at(const json_t *begin, const json_t *end, const char *name);

#endif
