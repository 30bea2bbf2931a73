"""Every method has its look, and no two of one figure have the same."""

import pytest

from dperm.core.experiment.config import read
from dperm.present import looks


def contrast(first, second):
    """Contrast of two colours, from 1 to 21 (WCAG 2.2, "contrast ratio")."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]


def test_all_solvers_of_a_tuned_grid_are_listed():
    for name in ("dpcd", "dpgcd", "dpskgd"):
        for solver in read("paper", name).runs:
            assert read("solver", solver).label in looks.METHODS


def test_methods_of_the_arena_look_the_same_in_every_figure():
    for solver in read("paper", "arena").sweeps["contest"].grid["solver"]:
        assert read("solver", solver).label in looks.METHODS


def test_no_two_methods_have_the_same_look():
    found = [str(look) for look in looks.of(looks.METHODS).values()]
    assert len(set(found)) == len(found)


def test_unlisted_methods_differ_and_keep_their_order():
    names = ["DP-CD", *(f"new {k}" for k in range(24))]
    found = looks.of(names)
    assert found["DP-CD"] == looks.of(["DP-CD"])["DP-CD"]
    assert len({tuple(map(str, look.values())) for look in found.values()}) == 25
    # of anagrams too, and whatever else the figure shows
    two = looks.of(["abc", "DP-SGD", "cba", "abc"])
    assert two["abc"] == found["new 0"] and two["cba"] == found["new 1"]


def test_unlisted_methods_do_not_look_like_listed_ones():
    listed = {str(look) for look in looks.of(looks.METHODS).values()}
    spare = looks.of(f"new {k}" for k in range(24)).values()
    assert not listed & {str(look) for look in spare}


def test_every_look_can_be_seen_on_a_white_page():
    for look in looks.of([*looks.METHODS, *(f"new {k}" for k in range(24))]).values():
        assert contrast(look["color"], "#ffffff") >= 3


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#fff000", "#fff000") == 1
