"""Results edited after they were made are noticed, by one line that names the file."""

import argparse
import contextlib
import json
import os
import shutil
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from dperm import cli
from dperm.config import config as configuration
from dperm.config.locate import ConfigError
from dperm.config.scope import BeyondKeyError
from dperm.data import digest_arrays
from dperm.experiments import auditing, inputs, makers, products, stages
from dperm.plotting import drawing
from dperm.report import claims, stage, texts
from dperm.storage import files as store
from dperm.workflow import manifest, options, recheck, verify
from dperm.workflow.coverage import Coverage
from dperm.workflow.jobs import Jobs
from faults.tiny import PAPER, Project
from weekly import variants

SMALL = {
    **PAPER,
    "replicates": 3,
    "fresh": 3,
    "runs": {
        solver: {
            "grid": {"passes": [2], "step": [0.01, 0.1], "clip": [1.0, 100.0]}
        }
        for solver in ("dp_cd", "dp_sgd")
    },
    "sweeps": {
        "drawn": {"function": "drawn", "grid": {"n": [5, 10]}, "replicates": 2}
    },
    "tables": {"errors": {"function": "relative_error", "timed": True}},
    "claims": "claims.yaml",
}
SWEEP = '''"""A sweep of draws."""

import numpy as np


def drawn(point, seed):
    """The mean of n draws."""
    return {"value": float(np.random.default_rng(seed).normal(size=point["n"]).mean())}
'''
CLAIM = """- source: Table 2
  statement: DP-CD comes close to the optimum.
  kind: variant
  set: 2026-11-24, before the results
  table: errors
  rows: {algorithm: DP-CD}
  estimate: fresh_mean
  at_most: 0.5
"""
RUN = "results/tiny/diabetes/dp_cd"
SHARED = ["configuration"]  # of which a test may change the paper


def configured(*overrides):
    return configuration.compose(
        ["paper=tiny", "problem=diabetes", *overrides]
    )


def solve(solver):
    stages.solve(configured(f"solver={solver}"))


def draw():
    config = configured()
    products.figure(config)
    products.table(config)


def complete():
    verify.complete(configured())


@pytest.fixture(scope="module")
def made(made_once):
    """The folder of a paper, run to its end."""
    return made_once("finished", finished)


