"""Results in an archive: whole, of the code that is there, or refused in a line."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import files as store
from dperm.pipeline import graph, packed, seals
from dperm.pipeline.completion import digest_rows
from dperm.pipeline.graph import Graph

ROWS = "results/tiny/own/dp_cd/tune.parquet"
DATA = "data/prepared/own/X.npy"
DIGESTS = {
    "prepare/own": "p",
    "optimum/own": "o",
    "tune/tiny/own/dp_cd": "t",
    "evaluate/tiny/own/dp_cd": "e",
    "sweeps/tiny/rounds": "s",
    "timing/tiny": "m",
    "figures/tiny/curves": "f",
}


def planned(**other):
    """The graph of a paper with a run, a sweep and timings."""
    graph = Graph("", ["tiny"], digests={**DIGESTS, **other})
    fetched = graph.add("fetch", "mine").outputs
    prepared = graph.add("prepare", "own", inputs=fetched).outputs
    solved = graph.add("optimum", "own", inputs=prepared).outputs
    tune, evaluate = graph.add("solve", "tiny", "own", "dp_cd", inputs=solved).outputs
    graph.add("sweep", "tiny", "rounds", inputs=solved)
    graph.add("timing", "tiny", inputs=[evaluate])
    graph.add_drawing("tiny", "figures/curves", [tune, evaluate])
    return graph


@pytest.fixture
def planning(monkeypatch):
    """Sets what the configuration and code of now ask for."""

    def plan(**other):
        monkeypatch.setattr(packed, "load_graph", lambda *_: planned(**other))
        monkeypatch.setattr(packed, "verified", lambda *_: None)

    plan()
    return plan


@pytest.fixture
def ran(tmp_path, monkeypatch, planning):
    """A folder with the results of a run."""
    folder = tmp_path / "ran"
    folder.mkdir()
    monkeypatch.chdir(folder)
    results, rows = Path("results/tiny"), {}
    names = [
        *(f"own/dp_cd/{name}" for name in ("tune", "evaluate")),
        "sweeps/rounds",
        "timing",
    ]
    for at, name in enumerate(names):
        table = pd.DataFrame({"error": [0.1 + at, 0.2]})
        store.write_table(results / f"{name}.parquet", table)
        rows[f"{name}.parquet"] = digest_rows(table)
    record = {
        "made": planned().rows_digest("tiny"),
        "digests": {"rows": rows},
        "configuration": {"overrides": ["paper=tiny", "scale=full"]},
    }
    for path, content in {
        results / "record.json": record,
        results / "manifest.json": {"paper": "tiny", "versions": "numpy 0"},
        results / "own/dp_cd/ledger.json": [],
        Path("data/fetched/mine/fetch.json"): {"status": "ok"},
        Path("data/prepared/own/meta.json"): {"digest": "bits of there"},
        Path("data/optimum/own/optimum.json"): {"value": 1.0},
    }.items():
        store.write_json(path, content)
    np.save(DATA, np.eye(2))
    np.save("data/optimum/own/w.npy", np.ones(2))
    np.save("data/fetched/mine/X.npy", np.eye(2))
    return folder


@pytest.fixture
def archive(ran):
    """Its archive."""
    packed.pack(["tiny"], ["scale=full"], Path("results.zip"))
    return ran / "results.zip"


@pytest.fixture
def elsewhere(archive, tmp_path, monkeypatch):
    """The archive, seen from an empty folder."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return archive


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_all_that_rows_depend_on_comes_along(ran, elsewhere):
    packed.unpack(elsewhere)
    before = contents(ran)
    for left in ("results.zip", "data/fetched/mine/X.npy"):  # X is in prepared
        del before[left]
    assert contents(Path()) == before
    assert (
        len({path.stat().st_mtime for path in Path().rglob("*.*") if path.is_file()})
        == 1
    ), "nothing is newer than what it was made of"


def test_the_same_rows_give_the_same_bytes(archive):
    before = archive.read_bytes()
    os.utime(ROWS)
    packed.pack(["tiny"], ["scale=full"], archive)
    assert archive.read_bytes() == before


def rewritten(path, change):
    with zipfile.ZipFile(path) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as whole:
        for name, content in members.items():
            whole.writestr(name, content)


def other_rows(members):
    members[ROWS] += b"x"


def lost(members):
    del members[DATA]


def outside(members):
    head = json.loads(members[packed.HEAD])
    head["files"]["results/../../evil"] = head["files"].pop(ROWS)
    members["results/../../evil"] = members.pop(ROWS)
    members[packed.HEAD] = json.dumps(head).encode()


def a_list(members):
    members[packed.HEAD] = b"[]"


def with_head(**changes):
    def change(members):
        head = json.loads(members[packed.HEAD]) | changes
        members[packed.HEAD] = json.dumps(head).encode()

    return change


def a_bomb(members):
    """A head that is small until it is unpacked."""
    members[packed.HEAD] = b" " * (packed.MOST_HEAD + 1)


