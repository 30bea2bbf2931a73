"""Every sweep at tiny sizes, and every figure and table that is made of them."""

import pandas as pd
import pytest

from dperm.core.experiment import grid
from dperm.core.experiment.config import compose
from dperm.papers.dpbcfw import runs, sweeps
from dperm.pipeline import products
from dperm.pipeline import stages as sweeping


def tiny(point):
    """A point of the small grid, with fewer epsilons still where it limits them."""
    limited = point.get("up_to", 1e9)
    return {**point, "up_to": 1.0 if limited == 10.0 else limited}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A results folder that holds all sweeps but the real data's.

    The lower end of an epsilon, nine tenths of the time and tested apart, is the one
    that holds of anything.
    """
    folder = tmp_path_factory.mktemp("swept")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runs, "lower_epsilon", lambda events, delta: 0.0)
        _sweep(folder)
    return folder


def _sweep(folder):
    config = configured(folder)
    for name, what in config.paper.sweeps.items():
        if name in ("real", "readings_real"):
            write(config, name, [{"status": "unavailable", "reason": "no network"}],
                  {"problem": "rcv1_train"}, 0)  # fmt: skip
            continue
        function = getattr(sweeps, what.kind)
        for point in grid.points(what.small, axes=None):
            for replicate in range(2):
                rows = function(config, tiny(point), 11 + replicate, **what.options)
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
        table = pd.concat([pd.read_parquet(path), table], ignore_index=True)
    table.to_parquet(path)


FIGURES = list(compose(["paper=dpbcfw"]).paper.figures)
TABLES = list(compose(["paper=dpbcfw"]).paper.tables)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_figures(swept, name):
    overrides = [f"product={name}"]
    if name == "figure9":
        overrides.append("paper.figures.figure9.problems=[rcv1_train]")
    written = products.figure(configured(swept, *overrides))
    sizes = {path.suffix: path.stat().st_size for path in written}
    sizes[".json"] *= 20  # without data it has but two braces
    assert set(sizes) == {".pdf", ".svg", ".png", ".csv", ".json"}
    assert min(sizes.values()) > 40
    svg = next(path for path in written if path.suffix == ".svg").read_text()
    assert "data not available" in svg or name != "figure9"


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_tables(swept, name):
    config = configured(swept, f"product={name}")
    config.paper.tables[name].sweeps = [
        sweep for sweep in config.paper.tables[name].sweeps if sweep != "real"
    ]
    for path in products.table(config):
        assert path.stat().st_size > 100


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