def finished(folder):
    """Run a paper to its end in a folder; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    project = Project(folder)
    project.add("paper/tiny/paper", SMALL)
    (project.conf / "paper/tiny/claims.yaml").write_text(CLAIM)
    (project.conf / "paper/tiny/sweeps.py").write_text(SWEEP)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.folder)
        patch.setenv("DPERM_CONF", str(project.conf))
        for prepared in (inputs.fetch, inputs.prepare, inputs.optimum):
            prepared(configured())
        for solver in SMALL["runs"]:
            solve(solver)
        stages.sweep(configured())
        stages.timing(configured())
        draw()
        verify.complete(configured())
        claims.write(configured())
        stage.report(configured())
        manifest.write(Jobs("", ["tiny"]), 2, 0.0, is_whole=True)
    return project.folder


@pytest.fixture
def results(made, tmp_path, monkeypatch):
    """The folder of a copy of it; problems, solvers and scales are those of it."""
    folder = tmp_path / "copy"
    shutil.copytree(
        made, folder, ignore=lambda at, _: SHARED if at == str(made) else []
    )
    (folder / "configuration").mkdir()
    for path in (made / "configuration").iterdir():
        if path.name == "paper":
            shutil.copytree(path, folder / "configuration/paper")
        else:
            (folder / "configuration" / path.name).symlink_to(path)
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


def test_an_edited_setting_is_computed_again(results, caplog):
    """A part of the settings divided by 1000, its table deleted."""
    before = store.read_table(results / RUN / "evaluate.parquet")
    for path in (results / RUN / "parts").glob("*.parquet"):
        divided(path)
    (results / RUN / "tune.parquet").unlink()
    with caplog.at_level("WARNING"):
        solve("dp_cd")
    assert "was changed after it was made" in caplog.text
    after = store.read_table(results / RUN / "evaluate.parquet")
    columns = ["objective", "relative_error"]
    pd.testing.assert_frame_equal(
        before[columns], after[columns], check_exact=True
    )


def test_an_edited_point_of_a_sweep_is_computed_again(results):
    path = results / "results/tiny/sweeps/drawn.parquet"
    before = store.read_table(path)["value"]
    part = sorted(
        (results / "results/tiny/sweeps/drawn/parts").glob("*.parquet")
    )[0]
    pd.read_parquet(part).assign(value=0.0).to_parquet(part, index=False)
    stages.sweep(configured())
    pd.testing.assert_series_equal(store.read_table(path)["value"], before)


def test_no_tuning_on_an_optimum_of_other_settings(results):
    said = "data/optimum/diabetes/optimum.json was made of other data or"
    with pytest.raises(ValueError, match=said):
        stages.tune(configured("solver=dp_cd", "problem.penalty.l1=0.3"))


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>'\"</style>&lt;"
)


def test_a_script_in_a_claim_is_text_in_every_page(results):
    """In its sentence, its place and its reason's numbers."""
    path = results / "configuration/paper/tiny/claims.yaml"
    (claim,) = yaml.safe_load(CLAIM)
    hostile = {
        "statement": f"It comes {HOSTILE} close.",
        "source": f"Table 2 {HOSTILE}",
    }
    path.write_text(yaml.safe_dump([{**claim, **hostile, "major": True}]))
    claims.write(configured())
    stage.report(configured())
    pages = [
        *results.glob("results/**/*.html"),
        *results.glob("results/claims.md"),
    ]
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
    stage.report(configured())
    assert not caplog.text
    assert faults(share=1.0) == []


def test_a_run_just_made_is_complete_before_its_verdicts(results, capsys):
    """When claims.csv is of the run before."""
    edited(results / "results/claims.csv", verdict="contradicted")
    complete()
    assert any(
        "has other verdicts of tiny" in line for line in verified("tiny")
    )
    assert (
        "tiny: verified, with its rows (seed 0): 1 faults\n"
        in capsys.readouterr().out
    )


# --- dperm verify ---------------------------------------------------------------------

ERRORS = "results/tiny/errors.csv"
DRAWN = "results/tiny/sweeps/drawn.parquet"


def verified(*words, share=0.0):
    """The exit of ``dperm verify``: its faults, one line each."""
    parser = argparse.ArgumentParser()
    options.verify(parser)
    given = ["--replay", str(share), "--seed", "0", *words]
    try:
        verify.main(parser.parse_args(given))
    except verify.NotVerifiedError as error:
        return str(error).splitlines()[1:]
    return []


def faults(again=True, share=0.0):
    """What is wrong; the manifest is made ``again`` after an edit, by a forger."""
    if again:
        Path("results/manifest.json").unlink()
        manifest.write(Jobs("", ["tiny"]), 2, 0.0, is_whole=True)
    return verified(share=share)


class Seen(BaseException):
    """A fault that a test waits for."""


class Watched(list):
    """Faults of a verification, which ends at the first that says some words."""

    def __init__(self, said):
        self.said = said

    def append(self, line):
        super().append(line)
        if self.said in line:
            raise Seen

    def extend(self, lines):
        for line in lines:
            self.append(line)


@pytest.fixture
def watched(monkeypatch):
    """The faults until the first that says some words; the rest is not looked at.

    Checks run one after the other, the shortest first.
    """

    def faults_until(said="", **how):
        found = Watched(said)

        def coverage(is_partial=False):
            return Coverage(is_partial, faults=found)

        def in_turn(parts, is_partial, show):
            for part in parts:
                verify.faults_of([part.check], coverage(), part.name)
                yield Coverage()

        monkeypatch.setattr(verify, "Coverage", coverage)
        monkeypatch.setattr(verify, "in_parallel", in_turn)
        with contextlib.suppress(Seen):
            faults(**how)
        drawing.plt.close("all")
        return found

    return faults_until


