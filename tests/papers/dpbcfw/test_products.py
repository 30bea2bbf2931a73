"""Every sweep at tiny sizes, and every figure and table that is made of them."""

import functools
import itertools

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import files, grid
from dperm.core.experiment.config import compose
from dperm.papers.dpbcfw import sweeps
from dperm.pipeline import digests, products
from dperm.pipeline import stages as sweeping


def tiny(settings):
    """A grid of settings with epsilons from 0.1 to 1 alone where there are many.

    The accountant takes most of the time at the small ones, and is tested apart.
    """
    if not isinstance(settings, list):
        return settings
    few = [each for each in settings if len(each.get("epsilon", ())) < 10]
    many = [each for each in settings if each not in few]
    return [*few, *({**each, "epsilon": [0.1, 1.0]} for each in many)]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A results folder that holds all sweeps but the real data's."""
    folder = tmp_path_factory.mktemp("swept")
    _sweep(folder)
    return folder


def _sweep(folder):
    config = configured(folder)
    for name, what in config.paper.sweeps.items():
        if name in ("real", "readings_real"):
            write(config, name, [{"status": "unavailable", "reason": "no network"}],
                  {"problem": "rcv1_train"}, 0)  # fmt: skip
            continue
        function, options = getattr(sweeps, what.kind), dict(what.options)
        if "settings" in options:
            options["settings"] = tiny(options["settings"])
        for point in grid.points(what.small, axes=None):
            for replicate in range(2):
                rows = function(config, point, 11 + replicate, **options)
                write(config, name, rows, point, replicate)


def configured(folder, *overrides):
    return compose(
        ["paper=dpbcfw", f"output.results={folder}", f"output.figures={folder}",
         *overrides]
    )  # fmt: skip


