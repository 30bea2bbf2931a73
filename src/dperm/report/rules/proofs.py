"""Rules about what the privacy proofs of a paper yield."""

from __future__ import annotations

from typing import Any

from dperm.report import named
from dperm.report.controls import Control, controlled
from dperm.report.evidence import Estimate, Evidence, MissingError
from dperm.report.verdicts import NOT, REPRODUCED, Finding

TARGETS = ("epsilon", "pure")  # what an argument may be told to reach


def _mutated(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"mutation": 2.0}


MUTATED = Control("the formula at twice the target", _mutated)


@controlled(MUTATED)
def proof(
    evidence: Evidence, argument: str, mutation: float = 1.0, **given: Any
) -> Finding:
    """What the proof's own argument yields, step by step and numerically.

    ``argument`` names a function of the paper's ``proofs.py``, or of
    ``dperm.kinds.proofs``; the worst case over ``given``, whose lists are crossed, must
    not exceed its target. Under a mutation the formula is made for another target than
    it is held to.
    """
    return _proved(evidence, argument, "", mutation, given, "the argument yields")


@controlled(MUTATED)
def printed_noise(
    evidence: Evidence, argument: str, mutation: float = 1.0, **given: Any
) -> Finding:
    """What the noise that a theorem prints costs, by a sound and tight accountant.

    ``argument`` as in ``proof``, without the ending ``_noise`` of its function.
    """
    told = "the printed noise costs"
    return _proved(evidence, argument, "_noise", mutation, given, told)


def untestable(evidence: Evidence, why: str) -> Finding:
    """No verdict: ``why`` says what keeps any run from deciding."""
    raise MissingError(why)


def _proved(
    evidence: Evidence,
    argument: str,
    ending: str,
    mutation: float,
    given: dict[str, Any],
    verb: str,
) -> Finding:
    follow = named.argument(evidence.config, argument, ending)
    cases = list(named.crossed(given))
    found = [follow(**_at(case, mutation)) for case in cases]
    at = max(range(len(cases)), key=lambda i: found[i].share)
    worst = found[at]
    share = worst.share * mutation  # what is claimed stays what it was
    names = ", ".join(f"{key} {value:g}" for key, value in cases[at].items())
    verdict = REPRODUCED if share <= 1 + 1e-9 else NOT
    claimed = worst.claimed / mutation
    reason = (
        f"{verb} at worst {worst.found:.4g} where {claimed:.4g} is claimed "
        f"({names}; {len(cases)} cases): {worst.how}"
    )
    return Finding(verdict, reason, Estimate.exactly(worst.found), f"{claimed:.4g}")


def _at(case: dict[str, float], mutation: float) -> dict[str, float]:
    return {key: mutation * value if key in TARGETS else value
            for key, value in case.items()}  # fmt: skip
