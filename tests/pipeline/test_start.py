"""A start reads what it is asked for, once, and never what has changed since."""

import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

import dperm
from dperm.core.experiment import config, locate
from dperm.core.experiment import files as store
from dperm.core.experiment.locate import ConfigError
from dperm.pipeline import digests, graph, runtable
from dperm.store import closure

PAPERS = ["dpbcfw", "dpcd", "dpgcd"]
MINE = Path(__file__).parents[2] / "docs/examples/mine"


# --- which papers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-n dpcd", ["dpcd"]),
        ("dpgcd dpcd -j 2", ["dpcd", "dpgcd"]),
        ("-n --config scale=smoke -- dpcd", ["dpcd"]),
        ("dpcd -j 2 --config scale=smoke set='paper.fresh=2 seed=1'", ["dpcd"]),
        ("-j 1 figures/dpcd/figure1.svg", ["dpcd"]),
        ("-j 1 ./results/smoke/dpgcd/table1.csv", ["dpgcd"]),
        ("-j 1 results/dpgcd/a/dp_cd/tune.parquet", ["dpgcd"]),
        ("-j 1 --target-jobs tune:paper=dpcd,problem=a,solver=b", ["dpcd"]),
        ("-j 1 --target-jobs prepare:problem=a", PAPERS),
        ("-n", PAPERS),
        ("-n all", PAPERS),
        ("dpcd claims", PAPERS),
        ("results/claims.csv", PAPERS),
        ("results/audit/solvers/dpcd.csv", PAPERS),
        ("results/dpcd/dpgcd/dp_cd/tune.parquet", PAPERS),
        ("data/prepared/dpcd/meta.json", PAPERS),
        ("dpdc", PAPERS),
    ],
)
@pytest.mark.parametrize("program", ["snakemake", "/x/bin/snakemake",
                                     "/x/snakemake/__main__.py"])  # fmt: skip
def test_papers_asked_for(program, line, found):
    assert graph.papers_of([program, *shlex.split(line)], PAPERS) == found


