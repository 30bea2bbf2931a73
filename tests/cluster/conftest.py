"""The small project of the fault tests, run in peace on this machine."""

from faults.conftest import (  # noqa: F401 (fixtures)
    prepared,
    project,
    pytest_runtest_makereport,
    tally,
    undisturbed,
)
