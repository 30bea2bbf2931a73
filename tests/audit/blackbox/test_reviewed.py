"""Any record may come: extreme ones refute what trips over them, and nothing else."""

import pytest

from dperm.audit.blackbox import Claim, audit
from dperm.audit.functions import Domain

from . import reviewed
from .gallery import DELTA, EPSILON
from .reviewed import laplace_of_random

FREE, LINE = Domain(), Domain(p=1)
RUNS, MANY = 8_000, 150_000  # of descents, 45 seconds are some 150 000
PURE = Claim(EPSILON, seconds=1e9, runs=RUNS)
APPROXIMATE = Claim(EPSILON, DELTA, seconds=1e9, runs=RUNS)
LONG = Claim(EPSILON, seconds=1e9, runs=MANY)

TRAPS = {  # what the verdict says of the record and of what it does
    "as it was": (reviewed.as_it_was, "x = (", ""),
    "NaN": (reviewed.nan_trap, "x = (1e+308, ", "all outputs exactly 0: 0 of"),
    "underflow": (reviewed.underflow_trap, "x = (1e-200, ", "moved by"),
}
SOUND = {
    "descent": (reviewed.mended, APPROXIMATE, FREE),
    "Laplace of random": (laplace_of_random(1.0), PURE, LINE),
    "response of secrets": (reviewed.secret_response, PURE, LINE),
    "NaN refused": (reviewed.refuses_nan, PURE, FREE),
}
BROKEN = {
    "quantile": (reviewed.quantile_clip, APPROXIMATE),
    "count of steps": (reviewed.stopping_count, PURE),
    "Laplace of random": (laplace_of_random(1 / 1.3), LONG),
}


@pytest.mark.parametrize("name", TRAPS)
def test_finite_numbers_refute_either_trap(name):
    fit, record, deed = TRAPS[name]
    found = audit(fit, APPROXIMATE, FREE)
    assert found.refuted and not found.ordinary and found.pair.finite, found
    assert f"record 1 of 8: {record}" in found.pair.text
    assert deed in found.proof
    assert any(note.startswith("ordinary records") for note in found.notes)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_function_of_any_record_is_not_refuted(name, seed):
    fit, claim, domain = SOUND[name]
    found = audit(fit, claim, domain, seed)
    assert not found.refuted, found
    refuses = any("not finite (raises ValueError" in note for note in found.notes)
    assert refuses == (name == "NaN refused")


@pytest.mark.parametrize("name", BROKEN)
def test_ordinary_records_refute_what_they_can(name):
    fit, claim = BROKEN[name]
    found = audit(fit, claim, LINE)
    assert found.refuted and found.ordinary and found.pair.largest <= 1e3, found


def test_an_exception_for_a_finite_record_refutes():
    found = audit(reviewed.refuses_large, PURE, FREE)
    assert found.refuted and not found.ordinary
    assert found.proof.startswith("it raises OverflowError: a square overflows: 0 of")
    assert any("ordinary records" in note for note in found.notes)


def test_ordinary_records_come_first_where_extreme_ones_refute_too():
    found = audit(reviewed.short_and_zero, LONG, LINE)
    assert found.refuted and found.ordinary and found.pair.largest <= 1e3, found
    (note,) = (note for note in found.notes if note.startswith("refuted also by"))
    assert "all outputs exactly 0" in note