def test_overrides_reach_a_shell_as_they_are():
    given = ["a=$HOME *", "b=x|touch y", "c='it''s'", 'd="x, y"', "e=`id`;f", "g=\\n"]
    settings = {"scale": "smoke", "set": shlex.join(given)}
    found = graph.overrides(settings)
    assert found == ["scale=smoke", *given]
    echo = ["bash", "-c", f"printf '%s\\n' {shlex.join(found)}"]
    done = subprocess.run(echo, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == found
    stripped = {**settings, "set": settings["set"].strip("'")}  # as Snakemake does
    command = ["dperm", f"set={settings['set']}", "-n"]
    assert graph.overrides(stripped, command) == found
    with pytest.raises(ConfigError, match="--config: set: a='b: expected quotes"):
        graph.overrides({"set": "a='b"})


def test_who_is_not_snakemake_asks_for_all():
    assert graph.papers_of(["pytest", "dpcd"], PAPERS) == PAPERS


def test_only_what_is_asked_for_is_read(monkeypatch):
    """By the table, and by the digests of what sweeps name."""
    real, by = config.read, {config: [], runtable: []}
    digests.solver_of.cache_clear()
    digests.loss_of.cache_clear()

    def seen(module, group, name, overrides=()):
        by[module].append((group, name))
        return real(group, name, overrides)

    for module in by:
        monkeypatch.setattr(module, "read", functools.partial(seen, module))
    table = runtable.run_table(["dpcd"], ["scale=smoke"])
    assert table.papers == ["dpcd"]
    names = [*by[config], *by[runtable]]
    read = {group: {n for g, n in names if g == group} for group, _ in names}
    assert read["paper"] == {"dpcd"}
    assert read["solver"] == {"dp_cd", "dp_sgd"}
    assert all(len(found) == len(set(found)) for found in by.values())  # each once


# --- a paper that is broken -----------------------------------------------------------


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """A copy of conf/ in a folder that is worked in."""
    shutil.copytree(locate.home() / "conf", tmp_path / "whole")
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "whole"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "whole"


BROKEN = {
    "no YAML": b"name: [dpgcd",
    "no text": b"\xff\xfe",
    "a typo": b"name: dpgcd\nproblms: []\n",
    "reaching": b"# @package _global_\nname: dpgcd\n",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_wrong_elsewhere_stops_nobody(whole, kind):
    (whole / "paper/dpgcd/paper.yaml").write_bytes(BROKEN[kind])
    (whole / "solver/dp_gcd.yaml").write_bytes(b"algorithm: {")
    assert runtable.run_table(["dpcd"], ["scale=smoke"]).papers == ["dpcd"]
    assert config.compose(["paper=dpcd"]).paper.name == "dpcd"
    with pytest.raises(ConfigError, match=r"conf/paper/dpgcd/paper\.yaml"):
        runtable.run_table(["dpcd", "dpgcd"], ["scale=smoke"])


def test_an_infinite_clip_is_refused_where_there_is_noise(whole):
    path = whole / "paper/dpcd/paper.yaml"
    text = path.read_text()
    path.write_text(text.replace("clip: {logspace: [1.0e-3, 1.0e+6, 100]}",
                                 "clip: [.inf]", 1))  # fmt: skip
    with pytest.raises(ConfigError, match=r"runs.dp_cd.grid.clip: .inf is accepted"):
        runtable.run_table(["dpcd"], ["scale=smoke"])
    made = runtable.run_table(["dpcd"], ["scale=smoke", "problem.privacy.epsilon=.inf"])
    assert made.papers == ["dpcd"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("solver.algorithm=dp_ccd", "did you mean dp_cd"),
        ("+solver.options.smpling=uniform", "did you mean sampling"),
        ("problem.loss=logistc", "did you mean logistic"),
        ("problem=diabetes", "problem=diabetes: expected a key below it"),
        ("workers=0", "workers: expected 1 or more"),
    ],
)
def test_the_run_table_refuses_what_a_stage_would(override, message):
    with pytest.raises(ConfigError, match=message):
        runtable.run_table(["dpcd"], ["scale=smoke", override])


def test_a_folder_that_stands_alone_has_modules_of_its_papers(whole):
    from dperm.pipeline import products

    paper = whole / "paper/alone"
    paper.mkdir()
    (paper / "tables.py").write_text("def errors(*given):\n    return None\n")
    (paper / "paper.yaml").write_text(
        "name: alone\nproblems: [diabetes]\nruns: {}\ntables: {one: {kind: errors}}\n"
    )
    table = runtable.run_table(["alone"], ["scale=full"])
    assert table.job("draw", "alone", "tables/one").products == ["tables/one"]
    made = config.compose(["paper=alone"])
    assert products.function_of(made, "tables", "errors")() is None


# --- the kept graph -------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A paper and a solver of one's own, in the folder that is worked in."""
    folder = tmp_path / "mine"
    shutil.copytree(MINE, folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DPERM_CONF", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    closure.known.cache_clear()
    yield folder
    sys.modules.pop("noisy_gd", None)


@pytest.fixture
def composed(mine, monkeypatch):
    """How often a table was composed so far."""
    counted = []
    real = runtable.run_table

    def counting(papers, overrides):
        counted.append(papers)
        return real(papers, overrides)

    monkeypatch.setattr(runtable, "run_table", counting)
    return counted


def start(papers=("mine",), overrides=("scale=smoke",)):
    return graph.load_graph(list(papers), list(overrides))


def test_a_kept_graph_is_the_composed_one(composed, capsys):
    first = start()
    assert "dperm: composing 1 paper: mine" in capsys.readouterr().err
    second = start()
    assert second == first and asdict(second) == asdict(first)
    assert len(composed) == 1 and capsys.readouterr().err == ""


CHANGES = {
    "a solver's YAML": ("conf/solver/noisy_gd.yaml", "# a comment\n"),
    "a problem's YAML": ("conf/problem/yields.yaml", "# a comment\n"),
    "the paper's YAML": ("conf/paper/mine/paper.yaml", "# a comment\n"),
    "a new YAML": ("conf/solver/other.yaml", "name: other\n"),
    "a file of the paper": ("conf/paper/mine/theory.py", "x = 1\n"),
    "the solver": ("noisy_gd.py", "# a comment\n"),
    "the data": ("yields.csv", "\n"),
    "a module that may hide another": ("numbers_of_mine.py", "x = 1\n"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_edit_makes_a_new_one(mine, composed, what):
    file, text = CHANGES[what]
    start()
    path = mine / file
    path.write_text((path.read_text() if path.exists() else "") + text)
    start()
    assert len(composed) == 2
    start()
    assert len(composed) == 2


def test_source_outside_is_compared(mine, composed, monkeypatch):
    """A solver that lies nowhere near is known by what was read for its digest."""
    elsewhere = mine.parent / "elsewhere" / "noisy_gd.py"
    elsewhere.parent.mkdir()
    (mine / "noisy_gd.py").rename(elsewhere)
    monkeypatch.setattr(sys, "path", [*sys.path, str(elsewhere.parent)])
    start()
    start()
    assert len(composed) == 1
    elsewhere.write_text(elsewhere.read_text() + "\n\nEXTRA = 1\n")
    start()
    assert len(composed) == 2


def test_other_versions_code_and_questions_make_a_new_one(composed, monkeypatch):
    start()
    start(overrides=["scale=quickstart"])
    start(overrides=["scale=smoke", "seed=3"])
    start(papers=["mine", "dpcd"])
    assert len(composed) == 4
    versions = store.versions()
    monkeypatch.setattr(store, "versions", lambda: versions.replace("numba", "x"))
    start()
    assert len(composed) == 5
    monkeypatch.setattr(dperm, "source_digest", lambda: "other")
    start()
    assert len(composed) == 6


def test_another_folder_of_configuration_makes_a_new_one(mine, composed, monkeypatch):
    start()
    shutil.copytree(mine / "conf", mine / "again")
    monkeypatch.setenv("DPERM_CONF", str(mine / "again"))
    start()
    assert len(composed) == 2


@pytest.mark.parametrize("damage", ["cut", "empty", "edited", "list", "no text"])
def test_a_damaged_one_is_made_anew(composed, damage):
    first = start()
    (path,) = graph.FOLDER.glob("*.json")
    text = path.read_text()
    content = json.loads(text)
    content["graph"]["jobs"] = {}
    spoilt = {
        "cut": text[:-30],
        "empty": "",
        "edited": json.dumps(content),
        "list": "[]",
    }
    path.write_bytes(spoilt.get(damage, "").encode() or b"\xff\xfe")
    assert start() == first and len(composed) == 2
    assert path.read_text() == text


def test_an_edit_while_composing_is_not_kept(mine, monkeypatch):
    real = runtable.run_table

    def edited(papers, overrides):
        made = real(papers, overrides)
        path = mine / "conf/problem/yields.yaml"
        path.write_text(path.read_text() + "# meanwhile\n")
        return made

    monkeypatch.setattr(runtable, "run_table", edited)
    start()
    assert not list(graph.FOLDER.glob("*.json"))


def test_a_refused_configuration_is_not_kept(mine):
    with pytest.raises(ConfigError):
        start(overrides=["scale=smoke", "problem.privacy.epsilon=0"])
    assert not graph.FOLDER.exists()


def test_an_edit_of_a_solver_while_composing_is_not_kept(mine, monkeypatch):
    real = runtable.run_table

    def edited(papers, overrides):
        made = real(papers, overrides)
        (mine / "noisy_gd.py").touch()
        return made

    monkeypatch.setattr(runtable, "run_table", edited)
    start()
    assert not list(graph.FOLDER.glob("*.json"))


def test_two_at_once_leave_one_whole_table(mine):
    code = (
        "from dperm.pipeline import graph;"
        "print(graph.load_graph(['mine'], ['scale=smoke']).digests['claims'])"
    )
    found = []

    def one():
        command = [sys.executable, "-c", code]
        found.append(subprocess.run(command, capture_output=True, text=True).stdout)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] != ""
    assert [path.suffix for path in graph.FOLDER.iterdir()] == [".json"]


def test_old_ones_go(composed, monkeypatch):
    monkeypatch.setattr(graph, "KEPT", 2)
    for seed in range(4):
        start(overrides=["scale=smoke", f"seed={seed}"])
    assert len(list(graph.FOLDER.glob("*.json"))) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read(mine, composed):
    mine.chmod(0o500)
    start()
    mine.chmod(0o700)


def test_a_place_that_cannot_be_written_is_no_error(mine, composed):
    graph.FOLDER.parent.mkdir()
    graph.FOLDER.write_text("a file")
    assert start() == start() and len(composed) == 2


def test_a_warm_start_imports_no_solver(mine):
    code = (
        "import sys; from dperm.pipeline import graph, resources;"
        "graph.load_graph(['mine'], ['scale=smoke']);"
        "print([m for m in ('numba', 'scipy', 'matplotlib', 'hydra', 'pandas')"
        " if m in sys.modules])"
    )
    for heavy in (True, False):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True)
        assert ("numba" in done.stdout) == heavy, done.stderr
    assert done.stdout.strip() == "[]"


# --- the audit's part -----------------------------------------------------------------


def test_the_tables_of_the_audit_are_those_it_makes():
    from dperm.pipeline.auditing import PRODUCTS

    assert set(PRODUCTS) == set(graph.AUDITED)


def test_a_data_set_that_was_not_to_be_had_is_asked_for_again(tmp_path):
    folder = tmp_path / "fetched/x"
    folder.mkdir(parents=True)
    assert graph.attempt("x", str(tmp_path)) == 0
    (folder / "fetch.json").write_text(json.dumps({"status": "ok"}))
    assert graph.attempt("x", str(tmp_path)) == 0
    (folder / "fetch.json").write_text(json.dumps({"status": "unavailable"}))
    assert graph.attempt("x", str(tmp_path)) > 0


def test_a_stage_imports_nothing_that_it_may_not_need():
    """What takes a second to import comes when it is called: 400 jobs start."""
    heavy = (
        "scipy.optimize", "scipy.stats", "scipy.signal", "dp_accounting", "sklearn",
        "matplotlib", "joblib", "requests", "hydra",
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c",
         "import sys; from dperm.pipeline import checks, inputs, products, stages;"
         f" print([m for m in {heavy} if m in sys.modules])"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
