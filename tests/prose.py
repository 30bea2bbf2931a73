"""A linter of prose: idioms that a first reader stumbles over, and long sentences.

``python tests/prose.py`` checks README, the pages of ``docs/``, the captions of all
papers and the docstrings of the package, and ends with 1 if there is a finding. Pages
that are generated are left out.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
GENERATED = ("docs/reports", "docs/_build", "docs/notebooks")
LONGEST = 45  # words of a sentence
FORBIDDEN = {  # a pattern, and the plain words for it
    r"told? apart|tell apart": "distinguish",
    r"bears? (?:it |that |this )?out": "confirms",
    r"\bthe print\b": "the published number",
    r"\bsurely\b": "significantly",
    r"\bastray\b": "diverges",
    r"\bloud (?:record|noise)": "influential record, strong noise",
    r"can(?:not)? be had": "is (not) available",
    r"\bfor nothing\b": "without cost",
    r"\bwhat went off\b": "a run that diverged",
    r"\banew\b": "again",
    r"\bcompany in which\b": "data sets in which",
    r"\bmend(?:s|ed)?\b": "fix",
    r"\bis what\b": "name the noun",
    r"\bof which\b.*\bof which\b": "two sentences",
    r"\bsays nothing of\b": "does not state",
    r"\bgive or take\b": "within",
    r"\ball but\b": "nearly, or except",
    r"\bwhoever\b": "readers, users who",
    r"\bwith nothing beside\b": "on an idle machine",
    r"\bhas it\b": "name the noun",
}


def pages() -> list[Path]:
    """README and the pages of the documentation that are written by hand."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = (str(path.relative_to(ROOT)) for path in found)
    return [ROOT / name for name in names if not name.startswith(GENERATED)]


def paragraphs(text: str) -> list[tuple[int, str]]:
    """Prose of a page with its first line's number: no code, tables or headings."""
    text = re.sub(
        r"```.*?```|<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.S
    )
    parts, line = [], 1
    for block in text.split("\n\n"):
        if not re.match(r"\s*(?:\||#|!\[|\{|<)", block.lstrip("\n")):
            parts.append((line + len(block) - len(block.lstrip("\n")), block))
        line += block.count("\n") + 2
    return parts


def sentences(text: str) -> list[str]:
    """Sentences of a paragraph; an item of a list begins a new one."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|\$[^$]*\$", "x", text)
    return [
        part
        for part in re.split(r"(?<=[.:;?!])(?:\*\*)?\s+|\n[-:] ", text)
        if part.strip()
    ]


def captions() -> list[tuple[str, str]]:
    """Captions of all figures and tables, by paper and name."""
    found = []
    for path in sorted(ROOT.glob("conf/paper/*/paper.yaml")):
        paper = yaml.safe_load(path.read_text(encoding="utf-8"))
        for kind in ("figures", "tables"):
            for name, product in (paper.get(kind) or {}).items():
                place = f"{path.relative_to(ROOT)}: {kind}.{name}"
                found.append((place, str(product.get("caption", ""))))
    return found


def docstrings() -> Iterator[tuple[str, str]]:
    """Docstrings of the package, with the place of what they describe."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
                text = ast.get_docstring(node) or ""
                yield place, re.sub(r"\n\n(?: {4,}.+\n?)+", " x.\n", text)  # formulas


def findings(place: str, text: str) -> list[str]:
    """What is wrong with a paragraph, a line each."""
    found = []
    for pattern, plain in FORBIDDEN.items():
        for match in re.finditer(pattern, text, re.I):
            found.append(f"{place}: {match[0]!r}: write {plain}")
    for sentence in sentences(text):
        words = len(re.findall(r"\w+", sentence))
        if words > LONGEST:
            found.append(f"{place}: a sentence of {words} words: {sentence[:60]!r}")
    return found


def main() -> int:
    """Print all findings and the mean length of a sentence; 1 if there are findings."""
    found, lengths = [], []
    for path in pages():
        for line, text in paragraphs(path.read_text(encoding="utf-8")):
            found += findings(f"{path.relative_to(ROOT)}:{line}", text)
            lengths += [len(re.findall(r"\w+", each)) for each in sentences(text)]
    for place, text in (*captions(), *docstrings()):
        found += findings(place, text)
    print(*found, sep="\n" if found else "")
    mean = sum(lengths) / len(lengths)
    print(f"prose: {len(found)} findings; {mean:.1f} words a sentence")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
