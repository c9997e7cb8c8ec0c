/* SPDX-License-Identifier: BSD-2-Clause */
/* The Universal Scalability Law fitted to throughput. See usl.h.
 *
 * Written as X = N / (u + b N + c N (N - 1)) with lambda = 1 / (u + b), sigma = b / (u + b), kappa = c / (u + b), the
 * law's limits (0 <= sigma <= 1, kappa >= 0) are simply u, b, c >= 0, and N / X is linear in u, b and c. So each step
 * of Gauss-Newton is a linear least-squares problem. Its best non-negative solution is found exactly and without
 * starting values, by trying each set of parameters that may be 0. Columns are scaled by their norm, since N (N - 1)
 * may be 10^10 times the first column.
 */
#include "loadgen/analysis/usl.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PARAMETERS	3
#define LEAST_ERROR	0.02	/* of X */
#define MOST_CLIENTS	1e9
#define LEAST_N_NUMBERS 4	/* of clients */
#define LEAST_R2	0.8
#define MOST_CHI2	4.0	/* per degree of freedom: residuals of twice the errors */
#define STEPS_MAX	500
#define CONVERGED	1e-10
#define NEGLIGIBLE	1e-9	/* of N / X, at every point */
#define SINGULAR	1e-12	/* least pivot of a matrix whose diagonal is 1 */

const char *const usl_status_names[] = {
	[USL_FITTED] = "fitted",
	[USL_FEW_POINTS] = "few_points",
	[USL_BAD_FIT] = "bad_fit",
};
static_assert(sizeof(usl_status_names) / sizeof(usl_status_names[0]) == USL_BAD_FIT + 1, "a name for each");

enum parameter { U, B, C };

/* The points used, with the errors that weight them. */
struct data {
	struct usl_point p[USL_POINTS_MAX];
	size_t n;
};

/* Normal equations of one step. Columns are scaled, so that the matrix has a diagonal of 1. */
struct step {
	double matrix[PARAMETERS][PARAMETERS], right[PARAMETERS], scale[PARAMETERS];
};

static void collect(const struct usl_point *p, size_t n, struct data *out)
{
	out->n = 0;
	for (size_t i = 0; i < n && out->n < USL_POINTS_MAX; i++) {
		double least = LEAST_ERROR * p[i].throughput;

		if (!(p[i].clients >= 1 && p[i].clients <= MOST_CLIENTS && p[i].throughput >= 1e-9 &&
		      p[i].throughput <= 1e18))
			continue;
		out->p[out->n] = p[i];
		if (!(p[i].error > least && p[i].error <= 1e18))
			out->p[out->n].error = least;
		out->n++;
	}
}

static void columns(double clients, double row[PARAMETERS])
{
	row[U] = 1;
	row[B] = clients;
	row[C] = clients * (clients - 1);
}

static double dot(const double a[PARAMETERS], const double b[PARAMETERS])
{
	return a[U] * b[U] + a[B] * b[B] + a[C] * b[C];
}

static double model(const double q[PARAMETERS], double clients)
{
	double row[PARAMETERS];

	columns(clients, row);
	return clients / dot(q, row);
}

/* Sum of weighted squared residuals. */
static double cost(const struct data *d, const double q[PARAMETERS])
{
	double sum = 0;

	for (size_t i = 0; i < d->n; i++) {
		double off = (d->p[i].throughput - model(q, d->p[i].clients)) / d->p[i].error;

		sum += off * off;
	}
	return sum;
}

