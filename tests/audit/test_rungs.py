"""Noise and streams of the rungs: what is wrong is found, and nothing else."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator, SeedSequence

from dperm.audit import registry
from dperm.audit.climbing import Effort, Ladder
from dperm.audit.ladder import altered, bent, lane
from dperm.audit.rungs import (
    dependence,
    independent,
    noise,
    rate,
    shares,
)
from dperm.audit.subjects import Draw, Transcript
from dperm.core.lanes import dp_cd
from dperm.core.privacy.mechanisms import Streams, gaussian, streams
from dperm.solvers.lanes import dp_sgd, dp_skgd

EFFORT = Effort(level=1e-4, pairs=4, draws=150)


# --- streams --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_streams_have_no_number_in_common(seed):
    """By their seed sequences, and by what they draw."""
    own = streams(seed)
    keys = [stream.bit_generator.seed_seq.spawn_key for stream in own]
    assert len(set(keys)) == len(keys)
    assert not shares(own) and not shares(streams(seed), streams(seed + 1))


def test_streams_of_one_generator_or_one_seed_are_found_out():
    one = Generator(PCG64(1))
    other = Generator(PCG64(2))
    assert shares(Streams(one, one, other))
    assert shares(Streams(Generator(PCG64(1)), Generator(PCG64(1)), other))
    ahead = Generator(PCG64(1))
    ahead.random(17)
    assert shares(Streams(Generator(PCG64(1)), ahead, other))
    child = Generator(PCG64(SeedSequence(3).spawn(1)[0]))
    assert not shares(Streams(child, Generator(PCG64(3)), other))


def sharing(which):
    """A Run whose sampling and noise are one stream."""

    def one(run):
        class Sharing(run):
            def __init__(self, problem, lanes, own, *rest):
                same = getattr(own, which)
                own = own.replaced(sampling=same, noise=same)
                super().__init__(problem, lanes, own, *rest)

        return Sharing

    return one


@pytest.mark.parametrize("which", ["sampling", "noise"])
def test_sampling_and_noise_on_one_stream(which):
    subject = lane(dp_sgd, kind=sharing(which)(dp_sgd.Run))
    assert independent(Ladder(subject, EFFORT, 2)).caught


def test_noise_that_the_tap_does_not_hear():
    def shaken(run):
        p = run.problem.p
        run.tiles[:, :p] += 1e-3 * run.streams.noise.standard_normal((p, 1))

    subject = lane(dp_cd, kind=altered(dp_cd.Run, shaken))
    finding = independent(Ladder(subject, EFFORT, 2))
    assert finding.caught and "not recorded" in finding.note


def test_sound_streams_pass():
    for module in (dp_cd, dp_sgd, dp_skgd):
        assert not independent(Ladder(lane(module), EFFORT, 2)).caught


# --- noise ----------------------------------------------------------------------------


class Echo(Generator):
    """Standard normals, each with a part of the one before."""

    def standard_normal(self, size=None, *_, **__):
        fresh = super().standard_normal(size)
        before = getattr(self, "last", 0.0)
        self.last = np.ravel(fresh)[-1]
        return 0.8 * fresh + 0.6 * before


def test_noise_that_steps_taken_together_share_is_found_out(monkeypatch):
    """The audit takes one step at a time, and would hear a number for each."""

    def shared(rng, size):
        return np.full(size, gaussian(rng, 1)[0])

    ladder = Ladder(lane(dp_cd), EFFORT, 3)
    assert not independent(ladder).caught
    monkeypatch.setattr("dperm.core.lanes.gaussian", shared)
    found = independent(Ladder(lane(dp_cd), EFFORT, 3))
    assert found.caught and found.note == "steps taken together end elsewhere"


def test_noise_that_echoes_is_normal_but_not_independent():
    subject = lane(dp_cd, kind=bent(dp_cd.Run, Echo))
    finding = noise(Ladder(subject, EFFORT, 2))
    assert finding.caught and finding.note == "dependence"


def test_independent_numbers_are_seldom_called_dependent():
    rng = np.random.default_rng(4)

    def drawn():
        runs = [Draw("laplace", rng.laplace(size=12)) for _ in range(100)]
        return [Transcript([], [draw], [0], np.zeros(1)) for draw in runs]

    found = [dependence(drawn()) for _ in range(60)]
    assert min(found) > 1e-4 and np.mean(np.array(found) < 0.1) < 0.25


def test_a_record_that_is_read_too_often():
    def eager(run):
        class Eager(run):
            def draw(self, count):
                batches, *rest = super().draw(count)
                return batches // 3, *rest

        return Eager

    seeds = list(range(150))
    fair, unfair = lane(dp_sgd), lane(dp_sgd, kind=eager(dp_sgd.Run))
    assert rate(Ladder(fair, EFFORT, 2), seeds) > 1e-3
    assert rate(Ladder(unfair, EFFORT, 2), seeds) < 1e-4


def test_the_direction_of_generalised_gaussian_noise_is_looked_at():
    """Its norm alone would not tell that one coordinate is left out."""
    (subject,) = [
        s
        for s in registry.subjects("noisy_sfw", "noisy_sfw", {})
        if s.calibration == "strict" and s.name.endswith("p = 1.5")
    ]
    from dperm.audit.rungs import law

    rng = np.random.default_rng(1)
    order = subject.ledger.events[0].order
    radius = np.sqrt(rng.chisquare(2, 300))
    given = (np.array([[r, 1e-9 * r]]) for r in radius)
    axis = [Draw("generalised_gaussian", unit, order) for unit in given]
    assert law(axis) < 1e-6
    plain = [d for s in range(40) for d in subject.run(subject.base, s, until=7).draws]
    assert law(plain) > 1e-4