def write(config, name, rows, point, replicate):
    path = sweeping.sweep_path(config, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {"status": "ok", **point, "replicate": replicate}
    table = pd.DataFrame(rows).assign(
        **{key: value for key, value in known.items() if key not in rows[0]
           or key in point}
    )  # fmt: skip
    if path.exists():
        table = pd.concat([files.read_table(path), table], ignore_index=True)
    files.write_table(path, table, made_by(name))


@functools.cache
def made_by(name):
    """Digest of the code and settings behind a sweep."""
    return digests.swept_at(compose(["paper=dpbcfw"]), name)


@functools.cache
def figured(swept, name):
    """The files of a figure, which is drawn once for all tests, and its data.

    A table of the same name replaces the file of the data.
    """
    overrides = [f"product={name}"]
    if name == "figure9":
        overrides.append("paper.figures.figure9.problems=[rcv1_train]")
    written = products.figure(configured(swept, *overrides))
    (csv,) = (path for path in written if path.suffix == ".csv")
    return written, pd.read_csv(csv)


FIGURES = list(compose(["paper=dpbcfw"]).paper.figures)
TABLES = list(compose(["paper=dpbcfw"]).paper.tables)


@pytest.mark.parametrize("name", FIGURES)
def test_figures(swept, name):
    written, _ = figured(swept, name)
    sizes = {path.suffix: path.stat().st_size for path in written}
    assert set(sizes) == {".pdf", ".svg", ".png", ".csv"}
    assert min(sizes.values()) > 40
    svg = next(path for path in written if path.suffix == ".svg").read_text()
    assert "data not available" in svg or name != "figure9"


@pytest.mark.parametrize("name", TABLES)
def test_tables(swept, name):
    config = configured(swept, f"product={name}")
    config.paper.tables[name].sweeps = [
        sweep for sweep in config.paper.tables[name].sweeps if sweep != "real"
    ]
    for path in products.table(config):
        assert path.stat().st_size > 100


# --- the numbers, by other means ------------------------------------------------------


def rows_of(swept, name):
    """The rows of a sweep, and those at the end of each run."""
    table = pd.read_parquet(sweeping.sweep_path(configured(swept), name))
    return table, table[table["iteration"] == table["iterations"]]


def drawn(swept, name):
    """The data behind a figure, by panel, algorithm and x."""
    _, data = figured(swept, name)
    return data.set_index(["panel", "algorithm", "x"]).sort_index()


def tabled(swept, name):
    """The data of a table."""
    return pd.read_csv(products.table(configured(swept, f"product={name}"))[0])


def test_figure_5_has_means_and_ranges_over_the_draws(swept):
    table, _ = rows_of(swept, "workers")
    table = table.assign(value=table["loss"] / table["start"])
    shown = drawn(swept, "figure5")
    for update, title in (("published", "as published"), ("feasible", "feasible")):
        for share, K in itertools.product((0.05, 1.0), (2, 16)):
            runs = table.query(
                f"method == 'dp_bcfw' and update == '{update}' and share == {share} "
                f"and nodes == {K}"
            )
            panel = f"{title}, $\\eta$ = {share:g} $\\|x_{{true}}\\|_1$"
            rows = shown.loc[panel, f"K = {K}"]
            expected = runs.groupby("iteration")["value"].agg(["mean", "min", "max"])
            np.testing.assert_allclose(rows[["mean", "min", "max"]], expected)
            alone = table.query(f"method == 'fw' and share == {share}")["value"]
            least = shown.loc[panel, "FW"]["min"].min()
            assert alone.min() == pytest.approx(least)


def test_figure_4_has_the_excess_over_the_truth(swept):
    _, ends = rows_of(swept, "samples")
    runs = ends.query(
        "method == 'dp_bcfw' and update == 'feasible' and share == 0.25 "
        "and noise == 'stated' and nodes == 4 and epsilon == 1"
    )
    expected = (runs["loss"] - runs["truth"]).groupby(runs["n"]).mean()
    shown = drawn(swept, "figure4").reset_index()
    rows = shown[shown["panel"].str.startswith("feasible, $\\eta$ = 0.25")]
    rows = rows[rows["algorithm"].str.startswith("K = 4:")]
    np.testing.assert_allclose(rows["mean"], expected)
    assert rows["x"].tolist() == expected.index.tolist()
    (label,) = rows["algorithm"].unique()
    if (runs["loss"] > runs["truth"]).all():
        logs = np.log(runs["n"]), np.log(runs["loss"] - runs["truth"])
        assert f"K = 4: {np.polyfit(*logs, 1)[0]:.2f} [" in label


def test_bytes_are_those_of_the_formulas(swept):
    shown = drawn(swept, "communication")
    for n in (40, 160):
        one_shot = shown.loc[("epsilon 1", "one-shot sketch", n), "mean"]
        assert one_shot == pytest.approx(8 * 4 * n * 80 * np.log(80))
        corollary = shown.loc[("epsilon 1", "Corollary 1", n), "mean"]
        expected = 8 * 4 * np.log(n) ** (1 / 3) * 4 * n ** (2 / 3)
        assert corollary == pytest.approx(expected)
    each = shown.loc["along, epsilon 1", "up, if each were sent"]["mean"]
    np.testing.assert_allclose(each, each.index * 4 * (16 + 8 * 10))
    sent = shown.loc["along, epsilon 1", "up, measured"]["mean"]
    assert (sent <= each).all() and sent.is_monotonic_increasing


def test_table_3_puts_p_min_into_theorem_1(swept):
    table = tabled(swept, "table3").set_index("sampling")
    rows, _ = rows_of(swept, "curvature")
    assert table.loc["elementary", "p_min"] == 1.0
    for name, part in rows.groupby("sampling"):
        t, p, C = part["iteration"], part["p_min"], part["expected_curvature"]
        start = part["bound"] * (p * t + 2) / 2 - C / p  # h_0 of the bound is f(0)
        assert (start >= part["start"] * (1 - 1e-9)).all()  # over f(x_true)
        mean = part["bound"].mean()
        assert table.loc[name, "bound"] == pytest.approx(mean)
        assert (part["gap"] <= part["bound"]).all()


def test_the_table_of_privacy_has_the_means_of_all_runs(swept):
    config = configured(swept, "product=privacy")
    names = [name for name in config.paper.tables["privacy"].sweeps if name != "real"]
    config.paper.tables["privacy"].sweeps = names
    data = pd.read_csv(products.table(config)[0])
    ends = pd.concat([rows_of(swept, name)[1] for name in names])
    ours = ends.query("method == 'dp_bcfw' and noise == 'strict' and epsilon == 1")
    keys = ["update", "nodes", "share"]
    means = ours.groupby(keys)[["true_epsilon", "index_scale", "largest_norm"]].mean()
    rows = data.query("method == 'dp_bcfw' and noise == 'strict' and epsilon == 1")
    rows = rows[rows["data"] == "synthetic"].set_index(keys).sort_index()
    np.testing.assert_allclose(rows[means.columns], means)
    assert (rows["true_epsilon"] <= 1).all()


def test_what_a_release_moves_by_is_held_against_both_declarations(swept):
    rows = pd.read_parquet(sweeping.sweep_path(configured(swept), "sensitivity"))
    table = tabled(swept, "sensitivity").set_index("release")
    for release, part in rows.groupby("release"):
        for name in ("strict", "published"):
            expected = (part["found"] / part[name]).max()
            assert table.loc[release, f"of_{name}"] == pytest.approx(expected)
    assert (table["of_strict"] <= 1 + 1e-9).all()


# --- sizes, and data that are absent --------------------------------------------------


def test_sizes_are_those_of_the_paper():
    found = compose(["paper=dpbcfw"]).paper.sweeps
    assert found["private"].grid["zip"] == {"n": [2000, 200], "d": [20000, 2000]}
    assert found["samples"].grid["n"] == [500, 1000, 2000, 4000, 8000]
    for name in ("workers", "epsilons", "splits", "lengths"):
        assert (found[name].grid["n"], found[name].grid["d"]) == ([800], [8000])
    figures = ("samplings", "nodes", "private", "samples", "workers", "epsilons",
               "splits", "lengths", "real")  # fmt: skip
    assert {found[name].replicates for name in figures} == {20}


def test_data_that_cannot_be_had_are_a_row_with_the_reason(tmp_path):
    config = configured(tmp_path)
    config.data.dir = str(tmp_path)
    folder = tmp_path / "prepared" / "rcv1_train"
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text('{"status": "unavailable", "reason": "gone"}')
    rows = sweeps.compare(config, {"problem": "rcv1_train"}, 0, settings={"share": [1]})
    assert rows == [{"status": "unavailable", "reason": "gone"}]
