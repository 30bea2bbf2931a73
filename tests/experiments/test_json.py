"""What ``--json`` prints is what the command says, in a form that a script reads."""

import json

import pandas as pd
import pytest

from dperm import cli
from dperm.audit import tables
from dperm.experiments import auditing
from dperm.workflow import manifest

FINDING = {
    "subject": "dp_cd", "calibration": "tight", "check": "noise",
    "measured": 0.5, "bound": 1.0, "caught": False, "note": "half of the bound",
}  # fmt: skip


def printed(capsys, name, *words):
    """The rows that a stage prints with --json."""
    cli.run_stage(cli.COMMANDS[name], [*words, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def places(tmp_path):
    folders = ("results", "figures")
    return [f"output.{folder}={tmp_path / folder}" for folder in folders]


def test_findings_of_a_solver(places, capsys, monkeypatch):
    frame = pd.DataFrame([FINDING])
    monkeypatch.setattr(tables, "solver", lambda *_: iter([frame]))
    assert printed(capsys, "audit", "solver=dp_cd", *places) == [FINDING]


def test_a_solver_that_is_caught_is_printed_and_ends_with_1(
    places, capsys, monkeypatch
):
    caught = FINDING | {"caught": True}
    monkeypatch.setattr(
        tables, "solver", lambda *_: iter([pd.DataFrame([caught])])
    )
    noted = []
    monkeypatch.setattr(
        manifest, "note", lambda _, written: noted.extend(written)
    )
    with pytest.raises(auditing.CaughtError) as ended:
        printed(capsys, "audit", "solver=dp_cd", *places)
    assert ended.value.code == 1
    assert json.loads(capsys.readouterr().out) == [caught]
    assert noted == ended.value.written and noted[0].is_file()


def test_a_solver_that_states_no_privacy_has_no_findings(
    places, capsys, monkeypatch
):
    monkeypatch.setattr(tables, "solver", lambda *_: iter(()))
    assert printed(capsys, "audit", "solver=fw", *places) == []


def test_claims_are_their_table(places, tmp_path, capsys):
    rows = printed(capsys, "claims", *places)
    table = pd.read_csv(tmp_path / "results/claims.csv")
    assert [row["id"] for row in rows] == table["id"].tolist()
    assert [row["verdict"] for row in rows] == table["verdict"].tolist()
    assert {*rows[0]} == {*table}
