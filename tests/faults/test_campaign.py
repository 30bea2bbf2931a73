"""A sample of the campaign of faults; ``make faults`` runs the whole."""

import shutil

from faults import campaign, test_verify


def test_a_sample_of_faults_is_seen_in_a_line_each(tmp_path, made_once):
    made = made_once("finished", test_verify.finished)
    folder = shutil.copytree(made, tmp_path / "made")
    sample = campaign.run(folder, seed=1, count=24)
    counts = campaign.table(sample)
    assert sample.unexpected == []
    assert counts["tried"].sum() >= 24 and (counts["seen"] > 0).sum() >= 5
