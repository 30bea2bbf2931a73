"""Rates, orders and the control of the runs at the theorem's own parameters."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from dperm.judge.claims import Claim
from dperm.judge.judge import judged
from dperm.papers.dpskgd import figures, measures, tables, theorem42

KEYS = ["instance", "case", "n", "epsilon"]
# sampling: its excess over that of single draws, and its row over theirs
LAWS = {"single": (1.0, 1.0), "single again": (1.0, 1.0), "single IS": (3.0, 2.0),
        "full": (0.4, 5.0), "4 blocks": (1.0, 1.0)}  # fmt: skip


def swept(runs=60, spread=0.3, exponent=-1.5, ns=(2**8, 2**10, 2**12, 2**14, 2**16),
          epsilons=(0.25, 0.5, 1.0), laws=LAWS, seed=0):  # fmt: skip
    """Runs whose excess is a power law in n epsilon; at n = 256 nothing may be run."""
    rng, rows = np.random.default_rng(seed), []
    for n in ns:
        for epsilon in epsilons:
            for sampling, (times, row) in laws.items():
                size, bound = n * epsilon, 400.0 * row / (n * epsilon)
                known = {"instance": "one", "case": "convex", "sampling": sampling,
                         "n": n, "epsilon": epsilon, "row": row, "tight": row,
                         "bound": bound, "start": 1.0, "start_over_bound": 1 / bound,
                         "expected": times * size**exponent}  # fmt: skip
                known |= dict.fromkeys(
                    ["d", "true_epsilon", "inner", "periods", "epochs", "proved",
                     "n_needed", "steps"], 1.0,
                )  # fmt: skip
                if n == 2**8:
                    rows.append(known | {"epochs": -2.0})
                    continue
                law = times * size**exponent * rng.lognormal(0, spread, runs)
                rows += [{**known, "draw": k, "excess": v} for k, v in enumerate(law)]
    return pd.DataFrame(rows)


def test_samplings_have_the_names_of_the_theorem():
    assert (measures.BASE, measures.AGAIN) == (theorem42.BASE, theorem42.AGAIN)
    assert theorem42.SAMPLINGS[measures.AGAIN] == theorem42.SAMPLINGS[measures.BASE]


def test_exponents_are_those_of_the_law_where_the_bound_speaks():
    found = pd.DataFrame(measures.exponents(swept(spread=0.05)))
    n = found[found["axis"] == "n"]
    np.testing.assert_allclose(n["exponent"], -1.5, atol=0.05)
    np.testing.assert_allclose(n["bound"], -1.0)
    np.testing.assert_allclose(n["expected"], -1.5)
    assert (n["ci_low"] < -1.45).all() and (n["ci_high"] > -1.55).all()
    # 400 / (n epsilon) <= 1 from n = 1024 at epsilon 1 on, four points; full never at 4
    assert set(n["points"]) == {4} and "full" not in set(n["sampling"])
    assert (n["theorem"] == -1).all()
    assert found[found["axis"] == "epsilon"].empty  # three points fit no line
    more = swept(epsilons=(0.125, 0.25, 0.5, 1.0), ns=(2**8, 2**16), spread=0.05)
    along = pd.DataFrame(measures.exponents(more))
    assert set(along["axis"]) == {"epsilon"}
    np.testing.assert_allclose(along["exponent"], -1.5, atol=0.05)


def test_where_nothing_is_run_a_row_says_so():
    found = pd.DataFrame(measures.beside_bounds(swept()))
    none = found[found["n"] == 2**8]
    assert none["excess"].isna().all() and (none["epochs"] < 1).all()
    assert (none["runs"] == 0).all() and (found[found["n"] > 2**8]["runs"] == 60).all()


def test_orders_and_what_the_rows_say_of_them():
    found = pd.DataFrame(measures.orders(swept(), KEYS))
    assert (found["n"] > 2**8).all()
    control = found[found["question"] == measures.CONTROL]
    assert set(control["first"]) == {"single again"}
    widest = np.exp(np.abs(np.log(control["ratio"])).max())
    asked = found[found["question"] != measures.CONTROL]
    assert (asked["band"] == widest).all() and 1 < widest < 1.4
    by = asked.groupby("first")
    assert (by.get_group("single IS")["right"] == "yes").all()  # 3 and 2: both worse
    assert (by.get_group("full")["right"] == "no").all()  # 0.4, said to be worse
    assert (by.get_group("4 blocks")["verdict"] == "undecided").all()
    np.testing.assert_allclose(by.get_group("full")["expected"], 0.4)


def test_more_transcripts_narrow_the_band():
    found = measures.enough(swept(spread=0.5), KEYS)
    assert [row["transcripts"] for row in found] == [3, 6, 10, 20, 30, 60]
    bands = [row["band"] for row in found]
    assert bands == sorted(bands, reverse=True) and bands[0] > 1.5 * bands[-1]
    assert found[0]["undecided"] > found[-1]["undecided"]
    whole = max(row["band"] for row in measures.orders(swept(spread=0.5), KEYS))
    assert bands[-1] == pytest.approx(whole)


def test_the_bound_is_judged_where_it_says_anything():
    """And w = 0 would not pass there."""
    table = pd.DataFrame(measures.beside_bounds(swept()))
    known = table[["sampling", "n", "epsilon"]].drop_duplicates()
    claim = Claim(
        place="Theorem 4.2", says="The bound holds", kind="proof", table="theorem42",
        each=[{key: [value] for key, value in row.items()}
              for row in known.to_dict("records")],
        only="epochs >= 1 and start_over_bound >= 1", number="excess / bound",
        null="start / bound", at_most=1.0,
    )  # fmt: skip
    assert judged(claim, lambda name: table, {}).verdict == "reproduced"
    ends = dict.fromkeys(("excess", "ci_low", "ci_high"), table["start"])
    assert (
        judged(claim, lambda name: table.assign(**ends), {}).verdict == "contradicted"
    )


@pytest.fixture
def product(monkeypatch):
    three = {name: LAWS[name] for name in ("single", "single again")}
    placed = pd.concat(
        [swept(ns=(2**12,), epsilons=(1.0,), laws=three | {"single IS": law}, seed=7)
         .assign(placement=where, length="theorem")
         for where, law in ((-1.0, (3.0, 2.0)), (0.5, (0.3, 0.5)))]
    )  # fmt: skip
    placed = placed.assign(instance="separable")
    frames = {"theorem": swept().assign(instance="separable"), "placement": placed}
    loaded = SimpleNamespace(load_sweep=lambda config, name: frames[name])
    for module in (tables, figures):
        monkeypatch.setattr(module, "results", loaded)
    return lambda sweep, keys: SimpleNamespace(sweeps=[sweep], options={"keys": keys})


def drawn(figure, product):
    """The data behind a figure."""
    made, rows = figure(None, product, [])
    plt.close(made)
    return pd.DataFrame(rows)


def test_placement_says_on_which_side_of_the_regime(product):
    at = product("placement", ["instance", "length", "placement", "n"])
    data = tables.placement(None, at, []).data
    sided = data[data["first"] == "single IS"].set_index("regime")
    assert sided.loc["inside", "verdict"] == "helps"
    assert sided.loc["outside", "verdict"] == "hurts"
    assert (sided["right"] == "yes").all()
    shown = drawn(figures.placement, at)
    shown = shown[shown["algorithm"] == "separable"]
    np.testing.assert_allclose(shown["mean"], sided["ratio"].loc[["outside", "inside"]])


def test_the_figure_has_exponents_and_the_band(product):
    at = product("theorem", KEYS)
    shown = drawn(figures.rates, at)
    found = tables.rate(None, at, []).data
    points = shown[shown["panel"] == "exponent in n"]
    np.testing.assert_allclose(points["mean"], found["exponent"])
    np.testing.assert_allclose(points["x"], found["bound"])
    band = shown[(shown["panel"] == "controls") & (shown["algorithm"] == "band")]
    np.testing.assert_allclose(
        band["mean"], [row["band"] for row in measures.enough(swept(), KEYS)]
    )
