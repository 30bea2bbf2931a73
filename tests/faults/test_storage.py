"""Disks that are full or read-only, files that are damaged."""

import json
import resource
import shutil
import subprocess

import pandas as pd
import pytest

from data.conftest import Site
from faults.tiny import counted, same_rows

RESULT = "results/tiny/diabetes/dp_cd"


def last(done) -> str:
    return done.stdout.strip().splitlines()[-1]


def refused(done, *words: str) -> str:
    """The stage ended with exit code 1 and one clear line."""
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stdout
    for word in words:
        assert word in last(done)
    return last(done)


def lanes(folder):
    return [path for path in folder.rglob("*.parquet") if "lanes" in path.parts]


def equal(project, undisturbed, folder):
    """The tuned rows below a results folder are those of an undisturbed run."""
    ours = pd.read_parquet(folder / "tiny/diabetes/dp_cd/tune.parquet")
    theirs = undisturbed.rows(RESULT)[f"{RESULT}/tune.parquet"]
    pd.testing.assert_frame_equal(ours[theirs.columns], theirs, check_exact=True)


def test_a_full_disk(prepared, undisturbed, mounted, tally):
    """A disk that is full before all lanes are written"""
    folder = mounted("size=160k")
    where = f"output.results={folder}"
    said = refused(prepared.run("tune", where), "lanes", "No space left")
    kept = sum(len(pd.read_parquet(path)) for path in lanes(folder))
    assert kept > 0 and not list(folder.rglob("*tune.parquet"))
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
    subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
    done = prepared.run("tune", where)
    assert done.returncode == 0, done.stdout
    assert counted(done.stdout)["reused"] == kept
    equal(prepared, undisturbed, folder)
    tally(1, said)


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))


def test_a_limit_on_files(prepared, undisturbed, tally):
    """A limit on the size of files"""
    prepared.run("tune", "output.results=elsewhere")  # the kernels' own cache is filled
    said = refused(prepared.run("tune", preexec_fn=limit), "cannot be written")
    assert prepared.leftovers() == []
    assert prepared.run("tune").returncode == 0
    same_rows(prepared, undisturbed, RESULT, some=True)
    tally(1, said)


def test_a_read_only_folder(prepared, undisturbed, mounted, tally):
    """A results folder that cannot be written to"""
    folder = mounted("size=64m")
    where = f"output.results={folder}"
    assert prepared.run("tune", where).returncode == 0
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    said = refused(prepared.run("tune", where), "Read-only", str(folder))
    equal(prepared, undisturbed, folder)
    tally(1, said)


def garble(path, at=0.5) -> None:
    """Flip one bit."""
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 4
    path.write_bytes(content)


@pytest.mark.long
def test_damaged_tables(prepared, undisturbed, tally):
    """A Parquet file with a flipped bit, one cut short, one of nothing"""
    assert prepared.run("tune").returncode == 0
    folder = prepared.folder / RESULT
    parts = lanes(folder)
    lost = sum(len(pd.read_parquet(part)) for part in parts[:3])
    garble(parts[0], 0.2)
    parts[1].write_bytes(parts[1].read_bytes()[:500])
    parts[2].write_bytes(b"")
    done = prepared.run("tune")
    assert done.stdout.count("dropped: ") == 3
    assert f" {lost} computed" in last(done)
    same_rows(prepared, undisturbed, RESULT, some=True)
    table = folder / "tune.parquet"
    for damage in (lambda: garble(table, 0.3), lambda: table.write_bytes(b"PAR1")):
        damage()
        said = refused(prepared.run("evaluate"), str(RESULT), "delete it and run again")
        table.unlink()
        assert prepared.run("tune").returncode == 0
    assert prepared.run("evaluate").returncode == 0
    same_rows(prepared, undisturbed, RESULT, some=True)
    tally(5, said)


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "stage"),
    [
        ("fetched/diabetes/X.npy", "prepare"),
        ("prepared/diabetes/X.npy", "tune"),
        ("prepared/diabetes/y.npy", "tune"),
        ("optimum/diabetes/w.npy", "tune"),
        ("optimum/diabetes/optimum.json", "tune"),
    ],
)
def test_damaged_data(prepared, undisturbed, tally, file, stage):
    """A flipped bit in what is cached of the data"""
    path = prepared.folder / "data" / file
    if path.suffix == ".json":
        path.write_text(path.read_text()[:40])
    else:
        garble(path, 0.97)
    said = refused(
        prepared.run(stage),
        f"delete data/{path.parent.relative_to(prepared.folder / 'data')}",
    )
    shutil.rmtree(path.parent)  # as it was told
    for stage in ("fetch", "prepare", "optimum", "tune"):
        done = prepared.run(stage)
        assert done.returncode == 0, done.stdout
    same_rows(prepared, undisturbed, RESULT, some=True)
    tally(1, said)


def test_a_truncated_download(project, tally):
    """A download that breaks off, again and again"""
    site = Site()
    body = (
        "a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 3}\n" for i in range(3000))
    ).encode()
    url = site.put("/x.csv", site.cut(body, 9000))
    project.add("problem/far", {
        "name": "far", "loss": "least_squares",
        "dataset": {"name": "far", "sources": [{"kind": "http", "urls": [url]}],
                    "reader": {"format": "csv"}},
    })  # fmt: skip
    done = project.run("fetch", "problem=far", "data.retries=1")
    assert done.returncode == 1 and "none of its sources serves it" in done.stdout
    record = project.folder / "data/fetched/far/fetch.json"
    reason = json.loads(record.read_text())["reason"]
    assert "IncompleteRead" in reason and url in reason
    site.put("/x.csv", site.good(body))
    assert project.run("fetch", "problem=far").returncode == 0
    assert json.loads(record.read_text())["n"] == 3000
    site.close()
    tally(2, reason.splitlines()[1])