def edited(path, **columns):
    """Replace columns of a table by functions of it."""
    changed(path, lambda table: table.assign(**columns))


def first(column, factor):
    """A column whose first number is multiplied."""
    return lambda table: table[column].where(
        table.index > 0, table[column] * factor
    )


def worst(table):
    """The rows of the setting that lost, which no table shows."""
    return table["objective"] == table["objective"].max()


def changed(path, change):
    """Replace a table by a function of it, with the digest of its rows."""
    if path.suffix == ".parquet":
        return store.write_table(path, change(store.read_table(path)))
    return change(pd.read_csv(path)).to_csv(path, index=False)


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
    "a status": (f"{RUN}/tune.parquet",
        {"status": lambda table: table["status"].mask(worst(table), "diverged")},
        "status is diverged, where a run leaves ok", 0),
    "a setting called stopped": (f"{RUN}/tune.parquet",
        {"status": lambda table: table["status"].mask(worst(table), "stopped early")},
        "status is stopped early, where a run leaves ok", 0),
    "supports": (f"{RUN}/tune.parquet", {"support_size": 3}, "support_size is 3", 0),
    "less noise": (f"{RUN}/tune.parquet", {"noise_multiplier": 0.1}, "was kept", 1),
    "less noise in fresh runs": (f"{RUN}/evaluate.parquet", {"noise_multiplier": 0.1},
        "noise_multiplier is 0.1", 0),
    "a lower price": (f"{RUN}/evaluate.parquet", {"true_epsilon": 0.1},
        "true_epsilon is 0.1", 0),
    "seeds": (f"{RUN}/evaluate.parquet", {"seed": 5}, "seed is 5", 0),
    "names": (f"{RUN}/tune.parquet", {"algorithm": "DP-X"}, "algorithm is DP-X", 0),
    "a setting twice": (f"{RUN}/tune.parquet",
        lambda table: pd.concat([table, table[worst(table)]]), "leaves", 0),
    "a setting left out": (f"{RUN}/tune.parquet",
        lambda table: table[~worst(table)], "leaves", 0),
    "a fresh run left out": (f"{RUN}/evaluate.parquet",
        lambda table: table[table["replicate"] < 2], "leaves", 0),
    "rows in another order": (f"{RUN}/evaluate.parquet",
        lambda table: table[::-1], "replicate is 2", 0),
    "a point twice": (DRAWN, lambda table: pd.concat([table, table[-1:]]), "twice", 0),
    "a point left out": (DRAWN, lambda table: table[1:], "has 3 of 4 points", 0),
    "points in another order": (DRAWN, lambda table: table[::-1], "other order", 0),
    "a point of other settings": (DRAWN, {"n": 7}, "n is 7, where", 0),
    "a timed run": ("results/tiny/timing.parquet", {"objective": first("objective", 2)},
        "timing.parquet: objective is", 0),
    "seconds that are none": ("results/tiny/timing.parquet", {"seconds": -1.0},
        "seconds are missing or below 0", 0),
    "seeds of points": (DRAWN, {"seed": 5}, "seed is 5", 0),
    "points without data": (DRAWN, {"status": "unavailable", "reason": "no network"},
        "says unavailable", 0),
    "points of a sweep": (DRAWN, {"value": 0.0}, "was kept: [0.0]", 1),
}  # fmt: skip


WEEKLY = (  # by day another column, file or row is caught by the same words
    "all errors",
    "a name in a table",
    "a reason",
    "a setting called stopped",
    "less noise in fresh runs",
    "names",
    "a setting twice",
    "a fresh run left out",
)


