"""The small project of the fault tests, run in peace on this machine."""

from faults.conftest import prepared, project, undisturbed  # noqa: F401 (fixtures)
