"""``dperm privacy``: what a setting costs, for whatever solves a problem."""

import pytest

from dperm.core.experiment.locate import ConfigError
from dperm.pipeline import auditing


@pytest.fixture
def priced(configured, capsys):
    def run(*overrides):
        auditing.report(configured("setting.passes=2", *overrides))
        return capsys.readouterr().out

    return run


def test_what_is_not_private_costs_infinity(priced):
    said = priced("solver=fw", "setting.calibration=strict")
    rows = [line.split() for line in said.splitlines()]
    for kind in ("paper", "strict"):
        (row,) = [row for row in rows if row[:1] == [kind]]
        assert row[-2:] == ["inf"] * 2
    assert "NonPrivate x " in said


def test_lanes_reach_their_target(priced):
    strict = "setting.calibration=strict"
    said = priced("solver=dp_cd", strict, "setting.noise_multiplier=0")
    rows = {row.split()[0]: row.split() for row in said.splitlines() if row.strip()}
    published, proved = (float(number) for number in rows["strict"][-2:])
    assert proved == pytest.approx(4.0, rel=1e-4) and published > 4.0
    assert float(rows["paper"][-2]) == pytest.approx(4.0, rel=1e-4)
    assert rows["given"][-2:] == ["inf"] * 2
    given = "{n, standardisation of columns, coordinate smoothness M_j}"
    assert f"given public {given}" in said
    assert "without that, infinite" in said  # M_j move with the data
    assert "for study, not for release" in said
    assert "Gaussian x 20: scale" in said


@pytest.mark.parametrize("solver", ["dp_fw", "dp_bcfw"])
def test_frank_wolfe_methods_say_their_own_scales(priced, solver):
    said = priced(f"solver={solver}", "setting.calibration=strict")
    (strict,) = [line for line in said.splitlines() if line.startswith("strict")]
    assert float(strict.split()[-1]) == pytest.approx(4.0, rel=1e-2)
    assert "public {n, standardisation of columns" in said
    assert "without that, infinite" in said
    assert "NoisyMax x " in said


def test_solvers_of_streams_are_refused(priced):
    with pytest.raises(ConfigError, match="solver=noisy_sfw: it reads a stream"):
        priced("solver=noisy_sfw")


def test_what_a_method_refuses_has_no_price(priced):
    with pytest.raises(ConfigError, match=r"conf/problem/breast_cancer\.yaml: "):
        priced("solver=moments", "problem=breast_cancer")
    with pytest.raises(ConfigError, match="conf/problem/"):
        priced("solver=objective_perturbation")


@pytest.mark.parametrize("solver", ["dp_gd", "moments", "ada_ssp"])
def test_methods_without_passes_are_priced_under_the_sound_accountant(priced, solver):
    said = priced(f"solver={solver}", "setting.noise_multiplier=1000")
    rows = {row.split()[0]: row.split() for row in said.splitlines() if row.strip()}
    assert "paper" not in rows and "passes" not in said
    assert float(rows["strict"][-1]) == pytest.approx(4.0, rel=1e-3)
    assert 0 < float(rows["given"][-1]) < 0.1
    assert "Gaussian x " in said and "public {n, standardisation of columns" in said
