"""
Audit my function
=================

The audit takes any function of data and a seed, and tries to refute its epsilon. This
one clips its records to [-1, 1] and adds Laplace noise for a change of 1/n. A replaced
record may move from -1 to 1, so the mean moves by 2/n.
"""

import matplotlib.pyplot as plt
import numpy as np

from dperm.audit.blackbox import PrivacyClaim, audit
from dperm.audit.functions import Domain


def mean(X, y, seed, size=1.0):
    """A private mean, or so it claims."""
    noise = np.random.default_rng(seed).laplace(0, size / len(X), X.shape[1])
    return np.clip(X, -1, 1).mean(axis=0) + noise


records = Domain(8, 1)  # eight records of one feature, without declared bounds
verdict = audit(mean, PrivacyClaim(epsilon=1.0, seconds=3), records, 0)
print("refuted:", verdict.refuted)
print(f"proved: epsilon of at least {verdict.epsilon:.3g}")

# %%
# With noise for 2/n the same claim survives, and the bound says how close the attack
# came.

claims = {"noise for 1/n": 1.0, "noise for 2/n": 2.0, "noise for 4/n": 4.0}
proved = []
for size in claims.values():
    function = lambda X, y, seed, size=size: mean(X, y, seed, size)  # noqa: E731
    proved.append(audit(function, PrivacyClaim(1.0, seconds=3), records, 0).epsilon)
figure, axes = plt.subplots(figsize=(5.5, 2.6), layout="constrained")
axes.barh(list(claims), proved)
axes.axvline(1.0, color="0.3", linestyle="--", label="claimed")
axes.set(xlabel="epsilon proved from below")
axes.legend()
