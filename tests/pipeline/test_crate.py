"""A Workflow Run RO-Crate of the records of a run."""

import hashlib
import importlib.resources
import io
import json
import zipfile
from pathlib import Path

import pytest
import requests
import urllib3

from dperm.core.experiment import files as store
from dperm.core.experiment.locate import ConfigError
from dperm.pipeline import completion
from dperm.pipeline.graph import Graph

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
MANIFEST = {
    "paper": "tiny", "commit": ["abc"], "date": "2026-11-20", "runs": 12,
    "machine": "Linux x86_64, 2 cores", "master_seed": 7, "solver_seconds": 1.5,
}  # fmt: skip
RECORD = {
    "platform": {"python": "CPython 3.11.7"},
    "packages": {"numpy": "2.4.6"},
    "digests": {
        "data": {"own": {"dataset_digest": "sha256:11", "digest": "22"}},
        "optima": {"own": {"digest": "33"}},
        "solvers": {"dp_cd": "44"},
    },
}


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """A folder with what a run leaves."""
    monkeypatch.chdir(tmp_path)
    store.write_json(Path("results/tiny/manifest.json"), MANIFEST)
    store.write_json(Path("results/tiny/record.json"), RECORD)
    store.write_text(Path("results/tiny/table2.csv"), "mean\n0.5\n")
    store.write_text(Path("results/tiny/own/dp_cd/tune.parquet"), "rows")
    store.write_text(Path("figures/tiny/curves.svg"), "<svg/>")
    monkeypatch.setattr(completion, "load_graph", lambda *_: None)
    monkeypatch.setattr(completion, "require_of_now", lambda *_: None)
    return tmp_path


@pytest.fixture
def made(ran):
    """Its crate."""
    pytest.importorskip("rocrate")
    return completion.crate(["tiny"], Path("crate.zip"))


@pytest.fixture
def offline(monkeypatch):
    """Answers for the one page that the validator asks for: the names of RO-Crate 1.1.

    The library brings those of a later version, in which four terms have moved.
    """
    pytest.importorskip("rocrate_validator")
    data = importlib.resources.files("rocrate") / "data" / "ro-crate.jsonld"
    terms = json.loads(data.read_text())["@context"]
    for name in ("ComputationalWorkflow", "FormalParameter"):
        terms[name] = f"https://bioschemas.org/{name}"
    for name in ("input", "output"):
        terms[name] = f"https://bioschemas.org/ComputationalWorkflow#{name}"

    def send(self, request, **_):
        if request.url != CONTEXT:
            raise requests.ConnectionError(request.url)
        answer = urllib3.HTTPResponse(
            io.BytesIO(json.dumps({"@context": terms}).encode()), status=200,
            headers={"Content-Type": "application/ld+json"}, preload_content=False,
        )  # fmt: skip
        return self.build_response(request, answer)

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)


def entities(path):
    with zipfile.ZipFile(path) as archive:
        graph = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]
    return {entity["@id"]: entity for entity in graph}


def test_inputs_and_outputs_are_those_of_the_records(made):
    known = entities(made)
    run = known["#run-tiny"]
    assert run["instrument"] == {"@id": "Snakefile"} and run["endTime"] == "2026-11-20"
    read = {
        known[one["@id"]]["name"]: known[one["@id"]]["value"] for one in run["object"]
    }
    assert read == {
        "seed master": 7, "data own": "sha256:11", "optimum own": "33",
        "solver dp_cd": "44", "platform python": "CPython 3.11.7",
        "package numpy": "2.4.6",
    }  # fmt: skip
    left = {one["@id"] for one in run["result"]}
    assert left == {
        "results/tiny/manifest.json", "results/tiny/record.json",
        "results/tiny/table2.csv", "figures/tiny/curves.svg",
    }  # fmt: skip
    with zipfile.ZipFile(made) as archive:
        for name in (*left, "Snakefile", "environment.yml", "requirements.lock"):
            content = archive.read(name)
            said = known[name].get("sha256", hashlib.sha256(content).hexdigest())
            assert said == hashlib.sha256(content).hexdigest()


def validated(folder):
    from rocrate_validator import models, services

    settings = services.ValidationSettings(
        rocrate_uri=str(folder), profile_identifier="workflow-run-crate",
        requirement_severity=models.Severity.REQUIRED,
    )  # fmt: skip
    found = services.validate(settings).get_issues(models.Severity.REQUIRED)
    return [issue.message for issue in found]


def test_it_is_a_workflow_run_crate(made, offline):
    """By the validator of the profile, which notices a crate without its run."""
    whole = Path("whole")
    with zipfile.ZipFile(made) as archive:
        archive.extractall(whole)
    assert validated(whole) == []
    path = whole / "ro-crate-metadata.json"
    metadata = json.loads(path.read_text())
    for entity in metadata["@graph"]:
        if entity["@id"] == "#run-tiny":
            del entity["instrument"]
    path.write_text(json.dumps(metadata))
    assert validated(whole)


def test_a_run_without_records_is_refused(ran):
    pytest.importorskip("rocrate")
    Path("results/tiny/record.json").unlink()
    with pytest.raises(
        ConfigError, match=r"record\.json is not there: run `dperm tiny`"
    ):
        completion.crate(["tiny"], Path("crate.zip"))
    assert not Path("crate.zip").exists()


def test_runs_of_other_code_are_refused(ran, monkeypatch):
    """A commit is said of rows that it made, or nothing is."""
    pytest.importorskip("rocrate")
    monkeypatch.undo()
    monkeypatch.chdir(ran)
    monkeypatch.setattr(completion, "load_graph", lambda *_: Graph(""))
    monkeypatch.setattr(Graph, "rows_digest", lambda self, paper: "of now")
    with pytest.raises(
        ConfigError, match="other code or configuration: run `dperm tiny`"
    ):
        completion.crate(["tiny"], Path("crate.zip"))
    assert not Path("crate.zip").exists()
