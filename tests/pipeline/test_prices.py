"""``dperm privacy``: what a setting costs, for whatever solves a problem."""

import pytest

from dperm.locate import ConfigError
from dperm.pipeline import prices


@pytest.fixture
def priced(configured, capsys):
    def run(*overrides):
        prices.report(configured("setting.passes=2", *overrides))
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("solver", ["bcfw", "fw"])
def test_what_is_not_private_costs_infinity(priced, solver):
    said = priced(f"solver={solver}")
    rows = [line.split() for line in said.splitlines()]
    for kind in ("paper", "strict"):
        (row,) = [row for row in rows if row[:1] == [kind]]
        assert row[-2:] == ["inf", "inf"]
    assert "NonPrivate x " in said


def test_lanes_reach_their_target(priced):
    said = priced("solver=dp_cd", "setting.noise_multiplier=0")
    rows = {row.split()[0]: row.split() for row in said.splitlines() if row.strip()}
    assert float(rows["strict"][-1]) == pytest.approx(4.0, rel=1e-4)
    assert float(rows["paper"][-2]) == pytest.approx(4.0, rel=1e-4)
    assert rows["given"][-2:] == ["inf", "inf"]
    assert "Gaussian x 20: scale" in said


@pytest.mark.parametrize("solver", ["dp_fw", "dp_bcfw"])
def test_frank_wolfe_methods_say_their_own_scales(priced, solver):
    said = priced(f"solver={solver}")
    (strict,) = [line for line in said.splitlines() if line.startswith("strict")]
    assert float(strict.split()[-1]) == pytest.approx(4.0, rel=1e-2)
    assert "NoisyMax x " in said


def test_solvers_of_streams_are_refused(priced):
    with pytest.raises(ConfigError, match="solver=noisy_sfw: it reads a stream"):
        priced("solver=noisy_sfw")
