"""Two slips that were made once: a test and the audit each see them, planted again.

And neither sees anything in a sound way to write the same thing.
"""

import numpy as np
import pytest
from scipy import sparse

from dperm.audit.checks import Audit
from dperm.audit.solvers import Shape, fit
from dperm.solvers import records
from dperm.solvers.fits import dp_gd
from dperm.solvers.records import ContributionError

from .test_records import all_within

PLAIN = records.norms


def clips(slopes, most):
    """By np.clip, which hands NaN on."""
    ends = most.reshape(-1, *[1] * (slopes.ndim - 1))
    return np.clip(slopes, -ends, ends)


def clips_numbers(slopes, most):
    """The same of numbers alone."""
    return clips(np.nan_to_num(slopes), most)


def floored(rows):
    """Norms by their squares, which underflow, and 1e-300 where that is more."""
    filled = rows.toarray() if sparse.issparse(rows) else rows
    return np.maximum(np.sqrt(np.einsum("ij,ij->i", filled, filled)), 1e-300)


def measured(rows):
    """Norms of rows over their largest entry."""
    filled = rows.toarray() if sparse.issparse(rows) else rows
    largest = np.abs(filled).max(axis=1)
    units = filled / np.where(largest > 0, largest, 1.0)[:, None]
    return largest * np.linalg.norm(units, axis=1)


def clipped(kind=np.asarray):
    """Whether no gradient is longer than its bound, or stops the run."""
    try:
        return bool(all_within(kind))
    except ContributionError:
        return False


def audited(module, options, shape, **given):
    """Whether the audit finds nothing; a run that raises tells of its records."""
    audit = Audit(fit("s", module, options, shape, **given), neighbours=6)
    try:
        return not (audit.sensitivity().caught or audit.published().caught)
    except ContributionError:
        return False


def descends():
    return audited(
        dp_gd, dp_gd.Options(steps=2), Shape(loss="least_squares", p=8, balance=1.0)
    )


CASES = {
    "np.clip": (records, "bounded", clips, clips_numbers, clipped, descends),
    "1e-300": (records, "norms", floored, measured, clipped, descends),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("unchecked", [False, True], ids=["checked", "unchecked"])
def test_the_slip_is_seen_and_its_sound_twin_is_not(case, unchecked, monkeypatch):
    """Also where the check of contributions, which stops a run, is away."""
    module, name, slip, sound, test, audit = CASES[case]
    assert test() and audit()
    if unchecked:
        monkeypatch.setattr(records, "check", lambda *_: None)
    for way, is_sound in ((slip, False), (sound, True)):
        with np.errstate(all="ignore"):
            monkeypatch.setattr(module, name, way)
            assert (test(), audit()) == (is_sound, is_sound), way.__name__
