"""Sweeps: a function at every point, reused where it was computed before."""

from types import SimpleNamespace

import pandas as pd
import pytest

from changing import changed
from dperm.core.experiment import files as store
from dperm.core.experiment import grid, plan, schema
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.unit import IDENTITY
from dperm.pipeline import jobs, products
from dperm.pipeline import stages as sweeping
from dperm.pipeline.jobs import compose


def power(config, point, seed, base=2.0):
    """A measurement that depends on its point and seed alone."""
    return [
        {"checkpoint": k, "value": base ** point["n"] + seed % 97} for k in range(2)
    ]


def unchecked(monkeypatch, name):
    """Let a function of this module stand for one that the paper has."""
    real = products.check_kind

    def check_kind(config, kind, where, given):
        if given != name:
            real(config, kind, where, given)

    monkeypatch.setattr(products, "check_kind", check_kind)
    monkeypatch.setattr(products, "check_options", lambda *given: None)


@pytest.fixture
def swept(configured, monkeypatch):
    real = sweeping.function_of

    def function_of(config, kind, name):  # a process elsewhere knows no made module
        return power if name == "power" else real(config, kind, name)

    monkeypatch.setattr(sweeping, "function_of", function_of)
    monkeypatch.setattr("dperm.pipeline.digests.swept", lambda *given: "1")
    unchecked(monkeypatch, "power")

    def make(values, *overrides, results="results"):
        config = configured("scale=full", *overrides, results=results)
        axes = {"n": values, "kind": ["a", "b"]}
        sweep = schema.Sweep("power", axes, replicates=3)
        return changed(config, "paper.sweeps", {"powers": sweep})

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


def test_large_points_come_first(swept, monkeypatch):
    """With more workers than one a long point at the end would be waited for."""
    config, began = swept([1, 3, 2]), []
    real = sweeping.measured

    def noted(*given):
        began.append(given[-1][0]["n"])
        return real(*given)

    monkeypatch.setattr(sweeping, "measured", noted)
    sweeping.sweep(config)
    assert began == [3] * 6 + [2] * 6 + [1] * 6


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
    other = changed(config.paper.sweeps["powers"], "kind", "powers")
    config = changed(config, "paper.sweeps", {"powers": other})
    with pytest.raises(
        ConfigError, match=r"sweeps\.kind: expected one of .*found 'powers'"
    ):
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


def tuned_to(config, objective):
    """What tuning of one solver left, as far as a sweep looks at it."""
    columns = [*IDENTITY, "noise_multiplier", "objective", "relative_error"]
    row = dict.fromkeys(columns, 1.0) | {"calibration": "paper", "objective": objective}
    names = (config.paper.name, "diabetes", "dp_cd")
    path = plan.results_folder(config, *names) / "tune.parquet"
    made = jobs.Paper(config).solve("diabetes", "dp_cd").key
    store.write_table(path, pd.DataFrame([row]), made)


def test_a_sweep_that_starts_from_tuning_follows_it(swept, caplog):
    config = swept([1])
    axes = {"problem": ["diabetes"], "solver": ["dp_cd"], "n": [1, 2]}
    sweep = schema.Sweep("power", axes, replicates=1, tuned=True)
    config = changed(config, "paper.problems", ["diabetes"])
    config = changed(config, "paper.sweeps", {"powers": sweep})
    with pytest.raises(FileNotFoundError, match=r"tune\.parquet"):
        sweeping.sweep(config)
    tuned_to(config, 0.5)
    with caplog.at_level("INFO"):
        sweeping.sweep(config)
        sweeping.sweep(config)
        tuned_to(config, 0.4)
        sweeping.sweep(config)
    told = [text for text in caplog.messages if "reused" in text]
    assert [text.partition(": ")[2] for text in told] == [
        "0 reused, 2 to compute", "2 reused, 0 to compute", "0 reused, 2 to compute",
    ]  # fmt: skip


