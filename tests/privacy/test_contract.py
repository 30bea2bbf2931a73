"""What every event and every accountant must hold, over the registry of events.

Each kind of event is priced by a second way that shares no code with ours: closed laws,
integrals, dp_accounting, or the formula that the paper prints.
"""

import importlib
import json
import math
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    get_epsilon_gaussian,
)
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from scipy import stats
from scipy.optimize import minimize_scalar

import dperm.privacy.mechanisms
from dperm.privacy import NonPrivate, true_epsilon
from dperm.privacy.accountants.tight import estimate, profile
from dperm.privacy.accounting import epsilon
from dperm.privacy.calibration import (
    Calibration,
    UnreachableTargetError,
    calibrate,
)
from dperm.privacy.events import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    LedgerError,
    SampledGaussian,
    UnsupportedEventError,
)
from dperm.privacy.mechanisms.generalised_gaussian import GeneralisedGaussian
from dperm.privacy.mechanisms.noisy_max import ChosenValue, NoisyMax, TopK
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
from dperm.privacy.mechanisms.sketch import GaussianSketch

from .laws import DELTA, coin_divergence, coins, crossing, tilted_epsilon

LOG = math.log(1 / DELTA)
NAMED = ("unit", "source")

# --- a second price of each kind ------------------------------------------------------


def by_orders(curve):
    """The least epsilon of a Rényi curve over all orders (Canonne et al. 2020)."""

    def at(log):
        a = 1 + math.exp(log)
        return curve(a) + math.log1p(-1 / a) - math.log(DELTA * a) / (a - 1)

    found = minimize_scalar(at, bounds=(-7, 11), method="bounded",
                            options={"xatol": 1e-9})  # fmt: skip
    return found.fun


def gaussian_law(event):
    mu = math.sqrt(event.count) * event.sensitivity / event.scale
    return get_epsilon_gaussian(1 / mu, DELTA)


def laplace_pld(event):
    one = pld.from_laplace_mechanism(
        event.scale, event.sensitivity, value_discretization_interval=1e-4
    )
    return one.self_compose(event.count).get_epsilon_for_delta(DELTA)


def sampled_pld(event):
    """The worse direction of the pair at each loss, composed by dp_accounting."""
    q, mu = event.batch / event.population, event.sensitivity / event.scale
    interval, cells = 1e-3, 8000
    e = interval * np.arange(cells + 1)
    edge = np.log1p(np.expm1(e) / q) / mu + mu / 2  # where the loss is e
    up = q * stats.norm.sf(edge - mu) - (np.expm1(e) + q) * stats.norm.sf(edge)
    down = (-np.expm1(-e) + np.exp(-e) * up)[:0:-1]
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        interval, -cells, cells, np.concatenate([down, up])
    )
    return pmf.self_compose(event.count).get_epsilon_for_delta(DELTA)


def selections_law(event):
    return coins(2 * event.sensitivity / event.scale, event.count)


def bounded_range(event, count):
    pure = 2 * event.sensitivity / event.scale

    def curve(a):
        return count * min(coin_divergence(pure, a), a * pure**2 / 8)

    return by_orders(curve)


def sketch_law(event):
    """E(1 - e^(e - L))+, L = s^2 U / 2 - s^2 V / 2 (1 + s^2), by two integrals."""
    s2, k = (event.sensitivity / event.scale) ** 2, event.rows * event.count
    law = stats.chi2(k)
    u, v = (np.linspace(max(k - 12 * (2 * k) ** 0.5, 1e-9), k + 25 * (2 * k) ** 0.5, n)
            for n in (4001, 1001))  # fmt: skip
    pu, pv = (law.pdf(x) * (x[1] - x[0]) for x in (u, v))
    loss = s2 / 2 * u[:, None] - s2 / 2 / (1 + s2) * v
    return crossing(
        lambda e: pu @ np.maximum(-np.expm1(np.minimum(e - loss, 1)), 0) @ pv
    )


def sampled_paper(event):
    """Over the integer orders at which Mironov et al. 2019 is a finite sum."""
    theirs = RdpAccountant([*range(2, 65)])
    one = GaussianDpEvent(event.scale / event.sensitivity)
    sampled = PoissonSampledDpEvent(event.batch / event.population, one)
    return theirs.compose(sampled, event.count).get_epsilon(DELTA)


def advanced(pure, count):
    """Dwork and Roth 2014, Theorem 3.20."""
    return math.sqrt(2 * LOG * count) * pure + count * pure * (
        math.exp(pure) - 1
    )


