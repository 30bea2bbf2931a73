"""The same bits from fresh and cached code, from threads, and from narrower vectors."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dperm

SCRIPT = """
import hashlib, itertools, math, sys
from dperm.core import solvers
import numpy as np
from scipy import sparse
from dperm.core.privacy.mechanisms import streams
from dperm.core.erm.losses import named
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.erm.sets import Ball
from dperm.core.lanes import Lanes
from dperm.solvers import records
from dperm.solvers.distributed import columns, sketch
from dperm.solvers.streams import Target, noisy_sfw, phased_sgd, poly_sfw
from dperm.solvers.streams.gradients import difference_sums, gradient_sums
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Rows

def told(name, *found):
    bits = b"".join(np.ascontiguousarray(a).tobytes() for a in found)
    print(name, hashlib.sha256(bits).hexdigest(), sep=":")

rng = np.random.default_rng(0)
n, p = 1131, 45  # neither is a multiple of a vector
X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
few = X * (rng.random((n, p)) < 0.3)
every = ("dp_cd", "dp_sgd", "dp_gcd", "dp_skgd", "dp_svrg")
cases = [
    *itertools.product(every, ("logistic",), ("dense",)),
    *itertools.product(("dp_cd", "dp_gcd"), ("least_squares",), ("dense",)),
    *itertools.product(every[:3], ("logistic",), ("sparse",)),
    *itertools.product(("dp_cd",), ("huber", "smoothed_hinge"), ("dense",)),
]
for name, loss, kind in cases:
    module = solvers.load(name)
    A = X if kind == "dense" else sparse.csc_array(few)
    labels = y if loss in ("least_squares", "huber") else np.sign(y)
    penalty = Penalty(l1=0.01, l2=0.01)
    problem = build("bits", A, labels, loss, penalty)
    lanes = Lanes(np.geomspace(1e-4, 1, 11), np.geomspace(1, 100, 11), 3.0)
    given = {"composite": True, "blocks": 4} if name == "dp_skgd" else {}
    options = module.Options(**given)
    run = module.Run(problem, lanes, streams(1), options, int(sys.argv[1]), total=60)
    run.advance(60)
    told(f"{name} {loss} {kind}", run.weights, problem.objective(run.weights))

signs = np.sign(y)
balls = (noisy_sfw, 2.0), (phased_sgd, 2.0), (phased_sgd, 3.0), (poly_sfw, 1.0)
for module, q in balls:
    given = (Setup("logistic", q, p), [Target(9.0, 1e-6, "paper")], streams(1))
    run = module.Run(*given, Rows(X, signs), n, module.Options())
    told(f"{module.__name__} {q}", *run.solve())
W, out, unit = X[:3].copy(), np.zeros((3, p)), np.full(n, 0.1)
named("logistic").compiled(gradient_sums)(X, signs, unit, 0.5, W, out)
whole = np.sign(X).astype(np.int8)
named("huber").compiled(difference_sums)(whole, y, unit, 0.5, W, -W, out)
told("sums", out)
told("projected", Ball(3.0, 1.0).project(X[:9]))
A = columns.Columns(sparse.csc_array(few))
told("products", A.products(y))
w, v = np.zeros(p), y.copy()
columns.box_step(*A.arrays, np.arange(p), y, 1.0, 0.1, w, v)
found = np.empty(n)
sketch._project(X, X[0], found)
told("distributed", w, v, found)
entries = records._entries(X)
records._products(*entries, X[0], found)
told("records", found)
"""


NOISE = """
import dperm
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Ledger, SampledGaussian

def ledger(noise):
    return Ledger((SampledGaussian(1.0, noise, 5000, "", "", 1, 569),))

print(calibrate(ledger, 1.0, 1e-6, "strict").noise_multiplier.hex())
"""
NARROW = {"NUMBA_CPU_FEATURES": ""}  # those of ``NUMBA_CPU_NAME`` only


class Fresh:
    """Scripts whose kernels are compiled into a cache of their own."""

    def __init__(self, cache: Path):
        self.cache, self.printed = cache, dict[str, list[str]]()

    def first(self, script: str) -> list[str]:
        """What a script printed on its first run."""
        if script not in self.printed:
            self.printed[script] = self.run(script)
        return self.printed[script]

    def run(self, script: str, workers: int = 1, **more: str) -> list[str]:
        """The lines it prints; ``more`` for its environment."""
        environment = {
            k: v for k, v in os.environ.items() if k not in dperm.ONE_PROCESSOR
        } | {"NUMBA_CACHE_DIR": str(self.cache), **more}
        command = [sys.executable, "-c", script, str(workers)]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, check=True, text=True
        )
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    return Fresh(tmp_path_factory.mktemp("cache"))


@pytest.mark.long
def test_compiled_and_cached_code_agree_for_any_number_of_threads(fresh):
    first = fresh.first(SCRIPT)
    assert len(first) > 20 and first == fresh.run(SCRIPT, workers=2)


@pytest.mark.skipif(not dperm.has_avx2(), reason="other processors have other bits")
@pytest.mark.parametrize(
    "script",
    [pytest.param(SCRIPT, id="kernels", marks=pytest.mark.long),
     pytest.param(NOISE, id="noise")],
)  # fmt: skip
def test_the_bits_do_not_depend_on_the_width_of_vectors(script, fresh):
    """Kernels for AVX2 against those for the host, which differ if it has AVX-512."""
    if "avx512f" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("the host has no wider vectors, so that both are the same code")
    assert fresh.first(script) == fresh.run(script, **dperm.ONE_PROCESSOR, **NARROW)


def test_every_kernel_lies_in_a_room_that_names_the_cache():
    package = Path(dperm.__file__).parent
    compiled = [
        path.relative_to(package)
        for path in package.rglob("*.py")
        if re.search(r"^ *@njit|^@intrinsic|= njit\(", path.read_text(), re.MULTILINE)
    ]
    rooms = [[r for r in dperm.KERNELS if path.is_relative_to(r)] for path in compiled]
    assert all(rooms) and set().union(*rooms) == set(dperm.KERNELS)
    assert dperm.source_digest(*dperm.KERNELS) != dperm.source_digest()
