"""Exponents told from wrong ones near by."""

from __future__ import annotations

import pandas as pd
import pytest

from dperm.report import evidence as verdicts
from dperm.report import judging
from dperm.report.rules import measures

from .conftest import write


def said(evidence, config, value, half, bound=-1.0):
    data = {"exponent": [value], "exponent_low": [value - half]}
    data |= {"exponent_high": [value + half], "bound": [bound], "at": ["x"]}
    write(config, "rates", pd.DataFrame(data))
    judged = measures.rate(evidence, "rates", bound="bound", each="at", at_most=0.1)
    given = {"value": "exponent", "each": "at", "at_most": bound}
    plain = measures.exponent(evidence, "rates", rate=bound, **given)
    texts = {verdicts.slopes_worded(each.slopes, True) for each in (judged, plain)}
    assert (
        len(texts) == 1
    )  # whether the exponent or its distance to the bound is judged
    return texts.pop()


@pytest.mark.parametrize(
    ("value", "half", "excluded", "place"),
    [
        (-1.0, 0.05, (1, 1, 1), "tight in all"),
        (-1.0, 0.6, (0, 1, 1), "tight in all"),
        (-1.0, 1.2, (0, 0, 0), "tight in all"),
        (-1.95, 0.1, (1, 0, 1), "holds, not tight here"),
    ],
)
def test_an_exponent_says_which_wrong_ones_its_interval_leaves_out(
    evidence, config, value, half, excluded, place
):
    counts = "half {}, twice {}, none {}".format(*excluded)
    assert f"{counts} of 1; {place}" in said(evidence, config, value, half)


def test_the_instance_on_which_a_bound_is_tight_is_named():
    found = [measures.Estimate(v, v - 0.01, v + 0.01, rate=-1.0) for v in (-1.02, -2)]
    every = tuple(
        verdicts.slope_of(name, one) for name, one in zip("ab", found, strict=True)
    )  # fmt: skip
    one = verdicts.Finding(verdicts.REPRODUCED, "it holds", found[0], slopes=every)
    under = judging._under_readings({"the box": one})
    worded = verdicts.slopes_worded(under.slopes, True)
    assert worded.endswith("tight 1, beaten 1, exceeded 0 (tight: the box, a)")
    assert "not tight" not in verdicts.slopes_worded(every[1:], False)
    assert verdicts.slope_of("a", measures.Estimate(1.0, 0.9, 1.1)) is None
