"""``dperm audit``: files, tables, refusals; ``dperm privacy``: what a setting costs."""

import json
import math
from dataclasses import asdict

import pandas as pd
import pytest

from dperm.audit import solvers, tables
from dperm.audit.checks import CHECKS, CheckResult
from dperm.config.config import compose
from dperm.config.locate import ConfigError
from dperm.experiments import auditing
from dperm.privacy import Gaussian, Ledger, calibrate


@pytest.fixture
def composed(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "SMALL_EFFORT", {"neighbours": 2, "runs": 8})

    def make(*overrides):
        return compose(
            [f"output.results={tmp_path}", "scale=smoke", *overrides]
        )

    return make


def test_a_solver_and_its_line_in_the_table(composed, monkeypatch):
    (path,) = auditing.audit(composed("solver=dp_cd_uniform"))
    found = pd.read_csv(path)
    assert path.parts[-4:] == (
        "smoke",
        "audit",
        "solvers",
        "dp_cd_uniform.csv",
    )
    assert set(found.check) == set(CHECKS)
    assert set(found.subject) == {"dp_cd_uniform"}
    config = composed("product=epsilon")
    monkeypatch.setattr(auditing, "available", lambda _: ["dp_cd_uniform"])
    (csv,) = auditing.audit(config)
    table = pd.read_csv(csv)
    assert (table.ledger == "kept").all()
    assert table.tightness.max() == pytest.approx(1, abs=1e-9)
    assert table.claim.str.fullmatch(r"holds, \d+% reached").all()
    assert table.reached.min() > 0.99 and "given" in table


def test_a_solver_that_is_caught_leaves_its_table_and_ends_with_1(
    composed, tmp_path
):
    made = CheckResult("noise", 0.0, 1.0, True, "none is drawn")
    rows = pd.DataFrame(
        [{"subject": "dp_cd", "calibration": "tight", **asdict(made)}]
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(SystemExit) as ended,
    ):
        patch.setattr(tables, "solver", lambda *_: iter([rows]))
        auditing.audit(composed("solver=dp_cd"))
    assert ended.value.code == 1
    assert pd.read_csv(tmp_path / "smoke/audit/solvers/dp_cd.csv").caught.all()


def test_a_private_solver_without_a_subject_is_refused(composed, monkeypatch):
    monkeypatch.setitem(solvers.MAKERS, "batched", lambda *_: iter(()))
    with pytest.raises(
        ConfigError, match="solver dp_cd: the audit has no subject"
    ):
        auditing.audit(composed("solver=dp_cd"))


def test_a_solver_that_states_no_privacy_leaves_an_empty_table(composed):
    (path,) = auditing.audit(composed("solver=fw"))
    assert path.read_text().strip() in ("", '""')


def test_private_tuning_of_a_ledger_that_a_run_left(
    composed, monkeypatch, tmp_path
):
    def ledger(noise):
        return Ledger((Gaussian(1.0, noise, 16, "unit", "source"),))

    one = calibrate(ledger, 1.0, 1e-6, "published")
    folder = tmp_path / "smoke/dpcd/diabetes/dp_cd"
    folder.mkdir(parents=True)
    entry = {"passes": 2.0, "calibrated": one.to_dict()}
    (folder / "ledger.json").write_text(json.dumps([entry]))
    csv, *_ = auditing.audit(composed("product=tuning"))
    (row,) = pd.read_csv(csv).to_dict("records")
    assert row["solver"] == "dp_cd" and row["settings"] > 1
    assert (
        one.true_epsilon < row["renyi_epsilon"] < row["logarithmic"] < math.inf
    )


def test_unknown_tables_are_refused(composed):
    with pytest.raises(ConfigError, match="epsilon, tuning"):
        auditing.audit(composed("product=epsilons"))


@pytest.mark.parametrize(
    ("claimed", "true", "audited", "verdict"),
    [
        (1.0, 0.8, 0.72, "holds, 90% reached"),
        (1.0, 0.8, 0.0, "no attack known"),
        (1.0, 1.0, 1.0 + 1e-9, "holds, 100% reached"),
        (1.0, 1.2, 0.7, "too low"),
        (1.0, math.inf, 0.7, "no proof"),
        (1.0, 1.2, 1.1, "refuted"),
        (1.0, math.inf, 1.1, "refuted"),
    ],
)
def test_verdicts_on_claims(claimed, true, audited, verdict):
    assert tables.claim(claimed, true, audited) == verdict


# --- prices ---------------------------------------------------------------------------


@pytest.fixture
def priced(configured, capsys):
    """A function that returns what is said, and its rows by their first words."""

    def run(*overrides, passes=("setting.passes=2",)):
        auditing.report(configured(*passes, *overrides))
        said = capsys.readouterr().out
        split = [line.split() for line in said.splitlines() if line.strip()]
        first = [words[0] for words in split]
        assert first.count("published") <= 1 == first.count("tight")
        return said, dict(zip(first, split, strict=True))

    return run


def test_what_is_not_private_costs_infinity(priced):
    said, rows = priced("solver=fw", "setting.calibration=tight")
    for kind in ("published", "tight"):
        assert rows[kind][-2:] == ["inf"] * 2
    assert "NonPrivate x " in said


def test_settings_reach_their_target(priced):
    tight = "setting.calibration=tight"
    said, rows = priced("solver=dp_cd", tight, "setting.noise_multiplier=0")
    published, proved = (float(number) for number in rows["tight"][-2:])
    assert proved == pytest.approx(4.0, rel=1e-4) and published > 4.0
    assert float(rows["published"][-2]) == pytest.approx(4.0, rel=1e-4)
    assert rows["given"][-2:] == ["inf"] * 2
    given = "{n, standardisation of columns, coordinate smoothness M_j}"
    assert f"given public {given}" in said
    assert "without that, infinite" in said  # M_j move with the data
    assert "for study, not for release" in said
    assert "Gaussian x 20: scale" in said


@pytest.mark.parametrize("solver", ["dp_fw", "dp_bcfw"])
def test_frank_wolfe_methods_say_their_own_scales(priced, solver):
    said, rows = priced(f"solver={solver}", "setting.calibration=tight")
    assert float(rows["tight"][-1]) == pytest.approx(4.0, rel=1e-2)
    assert "public {n, standardisation of columns" in said
    assert "without that, infinite" in said
    assert "NoisyMax x " in said


def test_solvers_of_streams_are_refused(priced):
    with pytest.raises(
        ConfigError, match="solver=noisy_sfw: it reads a stream"
    ):
        priced("solver=noisy_sfw")


def test_what_a_method_refuses_has_no_price(priced):
    with pytest.raises(
        ConfigError, match=r"conf/problem/breast_cancer\.yaml: "
    ):
        priced("solver=moments", "problem=breast_cancer", passes=())
    with pytest.raises(ConfigError, match="conf/problem/"):
        priced("solver=objective_perturbation", passes=())


@pytest.mark.parametrize("solver", ["dp_gd", "moments", "ada_ssp"])
def test_methods_without_passes_are_priced_under_the_sound_accountant(
    priced, solver
):
    said, rows = priced(
        f"solver={solver}", "setting.noise_multiplier=1000", passes=()
    )
    assert "published" not in rows and "passes" not in said
    assert float(rows["tight"][-1]) == pytest.approx(4.0, rel=1e-3)
    assert 0 < float(rows["given"][-1]) < 0.1
    assert (
        "Gaussian x " in said
        and "public {n, standardisation of columns" in said
    )
