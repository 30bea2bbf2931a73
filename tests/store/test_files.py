import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import files as store


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "table.csv"
    store.write_text(path, "old\n")
    with pytest.raises(ZeroDivisionError), store.whole(path) as beside:
        beside.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old\n"
    assert [file.name for file in path.parent.iterdir()] == ["table.csv"]


def in_child(action):
    """Run an action in a child process; returns its exit code."""
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_what_a_dead_process_left_is_cleared(tmp_path):
    path = tmp_path / "table.csv"

    def die():
        with store.whole(path) as beside:
            beside.write_text("half")
            os._exit(3)

    assert in_child(die) == 3
    assert len(list(tmp_path.iterdir())) == 1
    store.write_text(path, "new\n")
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_a_flipped_bit_in_a_table_is_noticed(tmp_path):
    path = tmp_path / "table.parquet"
    store.write_table(path, pd.DataFrame({"x": np.arange(1000.0) ** 0.5}))
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"table\.parquet is damaged .*delete it"):
        store.read_table(path)


THREADS = """
import os, sys
import numpy, pyarrow.parquet, pandas
from dperm.core.experiment.files import unthreaded
def threads():
    return len(os.listdir("/proc/self/task"))
before = threads()
read = {"ours": unthreaded, "pandas": pandas.read_parquet}[sys.argv[1]]
read(sys.argv[2])
print(threads() - before, flush=True)
os._exit(0)  # Arrow's own threads may abort a process that ends otherwise
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts by /proc")
def test_no_thread_of_arrow_is_left_to_abort_the_process_when_it_ends(tmp_path):
    path = tmp_path / "table.parquet"
    table = pd.DataFrame({name: np.arange(2000.0) for name in "abcd"})
    store.write_table(path, table)

    def left(reader):
        command = [sys.executable, "-c", THREADS, reader, str(path)]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)

    assert left("ours") == 0 < left("pandas")
    pd.testing.assert_frame_equal(store.read_table(path), pd.read_parquet(path))


def test_damaged_json_is_refused(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_text('[{"key": ')
    with pytest.raises(ValueError, match=r"ledger\.json is damaged .*: burn it"):
        store.read_json(path, "burn it")
    with pytest.raises(FileNotFoundError):
        store.read_json(tmp_path / "other.json")


@pytest.mark.parametrize(("text", "kind"), [("[]", dict), ("null", dict), ("{}", list)])
def test_json_of_another_kind_is_refused_by_name(tmp_path, text, kind):
    path = tmp_path / "optimum.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"json is damaged .*JSON {kind.__name__}"):
        store.read_json(path, kind=kind)
