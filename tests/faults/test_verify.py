"""Results edited after they were made: one line that names the file, or no complaint.

The controls take the comparison out, and the same edit passes.
"""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from pyarrow.parquet import read_schema

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.pipeline import completion, digests, inputs, products, stages, verify
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
    completion.complete(configured())


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
        completion.complete(configured())
        claims.write(configured())
    return project.folder


@pytest.fixture
def results(made, tmp_path, monkeypatch):
    """The folder of a copy of it."""
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DPERM_CONF", str(folder / "configuration"))
    return folder


def divided(path, forged=False):
    """Divide relative errors in a Parquet file, as if the run had been better."""
    table = pd.read_parquet(path)
    table["relative_error"] /= 1000.0
    if forged:
        forge(path, table)
    else:
        table.to_parquet(path, index=False)


def forge(path, table):
    """Replace rows and their digest, as who can write results can."""
    made = read_schema(path).metadata[store.MADE].decode()
    store.write_table(path, table, made)


def raises(path, text="was changed after"):
    return pytest.raises(ValueError, match=f"{path} {text}")


# --- edits that were silent -----------------------------------------------------------


@pytest.mark.parametrize("name", ["tune", "evaluate"])
@pytest.mark.parametrize("reader", [draw, complete])
def test_edited_rows_are_neither_drawn_nor_recorded(results, name, reader):
    """Rows divided by 1000 after a run."""
    before = (results / "results/tiny/record.json").read_bytes()
    divided(results / RUN / f"{name}.parquet")
    with raises(f"{RUN}/{name}.parquet"):
        reader()
    assert (results / "results/tiny/record.json").read_bytes() == before


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


# --- what is of another time ----------------------------------------------------------


def test_no_evaluation_of_another_tuning(results):
    """``evaluate`` called by itself, after a change of what is tuned."""
    with raises(f"{RUN}/tune.parquet", "was made by other code or settings"):
        stages.evaluate(configured("solver=dp_cd", "seed=8"))


@pytest.mark.parametrize("stage", [products.figure, products.table])
def test_no_figure_of_rows_of_other_settings(results, stage):
    """``figure`` and ``table`` called by themselves, which Snakemake would not."""
    with raises(f"{RUN}/tune.parquet", "was made by other code or settings"):
        stage(configured("seed=8"))


def test_no_table_of_a_sweep_of_other_settings(results):
    path = results / "configuration/paper/tiny/paper.yaml"
    paper = yaml.safe_load(path.read_text())
    paper["tables"]["errors"] |= {"sweeps": ["drawn"], "problems": ["diabetes"]}
    path.write_text(yaml.safe_dump(paper))
    products.table(configured())
    paper["sweeps"]["drawn"]["replicates"] = 1
    path.write_text(yaml.safe_dump(paper))
    with raises("results/tiny/sweeps/drawn.parquet", "was made by other code or"):
        products.table(configured())


@pytest.mark.parametrize("stage", [products.figure, products.table])
def test_no_figure_of_rows_of_other_code(results, monkeypatch, stage):
    before = digests.lanes
    monkeypatch.setattr(digests, "lanes", lambda *given: f"{before(*given)} edited")
    with raises(f"{RUN}/tune.parquet", "was made by other code or settings"):
        stage(configured())


def test_no_tuning_on_an_optimum_of_other_code(results, monkeypatch):
    made = digests.optimum
    monkeypatch.setattr(digests, "optimum", lambda problem: f"{made(problem)} edited")
    with raises("data/optimum/diabetes/optimum.json", "was made by other code"):
        stages.tune(configured("solver=dp_cd"))


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"</style>&lt;"


def test_a_script_in_a_claim_is_text_in_every_page(results):
    """In its sentence, its place and its reason's numbers."""
    path = results / "configuration/paper/tiny/claims.yaml"
    (claim,) = yaml.safe_load(CLAIM)
    claim |= {"says": f"It comes {HOSTILE} close.", "place": f"Table 2 {HOSTILE}"}
    path.write_text(yaml.safe_dump([claim]))
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


def test_an_untouched_run_has_no_complaint(results, caplog):
    with caplog.at_level("WARNING"):
        draw()
        completion.complete(configured())
        claims.write(configured())
        verify.verify_all(["tiny"], [], 1.0, seed=0)
    assert not caplog.text


