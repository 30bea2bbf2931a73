"""Runs under a reading against closed forms, and the judging of figures by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment.config import compose
from dperm.papers.dpbcfw import outcomes, sweeps
from dperm.papers.dpbcfw.runs import (
    Reading,
    Setting,
    final,
    noise_of,
    noise_under,
    run,
)

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


# --- judging --------------------------------------------------------------------------


def around(*means, spread=0.01, draws=6):
    """Curves by key 0, 1, ... with these means."""
    noise = spread * np.linspace(-1, 1, draws)
    return {key: mean + noise * (-1) ** key for key, mean in enumerate(means)}


@pytest.mark.parametrize(
    ("means", "holds", "worst"),
    [
        ((0.7, 0.6, 0.5), "yes", None),
        ((0.7, 0.75, 0.5), "no", "1 below 0"),
        ((0.95, 0.9, 0.85), "no", "falls by 0.25 f(0)"),
        ((0.7, 0.6999, 0.5), "undecided", "1 below 0"),
    ],
)
def test_an_order_must_hold_and_be_learnt(means, holds, worst):
    row = outcomes.ordered(around(*means), "{}").row()
    assert row["holds"] == holds
    assert worst in (None, row["worst"])
    assert row["drop"] == pytest.approx(1 - means[-1])


def test_flatness_is_measured_against_the_drop():
    assert outcomes.flat(around(0.5, 0.52, spread=0.001)).row()["holds"] == "yes"
    assert outcomes.flat(around(0.5, 0.57, spread=0.001)).row()["holds"] == "no"
    cheap = outcomes.flat(around(0.99, 0.9905, spread=1e-4)).row()
    assert (cheap["holds"], cheap["without_learning"]) == ("no", "yes")


def test_a_single_draw_decides_nothing():
    for means in ((0.7, 0.1), (0.7, 0.9)):
        row = outcomes.ordered(around(*means, draws=1)).row()
        assert row["holds"] == row["without_learning"] == "undecided"


@pytest.mark.parametrize(
    ("means", "holds"), [((0.99, 0.98), "no"), ((0.7, 0.1), "undecided")]
)
def test_draws_that_are_alike_speak_against_a_sentence_alone(means, holds):
    assert outcomes.ordered(around(*means, spread=0)).row()["holds"] == holds


def runs_of(curves, **keys):
    """A sweep's rows of such curves."""
    return pd.DataFrame(
        {**keys, **curve, "replicate": r, "relative": value + 0.001 * r}
        for curve, value in curves
        for r in range(3)
    )


def private(ours, theirs, alone):
    curves = [({"method": "dp_bcfw", "own": False}, ours),
              ({"method": "dp_fw", "own": False}, alone),
              ({"method": "dp_fw", "own": True}, theirs),
              ({"method": "fw", "own": False}, alone - 0.01)]  # fmt: skip
    return runs_of(curves, d=20, density=0.1, objective="sum", per="total",
                   iterations=5, ball=1.0)  # fmt: skip


def jittered(table):
    """No curve a constant away from another."""
    noise = np.random.default_rng(0).normal(0, 1e-4, len(table))
    return table.assign(relative=table["relative"] + noise)


@pytest.mark.parametrize(
    ("ours", "read", "own"), [(0.6, "no", "yes"), (0.3, "no", "no"), (0.9, "no", "no")]
)
def test_figure_3_lies_between_two(ours, read, own):
    rows = outcomes._private(jittered(private(ours, 0.8, 0.5)))
    assert [row["holds"] for row in rows] == [read, own]
    assert rows[1]["dp_fw"] == "of its own paper"


def against_n(exponent, falling_in_K=True):
    """Excess K^-+0.1 n^exponent over a truth of 0."""
    curves = [({"method": "dp_fw", "nodes": 1}, 1.0)]
    curves += [({"method": "dp_bcfw", "nodes": K}, K ** (-0.1 if falling_in_K else 0.1))
               for K in outcomes.NODES]  # fmt: skip
    parts = [
        runs_of(curves, n=n).assign(scale=(n / 100.0) ** exponent)
        for n in (100, 200, 400)
    ]
    table = jittered(pd.concat(parts, ignore_index=True))
    relative = 0.5 * table["relative"] * table["scale"]
    return table.assign(relative=relative, loss=relative, truth=0.0, start=1.0)


def test_figure_4_falls_with_n_and_with_nodes():
    assert outcomes.figure4(against_n(-0.3)).row()["holds"] == "yes"
    assert outcomes.figure4(against_n(0.2)).row()["holds"] == "no"
    assert outcomes.figure4(against_n(-0.3, falling_in_K=False)).row()["holds"] == "no"


@pytest.mark.parametrize(("exponent", "holds"), [(-0.667, "yes"), (-0.3, "no")])
def test_the_rate_is_the_exponent_of_the_excess(exponent, holds):
    row = outcomes.rate(against_n(exponent)).row()
    assert row["holds"] == holds
    assert row["margin"] + outcomes.RATE == pytest.approx(exponent, abs=0.01) or (
        row["worst"].startswith("falls")
    )


def test_an_excess_below_0_has_no_exponent():
    table = against_n(-0.667).assign(truth=5.0)
    assert outcomes.rate(table).row()["without_learning"] == "undecided"


def test_figure_1_orders_by_the_chance_in_the_step():
    curves = [({"sampling": name}, value) for name, value in
              (("elementary", 0.3), ("tau-nice", 0.5), ("(K, tau), published", 0.7),
               ("(K, tau), corrected", 0.6))]  # fmt: skip
    table = jittered(runs_of(curves))
    assert outcomes.figure1(table, "as printed").row()["holds"] == "yes"
    assert outcomes.figure1(table, "right").row()["holds"] == "no"


# --- in words -------------------------------------------------------------------------


def rows_with(*holds):
    return pd.DataFrame(
        {"figure": "Figure 5", "reading": f"eta {k}", "holds": value, "drop": 0.4,
         "without_learning": value, "worst": "K = 4 below K = 2", "margin": 0.1 * k}
        for k, value in enumerate(holds)
    )  # fmt: skip


def test_a_sentence_counts_readings():
    (row,) = outcomes.sentences(rows_with("yes", "no", "undecided")).to_dict("records")
    assert (row["tried"], row["holding"], row["undecided"]) == (3, 1, 1)
    assert "under 1 of 3 readings (eta 0)" in row["sentence"]
    (none,) = outcomes.sentences(rows_with("no", "no")).to_dict("records")
    assert "under none of 2 readings" in none["sentence"]


def test_a_reading_holds_if_it_does_on_all_data():
    data = rows_with("yes", "no").assign(reading="eta 1", data=["a", "b"])
    (row,) = outcomes.sentences(data).to_dict("records")
    assert (row["tried"], row["holding"], row["holding_somewhere"]) == (1, 0, 1)
    assert "on all 2 data sets" in row["sentence"]
    assert "1 on one data set at least" in row["sentence"]


def test_the_reading_in_words():
    row = {"ball": float("inf"), "objective": "sum", "per": "iteration",
           "iterations": 20, "holds": "no"}  # fmt: skip
    told = outcomes.in_words(row)
    assert told == "eta ||x_true||_1, sum, epsilon an iteration, T 20"
    assert replace(Reading(), per="iteration").per == row["per"]
