"""Audit a solver's privacy: ``python -m dperm.audit solver=dp_gcd``.

``product=epsilon`` gathers the solvers' audits into one table, ``product=controls``
shows which rung catches which broken mechanism, ``product=tuning`` what private tuning
would cost.
"""

from dperm.experiments.auditing import audit
from dperm.stage import main

if __name__ == "__main__":
    main(audit)
