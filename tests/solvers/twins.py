"""Every solver once more in plain numpy, as the papers print it.

Twins share no code with the solvers. They draw from the same streams, one step after
the other, or are handed the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.special import expit
from scipy.stats import norm

from dperm.privacy.noise import laplace_rows, unit_laplace
from dperm.problems.sets import Ball


def slopes(loss, v, y):
    """Derivatives in the scores v of records with labels y."""
    return {"least_squares": v - y, "logistic": -y * expit(-y * v),
            "smoothed_hinge": -y * np.maximum(0.0, 1.0 - y * v),
            "linear": -np.ones_like(v)}[loss]  # fmt: skip


def slope(loss, v):
    """Derivatives in margins, which have the labels in them."""
    return slopes(loss, v, 0.0 if loss == "least_squares" else 1.0)


def gradients(loss, X, y, w):
    """Of every record at w."""
    return slopes(loss, X @ w, y)[:, None] * X


# --- settings: X, y, a penalty, a setting (step, clip, noise multiplier), steps -------


def curvature(loss):
    return 1.0 if loss == "least_squares" else 0.25


def smoothness(loss, X):
    return (X**2).mean(axis=0) * curvature(loss)


def beta(loss, X):
    return curvature(loss) * np.linalg.norm(X, 2) ** 2 / len(X)


def prox(v, step, penalty):
    v = np.sign(v) * np.maximum(np.abs(v) - step * penalty.l1, 0.0)
    return np.clip(v / (1.0 + step * penalty.l2), penalty.lower, penalty.upper)


def clipped(G, bound):
    """Rows of G (k, m) of norm ``bound`` at most."""
    norms = np.linalg.norm(G, axis=-1, keepdims=True)
    return G * np.minimum(1.0, bound / np.maximum(norms, 1e-300))


def normal(streams, size=None):
    return streams.noise.standard_normal(size)


class Averaged:
    """The iterate; after each of ``ends`` the average of those since the last."""

    def __init__(self, p, ends):
        self.w, self.seen, self.ends, self.k = np.zeros(p), [], ends, 0

    def move(self, w):
        self.w, self.k = w, self.k + 1
        self.seen.append(w)
        if self.k in self.ends:
            self.w, self.seen = np.mean(self.seen, axis=0), []


def dp_cd(X, y, loss, penalty, setting, count, streams, options, M=None):
    """Algorithm 1 of Mangold et al. 2022."""
    (n, p), (step, clip, sigma) = X.shape, setting
    M = smoothness(loss, X) if M is None else M
    C = clip * np.sqrt(M / M.sum())
    if getattr(options, "thresholds", "scaled") == "equal":
        C = np.full(p, clip / np.sqrt(p))
    periods, sampling = getattr(options, "periods", 0), options.sampling
    at = Averaged(p, {count * t // periods for t in range(1, periods + 1)})
    for k in range(count):
        j = (1 + k) % p
        if sampling == "uniform":
            j = streams.sampling.integers(0, p)
        terms = np.clip(gradients(loss, X, y, at.w)[:, j], -C[j], C[j])
        g = terms.mean() + sigma * 2 * C[j] / n * normal(streams)
        w = at.w.copy()
        w[j] = prox(w[j] - step / M[j] * g, step / M[j], penalty)
        at.move(w)
    return at.w


def dp_cd_priv(
    X, y, loss, penalty, setting, count, streams, options, epsilon=1.0
):
    """DP-CD with M_j released by Laplace noise, a tenth of epsilon over p of them."""
    n, p = X.shape
    bound = curvature(loss) * (2 * np.abs(X).max(axis=0)) ** 2
    scale = 2 * bound * p / (n * 0.1 * epsilon)
    M = np.maximum(
        smoothness(loss, X) + streams.smoothness.laplace(0.0, scale), scale
    )
    return dp_cd(X, y, loss, penalty, setting, count, streams, options, M)


def dp_sgd(X, y, loss, penalty, setting, count, streams, options):
    """Proximal DP-SGD; step as a multiple of 1 / beta."""
    (n, p), (step, clip, sigma), b = X.shape, setting, options.batch
    gamma, w = step / beta(loss, X), np.zeros(p)
    for _ in range(count):
        if b == 1:
            some = [streams.sampling.integers(0, n)]
        else:
            some = streams.sampling.choice(n, b, replace=False)
        G = clipped(gradients(loss, X[some], y[some], w), clip)
        g = G.sum(axis=0) + sigma * 2 * clip * normal(streams, p)
        w = prox(w - gamma * g / b, gamma, penalty)
    return w


def dp_svrg(X, y, loss, penalty, setting, count, streams, options):
    """An epoch of m steps: mu with noise of multiplier sigma n / sqrt(m)."""
    (n, p), (step, clip, sigma) = X.shape, setting
    m, gamma = max(1, round(options.inner * n)), step / beta(loss, X)
    at = Averaged(p, {m * k for k in range(1, count)})
    for k in range(count):
        if k % m == 0:
            snapshot = at.w.copy()
            mu = clipped(gradients(loss, X, y, snapshot), clip).mean(axis=0)
            noise = normal(streams, p)
            mu = mu + sigma * n / np.sqrt(m) * 2 * clip / n * noise
        i = [streams.sampling.integers(0, n)]
        new, old = (
            gradients(loss, X[i], y[i], w)[0] for w in (at.w, snapshot)
        )
        own = clipped(new - old, clip)
        eta = sigma * 2 * clip * normal(streams, p)
        at.move(prox(at.w - gamma * (own + eta + mu), gamma, penalty))
    return at.w


def valid_factor(X, S):
    """Largest eigenvalue of the Hessian's bound on a set, scaled to unit diagonal."""
    H = X[:, S].T @ X[:, S]
    D = np.sqrt(np.diag(H))
    return np.linalg.eigvalsh(H / np.outer(D, D))[-1]


