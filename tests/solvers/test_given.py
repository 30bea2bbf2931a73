"""What every solver takes as public, found by replacing a record.

A run is made on both data sets and told noise so loud that nothing else is heard: what
it releases then shows its constants alone (scales, steps, probabilities, clips). They
may differ only through what its ledger says is given.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import yaml

from changing import changed
from dperm.config import schema
from dperm.config.schema import Preparation
from dperm.experiments import inputs
from dperm.privacy import events as stated
from dperm.privacy import noise
from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.solvers import registry
from dperm.solvers.batched import BatchedSettings, dp_skgd
from dperm.solvers.frank_wolfe import dp_bcfw, dp_fw

N, P, LOUD = 60, 12, 1e10
CONF = Path(__file__).parents[2] / "conf" / "solver"
ROOTS = {  # constants of a problem, and what a ledger calls what is made of them
    "smoothness": {stated.SMOOTHNESS},
    "global_smoothness": {stated.GLOBAL_SMOOTHNESS},
    "design": {stated.LIFTS, stated.FEATURE_BOUNDS},
}


class Partly(Problem):
    """A problem some of whose constants are another's."""

    known = None  # the problem whose design is public; set for every instance


def partly(own, base, frozen):
    """The problem ``own``, with what is frozen that of ``base``."""
    constants = {
        name: getattr(base if name in frozen else own, name)
        for name in ("smoothness", "global_smoothness")
    }

    def with_arrays_of(one):
        made = Partly(
            **{field.name: getattr(one, field.name) for field in fields(one)}
        )
        made.__dict__.update(constants)
        return made

    made = with_arrays_of(own)
    public = with_arrays_of(base) if "design" in frozen else made
    vars(made)["known"] = vars(public)["known"] = public
    return made


def problems():
    """One with features of unlike size, and its neighbour, of which one is louder."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) * np.geomspace(0.9, 1.1, P)
    y = np.sign(rng.standard_normal(N))
    other = X.copy()
    other[7] = 4 * rng.standard_normal(P) * np.geomspace(0.9, 1.1, P)
    return [build("given", A, y, "logistic", Penalty()) for A in (X, other)]


def heard(module, options, problem):
    """What is released if every draw is LOUD times a number that is always the same."""
    rng = np.random.default_rng(1)

    def loud(law, unit, order):
        return LOUD * rng.standard_normal(unit.shape)

    settings = BatchedSettings(np.full(1, 0.5), np.ones(1), 1.0, "tight")
    with noise.listening(loud):
        run = module.Run(problem, settings, streams(3), options, 1, P)
        found = []
        for _ in range(P):
            run.advance(1)
            found.append(np.array(run.released[0]))
    return np.concatenate(found)


def differs(module, options, frozen):
    base, other = problems()
    other = partly(other, base, frozen)
    first, second = (heard(module, options, one) for one in (base, other))
    return not np.allclose(
        first, second, rtol=1e-6, atol=1e-6 * np.abs(first).max()
    )


def roots_of(module, options):
    """Roots that what is heard depends on; ``anything else`` if none explains it."""
    found = {
        root for root in ROOTS if differs(module, options, set(ROOTS) - {root})
    }
    return found | (
        {"anything else"} if differs(module, options, ROOTS) else set()
    )


def declared(module, options):
    return set(module.ledger(problems()[0], 9, 1.0, options, "tight").given)


def batched_solvers():
    for path in sorted(CONF.glob("*.yaml")):
        spec = yaml.safe_load(path.read_text())
        module = registry.load(spec["algorithm"])
        if registry.family(module) == "batched":
            chosen = spec.get("options", {})
            if chosen.get("blocks", 0) > P:
                chosen = {**chosen, "blocks": P // 2}
            options = registry.make_options(module, chosen)
            yield pytest.param(module, options, id=path.stem)


@pytest.mark.parametrize(("module", "options"), batched_solvers())
def test_a_solver_takes_as_public_what_its_noise_is_made_of(module, options):
    said, read = declared(module, options), roots_of(module, options)
    assert read == {root for root, names in ROOTS.items() if names & said}


@pytest.mark.parametrize(("module", "options"), batched_solvers())
def test_sets_and_their_probabilities(module, options):
    said = declared(module, options)
    if module is not dp_skgd or options.sampling == "nice":
        assert not {stated.PARTITION, stated.IMPORTANCE} & said
        return
    one, other = (
        dp_skgd.SketchLaw(problem, options) for problem in problems()
    )
    same = len(one.sets) == len(other.sets) and all(
        np.array_equal(a, b) for a, b in zip(one.sets, other.sets, strict=True)
    )
    assert (stated.PARTITION in said) == (not same)
    assert (stated.IMPORTANCE in said) == (not np.allclose(one.q, other.q))


@pytest.mark.parametrize(
    "calibration", ["published", "stated", "scaled", "valid", "tight"]
)
@pytest.mark.parametrize("module", [dp_fw, dp_bcfw])
def test_frank_wolfe_methods_say_when_their_noise_reads_the_gradient(
    module, calibration
):
    options = module.Options()
    base, other = problems()
    found = [
        module.noise(one, 3, options, 1.0, 1e-3, calibration)
        for one in (base, other)
    ]
    moves = found[0].index_scale != found[1].index_scale
    assert found[0].ledger.given[0] == stated.N
    assert (stated.GRADIENT in found[0].ledger.given) == moves


@pytest.mark.parametrize(
    ("done", "missing", "told"),
    [
        ({}, None, ()),
        ({"standardize": True, "drop_zero_columns": True}, None,
         (stated.STANDARDISATION, stated.ZERO_COLUMNS)),
        ({}, "mean", ("mean of columns",)),
        ({}, "median", ("median of columns",)),
        ({}, "drop", ("which records are whole",)),
    ],
)  # fmt: skip
def test_what_preparation_reads_of_all_records(done, missing, told):
    problem = schema.ProblemSection(preparation=Preparation(**done))
    problem = changed(problem, "dataset.reader.missing", missing)
    assert inputs.public_information(problem) == (stated.N, *told)
