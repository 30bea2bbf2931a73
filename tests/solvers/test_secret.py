"""A secret shows nothing, and is released only as the ledger states."""

import ast
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dperm.accountants.noisy_max import TopK
from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.accountants.sketch import GaussianSketch
from dperm.core.privacy.ledger import Gaussian, Ledger, SampledGaussian
from dperm.solvers import fits
from dperm.solvers.fits.secret import (
    UndeclaredError,
    in_rounds,
    largest,
    noisy,
    sketched,
    tilted,
)

VALUE = np.array([[3.5], [-7.25]])
PLAIN = Gaussian(1.0, 2.0, 1, "", "")
SAMPLED = SampledGaussian(1.0, 2.0, 1, 3, 12, "", "")
SKETCH = GaussianSketch(1.0, 2.0, 1, "", "", rows=2)
TOP = TopK(1.0, 2.0, 1, "", "", k=1)
TILT = PerturbedObjective(2.0, 5.0, 1, "", "", curvature=0.4)


def ones(scale, size):
    """In the place of noise."""
    return scale * np.ones((size, 2))


# --- nothing is shown -----------------------------------------------------------------


SECRETS = {
    "noisy": noisy(VALUE, 1.0),
    "sketched": sketched(np.diag([3.5, 7.25]), 1.0, 2, np.zeros(1)),
    "tilted": tilted(lambda b: VALUE + b, 2, 1.0, 0.4),
    "largest": largest(VALUE[:, 0], 1.0, 1),
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_has_no_public_name_for_its_value(secret):
    found = {name for name in dir(secret) if not name.startswith("_")}
    assert found == {"exact", "kind", "needs", "released"}
    assert not hasattr(secret, "__dict__")
    assert "3.5" not in repr(secret) + str(secret) + repr(secret.needs)
    for name in found:
        assert not np.array_equal(getattr(secret, name), VALUE)


@pytest.mark.parametrize(
    "use",
    [
        float, len, iter, abs, sorted,
        lambda s: s + 1, lambda s: 2 * s, lambda s: s < 1, lambda s: s[0], lambda s: -s,
        lambda s: np.asarray(s, dtype=float), lambda s: np.maximum(s, 0.0),
        lambda s: s.value, lambda s: s.__value,
    ],
)  # fmt: skip
def test_nothing_can_be_computed_of_a_secret(use):
    with pytest.raises((TypeError, AttributeError)):
        use(noisy(VALUE, 1.0))


# --- what the ledger does not state ---------------------------------------------------


def plain(**changes):
    return noisy(VALUE, **{"sensitivity": 1.0, **changes})


def tilt(off=0.0, reach=1.0, curvature=0.4):
    return tilted(lambda b: b, 2, reach, curvature, off)


DIGITS = Gaussian(2e-6, 1.0, 1, "", "")


@pytest.mark.parametrize(
    ("secret", "events", "said"),
    [
        (plain(), [], "no more"),
        (plain(sensitivity=1.001), [PLAIN], "sensitivity"),
        (plain(sensitivity=np.array([0.5, 1.001])), [PLAIN], "sensitivity"),
        (plain(sensitivity=math.nan), [PLAIN], "sensitivity"),
        (plain(), [SAMPLED], "SampledGaussian"),
        (plain(), [TILT], "PerturbedObjective"),
        (plain(rate=3 / 12), [PLAIN], "Gaussian"),
        (plain(rate=4 / 12), [SAMPLED], "sampling_rate"),
        (plain(rate=3 / 11), [SAMPLED], "sampling_rate"),
        (plain(rate=3 / 12, sensitivity=1.1), [SAMPLED], "sensitivity"),
        (tilt(), [], "no more"),
        (tilt(), [PLAIN], "Gaussian"),
        (tilt(reach=1.001), [TILT], "sensitivity"),
        (tilt(curvature=0.401), [TILT], "curvature"),
        (tilt(off=1e-6), [TILT], "no more"),
        (tilt(off=1e-6), [TILT, TILT], "PerturbedObjective"),
        (tilt(off=1.01e-6), [TILT, DIGITS], "sensitivity"),
        (largest(VALUE[:, 0], 1.001, 1), [TOP], "sensitivity"),
        (largest(VALUE[:, 0], 1.0, 2), [TOP], "k: "),
        (sketched(np.eye(2), 1.001, 2, np.zeros(1)), [SKETCH], "sensitivity"),
        (sketched(np.eye(2), 1.0, 3, np.zeros(1)), [SKETCH], "rows"),
    ],
)
def test_what_the_ledger_does_not_state_is_not_released(secret, events, said):
    with pytest.raises(UndeclaredError, match=said):
        secret.released(iter(events), ones)


@pytest.mark.parametrize(
    ("secret", "events"),
    [
        (plain(sensitivity=0.5), [PLAIN]),
        (plain(rate=2 / 13), [SAMPLED]),
        (tilt(reach=0.9, curvature=0.3), [TILT]),
        (tilt(off=1e-6), [TILT, DIGITS]),
    ],
)
def test_a_ledger_may_state_more(secret, events):
    assert np.isfinite(secret.released(iter(events), ones)).all()


def test_what_is_released_has_the_noise_of_the_event():
    found = plain().released(iter([PLAIN]), ones)
    np.testing.assert_allclose(found, np.add(VALUE, [2.0, 2.0]))
    found = noisy(np.eye(2), 1.0, symmetric=True).released(iter([PLAIN]), ones)
    low = math.sqrt(2)
    np.testing.assert_allclose(found[1], [[3.0, low], [low, 3.0]])
    np.testing.assert_allclose(tilt().released(iter([TILT]), ones), 5.0)
    found = tilt(off=1e-6).released(iter([TILT, DIGITS]), ones)
    np.testing.assert_allclose(found, 6.0)


def test_events_come_in_rounds_each_as_often_as_it_counts():
    events = [replace(PLAIN, scale=float(k), count=k) for k in (2, 1, 3)]
    found = [event.scale for event in in_rounds(Ledger(tuple(events)))]
    assert found == [2.0, 1.0, 3.0, 2.0, 3.0, 3.0]


# --- no method has another way to the records -----------------------------------------

FOLDER = Path(fits.__file__).parent
ALLOWED = {"scaled.py", "secret.py", "minimise.py"}  # which make and hold secrets
METHODS = sorted(path for path in FOLDER.glob("*.py") if path.name not in ALLOWED)


def leaks(text):
    """Ways around a secret in a module's text, by line."""
    tree = ast.parse(text)
    found = [_way(node) for node in ast.walk(tree)]
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Lambda) and _reads(function):
            found += [_stash(node, function) for node in ast.walk(function)]
    return sorted({one for one in found if one})