def test_snakemake_waits_for_the_tuning_that_a_sweep_starts_from():
    table = compose(["dpgcd"], [])
    inputs = table.job("sweep", "dpgcd", "tuning_law").inputs
    assert "results/dpgcd/dorothea/dp_gcd/tune.parquet" in inputs
    assert "data/optimum/square/optimum.json" in inputs
    assert sum(path.endswith("tune.parquet") for path in inputs) == 21
    law = table.job("draw", "dpgcd", "tables/law").inputs
    assert "results/dpgcd/sweeps/tuning_law.parquet" in law
    assert "results/dpgcd/square/dp_cd_uniform/evaluate.parquet" in law
    other, job = (
        compose(["dpgcd"], ["paper.replicates=6"]),
        ("sweep", "dpgcd", "tuning_law"),
    )
    assert table.job(*job).key != other.job(*job).key


def test_a_sweep_starts_from_nothing_that_is_not_run():
    with pytest.raises(ConfigError, match=r"sweeps\.tuning_law\.grid: .*dp_cd on elec"):
        compose(["dpcd"], ["~paper.runs.dp_cd"])


# --- points that stand apart ----------------------------------------------------------


def entry(config, point, seed, given=0.0):
    """What a point was given."""
    return {"given": given}


@pytest.fixture
def apart(configured, monkeypatch):
    monkeypatch.setattr(sweeping, "function_of", lambda *names: entry)
    unchecked(monkeypatch, "entry")
    code = {"dp_cd": "1", "dp_sgd": "1"}
    monkeypatch.setattr(
        "dperm.pipeline.digests.swept",
        lambda config, what, names, *_: "".join(code.get(name, "") for name in names),
    )

    def make(problems, given, **codes):
        code.update(codes)
        config = configured("scale=full")
        axes = {"problem": problems, "solver": [*given]}
        sweep = schema.Sweep("entry", axes, replicates=1, problems=problems,
                             apart=True, options={"given": given})  # fmt: skip
        return changed(config, "paper.sweeps", {"pairs": sweep})

    return make


def reused(config, caplog):
    caplog.clear()
    with caplog.at_level("INFO"):
        (path,) = sweeping.sweep(config)
    said = next(r.getMessage() for r in caplog.records if "reused" in r.getMessage())
    return said.partition(": ")[2], pd.read_parquet(path)


def test_a_new_problem_or_solver_computes_itself_alone(apart, caplog):
    first, table = reused(apart(["diabetes"], {"dp_cd": 1.0}), caplog)
    assert first == "0 reused, 1 to compute" and table["given"].tolist() == [1.0]
    two = ["diabetes", "breast_cancer"]
    assert reused(apart(two, {"dp_cd": 1.0}), caplog)[0] == "1 reused, 1 to compute"
    both = {"dp_cd": 1.0, "dp_sgd": 2.0}
    said, table = reused(apart(two, both), caplog)
    assert said == "2 reused, 2 to compute"
    assert table.set_index("solver")["given"].to_dict() == both


def test_an_own_option_or_own_code_computes_that_solver_again(apart, caplog):
    both = {"dp_cd": 1.0, "dp_sgd": 2.0}
    reused(apart(["diabetes"], both), caplog)
    changed = {**both, "dp_sgd": 3.0}
    assert reused(apart(["diabetes"], changed), caplog)[0] == "1 reused, 1 to compute"
    edited = apart(["diabetes"], changed, dp_cd="2")
    assert reused(edited, caplog)[0] == "1 reused, 1 to compute"


def test_arrays_that_changed_are_noticed_by_points_that_stand_apart(apart, monkeypatch):
    config = apart(["diabetes"], {"dp_cd": 1.0})
    what = config.paper.sweeps["pairs"]
    what, meta = changed(what, "prepared", ["red_wine"]), {"digest": "1"}
    read = SimpleNamespace(meta=meta)
    monkeypatch.setattr(sweeping.data, "load_prepared", lambda *_: read)
    monkeypatch.setattr(sweeping, "_solved", lambda *_: ["solved"])
    ((_, _, before),) = sweeping.tasks(config, "pairs", what)
    assert sweeping.tasks(config, "pairs", what)[0][2] == before
    meta["digest"] = "2"
    assert sweeping.tasks(config, "pairs", what)[0][2] != before
