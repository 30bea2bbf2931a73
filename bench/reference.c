/* Plain C references for the benchmarks: one setting at a time, as one would write it.
 *
 * Compiled with -O3 -march=native -ffast-math. Noise comes from numpy's own C library
 * and bit generator, so that reference and kernel draw the same stream. Whole numbers
 * are ptrdiff_t, others double.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>
#include "numpy/random/distributions.h"

static double clamp(double x, double c) { return fmin(fmax(x, -c), c); }

static double prox(double v, double threshold, double shrink) {
    return (v - clamp(v, threshold)) * shrink;
}

/* The derivative of log(1 + e^-v), or of v^2 / 2. */
static double slope(double v, ptrdiff_t logistic) {
    return logistic ? -1.0 / (1.0 + exp(v)) : v;
}

static double mean_derivative(const double *restrict a, const double *restrict v,
                              ptrdiff_t n, ptrdiff_t logistic, double c) {
    double total = 0.0;
    if (logistic)
        for (ptrdiff_t i = 0; i < n; i++) total += clamp(-a[i] / (1.0 + exp(v[i])), c);
    else
        for (ptrdiff_t i = 0; i < n; i++) total += clamp(a[i] * v[i], c);
    return total / n;
}

/* DP-CD, Algorithm 1; a holds columns (n each), v the margins, w the weights. */
void dp_cd(bitgen_t *rng, const double *a, double *v, double *w, ptrdiff_t n,
           const ptrdiff_t *order, ptrdiff_t count, ptrdiff_t logistic,
           const double *step, const double *clip, const double *scale, double l1,
           double l2) {
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

/* DP-CD on CSC columns; d (n) holds the derivatives at the margins v. */
void dp_cd_sparse(bitgen_t *rng, const double *restrict data, const int *restrict rows,
                  const int *restrict starts, double *restrict v, double *restrict d,
                  double *restrict w, ptrdiff_t n, const ptrdiff_t *order,
                  ptrdiff_t count, ptrdiff_t logistic, const double *step,
                  const double *clip, const double *scale, double l1, double l2) {
    for (ptrdiff_t i = 0; i < n; i++) d[i] = slope(v[i], logistic);
    for (ptrdiff_t k = 0; k < count; k++) {
        ptrdiff_t j = order[k];
        double total = 0.0, old = w[j];
        for (int e = starts[j]; e < starts[j + 1]; e++)
            total += clamp(data[e] * d[rows[e]], clip[j]);
        double g = total / n + scale[j] * random_standard_normal(rng);
        w[j] = prox(old - step[j] * g, step[j] * l1, 1.0 / (1.0 + step[j] * l2));
        double move = w[j] - old;
        if (move == 0.0) continue;
        for (int e = starts[j]; e < starts[j + 1]; e++) {
            v[rows[e]] += move * data[e];
            d[rows[e]] = slope(v[rows[e]], logistic);
        }
    }
}

/* DP-SkGD, Algorithm 1; a holds columns (n each). Block s has the coordinates
 * members[starts[s]], ..., members[starts[s + 1] - 1]; norms (blocks, n), the records'
 * inverse norms on each block, and pull (n) are scratch. */
void dp_skgd(bitgen_t *rng, const double *a, double *restrict v, double *restrict w,
             double *restrict norms, double *restrict pull, ptrdiff_t n,
             const ptrdiff_t *starts, const ptrdiff_t *members, ptrdiff_t blocks,
             const ptrdiff_t *order, ptrdiff_t count, ptrdiff_t logistic,
             const double *step, const double *clip, const double *scale, double l1,
             double l2) {
    memset(norms, 0, blocks * n * sizeof(double));
    for (ptrdiff_t s = 0; s < blocks; s++) {
        double *restrict sizes = norms + s * n;
        for (ptrdiff_t u = starts[s]; u < starts[s + 1]; u++) {
            const double *restrict column = a + members[u] * n;
            for (ptrdiff_t i = 0; i < n; i++) sizes[i] += column[i] * column[i];
        }
        for (ptrdiff_t i = 0; i < n; i++) sizes[i] = 1.0 / sqrt(sizes[i]);
    }
    for (ptrdiff_t k = 0; k < count; k++) {
        ptrdiff_t s = order[k];
        const double *restrict inverse = norms + s * n;
        for (ptrdiff_t i = 0; i < n; i++)
            pull[i] = clamp(slope(v[i], logistic), clip[s] * inverse[i]);
        for (ptrdiff_t u = starts[s]; u < starts[s + 1]; u++) {
            ptrdiff_t j = members[u];
            const double *restrict column = a + j * n;
            double total = 0.0, old = w[j];
            for (ptrdiff_t i = 0; i < n; i++) total += pull[i] * column[i];
            double g = total / n + scale[s] * random_standard_normal(rng);
            w[j] = prox(old - step[j] * g, step[j] * l1, 1.0 / (1.0 + step[j] * l2));
            double move = w[j] - old;
            for (ptrdiff_t i = 0; i < n; i++) v[i] += move * column[i];
        }
    }
}

/* DP-SGD with batches of one record; a holds rows (p each). */
void dp_sgd(bitgen_t *rng, const double *a, const double *offset, const double *norms,
            double *restrict w, ptrdiff_t p, const ptrdiff_t *records, ptrdiff_t count,
            ptrdiff_t logistic, double step, double clip, double scale, double l1,
            double l2) {
    double threshold = step * l1, shrink = 1.0 / (1.0 + step * l2);
    for (ptrdiff_t k = 0; k < count; k++) {
        const double *restrict x = a + records[k] * p;
        double v = offset[records[k]];
        for (ptrdiff_t j = 0; j < p; j++) v += x[j] * w[j];
        double d = clamp(slope(v, logistic), clip / norms[records[k]]);
        for (ptrdiff_t j = 0; j < p; j++) {
            double noise = scale * random_standard_normal(rng);
            w[j] = prox(w[j] - step * (d * x[j] + noise), threshold, shrink);
        }
    }
}

/* DP-SGD with batches of one record on CSR rows; noise moves all weights. */
void dp_sgd_sparse(bitgen_t *rng, const double *restrict data,
                   const int *restrict columns, const int *restrict starts,
                   const double *offset, const double *norms, double *restrict w,
                   ptrdiff_t p, const ptrdiff_t *records, ptrdiff_t count,
                   ptrdiff_t logistic, double step, double clip, double scale,
                   double l1, double l2) {
    double threshold = step * l1, shrink = 1.0 / (1.0 + step * l2);
    for (ptrdiff_t k = 0; k < count; k++) {
        ptrdiff_t i = records[k];
        double v = offset[i];
        for (int e = starts[i]; e < starts[i + 1]; e++) v += data[e] * w[columns[e]];
        double d = clamp(slope(v, logistic), clip / norms[i]);
        for (int e = starts[i]; e < starts[i + 1]; e++)
            w[columns[e]] -= step * d * data[e];
        for (ptrdiff_t j = 0; j < p; j++)
            w[j] = prox(w[j] - step * scale * random_standard_normal(rng), threshold,
                        shrink);
    }
}

/* One iteration of DP-GCD (GS-r, noise on the score) on CSC columns; d (n) is scratch. */
void dp_gcd(const double *restrict data, const int *restrict rows,
            const int *restrict starts, double *restrict v, double *restrict d,
            double *restrict w, ptrdiff_t n, ptrdiff_t p, const double *restrict m,
            const double *restrict share, const double *restrict noise, double value,
            double step, double clip, double scale, double outside, double l1) {
    ptrdiff_t chosen = 0;
    double best = -INFINITY, taken = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) d[i] = -1.0 / (1.0 + exp(v[i]));
    for (ptrdiff_t j = 0; j < p; j++) {
        double total = 0.0, bound = clip * share[j];
        for (int e = starts[j]; e < starts[j + 1]; e++)
            total += clamp(data[e] * d[rows[e]], bound);
        double g = total / n;
        double a = prox(w[j] - g / m[j], l1 / m[j], 1.0) - w[j];
        double score = sqrt(m[j]) * fabs(a) + outside * noise[j];
        if (score > best) { best = score; chosen = j; taken = g; }
    }
    double gamma = step / m[chosen], g = taken + scale * share[chosen] * value;
    double move = prox(w[chosen] - gamma * g, gamma * l1, 1.0) - w[chosen];
    w[chosen] += move;
    for (int e = starts[chosen]; e < starts[chosen + 1]; e++)
        v[rows[e]] += move * data[e];
}

