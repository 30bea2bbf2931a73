"""Gains, rates, and comparisons of samplings, from rows whose numbers are known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dperm.config.schema import Data
from dperm.experiments.inputs import Inputs
from dperm.papers.dpskgd import tables


def made(name, rows):
    """A table of rows as of a sweep."""
    return getattr(tables, name)(rows)


def test_dimensions_that_the_noise_drowns_are_left_out():
    """Where the start is low beside the excess, a power of d for one of two methods."""

    def found(drowned):
        rows = [
            {"regime": "flat", "algorithm": name, "d": d, "n": 2**20, "convex": d,
             "strong": d, "start": 1.0 if d in drowned else 1e6, "replicate": number,
             "source": "law", "draw": 0, "excess": d**power}
            for d in (4, 16, 64, 256) for number in range(6)
            for name, power in (("DP-SGD", 0.75), ("DP-SkGD full", 0.0))
        ]  # fmt: skip
        return made("exponents", pd.DataFrame(rows))

    (row,) = found((256,)).to_dict("records")
    assert (row["d_from"], row["d_to"]) == (4, 64)
    assert row["exponent"] == pytest.approx(0.75)
    assert found((16, 64, 256)).empty


# --- Theorem 4.2 at its own parameters ------------------------------------------------

# sampling: its excess over that of single draws, and its row over theirs
LAWS = {"single": (1.0, 1.0), "single again": (1.0, 1.0), "single IS": (3.0, 2.0),
        "full": (0.4, 5.0), "4 blocks": (1.0, 1.0)}  # fmt: skip


def swept(ns, epsilons):
    """Runs whose excess is a power law in n epsilon; at n = 256 nothing may be run."""
    rng, rows = np.random.default_rng(0), []
    for n, epsilon, sampling in itertools.product(ns, epsilons, LAWS):
        times, row = LAWS[sampling]
        bound, law = 400.0 * row / (n * epsilon), times * (n * epsilon) ** -1.5
        known = {"instance": "separable", "case": "convex", "n": n, "start": 1.0,
                 "sampling": sampling, "epsilon": epsilon, "row": row, "bound": bound,
                 "start_over_bound": 1 / bound, "expected": law}  # fmt: skip
        drawn = law * rng.lognormal(0, 0.05, 60) if n > 2**8 else [np.nan]
        rows += [
            {**known, "draw": k, "excess": v} for k, v in enumerate(drawn)
        ]
    return pd.DataFrame(rows)


def test_exponents_are_those_of_the_law_where_the_bound_speaks():
    found = made("rate", swept(2 ** np.arange(8, 17, 2), (0.25, 0.5, 1.0)))
    n = found[found["axis"] == "n"]
    np.testing.assert_allclose(n["exponent"], -1.5, atol=0.05)
    np.testing.assert_allclose(n["bound"], -1.0)
    np.testing.assert_allclose(n["expected"], -1.5)
    assert (n["ci_low"] < -1.45).all() and (n["ci_high"] > -1.55).all()
    # 400 / (n epsilon) <= 1 from n = 1024 at epsilon 1 on, four points; full never at 4
    assert set(n["points"]) == {4} and "full" not in set(n["sampling"])
    assert (n["theorem"] == -1).all()
    assert found[found["axis"] == "epsilon"].empty  # three points fit no line
    along = made("rate", swept((2**8, 2**16), (0.125, 0.25, 0.5, 1.0)))
    assert set(along["axis"]) == {"epsilon"}
    np.testing.assert_allclose(along["exponent"], -1.5, atol=0.05)


# --- one law twice, and what is wider apart -------------------------------------------


SOLVERS = ("dp_skgd", "dp_skgd_importance", "dp_skgd_full", "dp_sgd")


def last_round(problem, solver, error, seed):
    """Two settings a factor 100 apart: tuning has no luck."""
    rng = np.random.default_rng(seed)
    known = {
        "problem": problem,
        "solver": solver,
        "replicate": 0,
        "status": "ok",
    }
    known |= {"passes": 2.0, "clip": 1.0}
    choose = [
        {"step": step, "number": r, "objective": step * error, "stage": "choose",
         "relative_error": step * error * rng.lognormal(0, 0.05)}
        for step in (1.0, 100.0) for r in range(5)
    ]  # fmt: skip
    fresh = [{"step": 1.0, "number": r, "stage": "fresh", "relative_error": value}
             for r, value in enumerate(error * rng.lognormal(0, 0.05, 12))]  # fmt: skip
    return [known | row for row in (*choose, *fresh)]


@pytest.fixture
def compared(monkeypatch):
    """Comparisons for errors by problem; importance on "flat" is uniform."""
    monkeypatch.setattr(
        tables, "problem_of", lambda inputs, name: (name, None)
    )
    monkeypatch.setattr(
        tables.plan, "label", lambda paper, solver: solver.name
    )
    alike = ("flat", "dp_skgd_importance", "dp_skgd")
    monkeypatch.setattr(tables, "same_law", lambda *at: at == alike)

    def comparisons(errors):
        rows = [
            row
            for name, of in errors.items()
            for seed, (solver, error) in enumerate(
                zip(SOLVERS, of, strict=True)
            )
            for row in last_round(name, solver, error, seed + 10 * len(name))
        ]
        # as smoke
        again = [row | {"replicate": 1, "objective": -1.0} for row in rows]
        rows += [
            *again,
            {"problem": "lost", "status": "unavailable", "replicate": 0},
        ]
        stored = Inputs(Data(), [])
        return tables.finalists(
            pd.DataFrame(rows), None, stored, [*errors, "lost"]
        )

    return comparisons


def test_the_widest_control_bounds_what_is_decided(compared):
    # a control apart by 1.5; on "steep" factors of 1.3 and of 4
    rows = compared(
        {"flat": (1.0, 1.5, 1.0, 1.0), "steep": (1.0, 1.3, 0.25, 1.0)}
    )
    control = rows[rows["question"] == tables.CONTROL_TUNED]
    assert len(control) == 1 and control["ratio"].iloc[0] == pytest.approx(
        1.5, rel=0.1
    )
    # by its interval alone it would be decided
    assert control["ci_low"].iloc[0] > 1
    rest = rows[rows["question"] != tables.CONTROL_TUNED]
    assert (rest["band"] == control["ratio"].iloc[0]).all()
    steep = rest[rest["problem"] == "steep"].set_index(["first", "second"])
    small = steep.loc[("dp_skgd_importance", "dp_skgd")]
    assert small["ci_low"] > 1 and small["ratio"] < small["band"]
    assert 1 / steep.loc[("dp_skgd_full", "dp_skgd"), "ratio"] > small["band"]


def test_without_controls_the_interval_decides(compared):
    rows = compared({"steep": (1.0, 1.3, 0.25, 1.0)}).set_index(
        ["first", "second"]
    )
    assert (rows["band"] == 1.0).all()
    assert rows.loc[("dp_skgd_importance", "dp_skgd"), "ci_low"] > 1
