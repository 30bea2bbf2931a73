"""Tables as files."""

import pandas as pd

from dperm.present.tables import Table, save


def test_a_reason_of_several_lines_stays_one_row(tmp_path):
    data = pd.DataFrame({"problem": ["mtp", "log1"], "status": ["gone:\n- here", None]})
    csv, markdown, tex = save(Table(data, data), tmp_path / "table", "")
    rows = markdown.read_text().splitlines()
    assert len(rows) == 4 and "| gone: - here |" in rows[2]
    assert "gone: - here \\\\" in tex.read_text()
    assert pd.read_csv(csv)["status"][0] == "gone:\n- here"
