"""Figures and tables show what the results say."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dperm.config.config import compose
from dperm.config.locate import ConfigError, conf_dir
from dperm.experiments import inputs, products, results, stages

ONLY = ["paper.small_problems=[diabetes]"]


@pytest.fixture(scope="module")
def results_of_all(data_dir, tmp_path_factory):
    """A folder with the results of all solvers of the paper on one problem."""
    folder = tmp_path_factory.mktemp("solved")
    where = [f"data.dir={data_dir}", f"output.results={folder}", "scale=smoke"]
    for solver in ("dp_cd", "dp_sgd"):
        config = compose(
            [*where, "problem=diabetes", f"solver={solver}", *ONLY]
        )
        stages.tune(config)
        stages.evaluate(config)
    return folder


@pytest.fixture
def solved(results_of_all, configured, tmp_path):
    """The same in a folder of one's own."""
    shutil.copytree(results_of_all, tmp_path / "results")
    return lambda *overrides: configured(*ONLY, *overrides)


def rows_folder(config):
    return Path(config.output.results, "dpcd")


def rows_of(config, solver, stage):
    folder = Path(config.output.results, "dpcd", "diabetes", solver)
    return pd.read_parquet(folder / f"{stage}.parquet")


def test_figure_data_are_the_fresh_runs(solved):
    config = solved("product=figure2")
    products.figure(config)
    folder = Path(config.output.figures, "dpcd")
    shown = pd.read_csv(folder / "figure2.csv")
    assert set(shown["algorithm"][shown["role"] == "curve"]) == {
        "DP-CD",
        "DP-SGD",
    }
    curve = shown[shown["algorithm"] == "DP-CD"].set_index("x")
    result = results.load(config.paper, rows_folder(config), ["diabetes"])[
        "diabetes"
    ][0]
    runs = result.trajectories("published", result.best_passes("published"))
    for checkpoint, group in runs.groupby("checkpoint"):
        values = group["relative_error"]
        row = curve.loc[checkpoint]
        np.testing.assert_allclose(
            [row["mean"], row["min"], row["max"]],
            [values.mean(), values.min(), values.max()],
        )
        half = stats.t.ppf(0.975, len(values) - 1) * values.sem()
        np.testing.assert_allclose(
            row["ci_high"] - row["mean"], half, atol=1e-9
        )


def test_stars_are_the_paper_s_cells_for_as_many_passes(solved, monkeypatch):
    config = solved("product=figure2")
    (passes,) = (
        result.best_passes("published")
        for result in results.load(
            config.paper, rows_folder(config), ["diabetes"]
        )["diabetes"]
        if result.label == "DP-CD"
    )
    cells = pd.DataFrame({
        "problem": ["diabetes", "diabetes", "other"], "algorithm": "DP-CD",
        "passes": [passes, passes + 1, passes], "relative_error_mean": [0.7, 0.8, 0.9],
    })  # fmt: skip
    monkeypatch.setattr(results, "published", lambda paper, name: cells)
    products.figure(config)
    shown = pd.read_csv(Path(config.output.figures, "dpcd") / "figure2.csv")
    star = shown[shown["algorithm"] == "DP-CD, published"]
    assert star[["panel", "x", "mean"]].to_numpy().tolist() == [
        ["diabetes", passes, 0.7]
    ]


def test_figures_are_the_same_bytes_when_rebuilt(solved):
    config = solved("product=figure2", "formats=[pdf,svg]")
    products.figure(config)
    folder = Path(config.output.figures, "dpcd")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(before) == 4
    products.figure(config)
    assert before == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }
    assert all(b"CreationDate" not in content for content in before.values())


def test_table2_holds_tuning_and_fresh_means(solved):
    """Of one tuning: what its own draws would print needs a sweep."""
    place = "paper.tables.table2"
    overrides = [f"{place}.function=relative_error", f"{place}.sweeps=[]"]
    config = solved("product=table2", *overrides, f"~{place}.options")
    products.table(config)
    table = pd.read_csv(Path(config.output.results, "dpcd") / "table2.csv")
    tuned, fresh = (
        rows_of(config, "dp_cd", stage) for stage in ("tune", "evaluate")
    )
    tuned = tuned[tuned["calibration"] == "published"]
    means = tuned[tuned["status"] == "ok"].groupby(["passes", "step", "clip"])
    best = means["objective"].mean().groupby("passes").idxmin()
    for passes, (_, step, clip) in best.items():
        row = table[
            (table["algorithm"] == "DP-CD") & (table["passes"] == passes)
        ].iloc[0]
        assert (row["step"], row["clip"]) == (step, clip)
        chosen = tuned.query(
            "passes == @passes and step == @step and clip == @clip"
        )
        np.testing.assert_allclose(
            row["mean"], chosen["relative_error"].mean()
        )
        np.testing.assert_allclose(
            row["std"], chosen["relative_error"].std(ddof=0)
        )
        final = fresh.query(
            "calibration == 'published' and passes == @passes and checkpoint == @passes"
        )
        np.testing.assert_allclose(
            row["fresh_mean"], final["relative_error"].mean()
        )
        assert row["fresh_ci_low"] <= row["fresh_mean"] <= row["fresh_ci_high"]


def test_a_product_that_does_not_exist(solved):
    with pytest.raises(ConfigError, match="did you mean figure2"):
        products.figure(solved("product=figur2"))


def test_tables_read_the_given_data_folder(configured, tmp_path, monkeypatch):
    from dperm.papers.dpcd import tables as dpcd
    from dperm.papers.dpgcd import tables as dpgcd

    config = configured(*ONLY)
    monkeypatch.setenv("DPERM_CONF", str(conf_dir()))
    monkeypatch.chdir(tmp_path)  # which has no folder named data
    problem = inputs.load_problem(config.problem, config.data)
    stored = inputs.Inputs(config.data, config.overrides)
    made = dpcd.utility(stored, ["diabetes"])
    assert made["lipschitz"].iloc[0] > 0
    made = dpgcd.sizes(stored, ["diabetes"])
    assert made.loc[0, ["records", "features"]].tolist() == [
        problem.n,
        problem.p,
    ]
