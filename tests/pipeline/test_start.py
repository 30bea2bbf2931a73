"""A start reads what it is asked for, once, and never what has changed since."""

import json
import shlex
import shutil
import subprocess
import sys

import pytest

from dperm.core.experiment import config, locate
from dperm.core.experiment.locate import ConfigError
from dperm.pipeline import jobs, workflow

PAPERS = ["dpbcfw", "dpcd", "dpgcd"]


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
    assert workflow.papers_of([program, *shlex.split(line)], PAPERS) == found


def test_overrides_reach_a_shell_as_they_are():
    given = ["a=$HOME *", "b=x|touch y", "c='it''s'", 'd="x, y"', "e=`id`;f", "g=\\n"]
    settings = {"scale": "smoke", "set": shlex.join(given)}
    found = workflow.overrides(settings)
    assert found == ["scale=smoke", *given]
    echo = ["bash", "-c", f"printf '%s\\n' {shlex.join(found)}"]
    done = subprocess.run(echo, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == found
    stripped = {**settings, "set": settings["set"].strip("'")}  # as Snakemake does
    command = ["dperm", f"set={settings['set']}", "-n"]
    assert workflow.overrides(stripped, command) == found
    with pytest.raises(ConfigError, match="--config: set: a='b: expected quotes"):
        workflow.overrides({"set": "a='b"})


def test_who_is_not_snakemake_asks_for_all():
    assert workflow.papers_of(["pytest", "dpcd"], PAPERS) == PAPERS


def test_only_what_is_asked_for_is_read(monkeypatch):
    """Each file once, by the jobs and by the digests of what sweeps name."""
    real, read = config.sections, []

    def seen(group, names, overrides=()):
        read.extend((group, name) for name in names)
        return real(group, names, overrides)

    monkeypatch.setattr(config, "sections", seen)
    assert jobs.compose(["dpcd"], ["scale=smoke"]).papers == ["dpcd"]
    names = {group: {n for g, n in read if g == group} for group, _ in read}
    assert names["paper"] == {"dpcd"}
    assert names["solver"] == {"dp_cd", "dp_sgd"}
    assert len(read) == len(set(read))


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
    assert jobs.compose(["dpcd"], ["scale=smoke"]).papers == ["dpcd"]
    assert config.compose(["paper=dpcd"]).paper.name == "dpcd"
    with pytest.raises(ConfigError, match=r"conf/paper/dpgcd/paper\.yaml"):
        jobs.compose(["dpcd", "dpgcd"], ["scale=smoke"])


def test_an_infinite_clip_is_refused_where_there_is_noise(whole):
    path = whole / "paper/dpcd/paper.yaml"
    text = path.read_text()
    path.write_text(text.replace("clip: {logspace: [1.0e-3, 1.0e+6, 100]}",
                                 "clip: [.inf]", 1))  # fmt: skip
    with pytest.raises(ConfigError, match=r"runs.dp_cd.grid.clip: .inf is accepted"):
        jobs.compose(["dpcd"], ["scale=smoke"])
    made = jobs.compose(["dpcd"], ["scale=smoke", "problem.privacy.epsilon=.inf"])
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
        jobs.compose(["dpcd"], ["scale=smoke", override])


def test_a_folder_that_stands_alone_has_modules_of_its_papers(whole):
    from dperm.pipeline import products

    paper = whole / "paper/alone"
    paper.mkdir()
    (paper / "tables.py").write_text("def errors(*given):\n    return None\n")
    (paper / "paper.yaml").write_text(
        "name: alone\nproblems: [diabetes]\nruns: {}\ntables: {one: {kind: errors}}\n"
    )
    table = jobs.compose(["alone"], ["scale=full"])
    assert table.job("draw", "alone", "tables/one").products.keys() == {"tables/one"}
    made = config.compose(["paper=alone"])
    assert products.function_of(made, "tables", "errors")() is None


# --- the audit's part -----------------------------------------------------------------


def test_the_tables_of_the_audit_are_those_it_makes():
    from dperm.pipeline.auditing import PRODUCTS

    assert set(PRODUCTS) == set(jobs.AUDITED)


def test_a_data_set_that_was_not_to_be_had_is_asked_for_again(tmp_path):
    folder = tmp_path / "fetched/x"
    folder.mkdir(parents=True)
    assert workflow.attempt("x", str(tmp_path)) == 0
    (folder / "fetch.json").write_text(json.dumps({"status": "ok"}))
    assert workflow.attempt("x", str(tmp_path)) == 0
    (folder / "fetch.json").write_text(json.dumps({"status": "unavailable"}))
    assert workflow.attempt("x", str(tmp_path)) > 0


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
