"""Results edited after they were made: one line that names the file, or no complaint.

Every fault here was silent before there were seals. The controls take the comparison
out, and the same edit passes.
"""

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.pipeline import completion, digests, inputs, products, seals, stages, verify
from dperm.report import judging, page
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
  claim: DP-CD comes close to the optimum.
  kind: variant
  rule: value
  set: 2026-11-24, before the results
  options:
    file: errors
    where: {algorithm: DP-CD}
    value: fresh_mean
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
        judging.claims(configured())
    return project.folder


@pytest.fixture
def results(made, tmp_path, monkeypatch):
    """The folder of a copy of it."""
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DPERM_CONF", str(folder / "configuration"))
    return folder


def divided(path, by=1000.0, resealed=False):
    """Divide relative errors in a Parquet file, as if the run had been better."""
    table = store.read_table(path)
    store.write_table(path, table.assign(relative_error=table["relative_error"] / by))
    if resealed:
        reseal(path)


def reseal(path):
    """What whoever forges rows can do as well."""
    folder = path.parents[2]
    jobs = json.loads((folder / seals.FILE).read_text())
    name = path.relative_to(folder).as_posix()
    old = next(job["wrote"][name] for job in jobs.values() if name in job["wrote"])
    new = store.file_digest(path)
    text = json.dumps(jobs).replace(old, new).replace(old[:20], new[:20])
    (folder / seals.FILE).write_text(text)


def raises(path, text="was changed after"):
    return pytest.raises(seals.ChangedError, match=f"{path} {text}")


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


@pytest.mark.parametrize("file", ["results/tiny/errors.csv", "figures/tiny/curves.csv"])
@pytest.mark.parametrize(
    "reader", [judging.claims, page.report], ids=["claims", "report"]
)
def test_edited_evidence_is_not_judged(results, file, reader):
    """A number of a table, or of a figure's data, edited by hand."""
    path = results / file
    table = pd.read_csv(path)
    column = "fresh_mean" if "errors" in file else "mean"
    table.loc[0, column] *= 0.01
    table.to_csv(path, index=False)
    with raises(file):
        reader(configured())


def test_an_edited_verdict_is_not_shown(results):
    path = results / "results/claims.csv"
    path.write_text(path.read_text().replace("reproduced", "not reproduced"))
    with raises("results/claims.csv"):
        page.report(configured())


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


def test_an_edited_noise_is_found_again(results, caplog):
    path = results / RUN / "ledger.json"
    entries = json.loads(path.read_text())
    noise = entries[0]["calibrated"]["noise_multiplier"]
    entries[0]["calibrated"]["noise_multiplier"] = noise / 10
    path.write_text(json.dumps(entries))
    with raises(f"{RUN}/ledger.json"):
        draw()
    solve("dp_cd")
    again = json.loads(path.read_text())[0]["calibrated"]["noise_multiplier"]
    assert again == noise


def test_an_edited_point_of_a_sweep_is_computed_again(results):
    path = results / "results/tiny/sweeps/drawn.parquet"
    before = store.read_table(path)["value"]
    part = sorted((results / "results/tiny/sweeps/drawn/lanes").glob("*.parquet"))[0]
    store.write_table(part, store.read_table(part).assign(value=0.0))
    stages.sweep(configured())
    pd.testing.assert_series_equal(store.read_table(path)["value"], before)


# --- what is of another time ----------------------------------------------------------


def test_no_evaluation_of_another_tuning(results):
    """``evaluate`` called by itself, after a change of what is tuned."""
    with raises(f"{RUN}/tune.parquet", "was made by other code, settings"):
        stages.evaluate(configured("solver=dp_cd", "seed=8"))


@pytest.mark.parametrize("stage", [products.figure, products.table])
def test_no_figure_of_rows_of_other_settings(results, stage):
    """``figure`` and ``table`` called by themselves, which Snakemake would not."""
    again = "`dperm tune paper=tiny problem=diabetes solver=dp_cd seed=8`"
    with raises(f"{RUN}/tune.parquet", f"was made by other code, .* run {again}"):
        stage(configured("seed=8"))


def test_no_table_of_a_sweep_of_other_settings(results):
    path = results / "configuration/paper/tiny/paper.yaml"
    paper = yaml.safe_load(path.read_text())
    paper["tables"]["errors"] |= {"sweeps": ["drawn"], "problems": ["diabetes"]}
    path.write_text(yaml.safe_dump(paper))
    products.table(configured())
    paper["sweeps"]["drawn"]["replicates"] = 1
    path.write_text(yaml.safe_dump(paper))
    again = "`dperm sweep paper=tiny product=drawn`"
    with raises("results/tiny/sweeps/drawn.parquet", f"was made by .* run {again}"):
        products.table(configured())


