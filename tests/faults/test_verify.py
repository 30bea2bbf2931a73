"""Results edited after they were made are noticed, by one line that names the file."""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.pipeline import inputs, manifest, products, stages, verify
from dperm.pipeline.jobs import Jobs
from dperm.report import claims, page
from faults.tiny import PAPER, Project

SMALL = {
    **PAPER,
    "replicates": 3,
    "fresh": 3,
    "runs": {
        solver: {"grid": {"passes": [2], "step": [0.01, 0.1], "clip": [1.0, 100.0]}}
        for solver in ("dp_cd", "dp_sgd")
    },
    "sweeps": {"drawn": {"kind": "drawn", "grid": {"n": [5, 10]}, "replicates": 2}},
    "claims": "claims.yaml",
}
SWEEP = '''"""A sweep of draws."""

import numpy as np


def drawn(config, point, seed):
    """The mean of n draws."""
    return {"value": float(np.random.default_rng(seed).normal(size=point["n"]).mean())}
'''
CLAIM = """- place: Table 2
  says: DP-CD comes close to the optimum.
  kind: variant
  set: 2026-11-24, before the results
  table: errors
  rows: {algorithm: DP-CD}
  number: fresh_mean
  at_most: 0.5
"""
RUN = "results/tiny/diabetes/dp_cd"


def configured(*overrides):
    return configuration.compose(["paper=tiny", "problem=diabetes", *overrides])


def solve(solver):
    stages.solve(configured(f"solver={solver}"))


def draw():
    config = configured()
    products.figure(config)
    products.table(config)


def complete():
    verify.complete(configured())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A paper, run to its end."""
    project = Project(tmp_path_factory.mktemp("made"))
    project.add("paper/tiny/paper", SMALL)
    (project.conf / "paper/tiny/claims.yaml").write_text(CLAIM)
    (project.conf / "paper/tiny/sweeps.py").write_text(SWEEP)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.folder)
        patch.setenv("DPERM_CONF", str(project.conf))
        for stage in (inputs.fetch, inputs.prepare, inputs.optimum):
            stage(configured())
        for solver in SMALL["runs"]:
            solve(solver)
        stages.sweep(configured())
        draw()
        verify.complete(configured())
        claims.write(configured())
        manifest.write(Jobs("", ["tiny"]), 2, 0.0, is_whole=True)
    return project.folder


@pytest.fixture
def results(made, tmp_path, monkeypatch):
    """The folder of a copy of it."""
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DPERM_CONF", str(folder / "configuration"))
    return folder


def divided(path):
    """Divide relative errors in a Parquet file, as if the run had been better."""
    table = pd.read_parquet(path)
    table["relative_error"] /= 1000.0
    table.to_parquet(path, index=False)


# --- edits that were silent -----------------------------------------------------------


@pytest.mark.parametrize("name", ["tune", "evaluate"])
@pytest.mark.parametrize("reader", [draw, complete])
def test_edited_rows_are_neither_drawn_nor_completed(results, name, reader):
    """Rows divided by 1000 after a run."""
    divided(results / RUN / f"{name}.parquet")
    said = f"{RUN}/{name}.parquet was changed after"
    with pytest.raises((ValueError, verify.NotVerifiedError), match=said):
        reader()


def test_an_edited_lane_is_computed_again(results, caplog):
    """A part of the lanes divided by 1000, its table deleted."""
    before = store.read_table(results / RUN / "evaluate.parquet")
    for path in (results / RUN / "lanes").glob("*.parquet"):
        divided(path)
    (results / RUN / "tune.parquet").unlink()
    with caplog.at_level("WARNING"):
        solve("dp_cd")
    assert "was changed after it was made" in caplog.text
    after = store.read_table(results / RUN / "evaluate.parquet")
    columns = ["objective", "relative_error"]
    pd.testing.assert_frame_equal(before[columns], after[columns], check_exact=True)


def test_an_edited_point_of_a_sweep_is_computed_again(results):
    path = results / "results/tiny/sweeps/drawn.parquet"
    before = store.read_table(path)["value"]
    part = sorted((results / "results/tiny/sweeps/drawn/lanes").glob("*.parquet"))[0]
    pd.read_parquet(part).assign(value=0.0).to_parquet(part, index=False)
    stages.sweep(configured())
    pd.testing.assert_series_equal(store.read_table(path)["value"], before)


def test_no_tuning_on_an_optimum_of_other_settings(results):
    said = "data/optimum/diabetes/optimum.json was made of other data or"
    with pytest.raises(ValueError, match=said):
        stages.tune(configured("solver=dp_cd", "problem.penalty.l1=0.3"))


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"</style>&lt;"


def test_a_script_in_a_claim_is_text_in_every_page(results):
    """In its sentence, its place and its reason's numbers."""
    path = results / "configuration/paper/tiny/claims.yaml"
    (claim,) = yaml.safe_load(CLAIM)
    hostile = {"says": f"It comes {HOSTILE} close.", "place": f"Table 2 {HOSTILE}"}
    path.write_text(yaml.safe_dump([{**claim, **hostile, "major": True}]))
    claims.write(configured())
    page.report(configured())
    pages = [*results.glob("results/**/*.html"), *results.glob("results/claims.md")]
    assert len(pages) >= 2
    for each in pages:
        text = each.read_text()
        assert "alert(1)" in text, f"{each} shows the claim"
        for tag in ("<script>alert", "<img src=x"):
            assert tag not in text


# --- controls -------------------------------------------------------------------------


