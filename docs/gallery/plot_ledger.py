"""
Read a ledger
=============

A ledger lists everything that an algorithm releases, before it runs. Here it is that of
ten passes of DP-CD on data with 8 features: 80 numbers, each with Gaussian noise.
"""

import matplotlib.pyplot as plt

from dperm.privacy import Gaussian, Ledger, calibrate

n, features, passes = 20_640, 8, 10
delta = 1 / n**2


def ledger(noise):
    """The releases of DP-CD (Mangold et al. 2022), in units of 2 C_j / n."""
    count = passes * features
    event = Gaussian(1.0, noise, count, "2 C_j / n", "Mangold et al. 2022, Theorem 3.1")
    return Ledger((event,), given=("n", "coordinate smoothness M_j"))


calibrated = calibrate(ledger, 1.0, delta, "tight")
for event in calibrated.ledger.events:
    print(event)
print("the guarantee assumes as public:", ", ".join(calibrated.ledger.given))
noise, cost = calibrated.noise_multiplier, calibrated.true_epsilon
print(f"noise multiplier {noise:.2f}: epsilon {cost:.4f}")

# %%
# The noise that a given epsilon needs grows with the square root of the number of
# releases, and about as 1 / epsilon.

figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
for passes in (1, 10, 100):
    targets = [0.1, 0.3, 1.0, 3.0, 10.0]
    needed = [calibrate(ledger, e, delta, "tight").noise_multiplier for e in targets]
    axes.loglog(targets, needed, "o-", label=f"{passes * features} releases")
axes.set(xlabel="epsilon", ylabel="noise multiplier")
axes.legend()
