"""Small problems that every test may use."""

# ruff: noqa: E402
from __future__ import annotations

from dperm import processor

processor.same_bits()  # as the command does, before numpy is imported

import copy
import sys
from pathlib import Path

import numpy as np
import pytest

from dperm.config import composition
from dperm.config.locate import conf_dirs
from dperm.problems.losses import named
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build

PENALTIES = {
    "none": Penalty(),
    "l1": Penalty(l1=0.05),
    "l2": Penalty(l2=0.1),
    "elastic": Penalty(l1=0.05, l2=0.1),
    "box": Penalty(l2=0.01, lower=-0.02, upper=0.03),
}

# Files that take half a minute: whichever came last would leave other workers idle.
LONG = (
    *(
        "test_workflow",
        "test_contract",
        "test_solvers",
        "test_search",
        "test_accept_code",
    ),
    *("test_provenance", "test_extension", "test_worlds", "test_extreme_records"),
    *("test_verify", "test_estimators", "test_kill", "test_bits"),
)


def pytest_configure(config):
    """Workers take files in the order below, not those of the most tests first."""
    config.option.loadscopereorder = False
    composition.compose = Once(composition.compose)


class Once:
    """Composes once for the same files: Hydra takes a third of a second each time."""

    def __init__(self, compose):
        self.compose, self.known = compose, {}

    def __call__(self, name, overrides):
        """What was composed, or is anew if a file below ``conf/`` has changed."""
        files = [
            path for folder in conf_dirs() for path in sorted(folder.rglob("*.yaml"))
        ]
        stats = [path.stat() for path in files]
        state = [(at.st_ino, at.st_mtime_ns, at.st_size) for at in stats]
        key = (name, *overrides, *files, *state)
        if key not in self.known:
            self.known[key] = self.compose(name, overrides)
        return copy.deepcopy(self.known[key])


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
            sys.modules["dperm.storage.source_code"].forget()


@pytest.fixture(params=["logistic", "least_squares"])
def loss(request):
    return request.param