@pytest.mark.parametrize("name", variants(FAULTS, {*FAULTS} - {*WEEKLY}))
def test_a_planted_fault_is_caught_although_the_manifest_was_forged(
    results, watched, name
):
    file, columns, said, share = FAULTS[name]
    (path,) = sorted(results.glob(file))[:1]
    change = (
        columns if callable(columns) else lambda table: table.assign(**columns)
    )
    changed(path, change)
    found = watched(said, share=float(share))
    assert any(said in line for line in found), found


def test_the_manifest_knows_a_changed_byte_and_files_that_are_gone_or_new(
    results,
):
    for file in (ERRORS, "results/claims.csv"):
        with open(results / file, "ab") as handle:
            handle.write(b" ")
        changed = f"{file} was changed after the run"
        assert any(changed in line for line in faults(again=False))
    (results / ERRORS).rename(results / "results/tiny/others.csv")
    found = " ".join(faults(again=False))
    assert f"{ERRORS} of the run is missing" in found
    assert "others.csv is not of the run" in found
    assert [*verify.changed(Path("results"), "", ["other"])] == []


# --- what is absent, damaged or exchanged ---------------------------------------------


def replaced(path, old, new):
    """Replace a text of a file, which must have it."""
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))


def swapped(path):
    """Put another picture in the place of a picture."""
    Image.new("RGB", (300, 200)).save(path)


def repainted(path):
    """Change one pixel of a picture."""
    image = Image.open(path).convert("RGB")
    image.putpixel((1, 1), (1, 2, 3))
    image.save(path)


def reweighed(path):
    """Move an optimum and redo its digests."""
    w = np.load(path) * 1.001
    np.save(path, w)
    record = path.with_name("optimum.json")
    content = json.loads(record.read_text())
    content["w_digest"] = store.digest(w.tolist())
    record.write_text(json.dumps(content))


def flipped(path):
    """Flip a bit in the middle of a file, or of the numbers of a table.

    Its middle may be its description in words, which nobody reads.
    """
    content = bytearray(path.read_bytes())
    place = len(content) // 2
    if path.suffix == ".parquet":
        group = pq.read_metadata(path).row_group(0)
        columns = [group.column(number) for number in range(group.num_columns)]
        numbers = ("objective", "value")
        column = next(one for one in columns if one.path_in_schema in numbers)
        place = column.data_page_offset + column.total_compressed_size // 2
    content[place] ^= 4
    path.write_bytes(content)


