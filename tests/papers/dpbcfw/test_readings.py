"""Runs under a reading against closed forms, and the judging of figures by hand."""

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment.config import compose
from dperm.papers.dpbcfw import figures, outcomes, sweeps
from dperm.papers.dpbcfw.runs import (
    Reading,
    Setting,
    final,
    noise_of,
    noise_under,
    run,
)
from dperm.present import drawing

OURS = Setting(noise="stated", epsilon=1.0, nodes=2, sketch=10, iterations=9)
CENTRAL = Setting("dp_fw", noise="scaled", epsilon=1.0, iterations=9)


# --- noise ----------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [OURS, CENTRAL])
def test_the_plain_reading_is_what_the_paper_prints(instance, setting):
    plain, read = noise_of(instance, setting), noise_under(instance, setting, Reading())
    assert read.index_scale == plain.index_scale
    assert read.sketch_scale == plain.sketch_scale
    assert read.ledger == plain.ledger


@pytest.mark.parametrize("setting", [OURS, CENTRAL])
def test_an_epsilon_an_iteration_saves_the_root_of_their_number(instance, setting):
    plain = noise_under(instance, setting, Reading())
    single = noise_under(instance, setting, Reading(per="iteration"))
    assert plain.index_scale / single.index_scale == pytest.approx(3.0)  # sqrt(9)
    if setting.method == "dp_bcfw":
        assert plain.sketch_scale / single.sketch_scale == pytest.approx(3.0)
    counts = [[event.count for event in each.ledger.events] for each in (plain, single)]
    assert counts[0] == counts[1]  # the whole run is accounted for
    assert single.true_epsilon > plain.true_epsilon


def test_scores_of_the_sum_are_n_times_larger(instance):
    plain = noise_under(instance, OURS, Reading())
    summed = noise_under(instance, OURS, Reading("sum"))
    assert plain.index_scale / summed.index_scale == pytest.approx(instance.problem.n)
    assert summed.sketch_scale == plain.sketch_scale
    assert summed.ledger.events[0].scale == summed.index_scale


def test_an_unknown_reading_is_refused():
    with pytest.raises(ValueError, match="objective"):
        Reading("median")
    with pytest.raises(ValueError, match="per"):
        Reading(per="epoch")


@pytest.mark.parametrize("setting", [OURS, CENTRAL, Setting("fw", iterations=9)])
def test_the_end_of_a_run_is_that_of_its_path(instance, setting):
    found, path = final(instance, setting, Reading(), 3), run(instance, setting, 3)
    assert found["loss"] == pytest.approx(path[-1]["loss"], rel=1e-12)
    assert found["final_norm"] == pytest.approx(path[-1]["final_norm"], rel=1e-12)


# --- the sweep ------------------------------------------------------------------------


def test_eta_itself_and_the_noise_of_ones_own_paper(instance):
    config = compose(["paper=dpbcfw"])
    point = {"n": 40, "d": 90, "density": 0.2, "active": 0.1, "ball": 0.5,
             "objective": "sum", "per": "iteration", "iterations": 4}  # fmt: skip
    settings = [{"method": ["dp_fw"], "noise": ["scaled"], "epsilon": [1.0],
                 "own": [False, True]}]  # fmt: skip
    read, own = sweeps.readings(config, point, 7, settings)
    assert read["eta"] == pytest.approx(0.5)
    # sum: n times less; an iteration: sqrt(T) less
    ratio = own["index_scale"] / read["index_scale"]
    assert ratio == pytest.approx(40 * 2.0)
    large = sweeps.readings(config, {**point, "ball": float("inf")}, 7, settings)
    assert large[0]["eta"] == pytest.approx(instance.radius)


def test_sizes_are_of_one_draw():
    config = compose(["paper=dpbcfw"])
    point = {"d": 30, "rows": 50, "density": 0.3, "active": 0.1, "ball": 0.5,
             "objective": "mean", "per": "total", "iterations": 2}  # fmt: skip
    few, many = sweeps.readings(
        config, point, 7, [{"method": ["fw"]}], records=[20, 50]
    )
    assert (few["n"], many["n"]) == (20, 50)
    assert few["share"] == many["share"] and few["start"] != many["start"]


# --- margins of the sentences on the figures ------------------------------------------


def around(*means, spread=0.01, draws=6):
    """Curves by key 0, 1, ... with these means."""
    noise = spread * np.linspace(-1, 1, draws)
    return {key: mean + noise * (-1) ** key for key, mean in enumerate(means)}


def counted(*every):
    """How many readings hold, of these margins one each."""
    rows = [
        {"figure": "Figure 5", "ball": float(k), "condition": condition}
        | outcomes.with_interval("margin", values)
        for k, margins in enumerate(every)
        for condition, values in margins.items()
    ]
    table = pd.DataFrame(rows).reindex(
        columns=[*outcomes.READING, "condition", "margin", "margin_low", "margin_high"]
    )
    (row,) = outcomes.holding(table).to_dict("records")
    return row["tried"], row["learning"], row["holding"]


