"""Frozen noise, exact laws, neighbours and events of the audit of a function."""

import random
import secrets

import numpy as np
import pytest
from scipy import stats

from dperm.audit.draws import recorded
from dperm.audit.functions import (
    AuditedFit,
    CannotAuditError,
    Domain,
    Neighbours,
    numbers,
)
from dperm.audit.mechanism import AuditData
from dperm.audit.proofs import (
    OutputEvent,
    compare_laws,
    judge,
    learn,
    ratio_bound,
    trade_off,
)
from dperm.privacy.accountants.tight import gaussian_epsilon

from . import binders

pytestmark = pytest.mark.usefixtures("whole_process")
DATA = AuditData(np.array([[0.5], [1.0]]), np.zeros(2))
OTHER = AuditData(np.array([[0.5], [0.0]]), np.zeros(2))
PAIR = Neighbours(DATA, OTHER, "")

SOURCES = {
    "old functions": lambda seed: np.random.laplace(0, 1, 2),
    "RandomState": lambda seed: np.random.RandomState(seed).normal(1, 2, 2),
    "default_rng": lambda seed: np.random.default_rng(seed).gumbel(0, [1, 2]),
    "without a seed": lambda seed: np.random.default_rng().exponential(3.0, 2),
    "RandomState()": lambda seed: np.random.RandomState().randn(2),
    "Generator": lambda seed: np.random.Generator(
        np.random.PCG64(seed)
    ).logistic(0, 1),
}


def test_a_ratio_is_overstated_at_most_as_often_as_its_level_says():
    rng, level, times = np.random.default_rng(0), 0.1, 400
    one, two = (
        rng.binomial(500, 0.4, times),
        rng.binomial(500, 0.4 / np.e, times),
    )
    wrong = (ratio_bound(one, two, 500, level, 0.0) > 1).sum()
    assert 0 < wrong <= stats.binom.ppf(0.999, times, level)


@pytest.fixture(scope="module")
def runs():
    """Runs of every source, twice of one seed; and one that is given its noise.

    Generators are looked for once: it takes a second in a process of many objects.
    """
    every = {}
    with recorded():
        for source in (SOURCES, binders.SOURCES, binders.FOLLOWED):
            for name, draw in source.items():
                target = AuditedFit(lambda X, y, seed, draw=draw: draw(seed))
                of_seeds = [target(DATA, seed) for seed in (1, 2, 1)]
                replayed = target(DATA, 1, [np.array(2.5)])
                every[name] = (*of_seeds, replayed)
    return every


@pytest.mark.parametrize("name", SOURCES)
def test_a_seed_repeats_every_source_of_noise(name, runs):
    first, other, again, _ = runs[name]
    np.testing.assert_array_equal(first.output, again.output)
    assert (first.output != other.output).all()
    assert not first.others and len(first.draws) == 1


@pytest.mark.parametrize("name", binders.SOURCES)
def test_noise_is_replayed_wherever_its_generator_is_bound(name, runs):
    first, other, again, replayed = runs[name]
    assert first.output == again.output != other.output
    assert replayed.output == pytest.approx(2.5) and replayed.replayed == 1


@pytest.mark.parametrize("name", binders.FOLLOWED)
def test_other_randomness_follows_the_seed(name, runs):
    first, other, again, _ = runs[name]
    assert first.output == again.output != other.output
    assert first.others and not first.draws


def test_what_was_bound_is_bound_again():
    ids = {key: id(bound) for key, bound in vars(binders).items()}
    numpy_names, python_names = dict(vars(np.random)), dict(vars(random))
    before = (
        binders.HOLDER.rng,
        binders.Slotted.shared,
        binders.by_default.__defaults__,
    )
    with recorded():
        assert id(binders.default_rng) != ids["default_rng"]
    assert {key: id(bound) for key, bound in vars(binders).items()} == ids
    assert vars(np.random) == numpy_names and vars(random) == python_names
    after = (
        binders.HOLDER.rng,
        binders.Slotted.shared,
        binders.by_default.__defaults__,
    )
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_a_gaussian_trade_off_is_overstated_at_most_as_often_as_its_level_says():
    rng, level, times, runs = np.random.default_rng(0), 0.1, 400, 300
    event = OutputEvent("", lambda outputs: outputs[:, 0], 0.5, False)
    mus = []
    for _ in range(times):
        one, two = rng.normal(1, 1, (runs, 1)), rng.normal(0, 1, (runs, 1))
        mus.append(trade_off(event, one, two, level)[0])
    wrong = int((np.array(mus) > 1).sum())
    assert 0 < wrong <= stats.binom.ppf(0.999, times, level)
    assert np.mean(mus) > 0.7


def compared(fit, delta=0.0):
    with recorded():
        return compared_while_recorded(fit, delta)


def compared_while_recorded(fit, delta=0.0):
    return compare_laws(AuditedFit(fit), PAIR, 1, delta)


@pytest.mark.parametrize(
    ("law", "delta", "exact"),
    [("normal", 1e-6, gaussian_epsilon(0.25, 1e-6)), ("laplace", 0.0, 0.25)],
)
def test_the_law_of_an_affine_output_is_exact(law, delta, exact):
    def fit(X, y, seed):
        return X.sum() + getattr(np.random.default_rng(seed), law)(0, 4.0)

    assert compared(fit, delta).epsilon == pytest.approx(exact, rel=1e-9)