/* Solves for the parameters in `set` (a bit each) and sets the others to 0. False if the matrix is singular. */
static bool solve(const struct step *s, unsigned int set, const double right[PARAMETERS], double out[PARAMETERS])
{
	double l[PARAMETERS][PARAMETERS] = { { 0 } };

	/* Cholesky's decomposition; parameters not in `set` have rows and columns of the unit matrix. */
	for (int i = 0; i < PARAMETERS; i++) {
		out[i] = set & 1u << i ? right[i] : 0;
		for (int j = 0; j <= i; j++) {
			double sum = i == j ? 1 : (set & 1u << i && set & 1u << j) ? s->matrix[i][j] : 0;

			for (int k = 0; k < j; k++)
				sum -= l[i][k] * l[j][k];
			if (i == j && !(sum > SINGULAR))
				return false;
			l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
		}
	}
	for (int i = 0; i < PARAMETERS; i++) {
		for (int k = 0; k < i; k++)
			out[i] -= l[i][k] * out[k];
		out[i] /= l[i][i];
	}
	for (int i = PARAMETERS - 1; i >= 0; i--) {
		for (int k = i + 1; k < PARAMETERS; k++)
			out[i] -= l[k][i] * out[k];
		out[i] /= l[i][i];
	}
	return true;
}

/* Builds the equations of the model linearised at `q`. NULL: the linear fit of N / X, which needs no starting point. */
static void step_build(const struct data *d, const double *q, struct step *s)
{
	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < d->n; i++) {
		const struct usl_point *p = &d->p[i];
		double row[PARAMETERS], at, weight, target;

		columns(p->clients, row);
		at = q ? model(q, p->clients) : p->throughput;
		/* dX/dq = -X^2 / N times the row. */
		weight = at * at / (p->clients * p->error);
		target = (2 * at - p->throughput) / at * (p->clients / at);
		for (int j = 0; j < PARAMETERS; j++) {
			s->right[j] += weight * row[j] * weight * target;
			for (int k = 0; k < PARAMETERS; k++)
				s->matrix[j][k] += weight * row[j] * weight * row[k];
		}
	}
	for (int j = 0; j < PARAMETERS; j++)
		s->scale[j] = sqrt(s->matrix[j][j]);
	for (int j = 0; j < PARAMETERS; j++) {
		s->right[j] /= s->scale[j];
		for (int k = 0; k < PARAMETERS; k++)
			s->matrix[j][k] /= s->scale[j] * s->scale[k];
	}
}

/* Finds the non-negative least-squares solution; u and b are not both 0, as lambda would be infinite. False: none. */
static bool step_solve(const struct step *s, double q[PARAMETERS])
{
	double best = INFINITY;

	for (unsigned int set = 1; set < 1u << PARAMETERS; set++) {
		double z[PARAMETERS], value;

		if (!(set & (1u << U | 1u << B)) || !solve(s, set, s->right, z))
			continue;
		/* At the minimum, the cost is below that of q = 0 by the dot product of z and the right-hand side. */
		value = -dot(z, s->right);
		if (z[U] < 0 || z[B] < 0 || z[C] < 0 || !(value < best) || !(z[U] > 0 || z[B] > 0))
			continue;
		best = value;
		for (int j = 0; j < PARAMETERS; j++)
			q[j] = z[j] / s->scale[j];
	}
	return isfinite(best);
}

/* Moves q towards `to`: the whole way, or the first of a half, a quarter, ... of it that lowers the cost. False
 * (converged): none lowers the cost, or the way is negligible. */
static bool advance(const struct data *d, const struct step *s, double q[PARAMETERS], const double to[PARAMETERS])
{
	double before = cost(d, q), length = 0, size = 0;

	for (int j = 0; j < PARAMETERS; j++) {
		length = fmax(length, fabs(to[j] - q[j]) * s->scale[j]);
		size = fmax(size, fabs(to[j]) * s->scale[j]);
	}
	if (length <= CONVERGED * size) {
		memcpy(q, to, PARAMETERS * sizeof(*q));
		return false;
	}
	for (double part = 1; length * part > CONVERGED * size; part /= 2) {
		double next[PARAMETERS];

		for (int j = 0; j < PARAMETERS; j++)
			next[j] = q[j] + part * (to[j] - q[j]);
		if (cost(d, next) < before) {
			memcpy(q, next, sizeof(next));
			return true;
		}
	}
	return false;
}

