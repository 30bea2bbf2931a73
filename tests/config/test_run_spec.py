"""A job's file has what its stage reads, and it reads no other file of ``conf/``."""

import copy
import dataclasses
import json

import pytest

from commands import SCRIPT, python
from dperm.config import run_spec, schema
from dperm.config.config import compose
from dperm.config.locate import available
from dperm.workflow import jobs, workflow

SMALL = [
    "scale=smoke",
    "paper.problems=[diabetes]",
    "paper.small_problems=[diabetes]",
]


@pytest.mark.parametrize("paper", available("paper"))
def test_a_configuration_comes_back_from_its_file(
    paper, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    config = compose([f"paper={paper}", "scale=smoke"])
    plain = json.loads(json.dumps(dataclasses.asdict(config)))
    again = run_spec.rebuilt(schema.Config, plain)
    assert again == config and repr(again) == repr(config)
    # figures show them in order
    assert [*again.paper.runs] == [*config.paper.runs]


LOADED = 'print(sorted({"hydra", "omegaconf", "antlr4"} & {*sys.modules}))'


@pytest.fixture(scope="module")
def composed():
    """The jobs of a paper on one problem, which no test changes."""
    return jobs.compose(["dpcd"], SMALL)


def test_a_job_with_its_file_composes_nothing_and_sees_no_edit(
    composed, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    workflow.write_specs(composed, SMALL)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/config.yaml").write_text("no: configuration\n")
    every = []
    for stage in ("fetch", "prepare", "optimum"):
        key = composed.job(stage, "diabetes").key
        path = run_spec.path_of(f"{stage}/diabetes", key)
        every.append(
            [stage, "workers=1", "any=word", run_spec.OPTION, str(path)]
        )
    ran = python("-c", SCRIPT + LOADED, json.dumps(every), cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr
    assert (tmp_path / "data/optimum/diabetes/optimum.json").is_file()


def test_every_job_has_a_file_of_its_own(composed, tmp_path, monkeypatch):
    """Also where solvers differ by their names alone, as fw and bcfw do."""
    monkeypatch.chdir(tmp_path)
    # what reading a file leaves behind
    monkeypatch.setattr(run_spec, "_SECTIONS", {})
    monkeypatch.setattr(run_spec, "_OVERRIDES", [])
    every = copy.deepcopy(composed)
    jobs.add_audits(every, schema.Config(seed=None))
    workflow.write_specs(every, SMALL)
    audits = [every.job("audit", f"solvers/{name}") for name in ("fw", "bcfw")]
    assert audits[0].key == audits[1].key
    files = {
        run_spec.path_of(name, job.key) for name, job in every.jobs.items()
    }
    assert len(files) == len(every.jobs)
    for name, job in every.jobs.items():
        config = run_spec.read(run_spec.path_of(name, job.key), workers=1)
        assert config.solver == job.spec.solver, name


def test_sections_of_other_overrides_are_composed_anew(monkeypatch):
    named = {"solver": {"dp_cd": {"name": "stored"}}}
    monkeypatch.setattr(run_spec, "_SECTIONS", named)
    monkeypatch.setattr(run_spec, "_OVERRIDES", ["solver.label=a", "seed=1"])
    stored = run_spec.sections(
        "solver", ["dp_cd", "dp_sgd"], ["solver.label=a"]
    )
    assert [*stored] == ["dp_cd"] and stored["dp_cd"].name == "stored"
    assert run_spec.sections("solver", ["dp_cd"], ["solver.label=b"]) == {}
