"""Every bug of the rooms still finds its place, and tests catch nearly all."""

import pytest

from . import rooms

ROWS = rooms.read()


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['module']}:{row['before']}"
)
def test_a_row_is_current(row):
    """Its piece is there once, and what was put in is what would be today."""
    assert rooms.planted(row)[1] == row["after"] and row["tests"]


def test_nearly_all_are_caught():
    missed = [row for row in ROWS if row["tests"] == rooms.NONE]
    assert len(ROWS) >= 50 and len(missed) <= 0.03 * len(ROWS), missed
