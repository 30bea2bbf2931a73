"""Sweeps: a function at every point, reused where it was computed before."""

import sys
import types

import pandas as pd
import pytest

from dperm import grid, schema
from dperm.locate import ConfigError
from dperm.pipeline import sweep as sweeping


def power(config, point, seed, base=2.0):
    """A measurement that depends on its point and seed alone."""
    return [
        {"checkpoint": k, "value": base ** point["n"] + seed % 97} for k in range(2)
    ]


@pytest.fixture
def swept(configured, monkeypatch):
    module = types.ModuleType("dperm.papers.dpcd.sweeps")
    real = sweeping.function_of

    def function_of(config, kind, name):  # a process elsewhere knows no made module
        return power if name == "power" else real(config, kind, name)

    monkeypatch.setattr(sweeping, "function_of", function_of)
    monkeypatch.setitem(sys.modules, "dperm.papers.dpcd.sweeps", module)
    monkeypatch.setattr("dperm.store.provenance.product_digest", lambda *names: "1")

    def make(values, *overrides, results="results"):
        config = configured("scale=full", *overrides, results=results)
        axes = {"n": values, "kind": ["a", "b"]}
        config.paper.sweeps = {"powers": schema.Sweep("power", axes, replicates=3)}
        return config

    return make


def test_rows_of_every_point_and_replicate(swept):
    (path,) = sweeping.sweep(swept([1, 2, 3]))
    table = pd.read_parquet(path)
    assert len(table) == 3 * 2 * 3 * 2 and (table["status"] == "ok").all()
    assert table["seed"].nunique() == 3 * 2 * 3
    assert list(table["n"].unique()) == [1, 2, 3]


def test_a_sweep_that_grows_keeps_its_rows(swept, caplog):
    before = pd.read_parquet(sweeping.sweep(swept([1, 2]))[0])
    with caplog.at_level("INFO"):
        after = pd.read_parquet(sweeping.sweep(swept([1, 2, 5]))[0])
    assert "12 reused, 6 to compute" in caplog.text
    pd.testing.assert_frame_equal(before, after[after["n"] < 5].reset_index(drop=True))


def test_workers_do_not_matter(swept):
    one, two = (
        pd.read_parquet(
            sweeping.sweep(swept([1, 2], f"workers={k}", results=f"w{k}"))[0]
        )
        for k in (1, 2)
    )
    pd.testing.assert_frame_equal(
        one.drop(columns="seconds"), two.drop(columns="seconds")
    )


def test_unknown_names_are_refused(swept):
    with pytest.raises(ConfigError, match="did you mean powers"):
        sweeping.sweep(swept([1], "product=power"))
    config = swept([1])
    config.paper.sweeps["powers"].kind = "powers"
    with pytest.raises(ConfigError, match="'powers' is no function of"):
        sweeping.sweep(config)


def test_axes_of_any_name_and_kind():
    spec = {"method": ["a", "b"], "n": {"logspace": [10, 1000, 3]}, "flag": [True]}
    found = grid.points(spec, axes=None)
    assert len(found) == 6 and found[0] == {"method": "a", "n": 10.0, "flag": True}
    with pytest.raises(ValueError, match="grid is empty"):
        grid.points([], axes=None)


def test_seconds_of_a_point_add_up_over_its_rows(swept, monkeypatch):
    monkeypatch.setattr(sweeping.time, "perf_counter", iter(range(0, 99, 6)).__next__)
    (path,) = sweeping.sweep(swept([1]))
    table = pd.read_parquet(path)
    assert (table.groupby(["kind", "replicate"])["seconds"].sum() == 6.0).all()