@pytest.mark.parametrize(
    ("means", "learns", "holds"),
    [
        ((0.7, 0.6, 0.5), 1, 1),
        ((0.7, 0.75, 0.5), 1, 0),
        ((0.95, 0.9, 0.85), 0, 0),
        ((0.7, 0.6999, 0.5), 1, 0),
    ],
)
def test_an_order_must_hold_and_be_learnt(means, learns, holds):
    margins = outcomes.ordered(around(*means))
    assert margins[outcomes.DROP].mean() == pytest.approx(0.25 - (1 - min(means)))
    assert counted(margins) == (1, learns, holds)


def test_flatness_is_measured_against_the_drop():
    near, apart = (around(0.5, other, spread=0.001) for other in (0.52, 0.57))
    assert counted(outcomes.flat(near), outcomes.flat(apart)) == (2, 2, 1)
    cheap = outcomes.flat(around(0.99, 0.9905, spread=1e-4))
    assert cheap["spread"].max() < 0 and counted(cheap) == (1, 0, 0)


def test_neither_a_single_draw_nor_identical_ones_show_that_a_reading_holds():
    for how in ({"draws": 1}, {"spread": 0.0}):
        assert counted(outcomes.ordered(around(0.7, 0.1, **how))) == (1, 1, 0)


def runs_of(curves, **keys):
    """A sweep's rows of such curves, none a constant away from another."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {**keys, **curve, "replicate": r, "relative": value + 1e-4 * rng.normal()}
        for curve, value in curves
        for r in range(3)
    )


@pytest.mark.parametrize(("ours", "own"), [(0.6, 1), (0.3, 0), (0.9, 0)])
def test_figure_3_lies_between_two(ours, own):
    curves = [({"method": "dp_bcfw", "own": False}, ours),
              ({"method": "dp_fw", "own": False}, 0.5),
              ({"method": "dp_fw", "own": True}, 0.8),
              ({"method": "fw", "own": False}, 0.49)]  # fmt: skip
    table = runs_of(curves)
    assert counted(outcomes.figure3(table, as_itself=False))[2] == 0
    assert counted(outcomes.figure3(table, as_itself=True))[2] == own


def against_n(exponent, falling_in_K=True):
    """Excess K^-+0.1 n^exponent over a truth of 0."""
    sign = -0.1 if falling_in_K else 0.1
    curves = [({"method": "dp_fw", "nodes": 1}, 1.0)]
    curves += [({"method": "dp_bcfw", "nodes": K}, K**sign) for K in outcomes.NODES]
    parts = [
        runs_of(curves, n=n).assign(scale=(n / 100.0) ** exponent)
        for n in (100, 200, 400)
    ]
    table = pd.concat(parts, ignore_index=True)
    noise = 1 + 1e-3 * np.random.default_rng(1).normal(size=len(table))
    relative = 0.5 * table["relative"] * table["scale"] * noise
    return table.assign(relative=relative, loss=relative, truth=0.0, start=1.0)


def test_figure_4_falls_with_n_and_with_nodes_at_its_rate():
    assert counted(outcomes.figure4(against_n(-0.3)))[2] == 1
    assert counted(outcomes.figure4(against_n(0.2)))[2] == 0
    assert counted(outcomes.figure4(against_n(-0.3, falling_in_K=False)))[2] == 0
    for exponent, holds in ((-0.667, 1), (-0.3, 0)):
        margins = outcomes.rate(against_n(exponent))
        assert counted(margins)[2] == holds
        found = margins["K = 2: exponent"].mean() + outcomes.RATE
        assert found == pytest.approx(exponent, abs=0.01)


def test_figure_1_orders_by_the_chance_in_the_step():
    curves = [({"sampling": name}, value) for name, value in
              (("elementary", 0.3), ("tau-nice", 0.5), ("(K, tau), published", 0.7),
               ("(K, tau), corrected", 0.6))]  # fmt: skip
    table = runs_of(curves)
    assert counted(outcomes.figure1(table, "as printed"))[2] == 1
    assert counted(outcomes.figure1(table, "right"))[2] == 0


@pytest.mark.parametrize(("ours", "told"), [(0.4, True), (0.6, False)])
def test_a_private_curve_below_fw_is_explained(ours, told):
    ends = {"FW": 0.5, "DP-FW": 0.3, "K = 2": 0.9, "K = 4": ours}
    rows = [
        row
        for name, end in ends.items()
        for row in drawing.values("one", name, [0, 1], [1.0, end], "curve")
    ]
    assert (figures.explained(drawing.frame(rows)) == figures.LARGER) == told


def test_bytes_are_those_of_the_formulas():
    run = {"n": 100, "nodes": 4, "sketch": 10, "bytes_up": 5.0, "corollary": 2.0,
           "one_shot": 7.0, "iterations": 2}  # fmt: skip
    pairs = [(rule, t) for rule in ("tuned", "theorem 4") for t in (1, 2)]
    table = pd.DataFrame([run | {"rule": rule, "iteration": t} for rule, t in pairs])
    _, every = outcomes.bytes_so_far(table)
    assert every["bytes_up"].tolist() == [4 * (16 + 80), 2 * 4 * (16 + 80)]
    counts = outcomes.bytes_by_records(table)
    assert set(counts["Corollary 1"]["bytes_up"]) == {16.0}
    assert outcomes.share_of_raw(table) == pytest.approx(5 / (8 * 100 * 4 * 2))