@pytest.mark.parametrize("is_clone", [False, True])
def test_an_untouched_run_has_no_complaint(results, caplog, is_clone):
    """Nor has a clone: Git has tables and figures, but no rows and no data."""
    caplog.set_level("WARNING")
    if is_clone:
        for path in [*results.rglob("*.parquet"), *results.rglob("*.npy")]:
            path.unlink()
        shutil.rmtree(results / "data")
    else:
        draw()
        complete()
    claims.write(configured())
    assert not caplog.text
    assert faults(share=1.0) == []


def test_a_run_just_made_is_complete_before_its_verdicts(results, capsys):
    """When claims.csv is of the run before."""
    edited(results / "results/claims.csv", verdict="contradicted")
    complete()
    given = argparse.Namespace(what=["tiny"], replay=0.0, seed=0)
    with pytest.raises(verify.NotVerifiedError, match="has other verdicts of tiny"):
        verify.main(given)
    assert "tiny: rows verified (seed 0): 1 faults\n" in capsys.readouterr().out


# --- dperm verify ---------------------------------------------------------------------

ERRORS = "results/tiny/errors.csv"
DRAWN = "results/tiny/sweeps/drawn.parquet"


def faults(again=True, share=0.0):
    """What is wrong; the manifest is made ``again`` after an edit, by a forger."""
    if again:
        Path("results/manifest.json").unlink()
        manifest.write(Jobs("", ["tiny"]), 2, 0.0, is_whole=True)
    return [*verify.changed(configured()), *verify.verify(configured(), share, 0)]


def edited(path, **columns):
    """Replace columns of a table by functions of it, with the digest of its rows."""
    if path.suffix == ".parquet":
        table = store.read_table(path)
        return store.write_table(path, table.assign(**columns))
    return pd.read_csv(path).assign(**columns).to_csv(path, index=False)


def first(column, factor):
    """A column whose first number is multiplied."""
    return lambda table: table[column].where(table.index > 0, table[column] * factor)


FAULTS = {
    # file, columns, what is said, share that is run again
    "one row's error": (f"{RUN}/evaluate.parquet",
        {"relative_error": first("relative_error", 1.01)}, "F* of diabetes is", 0),
    "all errors": (f"{RUN}/tune.parquet",
        {"relative_error": lambda table: table["relative_error"] / 1000}, "F* of", 0),
    "other settings": (f"{RUN}/evaluate.parquet", {"clip": 7.0},
        "is not of what its tuning chose", 0),
    "a losing setting wins": (f"{RUN}/tune.parquet",
        {"clip": lambda table: table["clip"].map({1.0: 100.0, 100.0: 1.0})},
        "is not of what its tuning chose", 0),
    "a number of a table": (ERRORS, {"fresh_mean": first("fresh_mean", 1.001)},
        "is not what its rows give", 0),
    "a name in a table": (ERRORS, {"algorithm": "DP-X"}, "not what its rows give", 0),
    "a mean outside its interval": (ERRORS, {"fresh_mean": 9.0}, "is outside [", 0),
    "a figure's data": ("figures/tiny/*.csv", {"mean": first("mean", 1.01)},
        "is not what its rows give", 0),
    "verdicts": ("results/claims.csv", {"verdict": "contradicted"},
        "has other verdicts", 0),
    "a reason": ("results/claims.csv", {"reason": "so"}, "has other verdicts", 0),
    "a lane called hopeless": (f"{RUN}/tune.parquet",
        {"status": lambda table: table["status"].where(
            table.index != table["objective"].idxmax(), "hopeless")}, "was kept", 1),
    "supports": (f"{RUN}/tune.parquet", {"support_size": 3}, "was kept", 1),
    "less noise": (f"{RUN}/tune.parquet", {"noise_multiplier": 0.1}, "was kept", 1),
    "seeds": (f"{RUN}/evaluate.parquet", {"seed": 5}, "was kept", 1),
    "points of a sweep": (DRAWN, {"value": 0.0}, "was kept: [0.0]", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught_although_the_manifest_was_forged(results, name):
    file, columns, said, share = FAULTS[name]
    (path,) = sorted(results.glob(file))[:1]
    edited(path, **columns)
    found = faults(share=float(share))
    assert any(said in line for line in found), found


def test_the_manifest_knows_a_changed_byte_and_files_that_are_gone_or_new(results):
    for file in (ERRORS, "results/claims.csv"):
        with open(results / file, "ab") as handle:
            handle.write(b" ")
        assert f"{file} was changed after the run" in faults(again=False)
    (results / ERRORS).rename(results / "results/tiny/others.csv")
    found = " ".join(faults(again=False))
    assert f"{ERRORS} of the run is missing" in found
    assert "others.csv is not of the run" in found
    assert [*verify.changed(configured(), ["other"])] == []


def test_a_forged_row_with_its_digest_is_caught_by_the_replay_alone(results):
    """All digests and all that must agree are in order, F* among them."""
    path = results / RUN / "evaluate.parquet"
    table = store.read_table(path)
    optimum = json.loads((results / "data/optimum/diabetes/optimum.json").read_text())
    error = np.where(table["checkpoint"] > 0, 0.9, 1.0) * table["relative_error"]
    edited(path, relative_error=error, objective=optimum["value"] * (1 + error))
    draw()
    claims.write(configured())
    assert faults() == []
    found = faults(share=1.0)
    assert found and all(f"{RUN}/evaluate.parquet" in line for line in found)
    assert "was kept" in found[0]


def test_a_lane_of_other_noise_is_caught(results):
    """Less noise in the ledger, and lanes that were really run with it."""
    config = configured("solver=dp_cd", "problem.privacy.epsilon=10")
    (results / RUN / "tune.parquet").unlink()
    stages.solve(config)
    found = faults(share=1.0)
    assert any("epsilon" in line or "noise_multiplier" in line for line in found)
