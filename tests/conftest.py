"""Small problems that every test may use."""

# ruff: noqa: E402
from __future__ import annotations

from dperm import processor

processor.same_bits()  # as the command does, before numpy is imported

import copy
import gc
import hashlib
import os
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from dperm.config import composition
from dperm.config.locate import available
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

# Files that take ten seconds or more: the last would leave other workers idle.
# The first compiles most kernels; meanwhile others run what needs none or few, so that
# no kernel is compiled twice.
LONG = (
    "solvers/test_contract",
    "workflow/test_provenance",
    "blackbox/test_search",
    "claims/test_worlds",
    "config/test_configuration",
    "cli/test_command",
    "plotting/test_drawing",
    "blackbox/test_command",
    "faults/test_verify",
    "workflow/test_extension",
    "papers/test_contract",
    "workflow/test_workflow",
    "golden/test_golden",
    "audit/test_solvers",
    "experiments/test_stages",
    "workflow/test_jobs",
    "estimators/test_alone",
    "audit/test_extreme_records",
    "solvers/test_twins",
    "estimators/test_estimators",
    "faults/test_said",
    "benchmark/test_race",
    "audit/test_whole",
    "estimators/test_budget",
    "solvers/test_batches",
    "benchmark/test_command",
    "privacy/test_contract",
    "faults/test_kill",
    "claims/test_fairness",
    "config/test_run_spec",
    "estimators/test_doors",
    "experiments/test_auditing",
    "faults/test_damaged",
    "shared/test_products",
    "faults/test_campaign",
    "experiments/test_outside",
    "data/test_download",
)

FOLDER = re.compile(r"[+]{2}(?P<section>data|output)[.](?P<key>dir|results|figures)"
                    r"=(?P<folder>/[\w./-]+)")  # fmt: skip


def pytest_configure(config):
    """Workers take files in the order below, not those of the most tests first."""
    config.option.loadscopereorder = False
    composition.compose = Once()


class Once:
    """Composes once where all that is read is the same: Hydra takes 0.3 s each time."""

    def __init__(self):
        self.compose = composition.compose
        self.composed = {}  # by arguments: what was read, and what came of it
        self.digests = {}
        self.read = {}  # by the composition that runs
        for name in ("conf_file", "conf_files", "available"):
            setattr(
                composition, name, self.watched(getattr(composition, name))
            )

    def __call__(self, name, overrides):
        """What is composed; folders of a test's own are set in what all tests share."""
        placed = [found for found in map(FOLDER.fullmatch, overrides) if found]
        plain = [text for text in overrides if not FOLDER.fullmatch(text)]
        tree, chosen = self.kept(name, plain)
        for found in placed:
            tree.setdefault(found["section"], {})[found["key"]] = found[
                "folder"
            ]
        return tree, chosen

    def kept(self, name, overrides):
        """What was composed, also of a copy of ``conf/`` in which that is unchanged."""
        key = (name, *overrides, os.environ.get("DPERM_MIRROR"))
        for read, composed in self.composed.get(key, []):
            if all(self.state(*call) == state for call, state in read.items()):
                return copy.deepcopy(composed)
        read = self.read = {}
        composed = self.compose(name, overrides)
        self.read = {}
        self.composed.setdefault(key, []).append(
            (read, copy.deepcopy(composed))
        )
        return composed

    def watched(self, function):
        """A function that finds files, whose calls are noted."""

        def watched(argument):
            self.read[function, argument] = self.state(function, argument)
            return function(argument)

        return watched

    def state(self, function, argument):
        """What a function finds: names, or the digests of files."""
        found = function(argument)
        if not isinstance(found, list):
            return found and self.digest(found)
        return [
            (path.name, self.digest(path)) if isinstance(path, Path) else path
            for path in found
        ]

    def digest(self, path):
        """Of a file's content, read again if the file has changed."""
        stat = path.stat()
        state = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
        if state not in self.digests:
            self.digests[state] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self.digests[state]


def pytest_collection_modifyitems(items):
    """The longest files first."""
    places = {name: place for place, name in enumerate(LONG)}

    def place(item):
        return places.get(
            "/".join(item.path.with_suffix("").parts[-2:]), len(LONG)
        )

    items.sort(key=place)


def pytest_collection_finish():
    """What was imported lives on: no search for garbage or generators goes there."""
    gc.freeze()


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
        if name.startswith("dperm.papers.") and package not in str(
            module.__file__
        ):
            del sys.modules[name]
            sys.modules["dperm.storage.source_code"].forget()


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """A folder that a function fills once for all workers of a run."""
    top = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent

    def made(name, fill):
        folder = top / f"once-{name}"
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                unfinished = tmp_path_factory.mktemp(name)
                fill(unfinished)
                unfinished.rename(folder)
        return folder

    return made


@pytest.fixture(scope="session")
def all_jobs(made_once):
    """The jobs of all papers at a scale, composed once for all workers of a run."""

    def composed(scale):
        from dperm.workflow import jobs

        def fill(folder):
            every = jobs.compose(available("paper"), [f"scale={scale}"])
            (folder / "jobs").write_bytes(pickle.dumps(every))

        folder = made_once(f"jobs-{scale}", fill)
        return pickle.loads((folder / "jobs").read_bytes())

    return composed


@pytest.fixture(params=["logistic", "least_squares"])
def loss(request):
    return request.param