def gaussian_paper(event):
    rho = event.count * (event.sensitivity / event.scale) ** 2 / 2
    return rho + 2 * math.sqrt(rho * LOG)


class Kind(NamedTuple):
    """A kind of event, from its noise in units of sensitivity, and its prices."""

    event: Callable  # of noise and count
    noise: float
    count: int
    tight: Callable[[Event], float]
    # None where no paper prints a formula
    published: Callable[[Event], float] | None


KINDS = {
    "Gaussian": Kind(lambda z, k: Gaussian(2.0, 2 * z, k, *NAMED), 12.0, 7,
                     gaussian_law, gaussian_paper),
    "SampledGaussian": Kind(
        lambda z, k: SampledGaussian(2.0, 2 * z, k, *NAMED, 40, 800), 1.1, 9,
        sampled_pld, sampled_paper),
    "Laplace": Kind(lambda z, k: Laplace(0.5, z / 2, k, *NAMED), 20.0, 7,
                    laplace_pld, lambda e: e.count * e.sensitivity / e.scale),
    "ChosenValue": Kind(lambda z, k: ChosenValue(0.5, z / 2, k, *NAMED), 20.0, 7,
                        laplace_pld,
                        lambda e: advanced(e.sensitivity / e.scale, e.count)),
    "NoisyMax": Kind(lambda z, k: NoisyMax(0.5, z / 2, k, *NAMED), 25.0, 9,
                     selections_law,
                     lambda e: advanced(2 * e.sensitivity / e.scale, e.count)),
    "NoisyMax gumbel": Kind(
        lambda z, k: NoisyMax(0.5, z / 2, k, *NAMED, "gumbel"), 25.0, 60,
        lambda e: min(bounded_range(e, e.count), selections_law(e)),
        lambda e: advanced(2 * e.sensitivity / e.scale, e.count)),
    "TopK": Kind(lambda z, k: TopK(0.5, z / 2, k, *NAMED, k=3), 25.0, 5,
                 lambda e: bounded_range(e, 3 * e.count),
                 lambda e: advanced(2 * e.sensitivity / e.scale, 3 * e.count)),
    "GeneralisedGaussian": Kind(
        lambda z, k: GeneralisedGaussian(2.0, 2 * z, k, *NAMED, 5.0, 4.0), 20.0, 3,
        lambda e: by_orders(lambda a: e.count * 4 * a**2 / (2 * 20**2 * (a - 1))),
        lambda e: math.sqrt(2 * e.count * 4 * LOG) * e.sensitivity / e.scale),
    "PerturbedObjective": Kind(
        lambda z, k: PerturbedObjective(2.0, 2 * z, k, *NAMED, 0.3), 6.0, 1,
        lambda e: tilted_epsilon(e, 0.0, DELTA), None),
    "GaussianSketch": Kind(
        lambda z, k: GaussianSketch(2.0, 2 * z, k, *NAMED, rows=10), 6.0, 4,
        sketch_law, None),
}  # fmt: skip
each_kind = pytest.mark.parametrize("name", KINDS)
each_calibration = pytest.mark.parametrize(
    "calibration", ["published", "tight"]
)
EXACT = ("Gaussian", "GaussianSketch", "PerturbedObjective")
BY_ORDERS = ("GeneralisedGaussian", "NoisyMax gumbel", "TopK")


def made(name, noise=1.0, count=None):
    """A ledger of one event, with noise as a multiple of the usual."""
    kind = KINDS[name]
    return Ledger((kind.event(noise * kind.noise, count or kind.count),))


def prices(name):
    """The calibrations under which an event has a price."""
    return ("published", "tight") if KINDS[name].published else ("tight",)


def test_every_kind_of_event_is_held():
    for module in pkgutil.iter_modules(dperm.privacy.mechanisms.__path__):
        importlib.import_module(f"dperm.privacy.mechanisms.{module.name}")
    ours = {name for name, kind in Event.types.items()
            if kind.__module__.split(".")[1] == "privacy"}  # fmt: skip
    named = {type(one.event(1.0, 1)).__name__ for one in KINDS.values()}
    assert ours - {"NonPrivate"} == named


# --- prices ---------------------------------------------------------------------------


@each_kind
def test_the_tight_price_is_that_of_a_second_accountant(name):
    """From above, within what a grid costs; one count less costs clearly less."""
    ledger = made(name)
    tolerance = 1e-6 if name in EXACT else 1e-4 if name in BY_ORDERS else 2e-3
    expected = KINDS[name].tight(ledger.events[0])
    found = true_epsilon(ledger, DELTA)
    assert found == pytest.approx(expected, rel=tolerance)
    assert found >= expected * (
        1 - (5e-4 if name == "SampledGaussian" else 1e-4)
    )
    if ledger.events[0].count > 1:
        fewer = made(name, count=ledger.events[0].count - 1)
        assert true_epsilon(fewer, DELTA) < (1 - 3 * tolerance) * expected