def dp_skgd(
    X, y, loss, penalty, setting, count, streams, options, blocks=None
):
    """Algorithm 1 of Maranjyan et al. 2024, with C = I_S P^-1; no blocks: nice."""
    (n, p), (step, clip, sigma) = X.shape, setting
    M, valid = smoothness(loss, X), smoothness(loss, X)
    if blocks is None:
        valid = valid * min(options.size, valid_factor(X, np.arange(p)))
    else:
        for S in blocks:
            valid[S] *= valid_factor(X, S)
        q = np.array([valid[S].max() for S in blocks])
        q = q / q.sum()
    K = count // options.periods if options.periods else count + 1
    at = Averaged(p, {K * t for t in range(1, count + 1)})
    for _ in range(count):
        if blocks is None:
            S = np.sort(
                streams.sampling.choice(p, options.size, replace=False)
            )
        elif options.probabilities == "importance":
            u = streams.sampling.random()
            S = blocks[
                min(np.searchsorted(np.cumsum(q), u, "right"), len(q) - 1)
            ]
        else:
            S = blocks[streams.sampling.integers(0, len(blocks))]
        C = clip * np.sqrt(M[S].sum() / M.sum())
        G = clipped(gradients(loss, X, y, at.w)[:, S], C).mean(axis=0)
        G = G + sigma * 2 * C / n * normal(streams, len(S))
        w = at.w.copy()
        w[S] = prox(w[S] - step / valid[S] * G, step / valid[S], penalty)
        at.move(w)
    return at.w


def greedy_score(rule, g, w, M, penalty):
    """One coordinate's score under GS-s, GS-r or GS-q (Mangold et al. 2023, App. C)."""
    if rule == "GS-s":
        low = penalty.l2 * w + penalty.l1 * (np.sign(w) if w else -1)
        high = penalty.l2 * w + penalty.l1 * (np.sign(w) if w else 1)
        low = -np.inf if w <= penalty.lower else low
        high = np.inf if w >= penalty.upper else high
        return max(low + g, -g - high, 0.0) / np.sqrt(M)
    a = prox(w - g / M, 1 / M, penalty) - w
    if rule == "GS-r":
        return np.sqrt(M) * abs(a)

    def psi(v):
        return penalty.l1 * abs(v) + penalty.l2 / 2 * v**2

    return np.sqrt(max(-2 * (g * a + M / 2 * a**2 + psi(w + a) - psi(w)), 0))


