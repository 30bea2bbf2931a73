"""The same bits from fresh and cached code, from threads, and from narrower vectors."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dperm
from dperm import processor
from dperm.numerics import kernels

SCRIPT = """
import hashlib, sys
from dperm import processor
processor.same_bits()
import numpy as np
from dperm.solvers.batched import BatchedSettings
from dperm.privacy.noise import streams
from golden import cases

def told(name, *found):
    bits = b"".join(np.ascontiguousarray(a).tobytes() for a in found)
    print(name, hashlib.sha256(bits).hexdigest(), sep=":")

settings = BatchedSettings(np.geomspace(1e-4, 1, 11), np.geomspace(1, 100, 11), 3.0)
sizes = {"n": 1131, "p": 45}  # neither is a multiple of a vector
made = [(name, cases.dense, *of) for name, of in cases.VARIANTS.items()]
made += [("dp_cd", cases.dense, "huber", cases.LASSO)]
made += [(name, cases.sparse, "logistic", cases.LASSO) for name in cases.SPARSE]
for name, data, loss, penalty in made:
    problem, (module, options) = data(loss, penalty, **sizes), cases.read(name)
    run = module.Run(problem, settings, streams(1), options, int(sys.argv[1]), total=60)
    run.advance(60)
    told(f"{name} {loss} {data.__name__}", run.weights, problem.objective(run.weights))
for name, weights in cases.weights():
    if name.split("/")[0] not in cases.VARIANTS:
        told(name, weights())
"""


NOISE = """
from dperm import processor
processor.same_bits()
from dperm.privacy.calibration import calibrate
from dperm.privacy.events import Ledger, SampledGaussian

def ledger(noise):
    return Ledger((SampledGaussian(1.0, noise, 5000, "", "", 1, 569),))

print(calibrate(ledger, 1.0, 1e-6, "tight").noise_multiplier.hex())
"""
KEYS = """
from dperm.workflow.jobs import compose
for name, job in compose(["dpcd"], [], False).jobs.items():
    print(name, job.key)
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
            k: v
            for k, v in os.environ.items()
            if k not in processor.one_processor()
        } | {"NUMBA_CACHE_DIR": str(self.cache), **more}
        paths = [
            str(Path(__file__).parents[1]),
            environment.get("PYTHONPATH", ""),
        ]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        command = [sys.executable, "-c", script, str(workers)]
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    return Fresh(tmp_path_factory.mktemp("cache"))


@pytest.mark.long
def test_compiled_and_cached_code_agree_for_any_number_of_threads(fresh):
    first = fresh.first(SCRIPT)
    assert len(first) > 20 and first == fresh.run(SCRIPT, workers=2)


@pytest.mark.skipif(
    not processor.has_avx2(), reason="other processors have other bits"
)
@pytest.mark.parametrize(
    "script",
    [pytest.param(SCRIPT, id="kernels", marks=pytest.mark.long),
     pytest.param(NOISE, id="noise")],
)  # fmt: skip
def test_the_bits_do_not_depend_on_the_width_of_vectors(script, fresh):
    """Kernels for AVX2 against those for the host, which differ if it has AVX-512."""
    if "avx512f" not in Path("/proc/cpuinfo").read_text():
        pytest.skip(
            "the host has no wider vectors, so that both are the same code"
        )
    assert fresh.first(script) == fresh.run(
        script, **processor.one_processor(), **NARROW
    )


def test_keys_do_not_depend_on_the_command_that_composes_them(fresh):
    """Snakemake itself sets no width of vectors, the ``dperm`` command does."""
    assert fresh.run(KEYS) == fresh.run(KEYS, **processor.one_processor())


def test_every_kernel_lies_in_a_room_that_names_the_cache():
    package = Path(dperm.__file__).parent
    compiled = [
        path.relative_to(package)
        for path in package.rglob("*.py")
        if re.search(
            r"^ *@njit|^@intrinsic|= njit\(", path.read_text(), re.MULTILINE
        )
    ]
    rooms = [
        [r for r in kernels.KERNELS if path.is_relative_to(r)]
        for path in compiled
    ]
    assert all(rooms) and set().union(*rooms) == set(kernels.KERNELS)
    assert kernels.source_digest(*kernels.KERNELS) != kernels.source_digest()