/* An epoch of DP-SVRG that begins at w = 0; mu and sum (p each) are scratch. */
void dp_svrg(bitgen_t *rng, const double *a, const double *offset, const double *norms,
             double *restrict w, double *restrict mu, double *restrict sum, ptrdiff_t n,
             ptrdiff_t p, const ptrdiff_t *records, ptrdiff_t count, ptrdiff_t logistic,
             double step, double clip, double scale, double full, double l1, double l2) {
    double threshold = step * l1, shrink = 1.0 / (1.0 + step * l2);
    for (ptrdiff_t j = 0; j < p; j++) mu[j] = sum[j] = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        double d = clamp(slope(offset[i], logistic), clip / norms[i]);
        for (ptrdiff_t j = 0; j < p; j++) mu[j] += d * a[i * p + j];
    }
    for (ptrdiff_t j = 0; j < p; j++)
        mu[j] = mu[j] / n + full * random_standard_normal(rng);
    for (ptrdiff_t k = 0; k < count; k++) {
        const double *restrict x = a + records[k] * p;
        double then = offset[records[k]], now = then;
        for (ptrdiff_t j = 0; j < p; j++) now += x[j] * w[j];
        double d = slope(now, logistic) - slope(then, logistic);
        d = clamp(d, clip / norms[records[k]]);
        for (ptrdiff_t j = 0; j < p; j++) {
            double noise = scale * random_standard_normal(rng);
            w[j] = prox(w[j] - step * (d * x[j] + noise + mu[j]), threshold, shrink);
            sum[j] += w[j];
        }
    }
}