static bool converge(const struct data *d, double q[PARAMETERS])
{
	struct step s;
	double to[PARAMETERS];

	step_build(d, NULL, &s);
	if (!step_solve(&s, q))
		return false;
	for (int i = 0; i < STEPS_MAX; i++) {
		step_build(d, q, &s);
		if (!step_solve(&s, to))
			return false;
		if (!advance(d, &s, q, to))
			return true;
	}
	return false;
}

/* Sets a parameter to 0 if its term is negligible at every point: it is then only a rounding error. */
static void drop_negligible(const struct data *d, double q[PARAMETERS])
{
	double share[PARAMETERS] = { 0 }, row[PARAMETERS];

	for (size_t i = 0; i < d->n; i++) {
		columns(d->p[i].clients, row);
		for (int j = 0; j < PARAMETERS; j++)
			share[j] = fmax(share[j], q[j] * row[j] / dot(q, row));
	}
	for (int j = 0; j < PARAMETERS; j++)
		if (share[j] < NEGLIGIBLE)
			q[j] = 0;
}

/* Weighted r2, relative to the weighted mean. NAN if X does not vary. */
static double r2_of(const struct data *d, double residuals)
{
	double weights = 0, mean = 0, total = 0;

	for (size_t i = 0; i < d->n; i++) {
		double weight = 1 / (d->p[i].error * d->p[i].error);

		weights += weight;
		mean += (d->p[i].throughput - mean) * weight / weights;
	}
	for (size_t i = 0; i < d->n; i++) {
		double off = (d->p[i].throughput - mean) / d->p[i].error;

		total += off * off;
	}
	return total > NEGLIGIBLE * NEGLIGIBLE ? 1 - residuals / total : NAN;
}

/* Covariance of u, b and c, from the matrix at the solution; NAN if the matrix is singular. */
static void covariance_of(const struct data *d, const double q[PARAMETERS], double variance,
			  double out[PARAMETERS][PARAMETERS])
{
	struct step s;

	step_build(d, q, &s);
	for (int j = 0; j < PARAMETERS; j++) {
		double unit[PARAMETERS] = { 0 }, z[PARAMETERS];
		bool known;

		unit[j] = 1;
		known = solve(&s, 1u << U | 1u << B | 1u << C, unit, z);
		for (int k = 0; k < PARAMETERS; k++)
			out[j][k] = known ? variance * z[k] / (s.scale[j] * s.scale[k]) : NAN;
	}
}

static double product(const double a[PARAMETERS], const double m[PARAMETERS][PARAMETERS], const double b[PARAMETERS])
{
	double sum = 0;

	for (int j = 0; j < PARAMETERS; j++)
		for (int k = 0; k < PARAMETERS; k++)
			sum += a[j] * m[j][k] * b[k];
	return sum;
}

/* The estimate with its interval by the delta method, cut off at 0 and `most`. */
static struct estimate delta(double value, const double slopes[PARAMETERS],
			     const double covariance[PARAMETERS][PARAMETERS], size_t points, double most)
{
	double variance = product(slopes, covariance, slopes);
	/* Rounding may turn a variance of 0 negative. */
	double half = stats_t95((double)points - PARAMETERS) * sqrt(variance < 0 ? 0 : variance);

	if (!isfinite(half))
		return (struct estimate){ .value = value, .low = NAN, .high = NAN };
	return (struct estimate){ .value = value, .low = fmax(value - half, 0), .high = fmin(value + half, most) };
}

static void set_parameters(struct usl_fit *f, const double q[PARAMETERS], const double c[PARAMETERS][PARAMETERS])
{
	double lambda = 1 / (q[U] + q[B]), l2 = lambda * lambda;
	const double slopes[PARAMETERS][PARAMETERS] = {
		{ -l2, -l2, 0 },			/* derivatives of lambda by u, b and c */
		{ -q[B] * l2, q[U] * l2, 0 },		/* of sigma */
		{ -q[C] * l2, -q[C] * l2, lambda },	/* of kappa */
	};

	f->lambda = delta(lambda, slopes[0], c, f->points, INFINITY);
	f->sigma = delta(q[B] * lambda, slopes[1], c, f->points, 1);
	f->kappa = delta(q[C] * lambda, slopes[2], c, f->points, INFINITY);
	for (int j = 0; j < PARAMETERS; j++)
		for (int k = 0; k < PARAMETERS; k++)
			f->covariance[j][k] = product(slopes[j], c, slopes[k]);
}

