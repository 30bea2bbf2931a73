"""Ranges that are declared, and the sums that a fit releases to centre and scale."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from dperm.audit.checks import Audit
from dperm.estimators import ranges
from dperm.estimators.audited import mechanisms
from dperm.estimators.ranges import Ranges
from dperm.solvers.full_batch.secret import UndeclaredError

# the audit's few
pytestmark = pytest.mark.filterwarnings("ignore:X. 8 records")

K = 3
ENDS = np.array([-1.0, 0.0, 50.0]), np.array([1.0, 1e6, 51.0])
CENTRED, FREE = Ranges(*ENDS, True), Ranges(-ENDS[1], ENDS[1], False)


def silent(scale, size):
    return np.zeros((size, 1))


@pytest.mark.parametrize(
    ("one", "most", "make"),
    [
        (
            CENTRED,
            2 * K**0.5,
            np.asarray,
        ),  # sparse zeros stay zeros, not centred
        (FREE, 1.6 * K**0.5, np.asarray),
        (FREE, 1.6 * K**0.5, sparse.csc_array),
    ],
)
def test_no_record_moves_the_sums_by_more_and_some_do(one, most, make):
    rng = np.random.default_rng(0)
    inside = rng.uniform(-1.5, 1.5, (2000, K)) * one.half + one.middle
    corners = np.vstack(
        (one.low, one.high, one.middle, [1e300] * K, [-np.inf] * K)
    )
    every = np.vstack((inside, corners))
    found = [
        ranges.sums(one.unit(make(row[None])), one.centred) for row in every
    ]
    moved = [np.linalg.norm(a - b) for a in found[-5:] for b in found]
    assert most * (1 - 1e-9) < max(moved) <= most * (1 + 1e-12)
    (event,) = ranges.ledger([one], 1000, 1.0, 1e-6).events
    assert event.sensitivity == pytest.approx(most) and event.count == 1


def test_where_noise_is_large_means_and_deviations_are_the_usual_ones():
    """So that columns are neither moved nor stretched by what is noise alone."""
    t = [np.full((50, K), 0.5)]
    given = ranges.stated([CENTRED], 1e6)
    (found,), _ = ranges.released([CENTRED], t, given, ranges.seeded(0))
    assert np.abs(found.mean).max() < 1e-3
    assert found.deviation == pytest.approx(np.full(K, 0.2**0.5), rel=1e-3)


@pytest.mark.parametrize(("is_real", "heavy"), [(True, 64), (False, 16)])
def test_a_label_weighs_as_much_as_twice_or_half_of_the_columns(
    is_real, heavy
):
    label = ranges.of_label(-3.0, 5.0, True, 32, is_real)
    assert label.weight**2 == pytest.approx(heavy) and label.middle == 1.0
    columns = Ranges(np.zeros(32), np.ones(32), True)
    (event,) = ranges.ledger([columns, label], 1000, 1.0, 1e-6).events
    assert event.sensitivity == pytest.approx(2 * (32 + heavy) ** 0.5)
    X = np.random.default_rng(0).uniform(-3, 5, (9, 1))
    given = ranges.stated([label], 0.0)
    (found,), _ = ranges.released([label], [label.unit(X)], given, silent)
    assert found.centre == pytest.approx(X.mean(axis=0))
    assert found.scale == pytest.approx(X.std(axis=0))


def test_a_label_counts_as_a_column_and_fewer_are_refused():
    label = Ranges(np.zeros(1), np.ones(1), True)
    (event,) = ranges.ledger([CENTRED, label], 1000, 1.0, 1e-6).events
    assert event.sensitivity == pytest.approx(4.0)
    few = ranges.ledger([CENTRED], 1000, 1.0, 1e-6)
    with pytest.raises(UndeclaredError):
        t = np.zeros((9, K)), np.zeros((9, 1))
        ranges.released([CENTRED, label], t, few, silent)


def test_without_noise_means_and_deviations_are_those_of_the_data():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.2, 0.6, (500, K)) * (ENDS[1] - ENDS[0]) + ENDS[0]
    given = ranges.stated([CENTRED], 0.0)
    (found,), noisy = ranges.released(
        [CENTRED], [CENTRED.unit(X)], given, silent
    )
    assert found.centre == pytest.approx(X.mean(axis=0))
    assert found.scale == pytest.approx(X.std(axis=0)) and noisy.shape == (
        2 * K,
    )
    seen = found.standard(found.unit(X))
    assert seen == pytest.approx((X - X.mean(axis=0)) / X.std(axis=0))
    given = ranges.stated([FREE], 0.0)
    (free,), _ = ranges.released([FREE], [FREE.unit(X)], given, silent)
    inside = np.clip(X, FREE.low, FREE.high)
    assert free.scale == pytest.approx(np.sqrt((inside**2).mean(axis=0)))
    assert (free.centre == 0).all()


def test_a_column_of_one_possible_value_is_nothing():
    """Its t is 0, is not moved by the release, and any constant may be declared."""
    for centred, low in ((True, 3.0), (False, 0.0)):
        one = Ranges(np.array([low, -1.0]), np.array([low, 1.0]), centred)
        t = one.unit(np.array([[9.0, 0.5], [-9.0, 1.0]]))
        assert one.idle.tolist() == [True, False] and (t[:, 0] == 0).all()
        noise = ranges.stated([one], 10.0)
        (found,), _ = ranges.released([one], [t], noise, ranges.seeded(0))
        assert (found.standard(t)[:, 0] == 0).all()


def test_the_noise_is_that_of_the_ledger():
    given = ranges.ledger([CENTRED], 1000, 1.0, 1e-6)
    t = [np.zeros((1000, K))]
    drawn = [
        ranges.released([CENTRED], t, given, ranges.seeded(seed))[1]
        for seed in (0, *range(400))
    ]
    assert np.std(drawn) == pytest.approx(given.events[0].scale, rel=0.05)
    assert np.array_equal(drawn[0], drawn[1])


@pytest.mark.parametrize("n", [10, 1000, 10**5, 10**9])
def test_the_share_is_between_its_ends(n):
    (event,) = ranges.ledger([CENTRED], n, 1.0, 1e-6).events
    share = (ranges.whole(1.0, 1e-6) / event.noise_multiplier) ** 2
    least, most = ranges.LEAST_SHARE, CENTRED.most
    assert least * (1 - 1e-9) <= share <= most * (1 + 1e-9)
    assert (share == pytest.approx(most)) == (n <= 1000)
    assert (share == pytest.approx(least)) == (n >= 10**5)


TWO, THREE = ([0, 2], [1, 3]), ([0, 2, 4], [1, 3, 5])
SAID = [  # bounds, columns, the ends that they mean
    ([(0, 1), (2, 3)], ["a", "b"], TWO),
    (([0, 2], [1, 3]), ["a", "b"], TWO),
    ((np.array([0, 2]), np.array([1, 3])), ["a", "b"], TWO),
    ({"b": (2, 3), "a": (0, 1)}, ["a", "b"], TWO),
    *(
        (make([(0, 1), (2, 3), (4, 5)]), 3, THREE)
        for make in (np.array, tuple, list)
    ),
    *(
        (make((0, 1)), 5, ([0] * 5, [1] * 5))
        for make in (np.array, tuple, list)
    ),
]


@pytest.mark.parametrize(("bounds", "columns", "ends"), SAID)
def test_all_ways_to_say_a_range(bounds, columns, ends):
    found = ranges.declared("bounds", bounds, columns, True, False)
    assert (found.low.tolist(), found.high.tolist()) == ends and found.centred
    sparse_ones = ranges.declared("bounds", (0, 1), columns, True, True)
    assert not sparse_ones.centred  # zeros stay zeros


NAMED = pd.DataFrame({"low": [2, 0], "high": [3, 1]}, index=["b", "a"])
BY_NAME = [NAMED, NAMED.T, (NAMED["low"], NAMED["high"]), [NAMED["low"], NAMED["high"]],
           pd.Series([(2, 3), (0, 1)], index=["b", "a"]),
           pa.table({"b": [2, 3], "a": [0, 1]}),
           np.array([(2, 0), (3, 1)], dtype=[("b", int), ("a", int)])]  # fmt: skip


@pytest.mark.parametrize("bounds", BY_NAME)
def test_what_has_names_is_read_by_them_or_refused(bounds):
    found = ranges.declared("bounds", bounds, ["a", "b"], True, False)
    assert (found.low.tolist(), found.high.tolist()) == TWO
    for columns in (["a", "c"], 2):
        with pytest.raises(
            ValueError, match=r"bounds: .*no (names|range|column)"
        ):
            ranges.declared("bounds", bounds, columns, True, False)


NONE = "bounds: expected .low, high., a list of {} such pairs"
NO_RANGE = [  # bounds, columns, what is said
    *((bounds, 2, NONE.format(2))
      for bounds in (((0, 1), (2, 3)), np.array([[0, 1], [2, 3]]), [(0, 1)], ("0", "1"),
                     None, 3, "ab", ((0, 1, 2), (3, 4, 5)))),
    # as pairs of four columns it would be four columns of one value each
    ([[0, 0, 0, 0], [1, 1, 1, 1]], 4, NONE.format(4)),
    *(({"a": (0, 1), "b": pair}, ["a", "b"], "bounds: expected low <= high.* for b")
      for pair in ((1, 0), (0, np.nan), (0, np.inf), (0, 1e-200))),
]  # fmt: skip


@pytest.mark.parametrize(("bounds", "columns", "said"), NO_RANGE)
def test_what_is_no_range_or_may_be_two_things_is_refused(
    bounds, columns, said
):
    with pytest.raises(ValueError, match=said):
        ranges.declared("bounds", bounds, columns, True, False)


@pytest.mark.parametrize("slip", ["", "counted twice", "half the noise"])
def test_the_audit_replays_the_sums_and_sees_what_is_wrong(slip, monkeypatch):
    real, drawn = ranges.sums, ranges.released

    def quiet(every, ts, given, normal):
        return drawn(
            every, ts, given, lambda scale, size: normal(scale / 2, size)
        )

    if slip == "counted twice":
        monkeypatch.setattr(
            ranges, "sums", lambda t, centred: 2 * real(t, centred)
        )
    elif slip:
        monkeypatch.setattr(ranges, "released", quiet)
    (m,) = [
        one for one in mechanisms("dp_gd") if one.name == "DPRegressor(dp_gd)"
    ]
    audit = Audit(m, neighbours=4)
    assert audit.sensitivity().caught == bool(slip)
    assert not audit.count().caught