@each_kind
def test_the_paper_price_is_the_printed_formula(name):
    ledger, formula = made(name), KINDS[name].published
    if formula is None:
        with pytest.raises(UnsupportedEventError, match="no published cost"):
            epsilon(ledger, DELTA, "published")
    else:
        expected = formula(ledger.events[0])
        assert epsilon(ledger, DELTA, "published") == pytest.approx(
            expected, rel=1e-9
        )


@each_kind
def test_prices_fall_with_noise_and_delta_and_rise_with_counts(name):
    rng = np.random.default_rng(1)
    for calibration in prices(name):
        for _ in range(4):
            noise, count = rng.uniform(0.7, 3.0), int(rng.integers(2, 12))
            count = 1 if name == "PerturbedObjective" else count
            usual = made(name, noise, count)
            cost = epsilon(usual, DELTA, calibration)
            assert 0 < cost < math.inf
            assert (
                epsilon(made(name, noise / 2, count), DELTA, calibration)
                > 1.3 * cost
            )
            deltas = [
                epsilon(usual, d, calibration) for d in (1e-2, DELTA, 1e-9)
            ]
            if calibration == "published" and name == "Laplace":
                assert deltas[0] == deltas[1] == deltas[2]
            else:
                assert deltas[0] < deltas[1] < deltas[2]
            more = made(name, noise, count + 1)
            assert epsilon(more, DELTA, calibration) > cost


@each_kind
def test_an_event_twice_is_an_event_of_twice_the_count(name):
    """And its parts cost less than the whole, which costs at most their sum."""
    count = KINDS[name].count
    half, whole = made(name, 2.0, count), made(name, 2.0, 2 * count)
    for calibration in prices(name):
        found = epsilon(half + half, DELTA, calibration)
        expected = epsilon(whole, DELTA, calibration)
        assert found == pytest.approx(
            expected, rel=4e-3 if name == "TopK" else 2e-3
        )
        one = epsilon(half, DELTA / 2, calibration)
        assert (
            epsilon(half, DELTA, calibration) < found <= 2 * one * (1 + 1e-9)
        )


@each_kind
def test_events_compose_in_any_order_with_others(name):
    one, beside = made(name), Ledger((Laplace(1.0, 30.0, 4, *NAMED),))
    gaussian = Ledger((Gaussian(1.0, 20.0, 2, *NAMED),))
    for other in (beside, gaussian, beside + gaussian):
        both, turned = (
            true_epsilon(at, DELTA) for at in (one + other, other + one)
        )
        assert both == pytest.approx(turned, rel=1e-9)
        apart = [true_epsilon(at, DELTA) for at in (one, other)]
        halves = [true_epsilon(at, DELTA / 2) for at in (one, other)]
        assert max(apart) < both <= sum(halves) * (1 + 2e-3)


def test_the_doubt_of_a_sketch_is_charged_beside_any_release():
    """Once for each of the three."""
    sure, unsure = (
        Ledger((GaussianSketch(1.0, 40.0, 3, *NAMED, rows=10, doubt=doubt),))
        + Ledger((Laplace(1.0, 30.0, 4, *NAMED),))
        for doubt in (0.0, 1e-7)
    )
    left = true_epsilon(sure, DELTA - 3e-7)
    assert true_epsilon(unsure, DELTA) == pytest.approx(left, rel=2e-4)
    assert true_epsilon(sure, DELTA) < left * (1 - 1e-3)


@each_kind
def test_the_estimate_of_searches_is_near_the_price(name):
    price = true_epsilon(made(name), DELTA)
    assert estimate(made(name), DELTA) == pytest.approx(price, rel=2e-4)


# --- calibration ----------------------------------------------------------------------


@pytest.mark.parametrize("target", [0.3, 1.0, 6.0])
@each_kind
def test_calibration_is_the_inverse_of_the_price(name, target):
    """Never above the target, and with hardly less noise above it."""
    for calibration in prices(name):
        tolerance = (
            1e-6 if calibration == "published" or name in EXACT else 1e-3
        )
        found = calibrate(lambda z: made(name, z), target, DELTA, calibration)
        assert found.ledger == made(name, found.noise_multiplier)
        assert found.claimed_epsilon == epsilon(
            found.ledger, DELTA, calibration
        )
        assert found.claimed_epsilon <= target
        assert found.true_epsilon == true_epsilon(found.ledger, DELTA)
        less = made(name, found.noise_multiplier * (1 - tolerance))
        assert epsilon(less, DELTA, calibration) > target
        stored = json.loads(json.dumps(found.to_dict()))
        assert Calibration.from_dict(stored) == found


