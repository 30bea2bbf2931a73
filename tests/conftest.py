"""Small problems that every test may use."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from dperm.core.erm.losses import named
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build

PENALTIES = {
    "none": Penalty(),
    "l1": Penalty(l1=0.05),
    "l2": Penalty(l2=0.1),
    "elastic": Penalty(l1=0.05, l2=0.1),
    "box": Penalty(l2=0.01, lower=-0.02, upper=0.03),
}

# Files that take a minute or so: whichever came last would leave other workers idle.
LONG = (
    *("test_workflow", "test_ladder", "test_bits", "test_verify", "test_extending"),
    *("test_kill", "test_contest", "test_products", "test_adopt", "test_said"),
)


def pytest_configure(config):
    """Workers take files in the order below, not those of the most tests first."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """The longest files first."""
    places = {stem: place for place, stem in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))


def raw_data(loss: str, n: int = 60, p: int = 5, seed: int = 0):
    """Imbalanced features and labels of either kind."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.linspace(0.3, 3.0, p)
    signal = X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n)
    return X, np.sign(signal) if named(loss).labels == "sign" else signal


def make_problem(loss: str, penalty: str = "elastic", **sizes) -> Problem:
    X, y = raw_data(loss, **sizes)
    return build("small", X, y, loss, PENALTIES[penalty], 1.0, 1e-4, "digest")


@pytest.fixture(scope="module", autouse=True)
def no_other_paper():
    """Forget a paper in a test's own folder: another file has one of the same name."""
    yield
    package = str(Path(sys.modules["dperm"].__file__).parent)
    for name, module in [*sys.modules.items()]:
        if name.startswith("dperm.papers.") and package not in str(module.__file__):
            del sys.modules[name]
            sys.modules["dperm.store.closure"].known.cache_clear()


@pytest.fixture(params=["logistic", "least_squares"])
def loss(request):
    return request.param
