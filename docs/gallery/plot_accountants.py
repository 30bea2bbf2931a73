"""
Compare two accountants
=======================

An accountant turns a ledger into an upper bound on epsilon. The same noise has one
epsilon for each accountant, so a comparison of two algorithms under different
accountants compares the accountants. DP-SGD reads one record of n in each step; DP-CD
reads all of them.
"""

import matplotlib.pyplot as plt

from dperm.privacy import Gaussian, Ledger, SampledGaussian, calibrate

n, features, delta = 2000, 8, 1e-6


def dp_cd(passes):
    """Every step releases one derivative of all records."""
    return lambda noise: Ledger(
        (Gaussian(1.0, noise, passes * features, "2 C_j / n", "DP-CD"),)
    )


def dp_sgd(passes):
    """Every step releases the gradient of one record of n."""
    return lambda noise: Ledger(
        (SampledGaussian(1.0, noise, passes * n, "2 C", "DP-SGD", 1, n),)
    )


# %%
# Both are given the noise of the published formulas for epsilon = 1. The tight
# accountant says what that noise costs at most.

passes = [1, 2, 5, 10, 20]
figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
for name, of in (("DP-CD", dp_cd), ("DP-SGD", dp_sgd)):
    high = [calibrate(of(k), 1.0, delta, "published").true_epsilon for k in passes]
    axes.plot(passes, high, "o-", label=name)
    print(name, [f"{bound:.2f}" for bound in high])
axes.axhline(1.0, color="0.5")
axes.set(xlabel="passes over the data", ylabel="true epsilon", ylim=(0, 1.1))
axes.legend()
