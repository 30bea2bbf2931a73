"""What few transcripts lose, on settings whose errors are known."""

import pytest

from dperm.kinds import law
from kinds.test_law import transcripts


def test_a_choice_without_noise_loses_nothing():
    for found in law.curve(transcripts([0.3, 0.1, 0.2])):
        assert found["regret"] == pytest.approx(1.0)
        assert found["printed"] == pytest.approx(1.0)
    assert [each["transcripts"] for each in law.curve(transcripts([0.1]))] == [
        1, 2, 3, 5, 10, 25,
    ]  # fmt: skip


def test_a_quarter_of_the_settings_often_lacks_the_best():
    rows = transcripts([0.1, 0.2, 0.2, 0.2])
    (found, *_) = law.curve(rows, share=0.25)
    assert found["settings"] == 1
    assert found["regret"] == pytest.approx(1.75, rel=0.05)


def many(seed):
    """Twenty settings of about equal error, each with draws of its own."""
    import pandas as pd

    parts = [transcripts([1.0 + 0.02 * k], sigma=0.5, seed=seed + k).assign(clip=k)
             for k in range(20)]  # fmt: skip
    return pd.concat(parts)


def test_more_transcripts_lose_less_and_print_less_beautifully():
    found = law.curve(many(0))
    losses = [each["regret"] for each in found]
    assert losses == sorted(losses, reverse=True) and losses[0] > 1.03
    printed = [each["printed"] for each in found]
    assert printed == sorted(printed) and printed[0] < 0.7


def test_rankings_agree_the_more_the_more_transcripts_there_are():
    one, other = many(0), many(100)
    other["relative_error"] *= 1.1
    agree = [each["agree"] for each in law.agreement(one, other)]
    assert agree[-1] > 0.9 > agree[0] > 0.4


def test_more_transcripts_print_less_beautifully_and_choose_better():
    rows = many(0)
    few, more = (law.printed(rows, runs) for runs in (5, 25))
    least = rows.groupby("clip")["relative_error"].mean().min()
    assert few["printed"] < more["printed"] < more["worth"] < few["worth"]
    assert few["printed_low"] < few["printed"] < few["printed_high"]
    assert more["worth"] >= least


def test_without_noise_what_is_printed_is_true():
    found = law.printed(transcripts([0.3, 0.1, 0.2]), 5)
    expected = dict.fromkeys(["printed", "printed_low", "printed_high", "worth"], 0.1)
    assert found == pytest.approx(expected)
