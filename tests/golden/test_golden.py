"""Numbers of today's code are those in ``values/``, which were written before."""

import json
import math

import pytest

from dperm.config.locate import available
from golden import cases, write

#: their steps are divided by an eigenvalue, whose last bit is that of LAPACK's threads
DIVIDED = (
    "dp_sgd",
    "dp_svrg",
    "dp_skgd_blocks4",
    "dp_skgd_full",
    "dp_skgd_nice4",
)
WEIGHTS = dict(cases.weights())
LEDGERS = dict(cases.ledgers())


@pytest.mark.parametrize("name", write.stored("weights"))
def test_weights(name):
    found, known = (
        cases.summary(WEIGHTS[name]()),
        write.stored("weights")[name],
    )
    assert found["numbers"] == pytest.approx(known["numbers"], rel=1e-9)
    solver = name.split("/")[0]
    if solver in cases.VARIANTS and not solver.startswith(DIVIDED):
        assert found["digest"] == known["digest"]


@pytest.mark.parametrize("name", write.stored("ledgers"))
def test_ledgers(name):
    assert LEDGERS[name]() == pytest.approx(
        write.stored("ledgers")[name], rel=1e-9
    )


@pytest.mark.parametrize("scale", ["full", "smoke"])
def test_jobs(scale, all_jobs):
    assert cases.inputs_of(all_jobs(scale)) == write.stored(f"jobs_{scale}")


@pytest.fixture(scope="module")
def judged():
    return json.loads(json.dumps(cases.claims()))


def test_claims_are_those_that_were(judged):
    assert set(judged) == set(write.stored("claims"))


@pytest.mark.parametrize("paper", available("paper"))
def test_claims(judged, paper):
    known = {
        k: v for k, v in write.stored("claims").items() if k.startswith(paper)
    }
    assert known
    for name, (verdict, *numbers) in known.items():
        assert judged[name][0] == verdict, name
        for one, other in zip(judged[name][1:], numbers, strict=True):
            assert one == other or math.isclose(
                float(one), float(other), rel_tol=1e-6
            )


def test_every_case_has_a_value():
    assert set(WEIGHTS) == set(write.stored("weights"))
    assert set(LEDGERS) == set(write.stored("ledgers"))