static bool measured_around(const struct data *d, double clients)
{
	bool below = false, beyond = false;

	for (size_t i = 0; i < d->n; i++) {
		below |= d->p[i].clients <= clients;
		beyond |= d->p[i].clients > clients;
	}
	return below && beyond;
}

/* The peak is at N = sqrt(u / c), where X = 1 / (2 sqrt(u c) + b - c). */
static void set_peak(struct usl_fit *f, const struct data *d, const double q[PARAMETERS],
		     const double c[PARAMETERS][PARAMETERS])
{
	double at = sqrt(q[U] / q[C]), x = model(q, at), x2 = x * x;
	const double at_slopes[PARAMETERS] = { at / (2 * q[U]), 0, -at / (2 * q[C]) };
	const double x_slopes[PARAMETERS] = { -x2 / at, -x2, -x2 * (at - 1) };

	f->passes_peak = f->status == USL_FITTED && f->kappa.low > 0 && q[U] > 0 && measured_around(d, at);
	if (!f->passes_peak)
		return;
	f->peak_clients = delta(at, at_slopes, c, f->points, INFINITY);
	f->peak_throughput = delta(x, x_slopes, c, f->points, INFINITY);
}

/* Number of different N. */
static size_t count_numbers(const struct data *d)
{
	size_t distinct = 0;

	for (size_t i = 0; i < d->n; i++) {
		size_t first = 0;

		while (d->p[first].clients != d->p[i].clients)
			first++;
		distinct += first == i;
	}
	return distinct;
}

static void clear_fit(struct usl_fit *f)
{
	const struct estimate none = { NAN, NAN, NAN };

	*f = (struct usl_fit){ .status = USL_BAD_FIT, .lambda = none, .sigma = none, .kappa = none, .r2 = NAN,
			       .peak_clients = none, .peak_throughput = none };
	for (int j = 0; j < PARAMETERS; j++)
		for (int k = 0; k < PARAMETERS; k++)
			f->covariance[j][k] = NAN;
}

void usl_fit(const struct usl_point *p, size_t n, struct usl_fit *out)
{
	struct data d;
	double q[PARAMETERS], covariance[PARAMETERS][PARAMETERS], residuals, chi2;

	clear_fit(out);
	collect(p, n, &d);
	out->points = d.n;
	if (count_numbers(&d) < LEAST_N_NUMBERS) {
		out->status = USL_FEW_POINTS;
		return;
	}
	if (!converge(&d, q))
		return;
	drop_negligible(&d, q);
	if (!(q[U] + q[B] > 0))
		return;
	residuals = cost(&d, q);
	chi2 = residuals / (double)(out->points - PARAMETERS);
	out->r2 = r2_of(&d, residuals);
	if (out->r2 >= LEAST_R2 || chi2 <= MOST_CHI2)
		out->status = USL_FITTED;
	covariance_of(&d, q, chi2, covariance);
	set_parameters(out, q, covariance);
	set_peak(out, &d, q, covariance);
}

struct estimate usl_at(const struct usl_fit *f, double clients)
{
	double n = clients, sigma = f->sigma.value, kappa = f->kappa.value;
	double denominator = 1 + sigma * (n - 1) + kappa * n * (n - 1);
	double x = f->lambda.value * n / denominator;
	const double slopes[PARAMETERS] = { n / denominator, -x * (n - 1) / denominator,
					    -x * n * (n - 1) / denominator };

	if (!(n >= 1 && n <= MOST_CLIENTS) || !isfinite(x))
		return (struct estimate){ NAN, NAN, NAN };
	return delta(x, slopes, f->covariance, f->points, INFINITY);
}
