"""Tables as files."""

import re

import numpy as np
import pandas as pd

from dperm.present.tables import ALIGNED, Table, markdown, save


def test_a_reason_of_several_lines_stays_one_row(tmp_path):
    data = pd.DataFrame({"problem": ["mtp", "log1"], "status": ["gone:\n- here", None]})
    csv, text = save(Table(data, data), tmp_path / "table", "")
    rows = text.read_text().splitlines()
    assert len(rows) == 4 and "| gone: - here |" in rows[2]
    assert pd.read_csv(csv)["status"][0] == "gone:\n- here"


def test_a_long_table_has_the_cells_of_a_short_one():
    data = pd.DataFrame({"name": ["a", "b | c"] * ALIGNED, "mean": 0.5})
    head, rule, *long = markdown(data).splitlines()
    short = markdown(data.head(ALIGNED)).splitlines()
    assert len(long) == 2 * ALIGNED and rule == "| :-- | :-- |"
    unpadded = [re.sub(" +", " ", line) for line in (short[0], *short[2:])]
    assert [head, *long[:ALIGNED]] == unpadded != [short[0], *short[2:]]


def test_last_bits_do_not_reach_the_file(tmp_path):
    data = pd.DataFrame({"error": [0.1 + 0.2, 1 / 3], "mixed": [2 / 3, "none"]})
    near = pd.DataFrame(
        {"error": [0.3, 1 / 3 + 1e-16], "mixed": [2 / 3 - 1e-16, "none"]}
    )
    assert (data["error"] != near["error"]).all() and data["mixed"][0] != near["mixed"][
        0
    ]
    texts = [
        save(Table(each, each), tmp_path / "table", "")[0].read_text()
        for each in (data, near)
    ]
    assert texts[0] == texts[1]
    assert texts[0].splitlines()[2] == "0.3333333333,none"


def test_gaps_infinities_and_whole_numbers_are_read_again(tmp_path):
    data = pd.DataFrame({
        "mean": [np.inf, np.nan], "cell": ["no", np.nan], "passes": [2.0, 5.0],
        "runs": [10**12, 3], "held": [True, False],
    })  # fmt: skip
    csv = save(Table(data, data), tmp_path / "table", "")[0]
    pd.testing.assert_frame_equal(pd.read_csv(csv), data, check_dtype=False)
