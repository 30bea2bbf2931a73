"""Rules about what the privacy proofs of a paper yield."""

from __future__ import annotations

from typing import Any

from dperm.report import named
from dperm.report.evidence import Estimate, Evidence
from dperm.report.verdicts import NOT, REPRODUCED, Finding


def proof(evidence: Evidence, argument: str, **given: Any) -> Finding:
    """What the proof's own argument yields, step by step and numerically.

    ``argument`` names a function of the paper's ``proofs.py``, or of
    ``dperm.kinds.proofs``; the worst case over ``given``, whose lists are crossed, must
    not exceed its target.
    """
    return _proved(evidence, argument, "", given, "the argument yields")


def printed_noise(evidence: Evidence, argument: str, **given: Any) -> Finding:
    """What the noise that a theorem prints costs, by a sound and tight accountant.

    ``argument`` as in ``proof``, without the ending ``_noise`` of its function.
    """
    return _proved(evidence, argument, "_noise", given, "the printed noise costs")


def _proved(
    evidence: Evidence, argument: str, ending: str, given: dict[str, Any], verb: str
) -> Finding:
    follow = named.argument(evidence.config, argument, ending)
    cases = list(named.crossed(given))
    found = [follow(**case) for case in cases]
    at = max(range(len(cases)), key=lambda i: found[i].share)
    worst = found[at]
    names = ", ".join(f"{key} {value:g}" for key, value in cases[at].items())
    verdict = REPRODUCED if worst.share <= 1 + 1e-9 else NOT
    reason = (
        f"{verb} at worst {worst.found:.4g} where {worst.claimed:.4g} is claimed "
        f"({names}; {len(cases)} cases): {worst.how}"
    )
    return Finding(
        verdict, reason, Estimate.exactly(worst.found), f"{worst.claimed:.4g}"
    )
