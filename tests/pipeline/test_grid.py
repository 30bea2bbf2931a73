import tracemalloc

import numpy as np
import pytest

from dperm.core.experiment import grid

FULL = {
    "passes": [1, 2],
    "step": {"logspace": [0.01, 1, 3]},
    "clip": {"linspace": [1, 3, 3]},
}


def test_product_of_axes():
    found = grid.points(FULL)
    assert len(found) == 18
    assert found[0] == {"passes": 1.0, "step": 0.01, "clip": 1.0}
    steps = sorted({point["step"] for point in found})
    np.testing.assert_allclose(steps, [0.01, 0.1, 1.0])


def test_explicit_product_zip_and_union():
    paired = {"passes": 3, "zip": {"step": [1, 2], "clip": [3, 4]}}
    found = grid.points([paired, {"product": FULL}, paired])
    assert len(found) == 2 + 18
    assert found[1] == {"passes": 3.0, "step": 2.0, "clip": 4.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clip": []}, "clip: empty"),
        ({"clip": ["a"]}, "expected numbers, found 'a'"),
        ({"clip": [True]}, "expected numbers"),
        ({"clip": {"logspase": [1, 2, 3]}}, "expected a list, logspace or linspace"),
        ({"clip": {"logspace": [1, 2]}}, r"expected \[start, stop, num\]"),
        ({"clip": {"logspace": [0, 2, 3]}}, "end points must be positive"),
        ({"clip": {"linspace": [1, 2, 0]}}, "num must be a whole number"),
        ({"clp": [1]}, "unknown axis 'clp'"),
        ({"zip": {"step": [1], "clip": [1, 2]}}, "equally long"),
    ],
)
def test_refusals_name_the_key(change, message):
    with pytest.raises(ValueError, match=message):
        grid.points({**FULL, **change}, "runs.dp_cd.grid")


def test_a_missing_axis_is_named():
    with pytest.raises(ValueError, match="axis 'clip' is missing"):
        grid.points({"passes": [1], "step": [1]})
    with pytest.raises(ValueError, match="the grid is empty"):
        grid.points([])
    with pytest.raises(ValueError, match="expected a mapping"):
        grid.points("all")


def test_an_axis_that_is_given_twice_is_refused():
    for change in ({"zip": {"clip": [1], "w": [2]}}, {"product": {"clip": [1]}}):
        with pytest.raises(ValueError, match="'clip' is given twice"):
            grid.points({**FULL, **change}, axes=None)


def test_a_union_has_each_point_once_in_order():
    one = {"a": [1, 2, 2], "b": [3]}
    two = {"zip": {"a": [2, 4], "b": [3, 5]}}
    found = grid.points([one, two, {"a": [7], "c": [8]}], axes=None)
    expected = [{"a": 1, "b": 3}, {"a": 2, "b": 3}, {"a": 4, "b": 5}, {"a": 7, "c": 8}]
    assert list(found) == expected and len(found) == 4 and found[2] == expected[2]
    assert found.values("a") == [1, 2, 4, 7]
    assert grid.points([one, two], axes=None).total("a") == 7


def test_a_million_points_take_the_room_of_their_axes():
    axes = {"passes": [1, 2, 5, 10], "step": {"linspace": [1, 2, 500]},
            "clip": {"logspace": [1, 2, 500]}}  # fmt: skip
    tracemalloc.start()
    found = grid.points(axes)
    assert len(found) == 10**6 and found.total("passes") == 4.5e6
    assert len(grid.thin(found, {"step": 2, "clip": 3})) == 4 * 2 * 3
    assert next(iter(found)) == {"passes": 1.0, "step": 1.0, "clip": 1.0}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6
    with pytest.raises(ValueError, match="expected at most 10000000 points"):
        grid.points({**axes, "clip": {"logspace": [1, 2, 50000]}})


def test_thinning_keeps_the_ends():
    found = grid.thin(grid.points(FULL), {"step": 2, "clip": 9})
    assert {point["step"] for point in found} == {0.01, 1.0}
    assert {point["clip"] for point in found} == {1.0, 2.0, 3.0}