/* Report noisy max over +score and -score of p entries, as a signed index +-(j + 1);
 * noise (2 p) is scratch. Signs of the noise are bits, the first of a byte its highest. */
static ptrdiff_t signed_noisy_max(bitgen_t *rng, const double *restrict scores,
                                  double factor, double scale, double *restrict noise,
                                  ptrdiff_t p) {
    random_standard_exponential_fill(rng, 2 * p, noise);
    for (ptrdiff_t i = 0; i < 2 * p; i += 32) {
        uint32_t word = rng->next_uint32(rng->state);
        ptrdiff_t size = 2 * p - i < 32 ? 2 * p - i : 32;
        for (ptrdiff_t b = 0; b < size; b++)
            noise[i + b] *= 1.0 - 2.0 * (word >> (8 * (b / 8) + 7 - b % 8) & 1);
    }
    ptrdiff_t up = 0, down = 0;
    double most_up = -INFINITY, most_down = -INFINITY;
    for (ptrdiff_t j = 0; j < p; j++) {
        double plus = factor * scores[j] + scale * noise[j];
        double minus = -factor * scores[j] + scale * noise[p + j];
        if (plus > most_up) { most_up = plus; up = j; }
        if (minus > most_down) { most_down = minus; down = j; }
    }
    return most_up >= most_down ? up + 1 : -(down + 1);
}

/* The gradient of columns low to high, CSC, from the records' slopes u. */
static void partial_gradient(const double *restrict data, const int *restrict rows,
                             const int *restrict starts, const double *restrict u,
                             double *restrict gradient, ptrdiff_t low, ptrdiff_t high,
                             ptrdiff_t n) {
    for (ptrdiff_t j = low; j < high; j++) {
        double total = 0.0;
        for (int e = starts[j]; e < starts[j + 1]; e++) total += data[e] * u[rows[e]];
        gradient[j] = total / n;
    }
}

/* Steps of DP-FW on CSC columns; v holds A x. u (n), gradient (p), noise (2 p) are
 * scratch. */