@pytest.mark.parametrize("stage", [products.figure, products.table])
def test_no_figure_of_rows_of_other_code(results, monkeypatch, stage):
    before = digests.lanes
    monkeypatch.setattr(digests, "lanes", lambda *given: f"{before(*given)} edited")
    with raises(f"{RUN}/tune.parquet", "was made by other code, settings"):
        stage(configured())


@pytest.mark.parametrize("file", ["optimum/diabetes/optimum", "prepared/diabetes/meta"])
def test_no_tuning_on_what_other_code_left(results, monkeypatch, file):
    kind = file.partition("/")[0].replace("prepared", "prepare")
    made = getattr(digests, kind)
    monkeypatch.setattr(digests, kind, lambda problem: f"{made(problem)} edited")
    again = f"was made by other code, .* run `dperm {kind} problem=diabetes`"
    with pytest.raises(seals.ChangedError, match=again):
        stages.tune(configured("solver=dp_cd"))


@pytest.mark.parametrize(
    ("file", "reader"),
    [
        ("fetched/diabetes/fetch.json", inputs.prepare),
        ("prepared/diabetes/meta.json", inputs.optimum),
        ("prepared/diabetes/meta.json", stages.tune),
        ("optimum/diabetes/optimum.json", stages.tune),
        ("optimum/diabetes/w.npy", stages.tune),
    ],
)
def test_edited_records_of_data_are_not_read(results, file, reader):
    """F* made smaller by hand before anything was tuned, for one."""
    path = results / "data" / file
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    with raises(f"data/{file}"):
        reader(configured("solver=dp_cd"))


def test_what_other_library_versions_solved_is_drawn_but_not_evaluated(
    results, monkeypatch
):
    """As an archive of another machine is; what solves starts from its own."""
    monkeypatch.setattr(seals, "_versions", lambda: "others")
    draw()
    with raises(f"{RUN}/tune.parquet", "was made by other code, .* library versions"):
        stages.evaluate(configured("solver=dp_cd"))


def test_no_verdict_on_tables_of_other_rows(results):
    """Rows made anew by another seed, and no table since."""
    stages.solve(configured("solver=dp_cd", "seed=8"))
    with raises("results/tiny/errors.csv", "was made of another results/tiny/diab"):
        judging.claims(configured())


def test_a_printed_number_that_was_edited_is_noticed(results):
    path = results / "configuration/paper/tiny/published/table2.csv"
    path.write_text(path.read_text().replace("0.", "0.1", 1))
    with raises("results/tiny/errors.csv", "was made of another conf/paper/tiny/publ"):
        judging.claims(configured())


@pytest.mark.parametrize("ahead", [1e7, -1e7])
def test_a_clock_that_leaps_between_stages_hides_nothing(results, caplog, ahead):
    """Rows of the future or of the past: what they are made of counts, not the time."""

    def leap():
        for path in (results / "results/tiny").rglob("*.*"):
            moment = time.time() + ahead
            os.utime(path, (moment, moment))

    leap()
    with caplog.at_level("WARNING"):
        draw()
        completion.complete(configured())
        judging.claims(configured())
    assert not caplog.text
    stages.solve(configured("solver=dp_cd", "seed=8"))
    leap()
    with raises("results/tiny/errors.csv", "was made of another results/tiny/diab"):
        judging.claims(configured())


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"</style>&lt;"


def test_a_script_in_a_claim_is_text_in_every_page(results):
    """In its sentence, its place and its reason's numbers."""
    path = results / "configuration/paper/tiny/claims.yaml"
    claims = yaml.safe_load(CLAIM)
    claims[0] |= {"claim": f"It comes {HOSTILE} close.", "place": f"Table 2 {HOSTILE}"}
    path.write_text(yaml.safe_dump(claims))
    judging.claims(configured())
    page.report(configured())
    pages = [*results.glob("results/**/*.html"), *results.glob("results/claims.md")]
    assert len(pages) >= 2
    for each in pages:
        text = each.read_text()
        assert "alert(1)" in text, f"{each} shows the claim"
        for tag in ("<script>alert", "<img src=x"):
            assert tag not in text


def test_a_page_of_other_claims_does_not_stop_a_new_page(results):
    """A page that is stale is refused by no command that makes it again."""
    judging.claims(configured())
    page.report(configured())
    judged, shown = Path("results/claims.csv"), Path("results/report/index.html")
    judged.write_text(judged.read_text().replace("0.5", "0.50"))
    seals.seal(configured(), "claims", [judged])
    with raises("results/report/index.html", "was made of another .*claims.csv"):
        seals.check(configured(), [shown])
    page.report(configured())


