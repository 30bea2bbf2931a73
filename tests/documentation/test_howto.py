"""What the how-tos print is what the example folder holds."""

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("data-set", "conf/problem/yields.yaml"),
        ("paper", "conf/paper/mine.yaml"),
        ("algorithm", "conf/solver/noisy_gd.yaml"),
        ("algorithm", "noisy_gd.py"),
    ],
)
def test_the_page_prints_the_file(page, file):
    text = (DOCS / "examples" / "mine" / file).read_text().rstrip()
    assert f"\n{text}\n```" in (DOCS / "howto" / f"{page}.md").read_text()
