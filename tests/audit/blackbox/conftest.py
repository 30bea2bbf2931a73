"""What the audit of a function may search."""

import gc

import pytest


@pytest.fixture(scope="module")
def whole_process():
    """Generators are looked for in all that was imported, which takes a second."""
    gc.unfreeze()
    yield
    gc.freeze()
