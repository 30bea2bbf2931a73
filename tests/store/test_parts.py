import pandas as pd

from dperm.core.experiment.files import Key, Parts

ROWS = pd.DataFrame(
    {
        "step": [1.0, 2.0],
        "clip": [3.0, 4.0],
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
    broken = sorted((tmp_path / "lanes").glob("abc-1-*"))[0]
    broken.write_bytes(broken.read_bytes()[:50])
    assert len(parts.read(key)) == 1
    assert not broken.exists()
    assert parts.read(Key("nothing", "1")) is None


def test_a_part_of_other_code_is_found_and_restamped(tmp_path):
    parts, key = Parts(tmp_path), Key("abc", "new")
    parts.write(Key("abc", "old"), ROWS)
    parts.write(key, ROWS.iloc[:1])
    (old,) = parts.by_identity()["abc"]["old"]
    assert len(parts.read(key)) == 1
    parts.restamp(old, "new")
    assert parts.by_identity() == {"abc": {"new": parts.by_identity()["abc"]["new"]}}
    found = parts.read(key)  # the lane that both have is there once
    assert len(found) == 2 and set(found["config_digest"]) == {"abc-new"}


def test_a_copied_part_does_not_double_rows(tmp_path):
    parts, key = Parts(tmp_path), Key("abc", "1")
    parts.write(key, ROWS)
    (path,) = (tmp_path / "lanes").glob("*.parquet")
    for copy in (f"{key}-copy.parquet", f"{path.stem} (1).parquet"):
        path.with_name(copy).write_bytes(path.read_bytes())
    assert len(parts.read(key)) == len(ROWS)