void dp_fw(bitgen_t *rng, const double *data, const int *rows, const int *starts,
           const double *restrict offset, double *restrict x, double *restrict v,
           double *restrict u, double *gradient, double *noise, ptrdiff_t n,
           ptrdiff_t p, ptrdiff_t count, ptrdiff_t logistic, double radius,
           double scale) {
    for (ptrdiff_t t = 0; t < count; t++) {
        double gamma = 2.0 / (t + 2.0);
        for (ptrdiff_t i = 0; i < n; i++) u[i] = slope(v[i] + offset[i], logistic);
        partial_gradient(data, rows, starts, u, gradient, 0, p, n);
        ptrdiff_t chosen = signed_noisy_max(rng, gradient, radius, scale, noise, p);
        ptrdiff_t j = (chosen > 0 ? chosen : -chosen) - 1;
        double move = chosen > 0 ? -gamma * radius : gamma * radius;
        for (ptrdiff_t k = 0; k < p; k++) x[k] *= 1.0 - gamma;
        for (ptrdiff_t i = 0; i < n; i++) v[i] *= 1.0 - gamma;
        x[j] += move;
        for (int e = starts[j]; e < starts[j + 1]; e++) v[rows[e]] += move * data[e];
    }
}

/* The same for least squares, which keeps the gradient: linear (p) is A^T A x / n,
 * constant (p) A^T offset / n. gram (count, p) has a row for every column that was
 * taken, met (p) its number or -1; the matrix is given by rows as well. */
void dp_fw_quadratic(bitgen_t *rng, const double *data, const int *rows,
                     const int *starts, const double *row_data, const int *columns,
                     const int *row_starts, const double *offset, double *restrict x,
                     double *restrict linear, double *restrict constant,
                     double *restrict gradient, double *noise, double *gram,
                     ptrdiff_t *met, ptrdiff_t n, ptrdiff_t p, ptrdiff_t count,
                     double radius, double scale) {
    ptrdiff_t kept = 0;
    partial_gradient(data, rows, starts, offset, constant, 0, p, n);
    for (ptrdiff_t t = 0; t < count; t++) {
        double gamma = 2.0 / (t + 2.0);
        for (ptrdiff_t k = 0; k < p; k++) gradient[k] = linear[k] + constant[k];
        ptrdiff_t chosen = signed_noisy_max(rng, gradient, radius, scale, noise, p);
        ptrdiff_t j = (chosen > 0 ? chosen : -chosen) - 1;
        double move = chosen > 0 ? -gamma * radius : gamma * radius;
        if (met[j] < 0) {
            met[j] = kept++;
            double *restrict fresh = gram + met[j] * p;
            memset(fresh, 0, p * sizeof(double));
            for (int e = starts[j]; e < starts[j + 1]; e++)
                for (int f = row_starts[rows[e]]; f < row_starts[rows[e] + 1]; f++)
                    fresh[columns[f]] += data[e] * row_data[f];
        }
        const double *restrict products = gram + met[j] * p;
        for (ptrdiff_t k = 0; k < p; k++) x[k] *= 1.0 - gamma;
        for (ptrdiff_t k = 0; k < p; k++)
            linear[k] = (1.0 - gamma) * linear[k] + move / n * products[k];
        x[j] += move;
    }
}

/* Steps of block-coordinate Frank-Wolfe that move all coordinates of a box; v holds
 * A x. u (n), move (p) are scratch. */
void bcfw_box(const double *data, const int *rows, const int *starts,
              const double *restrict offset, double *restrict x, double *restrict v,
              double *restrict u, double *restrict move, ptrdiff_t n, ptrdiff_t p,
              ptrdiff_t count, ptrdiff_t logistic, double radius) {
    for (ptrdiff_t t = 0; t < count; t++) {
        double gamma = 2.0 / (t + 2.0);
        for (ptrdiff_t i = 0; i < n; i++) u[i] = slope(v[i] + offset[i], logistic);
        partial_gradient(data, rows, starts, u, move, 0, p, n);
        for (ptrdiff_t j = 0; j < p; j++) {
            move[j] = gamma * ((move[j] > 0.0 ? -radius : radius) - x[j]);
            x[j] += move[j];
            for (int e = starts[j]; e < starts[j + 1]; e++)
                v[rows[e]] += move[j] * data[e];
        }
    }
}