def test_a_direction_without_noise_is_seen():
    def fit(X, y, seed):
        noise = np.random.default_rng(seed).laplace(0, 1.0)
        return X.sum() + noise, noise

    found = compared(fit)
    assert np.isinf(found.epsilon) and "moved by" in found.text


DECISIONS = {
    "generator": lambda seed: np.random.default_rng(seed).integers(2),
    "random": lambda seed: random.random() < 0.5,
    "secrets": lambda seed: secrets.SystemRandom().random() < 0.5,
    "seed": lambda seed: seed % 2,
}


def test_there_is_no_law_where_something_else_is_random():
    """Noise given the sample taken is not the law of the output."""

    def law(decide):
        def fit(X, y, seed):
            return X[int(decide(seed))] + np.random.default_rng(seed).laplace(
                0, 1.0
            )

        return compared_while_recorded(fit)

    with recorded():
        laws = {name: law(decide) for name, decide in DECISIONS.items()}
    assert laws == dict.fromkeys(DECISIONS)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_neighbours_are_neighbours_within_the_domain(relation, norm):
    domain = Domain(5, 3, (-2.0, 2.0), norm, (0.0, 1.0), relation)
    pairs = domain.pairs(np.random.default_rng(0))
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    assert len(pairs) > 100
    for one in pairs:
        for data in (one.first, one.second):
            assert np.linalg.norm(data.X, order, axis=1).max() <= 2 * (
                1 + 1e-12
            )
            assert set(data.y) <= {0.0, 1.0}
        first, second = (
            np.column_stack([d.X, d.y]) for d in (one.first, one.second)
        )
        if relation == "replace":
            assert (first != second).any(axis=1).sum() == 1
        else:
            assert len(first) == len(second) + 1
            assert {*map(bytes, second)} <= {*map(bytes, first)}


WILD = {"nan", "inf", "-inf", "1e+308", "-1e+308", "1e-200", "5e-324"}
BOUNDS = {"x": {"x": (-1.0, 1.0)}, "y": {"y": (-1.0, 1.0)}, "": {}}


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("bounded", BOUNDS)
def test_one_record_is_extreme_where_no_bound_is_declared(bounded, relation):
    domain = Domain(4, 2, relation=relation, **BOUNDS[bounded])
    found = set()
    for pair in domain.extremes(np.random.default_rng(0)):
        one, two = (
            np.column_stack([d.X, d.y]) for d in (pair.first, pair.second)
        )
        with_it, ordinary = (
            (one, two) if relation == "add-remove" else (two, one)
        )
        sizes = np.abs(np.vstack([one, two]))
        if not ((sizes > 1e190) & (sizes < 1e300)).any():  # HUGE data sets
            assert len(one) == 4 and np.abs(ordinary).min() >= 1
            np.testing.assert_array_equal(with_it[1:], ordinary[-3:])
            found.add((repr(float(with_it[0, 0])), repr(float(with_it[0, 2]))))
    features = {"0.0"} | (set() if bounded == "x" else WILD)
    labels = {"-1.0", "1.0"} if bounded == "y" else {"0.0"} | WILD
    assert {(x, y) for x in features for y in labels if {x, y} & WILD} <= found


def test_an_event_is_judged_on_other_runs_than_it_was_chosen_on():
    """Chosen and judged on the same pure noise, it would seem to tell them apart."""
    rng = np.random.default_rng(0)
    one, two, fresh, other = rng.standard_normal((4, 60, 30))
    event = learn(one, two, 0.5, 0.0)
    assert judge(event, one, two, 0.5, 0.0).epsilon > 0
    assert judge(event, fresh, other, 0.05, 0.0).epsilon < 0


@pytest.mark.parametrize(
    ("first", "second", "least"),
    [
        (
            lambda r: r.normal(2, 1, (900, 1)),
            lambda r: r.normal(0, 1, (900, 1)),
            2.0,
        ),
        (
            lambda r: r.normal(0, 1, (900, 1)),
            lambda r: r.normal(0, 5, (900, 1)),
            1.0,
        ),
        (
            lambda r: r.integers(0, 2, (900, 3)),
            lambda r: np.zeros((900, 3)),
            2.0,
        ),
        (
            lambda r: np.full((900, 1), np.nan),
            lambda r: r.random((900, 1)),
            4.0,
        ),
    ],
)
def test_events_of_every_kind_are_found(first, second, least):
    rng = np.random.default_rng(1)
    samples = [
        np.asarray(make(rng), dtype=float)
        for make in (first, second, first, second)
    ]
    event = learn(samples[0], samples[1], 0.1, 0.0)
    assert judge(event, samples[2], samples[3], 1e-3, 0.0).epsilon > least


def test_outputs_of_every_form_are_numbers():
    class Model:
        coef_, intercept_ = np.ones((1, 2)), 3.0

    np.testing.assert_array_equal(numbers(Model()), [1, 1, 3])
    np.testing.assert_array_equal(numbers(1 + 2j), [1, 2])
    # The numbers of a mapping, and its keys.
    np.testing.assert_array_equal(
        numbers({2: [1], 1: (2, True)}), [2, 1, 1, 1, 2]
    )
    assert numbers({"a": 1})[1] != numbers({"b": 1})[1]
    with pytest.raises(CannotAuditError, match="expected numbers, found str"):
        numbers("words")
