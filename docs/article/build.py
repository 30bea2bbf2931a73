"""Fill the article's numbers in from results/, and make the PDF of it.

``make article`` renders article.md.j2, in which every measured number comes from
results/, and makes article.pdf of it by pandoc and Typst (the extra ``article``).
``--markdown`` stops at article.md, which Git does not hold. A picture is the SVG beside
the PNG if there is one: ``dperm readme formats=[svg]`` draws the first, ``dperm figure
... formats=[svg]`` the others from the rows of a run.
"""

import re
import sys
from pathlib import Path

import jinja2
import matplotlib
import pandas as pd

from dperm.config.config import paper_label

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "results"
WORTH = HERE.parents[1] / "figures/worth.csv"
PAPERS = {
    name: paper_label(name) for name in ("dpcd", "dpgcd", "dpskgd", "dpbcfw", "dpsco")
}


class Numbers:
    """What the template may print: numbers of claims, by an id's end, and of tables."""

    def __init__(self, results: Path = RESULTS):
        self.results, claims = results, results / "claims.csv"
        self.rows = pd.read_csv(claims, dtype=str, keep_default_na=False)

    def _row(self, end: str) -> pd.Series:
        matches = self.rows[self.rows["id"].str.endswith(f"-{end}")]
        if len(matches) != 1:
            raise ValueError(
                f"article.md.j2: claim {end}: expected the end of one id of "
                f"claims.csv, found {len(matches)} claims"
            )
        return matches.iloc[0]

    def _number(self, end: str, column: str) -> str:
        text = self._row(end)[column]
        if text in ("", "nan"):
            raise ValueError(f"article.md.j2: claim {end}: {column} is empty")
        return shown(float(text))

    def value(self, end: str) -> str:
        """What was measured."""
        return self._number(end, "reproduced")

    def within(self, end: str) -> str:
        """What was measured, with its 95 % interval."""
        low, high = (self._number(end, column) for column in ("ci_low", "ci_high"))
        return f"{self.value(end)} [{low}, {high}]"

    def rests(self, end: str, *verdicts: str) -> str:
        """Nothing, where a claim has one of the verdicts that a sentence rests on."""
        verdict = self._row(end)["verdict"]
        if verdict not in verdicts:
            raise ValueError(
                f"article.md.j2: claim {end}: expected {' or '.join(verdicts)}, found "
                f"{verdict}: say it anew"
            )
        return ""

    def cell(self, table: str, column: str, **where: str) -> str:
        """A number of a table under results/, with its 95 % interval."""
        rows = self._rows(table, **where)
        if len(rows) != 1:
            raise ValueError(
                f"article.md.j2: {table}: expected one row of {where}, found "
                f"{len(rows)}"
            )
        own = f"{column}_low" in rows
        ends = [f"{column if own else 'ci'}_{end}" for end in ("low", "high")]
        number, low, high = rows.iloc[0][[column, *ends]]
        return f"{shown(number)} [{shown(low)}, {shown(high)}]"

    def largest(self, table: str, column: str, **where: str) -> str:
        """The largest number of a column of a table under results/."""
        return shown(self._rows(table, **where)[column].max())

    def _rows(self, table: str, **where: str) -> pd.DataFrame:
        rows = pd.read_csv(self.results / f"{table}.csv")
        for key, word in where.items():
            rows = rows[rows[key] == word]
        return rows

    def worth(self, paper: str, method: str) -> str:
        """Least and largest upper bound of what noise published for epsilon 1 costs."""
        return self._ends(paper, method, ["least", "most"])

    def proved(self, paper: str, method: str) -> str:
        """The same of lower bounds."""
        return self._ends(paper, method, ["proved_least", "proved"])

    def _ends(self, paper: str, method: str, columns: list[str]) -> str:
        rows = pd.read_csv(WORTH).set_index(["paper", "method"])
        return " to ".join(map(shown, rows.loc[(paper, method), columns]))

    def count(self, paper: str | None = None, verdict: str | None = None) -> int:
        """How many claims a paper has, or all have, with that verdict."""
        rows = self.rows[self.rows["paper"].isin(PAPERS if paper is None else [paper])]
        return len(rows if verdict is None else rows[rows["verdict"] == verdict])


def shown(number: float) -> str:
    """Two digits, never in powers of ten."""
    text = f"{number:.2g}"
    return text if "e" not in text else f"{float(text):,.10f}".rstrip("0").rstrip(".")


def rendered(results: Path = RESULTS) -> str:
    """The article in Markdown.

    Raises
    ------
    ValueError
        For a claim that is not there, or without a number.
    """
    numbers = Numbers(results)
    names = (
        "value",
        "within",
        "cell",
        "largest",
        "count",
        "worth",
        "proved",
        "rests",
    )
    known = {name: getattr(numbers, name) for name in names}
    template = jinja2.Template(
        (HERE / "article.md.j2").read_text(encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return template.render(papers=PAPERS, **known)


def with_vectors(article: str, root: Path = HERE.parents[1]) -> str:
    """The article with every picture as SVG that is drawn as one."""

    def best(picture: re.Match[str]) -> str:
        vector = f"figures/{picture[1]}.svg"
        return vector if (root / vector).is_file() else picture[0]

    return re.sub(r"figures/([\w/]+)\.png", best, article)


def typeset(markdown: Path) -> None:
    """Write the PDF beside a Markdown file."""
    import pypandoc  # both bring programs of 100 MB, which only this needs
    import typst

    source, pdf = markdown.with_suffix(".typ"), markdown.with_suffix(".pdf")
    pypandoc.convert_file(
        str(markdown),
        "typst",
        outputfile=str(source),
        extra_args=[
            "--standalone",
            "--citeproc",
            f"--bibliography={HERE / 'references.yaml'}",
            "--variable=papersize:a4",
            "--variable=fontsize:10pt",
        ],
    )
    try:
        typst.compile(
            str(source),
            output=str(pdf),
            root=str(HERE.parents[1]),
            font_paths=[f"{matplotlib.get_data_path()}/fonts/ttf"],
        )
    finally:
        source.unlink()


if __name__ == "__main__":
    page = HERE / "article.md"
    page.write_text(with_vectors(rendered()), encoding="utf-8")
    if "--markdown" not in sys.argv:
        typeset(page)
