from __future__ import annotations

import pytest

from dperm.locate import ConfigError
from dperm.pipeline import inputs
from dperm.report import readme


def test_only_the_marked_block_is_written(config, judged, tmp_path, monkeypatch):
    path = tmp_path / "README.md"
    monkeypatch.setattr(readme, "README", path)
    path.write_text(f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n")
    with pytest.raises(ConfigError, match=r"claims\.csv is not there"):
        readme.readme(config)
    judged.to_csv(inputs.results_folder(config, "claims.csv"), index=False)
    readme.readme(config)
    text = path.read_text()
    assert text.startswith(f"before\n{readme.BEGIN}\n")
    assert text.endswith(f"{readme.END}\nafter\n")
    assert "old" not in text
    assert "reproduced with a caveat" in text
    readme.readme(config)
    assert path.read_text() == text


def test_a_readme_without_marks_is_left_alone(config, judged, tmp_path, monkeypatch):
    path = tmp_path / "README.md"
    path.write_text("no marks\n")
    monkeypatch.setattr(readme, "README", path)
    judged.to_csv(inputs.results_folder(config, "claims.csv"), index=False)
    with pytest.raises(ConfigError, match=r"README\.md: expected the lines"):
        readme.readme(config)
    assert path.read_text() == "no marks\n"