def cut(path):
    """Cut a file in half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path):
    path.write_text("")


def restated(change):
    """What changes the calibration of every ledger, and redoes its digests."""

    def of_all(entries):
        for entry in entries:
            change(entry["calibrated"])

    return relisted(of_all)


def relisted(change):
    """What changes the entries of a ledger, and redoes their digests."""

    def tamper(path):
        entries = json.loads(path.read_text())
        change(entries)
        for entry in entries:
            sign(entry)
        path.write_text(json.dumps(entries))

    return tamper


def sign(entry):
    kept = {key: value for key, value in entry.items() if key != "digest"}
    entry["digest"] = store.digest(kept)


def signed(path, **keys):
    """Edit the record of arrays or of an optimum, and redo its digest."""
    record = json.loads(path.read_text()) | keys
    del record["content"]
    path.write_text(json.dumps(record | {"content": store.digest(record)}))


def scaled(path):
    """Scale prepared arrays by a hair, and redo all digests that rest on them."""
    arrays = dict(np.load(path))
    arrays["X"] *= 1 + 1e-12
    np.savez(path, **arrays)
    signed(path.with_name("meta.json"), digest=digest_arrays(**arrays))
    config = configured()
    made = inputs._identity(config.problem, config.data)
    signed(Path(OPTIMUM, "optimum.json"), made=made)


def joined(path):
    """Judge a paper that is not here, and show it on all pages."""
    changed(path, lambda rows: pd.concat([rows, rows.assign(paper="other")]))
    text = texts.markdown(pd.read_csv(path))
    store.write_text(path.with_name("claims.md"), text)
    stage.report(configured())


def unseen(path):
    """Make a picture transparent, its colours as they are."""
    colours = np.asarray(Image.open(path).convert("RGB"))
    opacity = np.zeros((*colours.shape[:2], 1), np.uint8)
    Image.fromarray(np.concatenate([colours, opacity], axis=2)).save(path)


def moving(path):
    """Let another picture follow a picture, as browsers show it."""
    image = Image.open(path).convert("RGB")
    image.save(
        path, save_all=True, append_images=[Image.new("RGB", image.size)]
    )


def darkened(path):
    """Have a browser show a picture darker than its pixels are."""
    chunked(path, b"gAMA", (10_000).to_bytes(4, "big"))


def turned(path):
    """Have a browser show a picture upside down."""
    orientation = "4d4d002a00000008 0001 0112 0003 00000001 0003 0000 00000000"
    chunked(path, b"eXIf", bytes.fromhex(orientation))


def chunked(path, name, body):
    """Add a chunk to a PNG, behind its head."""
    content = path.read_bytes()
    chunk = len(body).to_bytes(4, "big") + name + body
    chunk += zlib.crc32(name + body).to_bytes(4, "big")
    path.write_bytes(content[:33] + chunk + content[33:])


def lossless(path):
    """Replace a PNG by a file of another format with the same pixels."""
    Image.open(path).convert("RGB").save(path, format="BMP")


def scripted(path):
    """Have the manifest say a script made the run, and the report repeat it."""
    script = "<script>alert(1)</script>"
    edit_json(path, versions=script)
    replaced(path.with_name("report") / "index.html", store.versions(), script)


MANIFEST = "results/manifest.json"
LEDGER = f"{RUN}/ledger.json"
OPTIMUM = "data/optimum/diabetes"
FILES = {
    "manifest": MANIFEST, "table": ERRORS, "claims.csv": "results/claims.csv",
    "claims.md": "results/claims.md", "report": "results/report/index.html",
    "picture": "figures/tiny/curves.png", "curves": "figures/tiny/curves.csv",
    "winners": "results/tiny/complete.txt", "tuning": f"{RUN}/tune.parquet",
    "evaluation": f"{RUN}/evaluate.parquet", "sweep": DRAWN, "ledger": LEDGER,
    "timing": "results/tiny/timing.parquet",
    "fetched arrays": "data/fetched/diabetes/arrays.npz",
    "fetched record": "data/fetched/diabetes/fetch.json",
    "prepared arrays": "data/prepared/diabetes/arrays.npz",
    "prepared record": "data/prepared/diabetes/meta.json",
    "weights": f"{OPTIMUM}/w.npy", "optimum": f"{OPTIMUM}/optimum.json",
}  # fmt: skip
TEXTS = ("manifest", "table", "fetched record", "prepared record", "optimum")
WITHOUT = ("fetched", "prepared", "weights", "optimum")  # as in a clone
TAMPERED = {
    # what is done to which file, and whether the manifest is made again afterwards
    **{f"no {name}": (file, Path.unlink, name != "manifest")
       for name, file in FILES.items() if not name.startswith(WITHOUT)},
    **{f"{way.__name__} {name}": (file, way, name != "manifest")
       for way in (cut, emptied) for name, file in FILES.items()},
    **{f"flipped {name}": (file, flipped, True)
       for name, file in FILES.items() if name not in (*TEXTS, "picture")},
    "a manifest of numbers": (MANIFEST, lambda path: path.write_text('{"files": 3}'),
        False),
    "another picture": (FILES["picture"], swapped, True),
    "a pixel": (FILES["picture"], repainted, True),
    "no opacity": (FILES["picture"], unseen, True),
    "a second picture": (FILES["picture"], moving, True),
    "another gamma": (FILES["picture"], darkened, True),
    "a turned picture": (FILES["picture"], turned, True),
    "another format": (FILES["picture"], lossless, True),
    "a page behind a picture": (FILES["picture"],
        lambda path: path.write_bytes(path.read_bytes() + b"<html>"), True),
    "columns in another order": (ERRORS,
        lambda path: changed(path, lambda table: table[table.columns[::-1]]), True),
    "a column of seconds": (ERRORS, lambda path: edited(path, seconds=0.1), True),
    "an empty column": (FILES["curves"], lambda path: edited(path, note=""), True),
    "a column of verdicts": (FILES["claims.csv"],
        lambda path: edited(path, versions="all reproduced"), True),
    "a script in the manifest": (MANIFEST, scripted, False),
    "a winner": (FILES["winners"],
        lambda path: replaced(path, "DP-CD", "DP-SGD"), True),
    "a verdict on the page": (FILES["claims.md"],
        lambda path: replaced(path, "reproduced", "contradicted"), True),
    "a verdict in the report": (FILES["report"],
        lambda path: replaced(path, "reproduced", "contradicted"), True),
    "a verdict in the explorer": ("results/report/explorer.html",
        lambda path: replaced(path, "reproduced", "contradicted"), True),
    "a paper that is not here": (FILES["claims.csv"], joined, True),
    "another optimum": (FILES["weights"], reweighed, True),
    "a lower F*": (FILES["optimum"], lambda path: signed(path, value=0.5), True),
    "another gap": (FILES["optimum"], lambda path: signed(path, gap=1e-30), True),
    "another start": (FILES["optimum"], lambda path: signed(path, start=9.0), True),
    "no optimum": (FILES["optimum"],
        lambda path: signed(path, status="unavailable"), True),
    "an unsigned F*": (FILES["optimum"],
        lambda path: edit_json(path, value=0.5), True),
    "another fetched digest": (FILES["fetched record"],
        lambda path: edit_json(path, digest="0" * 20), True),
    "another number of records": (FILES["fetched record"],
        lambda path: edit_json(path, n=7), True),
    "data called unavailable": (FILES["prepared record"],
        lambda path: signed(path, status="unavailable"), True),
    "scaled arrays": (FILES["prepared arrays"], scaled, True),
    "less noise": (LEDGER, restated(lambda calibrated: calibrated.update(
        noise_multiplier=calibrated["noise_multiplier"] * 1e-3)), True),
    "a lower price": (LEDGER, restated(lambda calibrated: calibrated.update(
        claimed_epsilon=calibrated["claimed_epsilon"] / 2)), True),
    "fewer releases": (LEDGER, restated(
        lambda calibrated: calibrated["ledger"]["events"].pop()), True),
    "an entry twice": (LEDGER, relisted(
        lambda entries: entries.append({**entries[0]})), True),
    "a word of praise": (LEDGER, relisted(
        lambda entries: entries[0].update(note="safe")), True),
    "another use": (LEDGER, relisted(
        lambda entries: entries[0].update(use="release it")), True),
    "more steps": (LEDGER, relisted(
        lambda entries: entries[0].update(steps=entries[0]["steps"] * 2)), True),
    "lines that end otherwise": (FILES["claims.md"], lambda path: path.write_bytes(
        path.read_bytes().replace(b"\n", b"\r\n")), True),
    "a pipe": (ERRORS, lambda path: (path.unlink(), os.mkfifo(path)), True),
}  # fmt: skip


def edit_json(path, **keys):
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


BY_DAY = (  # every way, and the files that are read in different ways
    "cut manifest",
    "no table",
    "no ledger",
    "flipped tuning",
    "flipped sweep",
    "flipped fetched arrays",
    "flipped prepared arrays",
    "flipped claims.csv",
    "cut weights",
    "cut winners",
    "cut fetched record",
    "emptied prepared record",
    "emptied picture",
    "a pixel",
    "no opacity",
    "a second picture",
    "another gamma",
    "a turned picture",
    "a page behind a picture",
    "columns in another order",
    "an empty column",
    "a column of verdicts",
    "a script in the manifest",
    "a verdict on the page",
    "a paper that is not here",
    "another optimum",
    "a lower F*",
    "data called unavailable",
    "scaled arrays",
    "less noise",
    "a lower price",
    "fewer releases",
    "an entry twice",
    "another use",
    "lines that end otherwise",
    "a pipe",
)


@pytest.mark.parametrize("name", variants(TAMPERED, BY_DAY))
def test_no_tampering_is_unseen_where_rows_are(results, watched, name):
    file, tamper, again = TAMPERED[name]
    tamper(results / file)
    assert watched(again=again)


def test_a_product_of_rows_that_it_does_not_name_is_refused(
    results, monkeypatch
):
    monkeypatch.setattr(makers, "read_by", lambda *_: [])
    with pytest.raises(BeyondKeyError, match="add problems, sweeps or timed"):
        products.made(configured(), "tables", "errors")


def test_where_nothing_is_there_is_nothing_to_verify(results):
    """One line, with a part as well; not one for every file that a run leaves."""
    for top in ("results", "figures"):
        shutil.rmtree(f"{top}/tiny")
    for words in ((), ("tiny",), ("--partial",)):
        with pytest.raises(ConfigError, match="no results here of tiny: run"):
            verified(*words)


AUDITED = "results/audit/solvers/dp_cd_uniform.csv"
FINDINGS = {  # what is done to the findings about a solver, and what is said
    "a finding left out": (lambda table: table[1:], "rows, where a run leaves"),
    "a lower price": (lambda table: table.assign(true_epsilon=0.1), "true_epsilon is"),
    "a subject renamed": (lambda table: table.assign(subject="x"), "subject is x"),
    "another lower bound": (lambda table: table.assign(epsilon=0.0), "check measured"),
    "measured otherwise": (lambda table: table.assign(measured=table["measured"] + 1),
        "check measured"),
    "nothing caught": (lambda table: table.assign(caught=True), " now ("),
    "none": (lambda table: table[:0], "0 rows, where"),
}  # fmt: skip


def test_findings_of_an_audit_are_those_of_its_subjects(results):
    """Their prices follow from ledgers; one subject is audited again."""
    auditing.audit(configured("solver=dp_cd_uniform"))
    path = Path(AUDITED)
    text = path.read_text()
    coverage = Coverage(is_partial=True)

    def found():
        return [*recheck.audits(configured(), lambda *_: "", coverage, 0)]

    assert found() == []
    kinds = coverage.by_kind()["audit"]
    assert kinds["checked"] == kinds["made again"] == 1
    for name, (change, said) in FINDINGS.items():
        table = pd.read_csv(path, keep_default_na=False)
        change(table).to_csv(path, index=False)
        (line,) = found()[:1] or [name]
        assert AUDITED in line and said in line, name
        path.write_text(text)


MARKS = "<!-- {0}: written by `dperm readme` -->\n\n<!-- end of {0} -->\n"


def test_pages_with_marks_stay_all_there_and_marked(results):
    """A reader of README follows its links; a README of one's own has no marks."""
    Path("README.md").write_text("# A project of my own\n")
    assert faults() == []
    file = results / "configuration/paper/tiny/claims.yaml"
    replaced(file, "kind: variant", "kind: sentence\n  major: true")
    claims.write(configured())
    report = Path("docs/reports/tiny.md")
    pages = {Path("README.md"): "scorecard", report: "claims"}
    report.parent.mkdir(parents=True)
    for path, name in pages.items():
        path.write_text(f"# Title\n\n{MARKS.format(name)}")
    texts.readme(configured())
    stage.report(configured())  # which links to them
    assert faults() == []
    for path in pages:
        text = path.read_text()
        for change in (
            Path.unlink,
            lambda path: replaced(path, "written by", "checked by"),
            lambda path: replaced(path, "reproduced", "contradicted"),
            lambda path: path.write_text(path.read_text() * 2),
        ):
            change(path)
            assert any(path.name in line for line in faults(again=False))
            path.write_text(text)