/* Steps of DP-BCFW: node k has columns edges[k] to edges[k + 1], CSC, and two
 * generators. sketch (n, m) is J transposed. sent (nodes count, m) has a row for every
 * feature that was sent, place (p) its number or -1. u (n), gradient (p), noise (2 p),
 * chosen (nodes) are scratch. */
void dp_bcfw(bitgen_t **index_rng, bitgen_t **sketch_rng, const double *data,
             const int *rows, const int *starts, const ptrdiff_t *edges,
             ptrdiff_t nodes, const double *offset, const double *sketch,
             double *restrict x, double *restrict q, double *restrict u,
             double *gradient, double *noise, double *sent, ptrdiff_t *place,
             ptrdiff_t *chosen, ptrdiff_t n, ptrdiff_t m, ptrdiff_t p, ptrdiff_t count,
             ptrdiff_t logistic, double bound, double factor, double index_scale,
             double sketch_scale, double vertex) {
    ptrdiff_t kept = 0;
    for (ptrdiff_t t = 0; t < count; t++) {
        double gamma = 2.0 / (t + 2.0);
        for (ptrdiff_t i = 0; i < n; i++) {
            const double *restrict row = sketch + i * m;
            double total = 0.0;
            for (ptrdiff_t c = 0; c < m; c++) total += row[c] * q[c];
            u[i] = slope(clamp(n * total, bound) + offset[i], logistic);
        }
        for (ptrdiff_t k = 0; k < nodes; k++) {
            ptrdiff_t low = edges[k], high = edges[k + 1];
            partial_gradient(data, rows, starts, u, gradient, low, high, n);
            chosen[k] = signed_noisy_max(index_rng[k], gradient + low, factor,
                                         index_scale, noise, high - low);
            ptrdiff_t j = low + (chosen[k] > 0 ? chosen[k] : -chosen[k]) - 1;
            chosen[k] = chosen[k] > 0 ? j + 1 : -(j + 1);
            if (place[j] >= 0) continue;
            place[j] = kept++;
            double *restrict feature = sent + place[j] * m;
            memset(feature, 0, m * sizeof(double));
            for (int e = starts[j]; e < starts[j + 1]; e++)
                for (ptrdiff_t c = 0; c < m; c++)
                    feature[c] += data[e] * sketch[rows[e] * m + c];
            for (ptrdiff_t c = 0; c < m; c++)
                feature[c] += sketch_scale * random_standard_normal(sketch_rng[k]);
        }
        for (ptrdiff_t j = 0; j < p; j++) x[j] *= 1.0 - gamma;
        for (ptrdiff_t c = 0; c < m; c++) q[c] *= 1.0 - gamma;
        for (ptrdiff_t k = 0; k < nodes; k++) {
            ptrdiff_t j = (chosen[k] > 0 ? chosen[k] : -chosen[k]) - 1;
            double move = chosen[k] > 0 ? -gamma * vertex : gamma * vertex;
            const double *restrict feature = sent + place[j] * m;
            x[j] += move;
            for (ptrdiff_t c = 0; c < m; c++) q[c] += move / n * feature[c];
        }
    }
}

/* Steps of PolySFW for least squares on rows of signs; noise is (count, 2 p). */
void poly_sfw(const signed char *rows, const double *labels, double bound,
              const double *noise, double scale, double eta, double radius,
              double *restrict x, double *restrict d, ptrdiff_t count, ptrdiff_t p) {
    double factor = 1.0, keep = 1.0 - eta;
    ptrdiff_t last = 0;
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
}

/* Adds the records' gradients at w for least squares, clipped, to sum (p): rows of
 * signs times their factors. Less those at before, unless that is w itself. */
