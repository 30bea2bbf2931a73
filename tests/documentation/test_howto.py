"""What the how-tos print is what the example folder holds."""

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TINY = ("paper.yaml", "claims.yaml", "sweeps.py", "figures.py", "tables.py")


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("data-set", "mine/conf/problem/yields.yaml"),
        ("algorithm", "mine/conf/solver/noisy_gd.yaml"),
        ("algorithm", "mine/noisy_gd.py"),
        ("audit", "diffprivlib_models.py"),
        *(("paper", f"sixth/conf/paper/tiny/{name}") for name in TINY),
    ],
)
def test_the_page_prints_the_file(page, file):
    text = (DOCS / "examples" / file).read_text().rstrip()
    assert f"\n{text}\n```" in (DOCS / "howto" / f"{page}.md").read_text()
