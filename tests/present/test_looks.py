"""Every method has its look, and no two of one figure have the same."""

from dperm.config import read
from dperm.present import looks


def test_all_solvers_of_a_tuned_grid_are_listed():
    for name in ("dpcd", "dpgcd", "dpskgd"):
        for solver in read("paper", name).runs:
            assert read("solver", solver).label in looks.METHODS


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
