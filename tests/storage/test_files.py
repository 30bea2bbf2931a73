"""Files whole or absent, damage that is noticed, parts of a table, locks."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dperm.storage import files
from dperm.storage.files import Key, Parts


def in_child(action):
    """Run an action in a child process; returns its exit code."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except RuntimeError as error:
            os._exit(7 if "another pipeline runs in" in str(error) else 8)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# --- files ----------------------------------------------------------------------------


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "table.csv"
    files.write_text(path, "old\n")
    with pytest.raises(ZeroDivisionError), files.whole(path) as beside:
        beside.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old\n"
    assert [file.name for file in path.parent.iterdir()] == ["table.csv"]


def test_what_a_dead_process_left_is_cleared(tmp_path):
    path = tmp_path / "table.csv"

    def die():
        with files.whole(path) as beside:
            beside.write_text("half")
            os._exit(3)

    assert in_child(die) == 3
    assert len(list(tmp_path.iterdir())) == 1
    files.write_text(path, "new\n")
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_a_flipped_bit_in_a_table_is_noticed(tmp_path):
    path = tmp_path / "table.parquet"
    files.write_table(path, pd.DataFrame({"x": np.arange(1000.0) ** 0.5}))
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"table\.parquet is damaged .*delete it"
    ):
        files.read_table(path)


THREADS = """
import os, sys
import numpy, pyarrow.parquet, pandas
from dperm.storage.files import unthreaded
def threads():
    return len(os.listdir("/proc/self/task"))
before = threads()
read = {"ours": unthreaded, "pandas": pandas.read_parquet}[sys.argv[1]]
read(sys.argv[2])
print(threads() - before, flush=True)
os._exit(0)  # Arrow's own threads may abort a process that ends otherwise
"""


@pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="counts by /proc"
)
def test_no_thread_of_arrow_is_left_to_abort_the_process_when_it_ends(
    tmp_path,
):
    path = tmp_path / "table.parquet"
    table = pd.DataFrame({name: np.arange(2000.0) for name in "abcd"})
    files.write_table(path, table)

    def left(reader):
        command = [sys.executable, "-c", THREADS, reader, str(path)]
        return int(
            subprocess.run(command, capture_output=True, check=True).stdout
        )

    assert left("ours") == 0 < left("pandas")
    pd.testing.assert_frame_equal(
        files.read_table(path), pd.read_parquet(path)
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [('[{"key": ', list), ("[]", dict), ("null", dict), ("{}", list)],
)
def test_damaged_json_or_json_of_another_kind_is_refused_by_name(
    tmp_path, text, kind
):
    path = tmp_path / "ledger.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"ledger\.json is damaged .*: burn it"
    ):
        files.read_json(path, "burn it", kind)
    with pytest.raises(FileNotFoundError):
        files.read_json(tmp_path / "other.json")


# --- parts ----------------------------------------------------------------------------

ROWS = pd.DataFrame(
    {
        "step": [1.0, 2.0],
        "clip": [3.0, 4.0],
        "replicate": [0, 0],
        "checkpoint": [5.0, 5.0],
        "objective": [6.0, 7.0],
    }
)


def test_parts_are_found_again_and_a_damaged_one_is_dropped(tmp_path):
    parts, key = Parts(tmp_path), Key("abc", "1")
    parts.write(key, ROWS.iloc[:1])
    parts.write(key, ROWS.iloc[1:])
    parts.write(Key("xyz", "1"), ROWS)
    parts.write(Key("abc", "2"), ROWS)
    found = parts.read(key).sort_values("step", ignore_index=True)
    pd.testing.assert_frame_equal(found, ROWS.assign(config_digest="abc-1"))
    broken = sorted((tmp_path / "parts").glob("abc-1-*"))[0]
    broken.write_bytes(broken.read_bytes()[:50])
    assert len(parts.read(key)) == 1
    assert not broken.exists()
    assert parts.read(Key("nothing", "1")) is None


def test_a_copied_part_does_not_double_rows(tmp_path):
    parts, key = Parts(tmp_path), Key("abc", "1")
    parts.write(key, ROWS)
    (path,) = (tmp_path / "parts").glob("*.parquet")
    for copy in (f"{key}-copy.parquet", f"{path.stem} (1).parquet"):
        path.with_name(copy).write_bytes(path.read_bytes())
    assert len(parts.read(key)) == len(ROWS)


# --- locks ----------------------------------------------------------------------------


def test_a_second_pipeline_is_refused_and_told_of_the_first(tmp_path):
    path = str(tmp_path / ".snakemake" / "dperm.lock")
    files.lock_results(path)
    assert in_child(lambda: files.lock_results(path)) == 7
    with pytest.raises(RuntimeError, match=f"process {os.getpid()} on"):
        files.lock_results(path)
    files._PROCESS_LOCKS.pop().release()
    assert in_child(lambda: files.lock_results(path)) == 0


def test_a_lock_is_waited_for_and_freed_by_a_killed_process(tmp_path, caplog):
    child = os.fork()
    if child == 0:
        with files.locked(tmp_path):
            (tmp_path / "held").touch()
            time.sleep(60)
        os._exit(0)
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    threading.Timer(0.3, os.kill, (child, signal.SIGKILL)).start()
    with files.locked(tmp_path):
        assert (
            os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            == -signal.SIGKILL
        )
    assert (
        f"waiting for another dperm process (process {child} on" in caplog.text
    )
