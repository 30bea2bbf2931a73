/* Plain C references for the benchmarks: one setting at a time, as one would write it.
 *
 * Compiled with -O3 -march=native -ffast-math. Noise comes from numpy's own C library
 * and bit generator, so that reference and kernel draw the same stream.
 */
#include <math.h>
#include <stddef.h>
#include "numpy/random/distributions.h"

static double clamp(double x, double c) { return fmin(fmax(x, -c), c); }

static double prox(double v, double threshold, double shrink) {
    return (v - clamp(v, threshold)) * shrink;
}

static double mean_derivative(const double *restrict a, const double *restrict v,
                              ptrdiff_t n, int logistic, double c) {
    double total = 0.0;
    if (logistic)
        for (ptrdiff_t i = 0; i < n; i++) total += clamp(-a[i] / (1.0 + exp(v[i])), c);
    else
        for (ptrdiff_t i = 0; i < n; i++) total += clamp(a[i] * v[i], c);
    return total / n;
}

/* DP-CD, Algorithm 1; a holds columns (n each), v the margins, w the weights. */
void dp_cd(bitgen_t *rng, const double *a, double *v, double *w, ptrdiff_t n,
           const ptrdiff_t *order, ptrdiff_t count, int logistic, const double *step,
           const double *clip, const double *scale, double l1, double l2) {
    for (ptrdiff_t k = 0; k < count; k++) {
        ptrdiff_t j = order[k];
        const double *restrict column = a + j * n;
        double g = mean_derivative(column, v, n, logistic, clip[j]);
        g += scale[j] * random_standard_normal(rng);
        double old = w[j];
        w[j] = prox(old - step[j] * g, step[j] * l1, 1.0 / (1.0 + step[j] * l2));
        double move = w[j] - old;
        double *restrict margins = v;
        for (ptrdiff_t i = 0; i < n; i++) margins[i] += move * column[i];
    }
}

/* DP-SGD with batches of one record; a holds rows (p each). */
void dp_sgd(bitgen_t *rng, const double *a, const double *offset, const double *norms,
            double *restrict w, ptrdiff_t p, const ptrdiff_t *records, ptrdiff_t count,
            int logistic, double step, double clip, double scale, double l1, double l2) {
    double threshold = step * l1, shrink = 1.0 / (1.0 + step * l2);
    for (ptrdiff_t k = 0; k < count; k++) {
        const double *restrict x = a + records[k] * p;
        double v = offset[records[k]];
        for (ptrdiff_t j = 0; j < p; j++) v += x[j] * w[j];
        double d = logistic ? -1.0 / (1.0 + exp(v)) : v;
        d = clamp(d, clip / norms[records[k]]);
        for (ptrdiff_t j = 0; j < p; j++) {
            double noise = scale * random_standard_normal(rng);
            w[j] = prox(w[j] - step * (d * x[j] + noise), threshold, shrink);
        }
    }
}

/* One iteration of DP-GCD (GS-r, noise on the score) on CSC columns; d (n) is scratch. */
ptrdiff_t dp_gcd(const double *restrict data, const int *restrict rows,
                 const int *restrict starts, double *restrict v, double *restrict d,
                 double *restrict w, ptrdiff_t n, ptrdiff_t p, const double *restrict m,
                 const double *restrict share, const double *restrict noise, double value,
                 double step, double clip, double scale, double outside, double l1) {
    ptrdiff_t found = 0;
    double best = -INFINITY, taken = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) d[i] = -1.0 / (1.0 + exp(v[i]));
    for (ptrdiff_t j = 0; j < p; j++) {
        double total = 0.0, bound = clip * share[j];
        for (int e = starts[j]; e < starts[j + 1]; e++)
            total += clamp(data[e] * d[rows[e]], bound);
        double g = total / n;
        double a = prox(w[j] - g / m[j], l1 / m[j], 1.0) - w[j];
        double score = sqrt(m[j]) * fabs(a) + outside * noise[j];
        if (score > best) { best = score; found = j; taken = g; }
    }
    double gamma = step / m[found], g = taken + scale * share[found] * value;
    double move = prox(w[found] - gamma * g, gamma * l1, 1.0) - w[found];
    w[found] += move;
    for (int e = starts[found]; e < starts[found + 1]; e++)
        v[rows[e]] += move * data[e];
    return found;
}

/* An epoch of DP-SVRG that begins at w = 0; mu and sum (p each) are scratch. */
void dp_svrg(bitgen_t *rng, const double *a, const double *offset, const double *norms,
             double *restrict w, double *restrict mu, double *restrict sum, ptrdiff_t n,
             ptrdiff_t p, const ptrdiff_t *records, ptrdiff_t count, int logistic,
             double step, double clip, double scale, double full, double l1, double l2) {
    double threshold = step * l1, shrink = 1.0 / (1.0 + step * l2);
    for (ptrdiff_t j = 0; j < p; j++) mu[j] = sum[j] = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        double d = logistic ? -1.0 / (1.0 + exp(offset[i])) : offset[i];
        d = clamp(d, clip / norms[i]);
        for (ptrdiff_t j = 0; j < p; j++) mu[j] += d * a[i * p + j];
    }
    for (ptrdiff_t j = 0; j < p; j++)
        mu[j] = mu[j] / n + full * random_standard_normal(rng);
    for (ptrdiff_t k = 0; k < count; k++) {
        const double *restrict x = a + records[k] * p;
        double then = offset[records[k]], now = then;
        for (ptrdiff_t j = 0; j < p; j++) now += x[j] * w[j];
        double d = logistic ? 1.0 / (1.0 + exp(then)) - 1.0 / (1.0 + exp(now))
                            : now - then;
        d = clamp(d, clip / norms[records[k]]);
        for (ptrdiff_t j = 0; j < p; j++) {
            double noise = scale * random_standard_normal(rng);
            w[j] = prox(w[j] - step * (d * x[j] + noise + mu[j]), threshold, shrink);
            sum[j] += w[j];
        }
    }
}

/* Steps of PolySFW for least squares on rows of signs; noise is (count, 2 p). Returns
 * the vertex that was taken last. */
ptrdiff_t poly_sfw(const signed char *rows, const double *labels, double bound,
                   const double *noise, double scale, double eta, double radius,
                   double *restrict x, double *restrict d, ptrdiff_t last,
                   ptrdiff_t count, ptrdiff_t p) {
    double factor = 1.0, keep = 1.0 - eta;
    for (ptrdiff_t k = 0; k < count; k++) {
        const signed char *restrict z = rows + k * p;
        const double *restrict u = noise + 2 * k * p;
        double margin = 0.0, best = INFINITY;
        for (ptrdiff_t j = 0; j < p; j++) margin += z[j] * x[j];
        margin *= factor;
        double gone = radius * z[last / 2] * (last % 2 ? -1.0 : 1.0);
        double before = clamp((margin - eta * gone) / keep - labels[k], bound);
        double now = clamp(margin - labels[k], bound);
        double pull = keep * (now - before) + eta * now;
        for (ptrdiff_t j = 0; j < p; j++) {
            d[j] = pull * z[j] + keep * d[j];
            double up = radius * d[j] + scale * u[2 * j];
            double down = -radius * d[j] + scale * u[2 * j + 1];
            if (up < best) { best = up; last = 2 * j; }
            if (down < best) { best = down; last = 2 * j + 1; }
        }
        factor *= keep;
        x[last / 2] += eta * radius * (last % 2 ? -1.0 : 1.0) / factor;
    }
    for (ptrdiff_t j = 0; j < p; j++) x[j] *= factor;
    return last;
}