def _way(node):
    """A hidden attribute of anything but self, the problem itself, or reflection."""
    if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        dunder = node.attr.startswith("__") and node.attr.endswith("__")
        return "" if own or (dunder and node.attr != "__closure__") else _at(node)
    if isinstance(node, ast.alias) and node.name in ("Problem", "inspect", "gc"):
        return f"import of {node.name}"
    names = ("getattr", "vars", "Records", "nonlocal")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        named = node.func.id in names and not _is_option(node)
        return _at(node) if named else ""
    return _at(node) if isinstance(node, ast.Nonlocal | ast.Global) else ""


def _is_option(call):
    """getattr(self, key), by which options are checked."""
    return call.func.id == "getattr" and getattr(call.args[0], "id", "") == "self"


def _reads(function):
    """Whether it is handed records: its last argument is named so."""
    every = [one.arg for one in function.args.args]
    return "records" in every or every[:1] == ["V"]


def _stash(node, function):
    """A change of what outlives the function: not a name of its own."""
    own = {one.arg for one in function.args.args[-2:]}
    own |= {
        part.id
        for one in ast.walk(function)
        for part in ast.walk(one)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(
        node.ctx, ast.Store
    ):
        return "" if _root(node) in own else _at(node)
    changing = ("append", "extend", "update", "add", "insert", "setdefault", "fill")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        changes = node.func.attr in changing and _root(node.func) not in own
        return _at(node) if changes else ""
    return ""


def _root(node):
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return getattr(node, "id", "")


def _at(node):
    return f"line {node.lineno}"


@pytest.mark.parametrize("path", METHODS, ids=lambda path: path.name)
def test_no_method_goes_around_its_secrets(path):
    assert leaks(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "at._behind().norms", "at._records",
        "from dperm.core.erm.problem import Problem",
        "secret._Secret__value", "getattr(at, '_' + 'records')",
        "def f(V, records):\n    self.seen = V\n    return 0",
        "def f(V, records):\n    kept.append(V)\n    return 0",
        "def f(u, V, records):\n    kept[0] = V\n    return 0",
        "def f(V, records):\n    nonlocal kept\n    kept = V",
        "lambda V, records: kept.append(V) or 0.0",
        "Records(problem, S, 1.0)",
    ],
)  # fmt: skip
def test_a_way_around_a_secret_is_seen(text):
    assert leaks(text)


def test_what_a_statistic_makes_for_itself_is_no_leak():
    text = (
        "def f(u, V, records):\n"
        "    own, found = [], u.copy()\n"
        "    own.append(V)\n"
        "    found[0] = own[0]\n"
        "    return found\n"
        "class Run(Fit):\n"
        "    def steps(self):\n"
        "        self.u, self._t = 0.0, 1\n"
    )
    assert leaks(text) == []