def test_only_what_computes_rows_seals_them(results):
    for by in ("complete", "table", "claims"):
        with pytest.raises(ValueError, match=f"{by} makes no rows"):
            seals.seal(configured(), by, [results / RUN / "tune.parquet"])


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}', '{"a": {"by": "tune"}}'])
def test_a_damaged_seal_is_one_line(results, text):
    (results / "results/tiny/seal.json").write_text(text)
    with pytest.raises(ValueError, match=r"seal.json is damaged .*from Git"):
        draw()


# --- controls -------------------------------------------------------------------------


def test_an_untouched_run_has_no_complaint(results, caplog):
    with caplog.at_level("WARNING"):
        draw()
        completion.complete(configured())
        judging.claims(configured())
        verify.verify_all(["tiny"], [], 1.0, seed=0)
    assert not caplog.text


def test_without_the_comparison_an_edit_is_drawn(results, monkeypatch):
    """So it is this comparison that refuses it."""
    divided(results / RUN / "evaluate.parquet")
    monkeypatch.setattr(seals, "check", lambda *given: None)
    draw()
    table = pd.read_csv(results / "results/tiny/errors.csv")
    assert table["fresh_mean"].min() < 1e-3


def test_files_of_a_time_before_seals_are_taken_with_a_word(results, caplog):
    (results / "results/tiny/seal.json").unlink()
    seals._say_once.cache_clear()
    divided(results / RUN / "evaluate.parquet")
    with caplog.at_level("WARNING"):
        draw()
        judging.claims(configured())
    assert caplog.text.count("without a seal") == 1


def test_a_clone_without_rows_is_judged(results, caplog, capsys):
    """Git has tables, figures and seals, but no rows and no data."""
    for path in [*results.rglob("*.parquet"), *results.rglob("*.npy")]:
        path.unlink()
    shutil.rmtree(results / "data")
    with caplog.at_level("WARNING"):
        judging.claims(configured())
    assert not caplog.text
    verify.verify_all(["tiny"], [], 1.0)
    assert "no rows here" in capsys.readouterr().out
    path = results / "results/tiny/errors.csv"
    path.write_text(path.read_text().replace("0.0", "0.00", 1))
    with raises("results/tiny/errors.csv"):
        judging.claims(configured())


# --- dperm verify ---------------------------------------------------------------------


def faults(**given):
    """Lines of what is wrong; seals apart."""
    options = {"share": 0.0, "seed": 0} | given
    found = verify.verify(configured(), **options).faults
    return [line for line in found if "was changed after" not in line]


def test_every_row_must_give_the_same_optimum(results):
    divided(results / RUN / "evaluate.parquet", resealed=True)
    assert any("F* of diabetes is" in line for line in faults())


def test_rows_must_be_those_of_their_record(results):
    path = results / RUN / "tune.parquet"
    table = store.read_table(path)
    store.write_table(path, table.assign(support_size=3))
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
    store.write_table(path, store.read_table(path).assign(clip=7.0))
    assert any("other settings than its tuning chose" in line for line in faults())


def test_verdicts_are_found_again(results):
    path = results / "results/claims.csv"
    table = pd.read_csv(path)
    table["verdict"] = "not reproduced"
    table.to_csv(path, index=False)
    assert any("has other verdicts of tiny" in line for line in faults())


def test_a_forged_row_with_a_seal_is_caught_by_the_replay_alone(results):
    """All digests and all that must agree are in order, F* among them."""
    path = results / RUN / "evaluate.parquet"
    table = store.read_table(path)
    optimum = json.loads((results / "data/optimum/diabetes/optimum.json").read_text())
    error = np.where(table["checkpoint"] > 0, 0.9, 1.0) * table["relative_error"]
    value = optimum["value"]
    store.write_table(
        path, table.assign(relative_error=error, objective=value * (1 + error))
    )
    reseal(path)
    record = results / "results/tiny/record.json"
    content = json.loads(record.read_text())
    content["digests"]["rows"]["diabetes/dp_cd/evaluate.parquet"] = (
        completion.digest_rows(store.read_table(path))
    )
    record.write_text(json.dumps(content))
    draw()
    completion.complete(configured())
    config = configured()
    judging.claims(config)
    assert verify.verify(config, 0.0, 0).faults == []
    found = verify.verify(config, 1.0, 0).faults
    assert found and all(f"{RUN}/evaluate.parquet" in line for line in found)
    assert "was kept" in found[0]


def test_forged_points_of_sweeps_are_caught_too(results):
    path = results / "results/tiny/sweeps/drawn.parquet"
    store.write_table(path, store.read_table(path).assign(value=0.0))
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
