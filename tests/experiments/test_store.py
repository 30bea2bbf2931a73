import os

import pandas as pd
import pytest

from dperm.experiments import store


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "table.csv"
    store.write_text(path, "old\n")
    with pytest.raises(ZeroDivisionError), store.whole(path) as beside:
        beside.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old\n"
    assert [file.name for file in path.parent.iterdir()] == ["table.csv"]


def test_a_locked_folder_refuses_a_second_writer(tmp_path):
    with store.locked(tmp_path):
        child = os.fork()
        if child == 0:
            try:
                with store.locked(tmp_path):
                    os._exit(0)
            except RuntimeError as error:
                os._exit(7 if "another dperm process" in str(error) else 8)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with store.locked(tmp_path):
        pass


def test_parts_are_found_again_and_a_damaged_one_is_dropped(tmp_path):
    parts = store.Parts(tmp_path)
    rows = pd.DataFrame(
        {"step": [1.0, 2.0], "clip": [3.0, 4.0], "objective": [5.0, 6.0]}
    )
    parts.write("abc", rows.iloc[:1])
    parts.write("abc", rows.iloc[1:])
    parts.write("xyz", rows)
    pd.testing.assert_frame_equal(
        parts.read("abc").sort_values("step", ignore_index=True), rows
    )
    broken = sorted((tmp_path / "lanes").glob("abc-*"))[0]
    broken.write_bytes(broken.read_bytes()[:50])
    assert len(parts.read("abc")) == 1
    assert not broken.exists()
    assert parts.read("nothing") is None