void gradient_sum(const signed char *rows, const double *labels, const double *factors,
                  double bound, const double *w, const double *before,
                  double *restrict sum, ptrdiff_t count, ptrdiff_t p) {
    for (ptrdiff_t k = 0; k < count; k++) {
        const signed char *restrict z = rows + k * p;
        double now = 0.0, then = 0.0;
        for (ptrdiff_t j = 0; j < p; j++) now += z[j] * w[j];
        double g = clamp(factors[k] * now - labels[k], bound);
        if (before != w) {
            for (ptrdiff_t j = 0; j < p; j++) then += z[j] * before[j];
            g -= clamp(factors[k] * then - labels[k], bound);
        }
        g *= factors[k];
        for (ptrdiff_t j = 0; j < p; j++) sum[j] += g * z[j];
    }
}

/* A phase of phased SGD for least squares on rows of signs, in a box or the Euclidean
 * ball; adds the iterates to sum (p). */
void phased_sgd(const signed char *rows, const double *labels, const double *factors,
                double bound, ptrdiff_t box, double radius, double eta,
                double *restrict x, double *restrict sum, ptrdiff_t count,
                ptrdiff_t p) {
    for (ptrdiff_t k = 0; k < count; k++) {
        const signed char *restrict z = rows + k * p;
        double margin = 0.0, size = 0.0;
        for (ptrdiff_t j = 0; j < p; j++) margin += z[j] * x[j];
        double g = eta * factors[k] * clamp(factors[k] * margin - labels[k], bound);
        for (ptrdiff_t j = 0; j < p; j++) x[j] -= g * z[j];
        if (box) {
            for (ptrdiff_t j = 0; j < p; j++) x[j] = clamp(x[j], radius);
        } else {
            for (ptrdiff_t j = 0; j < p; j++) size += x[j] * x[j];
            if (size > radius * radius) {
                double shrink = radius / sqrt(size);
                for (ptrdiff_t j = 0; j < p; j++) x[j] *= shrink;
            }
        }
        for (ptrdiff_t j = 0; j < p; j++) sum[j] += x[j];
    }
}

/* The sum of the gradients at w of count records of a (rows, p each), clipped; the
 * records of that batch, or the first ones if there is none. */
void clipped_gradient(const double *restrict a, const double *offset,
                      const double *norms, const double *restrict w,
                      double *restrict gradient, const ptrdiff_t *batch,
                      ptrdiff_t count, ptrdiff_t p, ptrdiff_t logistic, double clip) {
    memset(gradient, 0, p * sizeof(double));
    for (ptrdiff_t k = 0; k < count; k++) {
        ptrdiff_t i = batch ? batch[k] : k;
        const double *restrict x = a + i * p;
        double v = offset[i];
        for (ptrdiff_t j = 0; j < p; j++) v += x[j] * w[j];
        double d = clamp(slope(v, logistic), clip / norms[i]);
        for (ptrdiff_t j = 0; j < p; j++) gradient[j] += d * x[j];
    }
}

/* DP-GD with momentum on batches (steps, count), or on the first count records if there
 * are none; gradient and velocity (p each) are scratch. */
void dp_gd(bitgen_t *rng, const double *a, const double *offset, const double *norms,
           double *restrict w, double *restrict gradient, double *restrict velocity,
           const ptrdiff_t *batches, ptrdiff_t count, ptrdiff_t p, ptrdiff_t steps,
           ptrdiff_t logistic, double eta, double momentum, double clip, double scale,
           const double *l1, const double *l2) {
    double settled = eta / (1.0 - momentum);
    for (ptrdiff_t t = 0; t < steps; t++) {
        const ptrdiff_t *batch = batches ? batches + t * count : NULL;
        clipped_gradient(a, offset, norms, w, gradient, batch, count, p, logistic, clip);
        for (ptrdiff_t j = 0; j < p; j++) {
            double g = gradient[j] + scale * random_standard_normal(rng);
            velocity[j] = momentum * velocity[j] + g / count;
            w[j] = prox(w[j] - eta * velocity[j], settled * l1[j],
                        1.0 / (1.0 + settled * l2[j]));
        }
    }
}
