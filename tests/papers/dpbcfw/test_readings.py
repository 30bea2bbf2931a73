"""Runs under a reading against closed forms, and what figures and tables read."""

import numpy as np
import pandas as pd
import pytest

from dperm.papers.dpbcfw import figures, tables
from dperm.papers.dpbcfw.runs import RunSetting, noise_of
from dperm.plotting import drawing

OURS = {
    "noise": "stated",
    "epsilon": 1.0,
    "nodes": 2,
    "sketch": 10,
    "iterations": 9,
}
CENTRAL = {
    "method": "dp_fw",
    "noise": "scaled",
    "epsilon": 1.0,
    "iterations": 9,
}


# --- noise and runs -------------------------------------------------------------------


@pytest.mark.parametrize("keys", [OURS, CENTRAL])
def test_an_epsilon_an_iteration_saves_the_root_of_their_number(
    instance, keys
):
    plain = noise_of(instance, RunSetting(**keys))
    single = noise_of(instance, RunSetting(**keys, per="iteration"))
    # sqrt(9)
    assert plain.index_scale / single.index_scale == pytest.approx(3.0)
    if keys is OURS:
        assert plain.sketch_scale / single.sketch_scale == pytest.approx(3.0)
    counts = [
        [event.count for event in each.ledger.events]
        for each in (plain, single)
    ]
    assert counts[0] == counts[1]  # the whole run is accounted for
    assert single.true_epsilon > plain.true_epsilon


def test_scores_of_the_sum_are_n_times_larger(instance):
    plain, summed = (
        noise_of(instance, RunSetting(**OURS, objective=one))
        for one in ("mean", "sum")
    )
    assert plain.index_scale / summed.index_scale == pytest.approx(
        instance.problem.n
    )
    assert summed.sketch_scale == plain.sketch_scale
    assert summed.ledger.events[0].scale == summed.index_scale


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [("method", "fww", "fw, bcfw"), ("noise", "loud", "none, published, stated"),
     ("engine", "spark", "local, dask"), ("objective", "median", "mean, sum"),
     ("per", "epoch", "total, iteration")],
)  # fmt: skip
def test_settings_of_unknown_kinds_are_refused(key, value, said):
    with pytest.raises(
        ValueError, match=f"settings.{key}: expected one of {said}"
    ):
        RunSetting(**{key: value})


# --- Figure 4 under every reading -----------------------------------------------------


def against_n(exponent, in_K=-0.1, level=0.5, spread=1e-3):
    """Excess level K^in_K n^exponent over a truth of 0, on six draws."""
    rng = np.random.default_rng(1)
    curves = [("dp_fw", 1), *(("dp_bcfw", K) for K in (2, 4, 8, 16))]
    rows = [
        {"method": method, "nodes": K, "n": n, "replicate": r, "truth": 0.0,
         "loss": level * K**in_K * (n / 100) ** exponent * (1 + spread * rng.normal()),
         "start": 1.0, "ball": 1.0, "share": 0.1 * r, "objective": "sum",
         "per": "total", "iterations": 5}
        for method, K in curves for n in (100, 200, 400) for r in range(6)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        (against_n(-0.3), (1, 1, 1)),
        (against_n(0.2), (1, 1, 0)),
        (against_n(-0.3, in_K=0.1), (1, 1, 0)),
        (against_n(-0.3, level=1.7), (1, 0, 0)),
        (
            against_n(-0.3, spread=0.0),
            (1, 1, 0),
        ),  # identical draws show nothing
        (against_n(-0.3).query("replicate == 0"), (1, 1, 0)),
        (
            pd.concat([against_n(-0.3), against_n(0.2).assign(ball=3.0)]),
            (2, 2, 1),
        ),
    ],
)
def test_figure_4_falls_with_n_and_with_nodes(rows, counts):
    (row,) = tables.reading_sentences(rows).to_dict("records")
    assert (row["tried"], row["learning"], row["holding"]) == counts


@pytest.mark.parametrize(("ours", "told"), [(0.4, True), (0.6, False)])
def test_a_private_curve_below_fw_is_explained(ours, told):
    ends = {"FW": 0.5, "DP-FW": 0.3, "K = 2": 0.9, "K = 4": ours}
    rows = [
        row
        for name, end in ends.items()
        for row in drawing.values("one", name, [0, 1], [1.0, end], "curve")
    ]
    assert (figures.explained(drawing.frame(rows)) == figures.LARGER) == told
