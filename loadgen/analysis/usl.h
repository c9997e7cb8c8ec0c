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
	double error;			/* standard error of X; NAN or 0: not known, 2 % of X is assumed */
};

enum usl_status {
	USL_FITTED,
	USL_FEW_POINTS,			/* fewer than 4 different N: three parameters would fit anything */
	USL_BAD_FIT,			/* no convergence (all is NAN), or the points have another shape: r2 < 0.8, and
					 * residuals of more than twice the points' errors, on average */
};
extern const char *const usl_status_names[];

struct usl_fit {
	enum usl_status status;
	struct estimate lambda, sigma, kappa;	/* limited to 0 <= sigma <= 1, kappa >= 0 */
	double r2;				/* of X, weighted; NAN where X does not vary */
	size_t points;				/* that were used */
	/* The N of the highest throughput, sqrt((1 - sigma) / kappa), and that throughput. NAN unless the data passes
	 * the peak: the peak is between the least and the greatest N measured, and kappa's interval excludes 0. */
	struct estimate peak_clients, peak_throughput;
	bool passes_peak;
	double covariance[3][3];		/* of lambda, sigma and kappa; NAN where not known */
};

/* Points are weighted by 1 / error^2; an error below 2 % of X counts as 2 %, so that one quiet step does not outweigh
 * all others. Several points may have the same N. Intervals come from the fit's covariance (scaled by the residuals)
 * by the delta method, with Student's t for n - 3. */
void usl_fit(const struct usl_point *p, size_t n, struct usl_fit *out);

/* X(N) of a fit, with the 95 % interval of the curve; NAN for N outside of 1 to 10^9 and where there is no
 * fit. */
struct estimate usl_at(const struct usl_fit *f, double clients);

#endif