def test_without_the_comparison_an_edit_is_drawn(results, monkeypatch):
    """So it is this comparison that refuses it."""
    divided(results / RUN / "evaluate.parquet")
    monkeypatch.setattr(store, "read_table", lambda path, *_: pd.read_parquet(path))
    draw()
    table = pd.read_csv(results / "results/tiny/errors.csv")
    assert table["fresh_mean"].min() < 1e-3


def test_a_clone_without_rows_is_judged(results, caplog, capsys):
    """Git has tables and figures, but no rows and no data."""
    for path in [*results.rglob("*.parquet"), *results.rglob("*.npy")]:
        path.unlink()
    shutil.rmtree(results / "data")
    with caplog.at_level("WARNING"):
        claims.write(configured())
    assert not caplog.text
    verify.verify_all(["tiny"], [], 1.0)
    assert "no rows here" in capsys.readouterr().out


# --- dperm verify ---------------------------------------------------------------------


def faults(**given):
    """Lines of what is wrong."""
    options = {"share": 0.0, "seed": 0} | given
    return verify.verify(configured(), **options).faults


def test_every_row_must_give_the_same_optimum(results):
    divided(results / RUN / "evaluate.parquet", forged=True)
    assert any("F* of diabetes is" in line for line in faults())


def test_rows_must_be_those_of_their_record(results):
    path = results / RUN / "tune.parquet"
    forge(path, store.read_table(path).assign(support_size=3))
    assert any("other rows than" in line for line in faults())


def test_a_mean_must_lie_in_its_interval(results):
    path = results / "results/tiny/errors.csv"
    table = pd.read_csv(path)
    table.loc[0, "fresh_mean"] = 9.0
    table.to_csv(path, index=False)
    found = faults()
    assert any("row 1: fresh_mean 9 is outside [" in line for line in found)
    assert any("is not what its rows give: " in line for line in found)


def test_evaluated_must_be_what_tuning_chose(results):
    path = results / RUN / "evaluate.parquet"
    forge(path, store.read_table(path).assign(clip=7.0))
    assert any("other settings than its tuning chose" in line for line in faults())


def test_verdicts_are_found_again(results):
    path = results / "results/claims.csv"
    table = pd.read_csv(path)
    table["verdict"] = "contradicted"
    table.to_csv(path, index=False)
    assert any("has other verdicts of tiny" in line for line in faults())


def test_a_forged_row_with_its_digest_is_caught_by_the_replay_alone(results):
    """All digests and all that must agree are in order, F* among them."""
    path = results / RUN / "evaluate.parquet"
    table = store.read_table(path)
    optimum = json.loads((results / "data/optimum/diabetes/optimum.json").read_text())
    error = np.where(table["checkpoint"] > 0, 0.9, 1.0) * table["relative_error"]
    value = optimum["value"]
    forge(path, table.assign(relative_error=error, objective=value * (1 + error)))
    record = results / "results/tiny/record.json"
    content = json.loads(record.read_text())
    content["digests"]["rows"]["diabetes/dp_cd/evaluate.parquet"] = (
        completion.digest_results(store.read_table(path))
    )
    record.write_text(json.dumps(content))
    draw()
    completion.complete(configured())
    config = configured()
    claims.write(config)
    assert verify.verify(config, 0.0, 0).faults == []
    found = verify.verify(config, 1.0, 0).faults
    assert found and all(f"{RUN}/evaluate.parquet" in line for line in found)
    assert "was kept" in found[0]


def test_forged_points_of_sweeps_are_caught_too(results):
    path = results / "results/tiny/sweeps/drawn.parquet"
    forge(path, store.read_table(path).assign(value=0.0))
    found = faults(share=1.0)
    assert len([line for line in found if "0.0 was kept" in line]) == 4, found


def test_a_lane_of_other_noise_is_caught(results):
    """Less noise in the ledger, and lanes that were really run with it."""
    config = configured("solver=dp_cd", "problem.privacy.epsilon=10")
    (results / RUN / "tune.parquet").unlink()
    stages.solve(config)
    found = faults(share=1.0)
    assert any("noise_multiplier at" in line or "epsilon at" in line for line in found)


def test_rounding_of_other_versions_is_no_forgery():
    row = pd.DataFrame({"step": [1.0], "clip": [1.0], "objective": [2.0]})
    near = row.assign(objective=np.nextafter(2.0, 3.0))
    assert verify._apart(row, near, ()) == ("", False)
    assert verify._apart(row, row, ()) == ("", True)
    assert "objective" in verify._apart(row, row.assign(objective=2.001), ())[0]


def test_the_share_that_escapes_is_as_documented():
    assert pytest.approx(0.006, abs=1e-4) == 0.95**100
