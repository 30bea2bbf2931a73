"""Sentences follow verdicts: other verdicts, other sentences."""

import numpy as np
import pandas as pd
import pytest

from dperm.report import entries as stories
from dperm.report.entries import leading, story
from dperm.report.verdicts import VERDICTS

NONE = pd.DataFrame(columns=["algorithm"])


def claim(verdict, kind="sentence", first=False, text="A beats B", value=2.0):
    return {
        "id": f"c-{verdict}-{kind}-{first}", "verdict": verdict, "kind": kind,
        "first": first, "claim": text, "place": "Section 1", "published": "above 1",
        "reproduced": value, "ci_low": 1.5, "ci_high": 2.5,
    }  # fmt: skip


def test_five_sentences_of_a_paper_with_everything():
    claims = [
        claim("reproduced", "cell"),
        claim("reproduced", first=True),
        claim("not reproduced"),
        claim("undecided"),
        claim("not yet run", "proof"),
    ]
    costs = [{"name": "a", "target": 2.0, "low": 0.5, "high": 1.0, "proved": 1.0}]
    one, two, three, four, five = story(claims, costs, NONE)
    assert one.text == (
        "Of 3 sentences and 1 cell: 2 reproduced, 1 not reproduced, 1 undecided."
    )
    assert two.text == (
        "Reproduced: “A beats B” (Section 1): found 2 [1.50, 2.50], published above 1."
    )
    assert two.claim == "c-reproduced-sentence-True"  # one of the ten comes first
    assert three.text.startswith("Not reproduced: “A beats B”")
    assert four.text.startswith("2 claims of all kinds are open. Undecided: ")
    assert five.text == (
        "Its printed noise costs 0.250 to 0.500 times the epsilon it states, under "
        "the strict accountant: never more than it says."
    )


@pytest.mark.parametrize("verdict", VERDICTS)
def test_each_verdict_tells_another_story(verdict):
    found = [tuple(each.text for each in story([claim(one)], [], NONE))
             for one in {verdict, "reproduced", "not reproduced"}]  # fmt: skip
    assert len(set(found)) == len(found)


def test_what_is_not_there_is_said():
    texts = [each.text for each in story([claim("not reproduced")], [], NONE)]
    assert texts[1] == "Nothing of it was reproduced."
    assert texts[3] == "Every claim that could be tested is decided."
    texts = [each.text for each in story([claim("reproduced")], [], NONE)]
    assert texts[2] == "Nothing that was tested contradicts it."
    assert "no sentence or printed number" in story([], [], NONE)[0].text


def test_noise_that_costs_more_is_said_to():
    costs = [{"name": "a", "target": 1.0, "low": 0.5, "high": 1.2, "proved": 1.1}]
    assert "more than it says somewhere" in story([], costs, NONE)[4].text
    costs[0]["proved"] = 1.0  # an upper bound alone refutes nothing
    said = story([], costs, NONE)[4].text
    assert said.endswith("whether ever more than it says no proof tells.")


def test_noise_without_a_finite_price_is_said_to_have_none():
    most = {"high": float("inf"), "proved": 0.5}
    costs = [{"name": "a", "target": np.int64(1), "low": 0.5, **most}]
    assert "to no finite epsilon at all" in story([], costs, NONE)[4].text


def test_the_leader_is_counted():
    best = pd.DataFrame({"algorithm": ["A", "B", "B"]})
    assert leading(best).text == (
        "Over 3 pairs of data set and true epsilon, B has the least mean error on "
        "fresh runs most often, 2 times."
    )
    tied = leading(pd.DataFrame({"algorithm": ["B", "A"]})).text
    assert "A and B have the least mean error" in tied


def test_a_number_has_its_interval():
    assert stories.number(claim("reproduced")) == "2 [1.50, 2.50]"
    assert stories.number(claim("reproduced", value=float("nan"))) == ""