ODD = [
    *(with_head(papers=papers) for papers in ("", [], [1], 7)),
    *(with_head(files=files) for files in ("", {"": ""}, {ROWS: 7}, [ROWS])),
    *(with_head(stages=stages) for stages in ([], {"tune": 1})),
    *(with_head(overrides=["a=b", 1]), with_head(versions=None)),
]


@pytest.mark.parametrize(
    "change", [other_rows, lost, outside, a_list, a_bomb, *ODD, dict.clear]
)
def test_a_damaged_archive_leaves_nothing_behind(elsewhere, change):
    rewritten(elsewhere, change)
    with pytest.raises(packed.ArchiveError, match=r"damaged.*get it again"):
        packed.unpack(elsewhere)
    assert not contents(elsewhere.parent.parent / "elsewhere")
    assert not (elsewhere.parent.parent / "evil").exists()


def test_every_byte_that_is_cut_off_or_turned_is_noticed(elsewhere):
    whole = elsewhere.read_bytes()
    for at in range(100, len(whole), len(whole) // 7):
        for broken in (
            whole[:at],
            whole[:at] + bytes([whole[at] ^ 9]) + whole[at + 1 :],
        ):
            elsewhere.write_bytes(broken)
            try:
                packed.unpack(elsewhere)
            except packed.ArchiveError:
                continue
            unpacked = contents(Path())  # a byte that no file is made of, a date say
            elsewhere.write_bytes(whole)
            packed.unpack(elsewhere)
            assert contents(Path()) == unpacked


def test_an_archive_of_other_code_is_refused_and_of_other_style_is_not(
    elsewhere, planning
):
    planning(**{"sweeps/tiny/rounds": "other"})
    with pytest.raises(packed.ArchiveError) as caught:
        packed.unpack(elsewhere)
    said = str(caught.value)
    assert "1 of 6 stages differ, first sweeps/tiny/rounds" in said and "\n" not in said
    assert not contents(Path())
    planning(**{"figures/tiny/curves": "other"})
    packed.unpack(elsewhere)


@pytest.mark.parametrize("name", [ROWS, DATA])
def test_other_rows_and_data_keep_their_place(elsewhere, name):
    own = Path(name)
    own.parent.mkdir(parents=True)
    own.write_bytes(b"of a run of mine")
    with pytest.raises(packed.ArchiveError, match=f"{name} is there.*--replace"):
        packed.unpack(elsewhere)
    assert own.read_bytes() == b"of a run of mine"
    packed.unpack(elsewhere, replace=True)
    assert own.read_bytes() != b"of a run of mine"


@pytest.mark.parametrize("stage", ["tune/tiny/own/dp_cd", "timing/tiny"])
def test_rows_of_other_code_are_not_packed(ran, planning, stage):
    planning(**{stage: "other"})
    with pytest.raises(packed.ArchiveError, match=r"of other code.*run `dperm tiny`"):
        packed.pack(["tiny"], ["scale=full"], Path("results.zip"))


def test_rows_that_are_not_those_of_the_record_are_not_packed(ran):
    store.write_table(Path(ROWS), pd.DataFrame({"error": [7.0]}))
    with pytest.raises(packed.ArchiveError, match=f"{ROWS} has other rows"):
        packed.pack(["tiny"], ["scale=full"], Path("results.zip"))
    assert not Path("results.zip").exists()


@pytest.mark.parametrize("name", [ROWS, "data/optimum/own/optimum.json"])
def test_what_is_not_there_is_named(ran, name):
    Path(name).unlink()
    with pytest.raises(packed.ArchiveError, match=f"{name} is not there"):
        packed.pack(["tiny"], ["scale=full"], Path("results.zip"))


def test_the_command_says_one_line(tmp_path):
    (tmp_path / "results.zip").write_text("no archive")
    command = [sys.executable, "-m", "dperm", "results", "unpack", "results.zip"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("ArchiveError: results.zip is no archive of results")


def test_words_are_papers_and_overrides():
    words = packed._papers_and_overrides(["dpcd", "seed=7", "scale=smoke"])
    assert words == (["dpcd"], ["scale=smoke", "seed=7"])


def added(name):
    """The archive holds one more file, and says so."""

    def change(members):
        head = json.loads(members[packed.HEAD])
        known = {"sha256": hashlib.sha256(b"x").hexdigest(), "size": 1}
        head["files"][name] = known
        members[name] = b"x"
        members[packed.HEAD] = json.dumps(head).encode()

    return change


@pytest.mark.parametrize(
    "name",
    ["results/claims.csv", "results/tiny/table2.csv", "results/..\\..\\evil", "C:evil",
     "results/../evil", "/evil", "data/prepared/other/X.npy", "results/tiny/x.npy"],
)  # fmt: skip
def test_an_archive_holds_exactly_what_its_papers_want(elsewhere, name):
    rewritten(elsewhere, added(name))
    with pytest.raises(packed.ArchiveError, match="which no paper needs"):
        packed.unpack(elsewhere)
    assert not contents(Path())


def test_a_large_archive_is_refused_before_anything_is_written(elsewhere):
    with pytest.raises(packed.ArchiveError, match="more than 1e-09: --limit"):
        packed.unpack(elsewhere, most=1e-9)
    assert not contents(Path())


def forged(members):
    """Other rows, with a fresh digest in the head."""
    table = pd.DataFrame({"error": [7.0]})
    members[ROWS] = table.to_parquet(None, index=False)
    head = json.loads(members[packed.HEAD])
    digest = hashlib.sha256(members[ROWS]).hexdigest()
    head["files"][ROWS] = {"sha256": digest, "size": len(members[ROWS])}
    members[packed.HEAD] = json.dumps(head).encode()


def test_forged_rows_that_the_archive_s_record_contradicts(elsewhere):
    rewritten(elsewhere, forged)
    with pytest.raises(packed.ArchiveError, match=f"{ROWS} has other rows"):
        packed.unpack(elsewhere)
    assert not contents(Path())


@pytest.mark.parametrize(
    "override", ["paper.title=x", "output.results=elsewhere", "data.dir=/tmp"]
)
def test_overrides_are_those_of_the_record(elsewhere, override):
    rewritten(elsewhere, with_head(overrides=["scale=full", override]))
    with pytest.raises(packed.ArchiveError, match=override.partition("=")[0]):
        packed.unpack(elsewhere)
    assert not contents(Path())


@pytest.mark.parametrize(
    "name", ["results/tiny/record.json", "results/tiny/manifest.json"]
)
def test_no_file_of_git_gives_way_without_a_word(elsewhere, name):
    own = Path(name)
    store.write_json(own, {})
    with pytest.raises(packed.ArchiveError, match=f"{name} is there.*--replace"):
        packed.unpack(elsewhere)
    packed.unpack(elsewhere, replace=True)


def test_rows_that_a_seal_here_contradicts_are_refused(elsewhere):
    job = {
        "by": "tune",
        "made": "",
        "versions": "",
        "read": {},
        "wrote": {"own/dp_cd/tune.parquet": "0"},
    }
    seals.add(Path("results/tiny"), {"own/dp_cd/tune.parquet": job})
    with pytest.raises(packed.ArchiveError, match=f"{ROWS} is sealed here"):
        packed.unpack(elsewhere)


def test_archives_of_other_versions_are_taken_with_a_word(elsewhere):
    assert "solved with numpy 0, where" in packed.unpack(elsewhere)


@pytest.mark.parametrize("moves", range(0, 10, 3))
def test_a_kill_while_files_are_moved_is_mended(ran, elsewhere, monkeypatch, moves):
    """SIGKILL: any command on results tidies up, and the archive completes itself."""
    replace, count = Path.replace, iter(range(moves))

    def killing(self, target):
        if graph.UNPACKED in str(self) and next(count, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(self, target)

    process = os.fork()
    if not process:
        Path.replace = killing
        packed.unpack(elsewhere)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    left = f".{store.NODE}.{process}{graph.UNPACKED}"
    assert [path.name for path in Path().glob(".*")] == [left]
    command = [sys.executable, "-P", "-m", "dperm", "verify", "no_such_paper"]
    subprocess.run(command, capture_output=True)
    assert not Path(left).exists()
    packed.unpack(elsewhere)
    for name, content in contents(Path()).items():
        assert (ran / name).read_bytes() == content


@pytest.fixture
def keys(ran):
    """A private key and its public one, in PEM."""
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    def pair(name):
        private = Ed25519PrivateKey.generate()
        bare = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
        info = (pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
        paths = ran / f"{name}.pem", ran / f"{name}.pub"
        paths[0].write_bytes(private.private_bytes(*bare))
        paths[1].write_bytes(private.public_key().public_bytes(*info))
        return paths

    return pair


def test_a_key_says_who_packed_it(ran, keys, tmp_path, monkeypatch):
    (private, public), (_, other) = keys("mine"), keys("other")
    path = ran / "results.zip"
    packed.pack(["tiny"], ["scale=full"], path, private)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(packed.ArchiveError, match="was not signed by"):
        packed.unpack(path, key=other)
    with pytest.raises(packed.ArchiveError, match="expected a public Ed25519 key"):
        packed.unpack(path, key=private)
    assert not contents(Path())
    assert "unknown origin" not in packed.unpack(path, key=public)
    rewritten(path, with_head(commit="other"))
    with pytest.raises(packed.ArchiveError, match="was not signed by"):
        packed.unpack(path, key=public)
    rewritten(path, lambda members: members.pop(packed.SIGNATURE))
    with pytest.raises(packed.ArchiveError, match="is not signed"):
        packed.unpack(path, key=public)
