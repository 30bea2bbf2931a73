"""Gains, partitions and samplings: the numbers of their tables and figures."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment.results import Result
from dperm.papers.dpskgd import figures, measures, tables

DIMENSIONS = (4, 16, 64, 256)
WORSE, BETTER = "DP-SGD", "DP-SkGD full"


def drawn(figure, product, problems=()):
    """The data behind a figure."""
    return figure(None, product, list(problems)).rows


def patched(monkeypatch, **of_results):
    for module in (figures, tables):
        monkeypatch.setattr(module, "results", SimpleNamespace(**of_results))


# --- regimes --------------------------------------------------------------------------


def swept(exponent=0.75, drowned=(), seed=0):
    """Draws of two methods, their excess a power of d; the start is low if drowned."""
    rng, rows = np.random.default_rng(seed), []
    for d in DIMENSIONS:
        for name, power, row in ((WORSE, exponent, 1.0), (BETTER, 0.0, 0.5)):
            known = {"regime": "flat", "algorithm": name, "d": d, "n": 2**20,
                     "start": 1.0 if d in drowned else 1e6, "expected": d**power,
                     "convex": d**row, "strong": d ** (2 * row)}  # fmt: skip
            for replicate in range(6):
                rows += [{**known, "replicate": replicate, "source": "law", "draw": k,
                          "excess": d**power * rng.lognormal(0, 0.05)}
                         for k in range(4)]  # fmt: skip
            rows.append({**known, "replicate": 0, "source": "solver", "draw": 0,
                         "excess": 1e9})  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("exponent", [0.75, 0.0])
def test_the_gain_grows_with_its_exponent(exponent):
    (row,) = measures.fitted(swept(exponent))
    assert row["exponent"] == pytest.approx(exponent, abs=0.02)
    assert row["ci_low"] < row["exponent"] < row["ci_high"]
    assert row["ci_high"] - row["ci_low"] < 0.05
    assert (row["worse"], row["better"], row["runs"]) == (WORSE, BETTER, 24)
    assert row["convex_row"] == pytest.approx(0.5)  # d over d^(1/2)
    assert row["strong_row"] == pytest.approx(1.0)
    assert row["gain_at_d_to"] == pytest.approx(256**exponent, rel=0.1)


def test_dimensions_that_the_noise_drowns_are_left_out():
    (row,) = measures.fitted(swept(drowned=(256,)))
    assert (row["d_from"], row["d_to"]) == (4, 64)
    assert measures.fitted(swept(drowned=(16, 64, 256))) == []


def test_the_figure_of_regimes_has_the_gains_of_the_draws(monkeypatch):
    table = swept()
    patched(monkeypatch, load_sweep=lambda config, name: table)
    rows = drawn(figures.regimes, None).set_index(["panel", "algorithm", "x"])["mean"]
    law = table[table["source"] == "law"]
    means = law.groupby(["algorithm", "d"])["excess"].mean()
    for d in DIMENSIONS:
        gain = rows["flat: gain", f"{WORSE} / {BETTER} (n = 1048576)", d]
        assert gain == pytest.approx(means[WORSE, d] / means[BETTER, d])
        assert rows["flat: gain", "Table 1, convex", d] == pytest.approx(d**0.5)
        share = rows["flat: excess", f"{WORSE} (law, n = 1048576)", d]
        assert share == pytest.approx(means[WORSE, d] / 1e6)
        assert rows["flat: excess", f"{BETTER} (solver, n = 1048576)", d] == 1e3


# --- samplings and Table 1 ------------------------------------------------------------

ERRORS = {"dp_skgd": 1.0, "dp_skgd_importance": 3.0, "dp_skgd_blocks4": 0.5,
          "dp_skgd_full": 0.25, "dp_sgd": 8.0}  # fmt: skip


@pytest.fixture
def ran():
    """Results whose fresh errors lie around ``ERRORS``."""
    return [
        Result("one", name, {"dp_sgd": "DP-SGD"}.get(name, name), pd.DataFrame(),
               pd.DataFrame({"calibration": "strict", "passes": 2.0, "checkpoint": 2.0,
                             "relative_error": error * np.array([0.9, 1.1])}), "")
        for name, error in ERRORS.items()
    ]  # fmt: skip


def test_samplings_stand_at_their_numbers_of_blocks(ran, monkeypatch):
    patched(
        monkeypatch,
        load=lambda config, problems: {"one": ran},
        titles=lambda config, problems: {"one": SimpleNamespace(title="One")},
    )
    optimum = SimpleNamespace(w=np.zeros(8))
    monkeypatch.setattr(figures.inputs, "load_optimum", lambda at: optimum)
    monkeypatch.setattr(figures.plan, "at_problem", lambda config, name: name)
    monkeypatch.setattr(Result, "final", lambda self, kind, passes=None: self.evaluated)
    product = SimpleNamespace(calibration="strict")
    rows = drawn(figures.samplings, product, ["one"])
    places = {"dp_skgd": 8, "dp_skgd_importance": 8, "dp_skgd_blocks4": 4}
    places |= {"dp_skgd_full": 1, "DP-SGD": 0}
    for name, x in places.items():
        seen = rows[rows["algorithm"] == name]
        assert set(seen["x"]) == {x}
        assert seen["mean"].iloc[0] == pytest.approx(ERRORS.get(name, ERRORS["dp_sgd"]))