def dp_gcd(X, y, loss, penalty, setting, count, streams, options, inside=True):
    """Algorithm 2 of Mangold et al. 2023; ``inside``: noise on derivatives."""
    (n, p), (step, clip, multiplier) = X.shape, setting
    M, w = smoothness(loss, X), np.zeros(p)
    C = clip * np.sqrt(M / M.sum())
    ridge = M / (M + penalty.l2)
    slopes = {"GS-s": np.ones(p), "GS-r": ridge, "GS-q": np.sqrt(ridge)}[
        options.rule
    ]
    inside = inside and options.noise == "laplace"
    for _ in range(count):
        if options.noise == "laplace":
            chi = streams.sampling.laplace(size=p)
        else:
            chi = streams.sampling.standard_exponential(p)
            chi = -np.log(chi) if options.noise == "gumbel" else chi
        g = np.clip(gradients(loss, X, y, w), -C, C).mean(axis=0)
        seen = g + multiplier * 2 * C / n * chi * inside
        each = zip(seen, w, M, strict=True)
        scores = np.array(
            [greedy_score(options.rule, *at, penalty) for at in each]
        )
        if not inside:
            scores += (
                multiplier * 2 * np.max(C / np.sqrt(M) * slopes) / n * chi
            )
        j = int(np.argmax(scores))
        released = g[j] + multiplier * 2 * C[j] / n * streams.noise.laplace()
        w[j] = prox(w[j] - step / M[j] * released, step / M[j], penalty)
    return w


# --- Frank-Wolfe on a finite sum: A (n, p) and an offset make margins A x + offset ----


def bcfw(A, offset, loss, radius, sets, p_min, blocks=(), vertices="one"):
    """Algorithm 1 of Lou and Cheung 2020: a box, or the l1 ball by vertices."""
    x, n = np.zeros(A.shape[1]), len(offset)
    for t, S in enumerate(sets):
        gamma = 2 / (p_min * t + 2)
        g = A.T @ slope(loss, A @ x + offset) / n
        if vertices == "box":
            x[S] += gamma * (np.where(g > 0, -radius, radius)[S] - x[S])
            continue
        s = np.zeros_like(x)
        groups = (
            [S]
            if vertices == "one"
            else [np.intersect1d(S, b) for b in blocks]
        )
        for group in groups:
            j = group[np.argmax(np.abs(g[group]))]
            s[j] -= radius * np.sign(g[j])
        s = s / len(groups) if vertices == "feasible" else s
        x = (1 - gamma) * x + gamma * s
    return x


def dp_fw(A, offset, radius, count, scale, noise):
    """Talwar, Thakurta and Zhang 2015: report noisy max over the 2 p vertices."""
    x = np.zeros(A.shape[1])
    for t in range(count):
        j, sign = loudest(
            radius * A.T @ (A @ x + offset) / len(A), scale, noise
        )
        vertex = -sign * radius * np.eye(len(x))[j]
        x = (1 - 2 / (t + 2)) * x + 2 / (t + 2) * vertex
    return x


def loudest(scores, scale, noise):
    """Place and sign of the largest of +-score, each with Laplace noise of its own."""
    both = np.stack([scores, -scores])
    both = both + scale * unit_laplace(noise, both.shape)
    k, j = np.unravel_index(both.argmax(), both.shape)
    return j, 1 - 2 * k


def dp_bcfw(
    A, offset, loss, blocks, J, T, vertex, factor, scales, bounds, streams
):
    """Algorithm 2; ``vertex`` is eta, or eta / K for the feasible update."""
    n, p = A.shape
    B, Y, R = bounds
    A, offset = np.clip(A, -B, B), np.clip(offset, -Y, Y)
    x, q, sent = np.zeros(p), np.zeros(len(J)), {}
    for t in range(T):
        gamma, s, added = 2 / (t + 2), np.zeros(p), np.zeros(len(J))
        for block, stream in zip(blocks, streams, strict=True):
            estimates = np.clip(n * (J.T @ q), -R, R)
            g = A[:, block].T @ slope(loss, estimates + offset) / n
            k, sign = loudest(factor * g, scales[0], stream.noise)
            j = block[k]
            if j not in sent:
                xi = stream.sampling.standard_normal(len(J))
                sent[j] = J @ A[:, j] + scales[1] * xi
            s[j] -= sign * vertex
            added -= sign * vertex / n * sent[j]
        x = (1 - gamma) * x + gamma * s
        q = (1 - gamma) * q + gamma * added
    return x, q


# --- streams: all records x (n, d) of unit norm, labels y; the noise is handed over ---


def gradient(loss, x, y, w, bound):
    return np.clip(slopes(loss, x @ w, y), -bound, bound) @ x


