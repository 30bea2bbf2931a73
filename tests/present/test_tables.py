"""Tables as files."""

import numpy as np
import pandas as pd

from dperm.present.tables import Table, save


def test_a_reason_of_several_lines_stays_one_row(tmp_path):
    data = pd.DataFrame({"problem": ["mtp", "log1"], "status": ["gone:\n- here", None]})
    csv, markdown, tex = save(Table(data, data), tmp_path / "table", "")
    rows = markdown.read_text().splitlines()
    assert len(rows) == 4 and "| gone: - here |" in rows[2]
    assert "gone: - here \\\\" in tex.read_text()
    assert pd.read_csv(csv)["status"][0] == "gone:\n- here"


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