def test_a_part_may_be_absent_if_one_asks_for_a_part(results):
    for file in (f"{RUN}/tune.parquet", "figures/tiny/curves.png", MANIFEST):
        (results / file).unlink()
    told = "\n".join(verified())
    assert MANIFEST in told and "tune.parquet" in told and "curves.png" in told
    assert verified("--partial") == []


def test_counts_as_json_say_what_was_covered_and_left_out(results, capsys):
    assert verified("--json", share=1.0) == []
    summary = json.loads(capsys.readouterr().out)
    assert summary["faults"] == summary["left_out"] == []
    kinds = summary["kinds"]
    assert kinds["pictures"] == {
        "checked": 0, "made again": 1, "absent": 0, "not checkable": 0,
    }  # fmt: skip
    for kind in (
        "tables",
        "figures",
        "verdicts",
        "pages",
        "optima",
        "ledgers",
        "settings",
    ):
        assert kinds[kind]["made again"] > 0, kind
    for kind in ("files", "rows", "data"):
        assert kinds[kind]["checked"] > 0, kind
    assert not any(states["absent"] for states in kinds.values())
    for path in results.rglob("*.parquet"):
        path.unlink()
    assert verified("--json") == []
    summary = json.loads(capsys.readouterr().out)
    assert "no rows here of tiny" in summary["left_out"][0]
    assert summary["kinds"]["rows"]["absent"] == 6
    assert summary["kinds"]["pictures"]["not checkable"] == 1


