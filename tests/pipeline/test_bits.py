"""The same bits from freshly compiled code as from Numba's cache."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dperm

SCRIPT = """
import hashlib, itertools, sys
from dperm.core import solvers
import numpy as np
from dperm.core.privacy.mechanisms import streams
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes

rng = np.random.default_rng(0)
X, y = rng.standard_normal((442, 10)), 50 * rng.standard_normal(442)
cases = (("least_squares", y), ("logistic", np.sign(y)))
for name, (loss, labels) in itertools.product(sys.argv[1:], cases):
    module = solvers.load(name)
    problem = build("bits", X, labels, loss, Penalty(l1=1.0, l2=0.1))
    lanes = Lanes(np.geomspace(1e-4, 1, 64), np.geomspace(1, 100, 64), 3.0)
    run = module.Run(problem, lanes, streams(1), module.Options())
    run.advance(100)
    found = (run.weights, problem.objective(run.weights))
    print(hashlib.sha256(b"".join(a.tobytes() for a in found)).hexdigest())
"""


NOISE = """
import dperm
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Ledger, SampledGaussian

def ledger(noise):
    return Ledger((SampledGaussian(1.0, noise, 5000, 1, 569, "", ""),))

print(calibrate(ledger, 1.0, 1e-6, "strict").noise_multiplier.hex())
"""
WIDER = {"NUMBA_CPU_NAME": "sapphirerapids", "NPY_DISABLE_CPU_FEATURES": ""}
SOLVERS = ("dp_cd", "dp_sgd", "dp_gcd")


class Fresh:
    """Scripts whose kernels are compiled into a cache of their own, as on any machine.

    Attributes
    ----------
    known : dict
        What each script printed on its first run.
    """

    def __init__(self, cache: Path):
        self.cache = cache
        self.known = {script: self.run(script) for script in (SCRIPT, NOISE)}

    def run(self, script: str, solvers=SOLVERS, **more: str) -> list[bytes]:
        """The lines it prints; ``more`` for its environment."""
        environment = {
            k: v for k, v in os.environ.items() if k not in dperm.ONE_PROCESSOR
        } | {"NUMBA_CACHE_DIR": str(self.cache), **more}
        command = [sys.executable, "-c", script, *solvers]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        return done.stdout.split()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    return Fresh(tmp_path_factory.mktemp("cache"))


def test_compiled_and_cached_code_agree(fresh):
    first = fresh.known[SCRIPT]
    assert len(first) == 2 * len(SOLVERS) and first == fresh.run(SCRIPT)


@pytest.mark.skipif(not dperm.has_avx2(), reason="other processors have other bits")
@pytest.mark.parametrize("script", [SCRIPT, NOISE], ids=["kernels", "noise"])
def test_the_bits_are_of_one_processor_whatever_it_runs_on(script, fresh):
    usual = fresh.known[script]
    assert usual and usual == fresh.run(script, **dperm.ONE_PROCESSOR)
    if "avx512f" in Path("/proc/cpuinfo").read_text():  # or this could not fail
        wider = fresh.run(script, SOLVERS[:1], **WIDER)
        assert usual[: len(wider)] != wider


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
