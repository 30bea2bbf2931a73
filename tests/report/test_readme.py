from __future__ import annotations

import pytest

from dperm.core.experiment import plan
from dperm.core.experiment.locate import ConfigError
from dperm.report import scorecard


def test_only_the_marked_block_is_written(config, judged, tmp_path, monkeypatch):
    path = tmp_path / "README.md"
    monkeypatch.setattr(scorecard, "README", path)
    mark = f"{scorecard.BEGIN} with dpcd/figure1, dpcd/figure2 -->"
    path.write_text(f"before\n{mark}\nold\n{scorecard.END}\nafter\n")
    picture = plan.figures_folder(config, "dpcd/figure2.png")
    picture.parent.mkdir(parents=True)
    picture.touch()
    with pytest.raises(ConfigError, match=r"claims\.csv is not there"):
        scorecard.readme(config)
    judged.to_csv(plan.results_folder(config, "claims.csv"), index=False)
    scorecard.readme(config)
    text = path.read_text()
    assert text.startswith(f"before\n{mark}\n")
    assert "![dpcd/figure2](" in text and "![dpcd/figure1](" not in text
    assert text.endswith(f"{scorecard.END}\nafter\n")
    assert "old" not in text
    assert "reproduced with a caveat" in text
    scorecard.readme(config)
    assert path.read_text() == text


def test_a_readme_without_marks_is_left_alone(config, judged, tmp_path, monkeypatch):
    path = tmp_path / "README.md"
    path.write_text("no marks\n")
    monkeypatch.setattr(scorecard, "README", path)
    judged.to_csv(plan.results_folder(config, "claims.csv"), index=False)
    with pytest.raises(ConfigError, match=r"README\.md: expected the lines"):
        scorecard.readme(config)
    assert path.read_text() == "no marks\n"