def test_claims_and_report_made_by_hand_are_noted(results, monkeypatch):
    path = results / "configuration/paper/tiny/claims.yaml"
    replaced(path, "0.5", "0.0001\n  tolerance: 5.0")
    assert verified()
    for command in ("claims", "report"):
        monkeypatch.setattr("sys.argv", ["dperm", command])
        cli.main()
    assert verified() == []


def test_a_forged_row_with_its_digest_is_caught_by_the_replay_alone(results):
    """All digests and all that must agree are in order, F* among them."""
    optimum = json.loads(
        (results / "data/optimum/diabetes/optimum.json").read_text()
    )

    def better(table):
        is_later = (table["checkpoint"] > 0) & (table["solver"] == "dp_cd")
        return table["relative_error"] * np.where(is_later, 0.9, 1.0)

    def objective(table):
        return optimum["value"] * (1 + table["relative_error"])

    for file in (FILES["evaluation"], FILES["timing"]):
        edited(Path(file), relative_error=better, objective=objective)
    draw()
    claims.write(configured())
    config = configured()  # `dperm complete` tries some rows again
    best = verify.completed(config.paper, config.output)
    store.write_text(results / "results/tiny/complete.txt", best)
    stage.report(configured())
    assert faults() == []
    found = faults(share=1.0)
    assert found and all(f"{RUN}/evaluate.parquet" in line for line in found)
    assert "was kept" in found[0]


def test_a_ledger_may_have_entries_of_settings_before_these(results):
    """A run after an edit of epsilon keeps those of before, for one who edits back."""
    before = json.loads(Path(LEDGER).read_text())
    folder = results / "configuration/problem"
    problems = folder.resolve()
    folder.unlink()
    shutil.copytree(problems, folder)
    path = folder / "diabetes.yaml"
    section = yaml.safe_load(path.read_text())
    section["privacy"] = {**section.get("privacy", {}), "epsilon": 0.5}
    path.write_text(yaml.safe_dump(section))
    for name in SMALL["runs"]:
        solve(name)
    after = json.loads(Path(LEDGER).read_text())
    assert len(after) == 2 * len(before)
    stages.timing(configured())
    draw()
    complete()
    claims.write(configured())
    stage.report(configured())
    assert faults() == []


def test_a_setting_of_other_noise_is_caught(results):
    """Less noise in the ledger, and settings that were really run with it."""
    config = configured("solver=dp_cd", "problem.privacy.epsilon=10")
    (results / RUN / "tune.parquet").unlink()
    stages.solve(config)
    found = faults(share=1.0)
    assert any(
        "epsilon" in line or "noise_multiplier" in line for line in found
    )
