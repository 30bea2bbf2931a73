"""Every solver climbs the ladder; every broken mechanism falls off; no sound one does.

Small efforts: the full audit is ``python -m dperm.audit``.
"""

from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf
from scipy import stats

from dperm.audit import controls, ladder, registry
from dperm.audit.climbing import Effort, Ladder
from dperm.audit.replay import Replay
from dperm.audit.rungs import accountants, noise, sensitivity, transcript

SOLVERS = sorted((Path(__file__).parents[2] / "conf/solver").glob("*.yaml"))
BRIEF = Effort(level=1e-5, pairs=4, draws=12, samples=12, losses=2)


def subjects(path):
    found = OmegaConf.load(path)
    return registry.subjects(
        found.name, found.algorithm, dict(found.get("options", {}))
    )


@pytest.mark.parametrize("path", SOLVERS, ids=lambda path: path.stem)
def test_every_solver_keeps_its_ledger(path):
    """Noise, sensitivity and accountants of every solver, strict."""
    for subject in subjects(path):
        if subject.calibration == "strict":
            found = Ladder(subject, BRIEF, 3)
            for rung in (noise, sensitivity, accountants):
                finding = rung(found)
                assert not finding.caught, (subject.name, finding)


@pytest.mark.parametrize(
    "control",
    controls.CONTROLS,
    ids=lambda control: f"{control.slip}, {control.solver}",
)
def test_every_broken_mechanism_is_caught(control):
    found = Ladder(control.make(), Effort(1e-4, 30, 30, 60, 150), 3)
    assert any(rung(found).caught for rung in (sensitivity, noise, transcript))


@pytest.mark.parametrize("path", SOLVERS, ids=lambda path: path.stem)
def test_a_run_that_is_cut_short_is_the_beginning_of_the_whole(path):
    for subject in subjects(path):
        whole = subject.run(subject.base, 5)
        for t in range(len(whole.views)):
            part = subject.run(subject.base, 5, until=t)
            assert part.ends == whole.ends[: t + 2]
            np.testing.assert_array_equal(part.views, whole.views[: t + 1])


def test_shifts_are_those_of_the_proof():
    """DP-CD: the loudest neighbours need exactly 2 C_j / n, in units of the noise."""
    subject = subjects(next(p for p in SOLVERS if p.stem == "dp_cd"))[1]
    base, loud = subject.base, np.full(3, 1e3)
    replay = Replay(subject, base.replaced(0, loud, 1.0), base.replaced(0, -loud, 1.0))
    coupling = replay.couple(9)
    multiplier = subject.ledger.events[0].noise_multiplier
    assert [shift.step for shift in coupling.shifts] == [0, 1, 2, 3]
    for shift in coupling.shifts:
        assert shift.size == pytest.approx(1 / multiplier, rel=1e-9)


def test_losses_of_gaussian_transcripts_are_gaussian():
    """Four shifts of 1 / sigma: the loss is N(mu^2 / 2, mu^2), mu = 2 / sigma."""
    subject = subjects(next(p for p in SOLVERS if p.stem == "dp_cd"))[1]
    base, loud = subject.base, np.full(3, 1e3)
    replay = Replay(subject, base.replaced(0, loud, 1.0), base.replaced(0, -loud, 1.0))
    mu = 2 / subject.ledger.events[0].noise_multiplier
    losses = [replay.loss(seed) for seed in range(150)]
    assert stats.kstest((np.array(losses) - mu**2 / 2) / mu, "norm").pvalue > 1e-4


def test_chances_of_a_selection_against_counting():
    """Probabilities by thresholds and an integral, against runs with fresh noise."""
    subject = subjects(next(p for p in SOLVERS if p.stem == "dp_gcd_gumbel"))[1]
    base = subject.base
    pair = base.replaced(0, np.array([1e3, 0.0]), 1.0), base
    replay = Replay(subject, *pair)
    plain = subject.run(pair[0], 1)
    chances = replay.chances(0, 1, plain.draws, 0, plain.draws_of(0)[0])
    assert sum(chances.values()) == pytest.approx(1.0)
    runs = 1500
    seen = [subject.symbol(subject.run(pair[0], seed).views[0]) for seed in range(runs)]
    for symbol, chance in chances.items():
        hits = sum(one == symbol for one in seen)
        assert stats.binomtest(hits, runs, chance).pvalue > 1e-4


@pytest.mark.parametrize("name", ["dp_gcd", "dp_gcd_gumbel", "dp_bcfw"])
def test_a_loss_does_not_depend_on_the_transcripts_before_it(name):
    """Chances of a selection are kept only where nothing else was released before."""
    subject = subjects(next(p for p in SOLVERS if p.stem == name))[0]
    pair = Ladder(subject, BRIEF, 3).worst
    kept = Replay(subject, pair.first, pair.second)
    losses = [kept.loss(seed) for seed in range(4)]
    fresh = [Replay(subject, pair.first, pair.second).loss(s) for s in range(4)]
    assert losses == fresh and len(set(losses)) > 1


def test_the_tables_name_what_was_missed():
    found = ladder._control(0, BRIEF, 1)
    table = __import__("pandas").DataFrame([found, {**found, "caught": 0}])
    assert found["mechanism"] == "half noise" and found["caught"] == 1
    assert list(ladder.missed(table)) == ["half noise, dp_cd"]
