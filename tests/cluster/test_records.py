"""One fit over records that the two workers of a Dask cluster of this machine read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")
SCRIPT = Path(__file__).with_name("over_workers.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the script says."""
    folder = tmp_path_factory.mktemp("records")
    command = [sys.executable, str(SCRIPT), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    killed = len([*folder.glob("killed*")])
    return {**json.loads(done.stdout.splitlines()[-1]), "killed": killed}


def test_a_fit_has_the_bits_of_one_process_that_reads_no_record(found):
    assert found["spread"] == found["alone"]
    assert all(any(weights) for weights in found["alone"].values())
    assert found["read here"] == 0


def test_a_worker_that_is_killed_leaves_no_record_out_and_none_twice(found):
    assert found["killed"] == 3 and found["lost"] >= 1
    assert found["sum"] == found["sum alone"]
