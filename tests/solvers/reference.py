"""The lane solvers once more in plain numpy, as the papers print them.

Each takes X, y, a penalty, one lane (step, clip, noise multiplier), the number of
steps and the streams; it shares no code with the kernels.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def phi_prime(loss, X, y, w):
    """Derivatives of the records' losses in x.w."""
    return X @ w - y if loss == "least_squares" else -y * expit(-y * (X @ w))


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


class Averaged:
    """The iterate; after each of ``ends`` the average of those since the last."""

    def __init__(self, p, ends):
        self.w, self.seen, self.ends, self.k = np.zeros(p), [], ends, 0

    def move(self, w):
        self.w, self.k = w, self.k + 1
        self.seen.append(w)
        if self.k in self.ends:
            self.w, self.seen = np.mean(self.seen, axis=0), []


def dp_cd(X, y, loss, penalty, lane, count, streams, options, M=None):
    """Algorithm 1 of Mangold et al. 2022."""
    (n, p), (step, clip, sigma) = X.shape, lane
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
        terms = np.clip(phi_prime(loss, X, y, at.w) * X[:, j], -C[j], C[j])
        g = terms.mean() + sigma * 2 * C[j] / n * streams.noise.standard_normal()
        w = at.w.copy()
        w[j] = prox(w[j] - step / M[j] * g, step / M[j], penalty)
        at.move(w)
    return at.w


def dp_cd_priv(X, y, loss, penalty, lane, count, streams, options, epsilon=1.0):
    """DP-CD with M_j released by Laplace noise, a tenth of epsilon over p of them."""
    n, p = X.shape
    bound = curvature(loss) * (2 * np.abs(X).max(axis=0)) ** 2
    scale = 2 * bound * p / (n * 0.1 * epsilon)
    M = np.maximum(smoothness(loss, X) + streams.smoothness.laplace(0.0, scale), scale)
    return dp_cd(X, y, loss, penalty, lane, count, streams, options, M)


def dp_sgd(X, y, loss, penalty, lane, count, streams, options):
    """Proximal DP-SGD; step as a multiple of 1 / beta."""
    (n, p), (step, clip, sigma), b = X.shape, lane, options.batch
    gamma, w = step / beta(loss, X), np.zeros(p)
    for _ in range(count):
        if b == 1:
            some = [streams.sampling.integers(0, n)]
        else:
            some = streams.sampling.choice(n, b, replace=False)
        G = clipped(phi_prime(loss, X[some], y[some], w)[:, None] * X[some], clip)
        g = G.sum(axis=0) + sigma * 2 * clip * streams.noise.standard_normal(p)
        w = prox(w - gamma * g / b, gamma, penalty)
    return w


def dp_svrg(X, y, loss, penalty, lane, count, streams, options):
    """An epoch of m steps: mu with noise of multiplier sigma n / sqrt(m)."""
    (n, p), (step, clip, sigma) = X.shape, lane
    m, gamma = max(1, round(options.inner * n)), step / beta(loss, X)
    at = Averaged(p, {m * k for k in range(1, count)})
    for k in range(count):
        if k % m == 0:
            snapshot = at.w.copy()
            mu = clipped(phi_prime(loss, X, y, snapshot)[:, None] * X, clip).mean(
                axis=0
            )
            noise = streams.noise.standard_normal(p)
            mu = mu + sigma * n / np.sqrt(m) * 2 * clip / n * noise
        i = streams.sampling.integers(0, n)
        slope = phi_prime(loss, X[i], y[i], at.w) - phi_prime(
            loss, X[i], y[i], snapshot
        )
        own = clipped(slope * X[i], clip)
        eta = sigma * 2 * clip * streams.noise.standard_normal(p)
        at.move(prox(at.w - gamma * (own + eta + mu), gamma, penalty))
    return at.w


def valid_factor(X, S):
    """Largest eigenvalue of the Hessian's bound on a set, scaled to unit diagonal."""
    H = X[:, S].T @ X[:, S]
    D = np.sqrt(np.diag(H))
    return np.linalg.eigvalsh(H / np.outer(D, D))[-1]


def dp_skgd(X, y, loss, penalty, lane, count, streams, options, blocks=None):
    """Algorithm 1 of Maranjyan et al. 2024, with C = I_S P^-1; no blocks: nice."""
    (n, p), (step, clip, sigma) = X.shape, lane
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
            S = np.sort(streams.sampling.choice(p, options.size, replace=False))
        elif options.probabilities == "importance":
            u = streams.sampling.random()
            S = blocks[min(np.searchsorted(np.cumsum(q), u, "right"), len(q) - 1)]
        else:
            S = blocks[streams.sampling.integers(0, len(blocks))]
        C = clip * np.sqrt(M[S].sum() / M.sum())
        G = clipped(phi_prime(loss, X, y, at.w)[:, None] * X[:, S], C).mean(axis=0)
        G = G + sigma * 2 * C / n * streams.noise.standard_normal(len(S))
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


def dp_gcd(X, y, loss, penalty, lane, count, streams, options, inside=True):
    """Algorithm 2 of Mangold et al. 2023; ``inside``: noise on derivatives."""
    (n, p), (step, clip, multiplier) = X.shape, lane
    M, w = smoothness(loss, X), np.zeros(p)
    C = clip * np.sqrt(M / M.sum())
    ridge = M / (M + penalty.l2)
    slopes = {"GS-s": np.ones(p), "GS-r": ridge, "GS-q": np.sqrt(ridge)}[options.rule]
    inside = inside and options.noise == "laplace"
    for _ in range(count):
        if options.noise == "laplace":
            chi = streams.sampling.laplace(size=p)
        else:
            chi = streams.sampling.standard_exponential(p)
            chi = -np.log(chi) if options.noise == "gumbel" else chi
        g = np.clip(phi_prime(loss, X, y, w)[:, None] * X, -C, C).mean(axis=0)
        seen = g + multiplier * 2 * C / n * chi * inside
        each = zip(seen, w, M, strict=True)
        scores = np.array([greedy_score(options.rule, *at, penalty) for at in each])
        if not inside:
            scores += multiplier * 2 * np.max(C / np.sqrt(M) * slopes) / n * chi
        j = int(np.argmax(scores))
        released = g[j] + multiplier * 2 * C[j] / n * streams.noise.laplace()
        w[j] = prox(w[j] - step / M[j] * released, step / M[j], penalty)
    return w
