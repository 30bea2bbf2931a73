"""Fit DP-SGD of jax_privacy to arrays from a file, in the library's own environment.

Usage: python jax_privacy_sgd.py in.npz out.npz. In: rows (n, p) and offset (n,) of the
margins rows @ u + offset; kind; C (clip of a record's gradient); steps; batch (mean
size of a Poisson batch); step (learning rate); momentum; l1 and l2 (weights of the
penalty, (p,)); delta; epsilons (E,); seeds (L,); noise (E,), the standard deviation
over C, NaN for the library's own. Out: W (E, L, p), seconds (E, L), noise (E,),
library and version.
"""

import sys
import time

import jax
import jax.numpy as jnp
import jax_privacy
import numpy as np
from jax_privacy import accounting, batch_selection, noise_addition

CHOICES = 8  # number of padded batch sizes up to the mean; each size is compiled


def own_noise(given, epsilon):
    """Noise multiplier that the library calibrates for an epsilon."""
    accountant = accounting.DpsgdTrainingAccountant(accounting.PldAccountantConfig())
    return accounting.calibrate_noise_multiplier(
        target_epsilon=epsilon,
        accountant=accountant,
        batch_sizes=int(given["batch"]),
        num_updates=int(given["steps"]),
        num_samples=len(given["rows"]),
        target_delta=float(given["delta"]),
    )


class DPSGD:
    """Descents on one problem, which share compiled functions."""

    def __init__(self, given):
        self.rows, self.offset = given["rows"], given["offset"]
        self.steps, self.batch = int(given["steps"]), int(given["batch"])
        self.C = float(given["C"])
        logistic = str(given["kind"]) == "logistic"
        eta, momentum = float(given["step"]), float(given["momentum"])
        settled = eta / (1 - momentum)
        l1, l2 = jnp.asarray(given["l1"]), jnp.asarray(given["l2"])

        def loss(u, x, offset):
            margin = x @ u + offset
            return jax.nn.softplus(-margin) if logistic else margin**2 / 2

        self.gradient = jax.jit(
            jax_privacy.clipped_grad(
                loss,
                l2_clip_norm=self.C,
                batch_argnums=(1, 2),
                keep_batch_dim=False,
                normalize_by=1.0,
            )
        )

        @jax.jit
        def moved(u, velocity, noisy):
            velocity = momentum * velocity + noisy / self.batch
            u = u - eta * velocity
            u = jnp.sign(u) * jnp.maximum(jnp.abs(u) - settled * l1, 0.0)
            return u / (1 + settled * l2), velocity

        self.moved = moved

    def fitted(self, noise, seed):
        """Weights of one fit, (p,)."""
        n, p = self.rows.shape
        privatizer = noise_addition.gaussian_privatizer(
            stddev=noise * self.C, prng_key=seed
        )
        add = jax.jit(privatizer.update)
        batches = batch_selection.CyclicPoissonSampling(
            sampling_prob=self.batch / n, iterations=self.steps
        )
        u = velocity = jnp.zeros(p)
        state = privatizer.init(u)
        multiple = max(1, self.batch // CHOICES)
        for batch in batches.batch_iterator(n, rng=seed):
            some = batch_selection.pad_to_multiple_of(batch, multiple)
            total = self.gradient(
                u, self.rows[some], self.offset[some], is_padding_example=some < 0
            )
            noisy, state = add(total, state)
            u, velocity = self.moved(u, velocity, noisy)
        return np.asarray(u)


def main(read, written):
    """All fits, one after another."""
    with np.load(read) as found:
        given = {key: found[key] for key in found.files}
    shape = (len(given["epsilons"]), len(given["seeds"]))
    W, seconds = np.empty((*shape, given["rows"].shape[1])), np.empty(shape)
    noise = np.array(
        [
            own_noise(given, float(epsilon)) if np.isnan(asked) else asked
            for epsilon, asked in zip(given["epsilons"], given["noise"], strict=True)
        ]
    )
    descents = DPSGD(given)
    descents.fitted(1.0, 0)  # compiles
    for i, multiplier in enumerate(noise):
        for k, seed in enumerate(given["seeds"]):
            start = time.perf_counter()
            W[i, k] = descents.fitted(float(multiplier), int(seed))
            seconds[i, k] = time.perf_counter() - start
    np.savez(
        written,
        W=W,
        seconds=seconds,
        noise=noise,
        library="jax-privacy",
        version=jax_privacy.__version__,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