def best(g, p, radius):
    """The point of the l_p ball with the least inner product."""
    if p == 1:
        j = np.abs(g).argmax()
        return -radius * np.sign(g[j]) * np.eye(len(g))[j]
    if math.isinf(p):
        return -radius * np.sign(g)
    q = p / (p - 1)
    return -radius * np.sign(g) * (np.abs(g) / np.linalg.norm(g, q)) ** (q - 1)


def noisy_sfw(
    x, y, loss, p, radius, L0, T, b, scales, draw, consecutive=False
):
    """Algorithm 1; ``scales(t, depth, leaf)`` and ``draw()`` give the noise."""
    w, position = np.zeros(x.shape[1]), 0

    def batch(count):
        nonlocal position
        position += count
        return x[position - count : position], y[position - count : position]

    for t in range(1, T + 1):

        def visit(depth, leaf, estimate, at, t=t):
            """The subtree whose first leaf is ``leaf``; its node is entered already."""
            nonlocal w
            if depth == t:
                eta = 2 / (2 ** (t - 1) + leaf + 1)
                eta = 2 / (2**t + leaf) if consecutive else eta
                w = (1 - eta) * w + eta * best(estimate, p, radius)
                return
            visit(depth + 1, leaf, estimate, at)
            right = leaf + 2 ** (t - depth - 1)
            X, Y = batch(b // 2 ** (depth + 1))
            change = gradient(loss, X, Y, w, L0) - gradient(loss, X, Y, at, L0)
            noise = scales(t, depth + 1, right) * draw()
            visit(
                depth + 1, right, estimate + change / len(Y) + noise, w.copy()
            )

        X, Y = batch(b)
        root = gradient(loss, X, Y, w, L0) / b + scales(t, 0, 0) * draw()
        visit(0, 0, root, w.copy())
    return w, position


def poly_sfw(x, y, loss, vertices, centre, L0, eta, scales, noise):
    """Algorithm 2 over the vertices (K, d); noise (steps + 1, K)."""
    n, w, before = len(y), centre.copy(), None
    half = n // 2
    d = gradient(loss, x[:half], y[:half], w, L0) / half
    estimates, chosen = [d], []
    for t in range(n - half + 1):
        if t:
            z, label = x[half + t - 1 : half + t], y[half + t - 1 : half + t]
            new, old = (gradient(loss, z, label, at, L0) for at in (w, before))
            d = (1 - eta) * (d + new - old) + eta * new
            estimates.append(d)
        scores = (vertices - centre) @ d + scales[min(t, 1)] * noise[t]
        chosen.append(scores.argmin())
        before, w = w, (1 - eta) * w + eta * vertices[chosen[-1]]
    return w, estimates, chosen


def phased_sgd(x, y, loss, project, L0, eta, scale, noise):
    """Feldman et al. 2020, Algorithm 2; noise (phases, d)."""
    n, w, position = len(y), np.zeros(x.shape[1]), 0
    averages = []
    for i in range(1, int(math.log2(n)) + 1):
        size, step, iterates = n // 2**i, eta / 4**i, []
        for k in range(position, position + size):
            w = project(
                w - step * gradient(loss, x[k : k + 1], y[k : k + 1], w, L0)
            )
            iterates.append(w)
        position += size
        averages.append(np.mean(iterates, axis=0))
        w = averages[-1] + scale / 4**i * noise[i - 1]
    return project(w), averages, position


def sco_dp_fw(x, y, loss, radius, L0, p, L2, scale, streams):
    """Full-batch Frank-Wolfe with report noisy max."""
    n, d = x.shape
    w = np.zeros(d)
    for t in range(math.ceil(n ** (2 / 3))):
        g = radius * gradient(loss, x, y, w, L0) / n
        drawn = laplace_rows(streams.noise, streams.sampling, (1, 2 * d))[0]
        at = (np.concatenate([g, -g]) + scale * drawn).argmin()
        vertex = radius * np.concatenate([np.eye(d), -np.eye(d)])[at]
        w = (1 - 2 / (t + 2)) * w + 2 / (t + 2) * vertex
    return w


def sco_dp_sgd(x, y, loss, radius, L0, p, L2, multiplier, streams):
    """One pass of projected SGD over batches of sqrt(n); the average iterate."""
    n, d = x.shape
    b = math.isqrt(n)
    scale, groups = multiplier * 2 * L2 / b, range(0, n - b + 1, b)
    eta = radius / math.sqrt(len(groups) * (L2**2 + d * scale**2))
    w, points = np.zeros(d), []
    for low in groups:
        g = gradient(loss, x[low : low + b], y[low : low + b], w, L0) / b
        w = Ball(p, radius).project(
            w - eta * (g + scale * normal(streams, d))
        )[0]
        points.append(w)
    return np.mean(points, axis=0)


def sco_mirror_descent(x, y, loss, radius, L0, p, L2, multiplier, streams):
    """Lazy mirror descent: the entropy on the 2d vertices (p = 1), or ||.||^2 / 2."""
    (n, d), count = x.shape, math.ceil(math.sqrt(len(y)))
    scale = multiplier * 2 * L2 / n
    reach, size = radius, math.sqrt(d)  # and about E ||N(0, I)||
    if p == 1:
        reach = radius * math.sqrt(math.log(2 * d))
        size = math.sqrt(2 * math.log(2 * d))
    eta = reach * math.sqrt(2 / count) / (L0 + scale * size)
    dual, points = np.zeros(d), []
    for _ in range(count):
        w = dual * min(1.0, radius / max(np.linalg.norm(dual), 1e-300))
        if p == 1:
            weights = np.exp(np.concatenate([dual, -dual]) / radius)
            up, down = np.split(weights / weights.sum(), 2)
            w = radius * (up - down)
        points.append(w)
        g = gradient(loss, x, y, w, L0) / n
        dual = dual - eta * (g + scale * normal(streams, d))
    return np.mean(points, axis=0)


# --- fits: records over public scales, and z, the noise multiplier --------------------


@dataclass
class Data:
    """Records V (n, p) over their scales S, times their signs; labels y, or zeros."""

    loss: str
    V: np.ndarray
    y: np.ndarray
    S: np.ndarray
    label: float  #: scale of the labels
    l1: float
    l2: float
    delta: float

    def bound(self, options):
        """A clip times sqrt(p) times the largest slope, or the label's scale."""
        return options.clip * math.sqrt(self.V.shape[1]) * self.label

    def gradients(self, u, V=None):
        """Of every record, in V's features."""
        V = self.V if V is None else V
        return slope(self.loss, V @ u - self.y)[:, None] * V


def descent(d, options, width, count, noisy):
    """Momentum and proximal steps along noisy sums of gradients."""
    eta = options.step / (curvature(d.loss) * width)
    u, v, settled = np.zeros(len(d.S)), 0.0, eta / (1 - options.momentum)
    seen = []
    for _ in range(options.steps):
        v = options.momentum * v + noisy(u) / count
        u = u - eta * v
        u = np.sign(u) * np.maximum(np.abs(u) - settled * d.l1 / d.S, 0)
        u = u / (1 + settled * d.l2 / d.S**2)
        seen.append(u)
    return (
        np.mean(seen[options.steps // 2 :], axis=0) if options.average else u
    )


def noisy_sum(G, C, multiplier, streams):
    """Sum of gradients G (k, m) that are clipped to C, with noise; (m,)."""
    noise = 2 * C * multiplier * normal(streams, G.shape[1])
    return clipped(G, C).sum(axis=0) + noise


def dp_gd(d, options, z, streams):
    """Noisy gradient descent on all records."""
    n, p = d.V.shape
    C, z = d.bound(options), math.sqrt(options.steps) * z

    def noisy(u):
        return noisy_sum(d.gradients(u), C, z, streams)

    return descent(d, options, p, n, noisy)


def dp_minibatch(d, options, z, streams):
    """The same on batches of a share of the records."""
    n, p = d.V.shape
    b = max(1, round(options.share * n))

    def noisy(u):
        some = streams.sampling.choice(n, b, replace=False, shuffle=False)
        return noisy_sum(d.gradients(u)[some], d.bound(options), z, streams)

    return descent(d, options, p, b, noisy)


def dp_selection(d, options, z, streams):
    """The k features of the largest noisy rank scores, then DP-GD on them."""
    n, p = d.V.shape
    k, T, share = options.features, options.steps, options.share
    scores = np.array([abs(rank(x, d)) for x in d.V.T])
    gumbel = -np.log(streams.noise.standard_exponential(p))
    some = np.argsort(-(scores + 2 * z * math.sqrt(k / share) * gumbel))[:k]
    C, later = (
        d.bound(options) * math.sqrt(k / p),
        z * math.sqrt(T / (1 - share)),
    )

    def noisy(u):
        g, own = np.zeros(p), d.gradients(u[some], d.V[:, some])
        g[some] = noisy_sum(own, C, later, streams)
        return g

    return descent(d, options, k, n, noisy)


def rank(x, d):
    """Kendall's statistic with the labels, or Wilcoxon's of the signed feature."""
    n = len(x)
    if d.loss == "least_squares":
        pairs = [(i, k) for k in range(n) for i in range(k)]
        found = [
            np.sign(x[i] - x[k]) * np.sign(d.y[i] - d.y[k]) for i, k in pairs
        ]
        return sum(found) / (n - 1)
    return (
        sum(np.sign(x[i] + x[k]) for k in range(n) for i in range(k + 1)) / n
    )


def gram(V, sigma, streams):
    """V' V with noise that is isotropic in the Frobenius norm."""
    i, j = np.triu_indices(V.shape[1])
    found = V.T @ V
    found[i, j] += (
        sigma * normal(streams, len(i)) * np.where(i == j, 1, math.sqrt(0.5))
    )
    found[j, i] = found[i, j]
    return found


def floored(Q, least):
    values, vectors = np.linalg.eigh(Q)
    return vectors @ np.diag(np.maximum(values, least)) @ vectors.T


def ridge(d):
    """The L2 penalty of a sum over the records."""
    return len(d.y) * np.diag(d.l2 / d.S**2)


def ada_ssp(d, options, z, streams):
    """Algorithm 2 of Wang 2018: smallest eigenvalue, matrix and vector."""
    p = d.V.shape[1]
    R, Y, z = options.radius * math.sqrt(p), options.label, math.sqrt(3) * z
    V, sigma = clipped(d.V, R), math.sqrt(2) * R**2 * z
    smallest = np.linalg.eigvalsh(V.T @ V)[0] + R**2 * z * normal(streams)
    Q = gram(V, sigma, streams)
    q = V.T @ np.clip(d.y / d.label, -Y, Y) + 2 * R * Y * z * normal(
        streams, p
    )
    wanted = sigma * math.sqrt(p * math.log(2 * p**2 / 0.05))
    added = max(wanted - max(smallest - 1.645 * R**2 * z, 0), 0)
    return np.linalg.solve(Q + added * np.eye(p) + ridge(d), d.label * q)


def moments(d, options, z, streams):
    """All second moments of t = (x, y), clipped together, with one release."""
    p = d.V.shape[1]
    C = options.radius * math.sqrt(p + 1)
    t, sigma = np.column_stack((d.V, d.y / d.label)), math.sqrt(2) * C**2 * z
    Q = gram(clipped(t, C), sigma, streams)
    top = floored(Q[:p, :p], options.floor * sigma * math.sqrt(2 * p))
    q, s = Q[:p, p], sigma / math.sqrt(2)
    kept = max(0.0, 1 - options.shrink * (p - 2) * s**2 / (q @ q))
    return np.linalg.solve(top + ridge(d), d.label * kept * q)


def metric_steps(d, options, metrics, z, streams):
    """Minimisers of g.(u - v) + (u - v).H (u - v) / 2 + penalty, H of each step."""
    u, z = (
        np.zeros(d.V.shape[1]),
        math.sqrt(options.steps / (1 - options.share)) * z,
    )
    for H in metrics:
        g = noisy_sum(d.gradients(u), d.bound(options), z, streams)
        u = np.linalg.solve(H + ridge(d), H @ u - g)
    return u


def dp_gram(d, options, z, streams):
    """Gradients in the metric of one noisy Gram matrix (Tang et al. 2023)."""
    n, p = d.V.shape
    R, T = options.radius * math.sqrt(p), options.steps
    V, sigma = (
        clipped(d.V, R),
        math.sqrt(2) * R**2 * z / math.sqrt(options.share),
    )
    Q = gram(V, sigma, streams)
    H = curvature(d.loss) * floored(Q, max(sigma * math.sqrt(2 * p), 1e-9 * n))
    return metric_steps(d, options, [H / options.step] * T, z, streams)


def dp_adaptive(d, options, z, streams):
    """The same with clips by noisy histograms (Andrew et al. 2021)."""
    n, p = d.V.shape
    R, T, rest = (
        options.radius * math.sqrt(p),
        options.steps,
        1 - options.share,
    )
    V, sigma = (
        clipped(d.V, R),
        math.sqrt(2) * R**2 * z / math.sqrt(options.share),
    )
    Q = gram(V, sigma, streams)
    H = curvature(d.loss) * floored(Q, max(sigma * math.sqrt(2 * p), 1e-9 * n))
    H, u = H / options.step, np.zeros(p)
    edges = [d.bound(options) / 2 ** (k / 2) for k in (6, 5, 4, 3, 2, 1, 0)]
    for _ in range(T):
        sizes = np.linalg.norm(d.gradients(u), axis=1)
        counts = [(sizes <= edge).sum() for edge in edges]
        counts = np.diff([0, *counts, n])
        noise = (
            math.sqrt(2 * T / (rest * options.sizes)) * z * normal(streams, 8)
        )
        below = np.cumsum(counts + noise)[:-1] >= options.quantile * n
        C = next((edge for edge, is_so in zip(edges, below, strict=True) if is_so),
                 edges[-1])  # fmt: skip
        later = z * math.sqrt(T / (rest * (1 - options.sizes)))
        g = noisy_sum(d.gradients(u), C, later, streams)
        u = np.linalg.solve(H + ridge(d), H @ u - g)
    return u


def dp_newton(d, options, z, streams):
    """Algorithm 1 of Ganesh et al. 2023, "double noise", with replace-one constants."""
    n, p = d.V.shape
    R, T, rest = (
        options.radius * math.sqrt(p),
        options.steps,
        1 - options.share,
    )
    V, own, u = clipped(d.V, R), d.l2 / d.S**2, np.zeros(p)
    h = R**2 / 4
    for _ in range(T):
        s = expit(-V @ u)
        g = -V.T @ s + 2 * R * z * math.sqrt(T / options.share) * normal(
            streams, p
        )
        trace = (s * (1 - s) * (V**2).sum(axis=1)).sum()
        trace += (
            h * z * math.sqrt(T / (rest * options.trace)) * normal(streams)
        )
        z_last = z * math.sqrt(T / (rest * (1 - options.trace)))
        rho = 1 / (2 * z_last**2)
        least = R**2 * (max(trace / n, 0) / R**2 / (n**2 * rho)) ** (1 / 3)
        lam = options.damping * min(max(least, R**2 / n), n * R**2)
        whole = g / n + own * u
        H = V.T @ np.diag(s * (1 - s)) @ V / n + np.diag(own) + lam * np.eye(p)
        strong = lam + own.min()
        Delta = np.linalg.norm(whole) * h / (n * strong**2 + strong * h)
        u = u - np.linalg.solve(H, whole) - Delta * z_last * normal(streams, p)
    return u


def hessian_mixing(d, options, z, streams):
    """Each step in the metric of a fresh sketch of k rows (Lev et al. 2026)."""
    p, T, first = (
        d.V.shape[1],
        options.steps,
        options.share * options.eigenvalue,
    )
    R = options.radius * math.sqrt(p)
    k = max(int(options.rows * max(p, math.log(20 * T / d.delta))), p + 2)
    V, noise = clipped(d.V, R), R**2 * z / math.sqrt(first)
    M = V.T @ V
    smallest = np.linalg.eigvalsh(M)[0] + noise * normal(streams)
    below = max(smallest - R**2 - norm.isf(0.1 * d.delta) * noise, 0.0)
    floor = R**2 * z * math.sqrt(k * T / (options.share - first))
    values, vectors = np.linalg.eigh(M)

    def sketches():
        for _ in range(T):
            rows = normal(streams, k * p).reshape(k, p)
            rows = rows * np.sqrt(values + max(floor - below, 0.0)) @ vectors.T
            yield rows.T @ rows / k

    return metric_steps(d, options, sketches(), z, streams)


def objective_perturbation(d, options, z, streams):
    """The minimiser of the sum with a ridge and a random linear term."""
    n, p = d.V.shape
    R, own = math.sqrt(p), n * d.l2 / d.S**2
    V, b = clipped(d.V, R), 2 * R * z * normal(streams, p)
    added = max(R**2 / options.curvature - own.min(), 0)

    def value(u):
        return (
            np.logaddexp(0, -V @ u).sum()
            + 0.5 * ((own + added) * u) @ u
            + b @ u
        )

    return optimize.minimize(value, np.zeros(p), tol=1e-13).x
