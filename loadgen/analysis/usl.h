/* SPDX-License-Identifier: BSD-2-Clause */
/* The Universal Scalability Law, X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), fitted to measured throughput
 * (N. Gunther, Guerrilla Capacity Planning, 2007). Pure; no allocation. */
#ifndef RAMPART_LOADGEN_ANALYSIS_USL_H
#define RAMPART_LOADGEN_ANALYSIS_USL_H

#include <stdbool.h>
#include <stddef.h>

#include "loadgen/analysis/stats.h"

#define USL_POINTS_MAX 512

/* A point with N outside of 1 to 10^9 or X outside of 10^-9 to 10^18 is left out, and so is one beyond
 * USL_POINTS_MAX. */
struct usl_point {
	double clients;			/* N */
	double throughput;		/* X */
	double error;			/* standard error of X; NAN or 0: not known, then 2 % of X are assumed */
};

enum usl_status {
	USL_FITTED,
	USL_FEW_POINTS,			/* fewer than 4 different N: three parameters would fit anything */
	USL_BAD_FIT,			/* no convergence (then nothing is known), or residuals that say it is another
					 * shape: r2 < 0.8, and on average more than twice the points' errors */
};
extern const char *const usl_status_names[];

struct usl_fit {
	enum usl_status status;
	struct estimate lambda, sigma, kappa;	/* sigma is kept from 0 to 1, kappa at 0 and above */
	double r2;				/* of X, weighted; NAN where X does not vary */
	size_t points;				/* that were used */
	/* The N of the highest throughput, sqrt((1 - sigma) / kappa), and that throughput. Only quoted when the data
	 * passes it: when it lies between the least and the greatest N measured and kappa's interval does not hold 0.
	 * Else NAN. */
	struct estimate peak_clients, peak_throughput;
	bool passes_peak;
	double covariance[3][3];		/* of lambda, sigma and kappa; NAN where not known */
};

/* Weighted by 1 / error^2; an error below 2 % of X counts as 2 %, so that one quiet step does not outweigh all. Several
 * points at one N are welcome. Intervals by the delta method from the fit's covariance (scaled by the residuals), with
 * Student's t for n - 3. */
void usl_fit(const struct usl_point *p, size_t n, struct usl_fit *out);

/* X(N) of a fit, with the 95 % interval of the curve; NAN for N outside of 1 to 10^9 and where there is no
 * fit. */
struct estimate usl_at(const struct usl_fit *f, double clients);

#endif