# --- the ends -------------------------------------------------------------------------


@each_kind
def test_no_noise_costs_everything_and_much_noise_nothing(name):
    for calibration in prices(name):
        open_ = made(name, 0.0)
        assert epsilon(open_, DELTA, calibration) == math.inf
        assert (
            epsilon(open_ + made("Gaussian"), DELTA, calibration) == math.inf
        )
        assert epsilon(made(name, 1e-3), DELTA, calibration) > 100
        if name != "PerturbedObjective":
            # whose curvature is paid for at any noise
            assert epsilon(made(name, 1e9), DELTA, calibration) < 2e-5


@each_calibration
def test_what_is_not_private_and_what_is_not_released(calibration):
    shown = NonPrivate(3, "a vertex", "Algorithm 1")
    assert epsilon(Ledger(), DELTA, calibration) == 0
    assert epsilon(Ledger((shown,)), DELTA, calibration) == math.inf
    assert (
        epsilon(made("Gaussian") + Ledger((shown,)), DELTA, calibration)
        == math.inf
    )
    with pytest.raises(UnreachableTargetError):
        calibrate(lambda noise: Ledger((shown,)), 1.0, DELTA, calibration)
    for ledger in (Ledger((shown,)), made("SampledGaussian", 0.0)):
        found = calibrate(
            lambda z, at=ledger: at, math.inf, DELTA, calibration
        )
        assert found.true_epsilon == found.claimed_epsilon == math.inf
        assert found.noise_multiplier == 0


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_delta_must_be_a_probability(delta):
    for ledger, target in ((made("Gaussian"), 1.0), (Ledger(), math.inf)):
        with pytest.raises(ValueError, match="delta"):
            epsilon(ledger, delta, "published")
        with pytest.raises(ValueError, match="delta"):
            calibrate(lambda z: made("Gaussian", z), target, delta, "tight")


def test_calibrations_are_named():
    for call in (
        epsilon,
        lambda ledger, *rest: calibrate(lambda z: ledger, 1.0, *rest),
    ):
        with pytest.raises(
            ValueError, match="expected one of published, tight"
        ):
            call(made("Gaussian"), DELTA, "loose")


def test_a_new_event_is_refused_until_it_has_a_price(monkeypatch):
    monkeypatch.setattr(Event, "types", dict(Event.types))

    @dataclass(frozen=True)
    class Novel(Event):
        """No accountant knows it."""

    ledger = Ledger((Novel(1.0, 4.0, 2, *NAMED),))
    for calibration in ("published", "tight"):
        with pytest.raises(UnsupportedEventError, match="Novel"):
            epsilon(ledger, DELTA, calibration)
    profile.register(Novel, profile.dispatch(Laplace))
    expected = true_epsilon(Ledger((Laplace(1.0, 4.0, 2, *NAMED),)), DELTA)
    # without a Rényi curve, which has no margin for a grid
    assert true_epsilon(ledger, DELTA) == pytest.approx(expected, rel=1.01e-4)


# --- events as data -------------------------------------------------------------------


@each_kind
def test_events_are_written_and_read_whole(name):
    ledger = replace(made(name), given=("n", "a mean"))
    assert Ledger.from_dict(json.loads(json.dumps(ledger.to_dict()))) == ledger
    (event,) = ledger.events
    kinds = {"float": np.float64, "int": np.int64}
    scalars = {f.name: kinds[f.type](getattr(event, f.name))
               for f in fields(event) if f.type in kinds}  # fmt: skip
    plain = replace(event, **scalars).to_dict()
    assert json.loads(json.dumps(plain)) == event.to_dict()
    assert event.noise_multiplier == pytest.approx(KINDS[name].noise)


@each_kind
@pytest.mark.parametrize(
    ("field", "value"),
    [("scale", -0.1), ("scale", math.nan), ("scale", math.inf), ("sensitivity", 0.0),
     ("sensitivity", -1.0), ("sensitivity", math.inf), ("count", 0)],
)  # fmt: skip
def test_impossible_values_are_refused_by_name(name, field, value):
    (event,) = made(name).events
    with pytest.raises(LedgerError, match=f"{field} must .*got"):
        replace(event, **{field: value})
    with pytest.raises(TypeError):
        replace(event, count=2.5)
    with pytest.raises(AttributeError):
        event.scale = 0.0
