"""Changes of the syntax tree: pieces are found by their trees, not by their text.

Formatting, comments and line breaks do not count, nor does the place in the file or the
file's name. The rest of the source text is kept as it is.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .patches import Edit, Mutant

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src/dperm", "docs/examples/mine")  # where definitions are searched for
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
Nodes = list[ast.AST]


class PatchError(ValueError):
    """A bug that does not fit today's source."""


class Match(NamedTuple):
    """A piece of a source text: its nodes, and where they start and end."""

    nodes: Nodes
    start: int
    end: int
    column: int


def patched(mutant: Mutant) -> dict[str, str]:
    """The files that a mutant changes, with their new text.

    Raises
    ------
    PatchError
        If a piece does not occur, or more than once.
    """
    changed: dict[str, str] = {}
    for edit in mutant.edits:
        try:
            file, text, match = located(edit, changed)
            changed[file] = replaced(text, match, edit.after)
        except PatchError as error:
            raise PatchError(f"{mutant.name}: {error}") from None
    return changed


def place(mutant: Mutant) -> str:
    """File and line of the first edit."""
    file, text, match = located(mutant.edits[0], {})
    return f"{file}:{text.count(chr(10), 0, match.start) + 1}"


def located(edit: Edit, changed: dict[str, str]) -> tuple[str, str, Match]:
    """File, text and place of an edit; ``changed``: texts of files changed before."""
    stem, _, name = edit.definition.rpartition(":")
    matches = []
    for file, text in _sources().items():
        path = Path(file)
        if stem in ("", path.parent.name if path.stem == "__init__" else path.stem):
            text = changed.get(file, text)
            definitions = _definitions(text) if name.rpartition(".")[2] in text else {}
            for definition in definitions.get(name, ()):
                found = occurrences(text, definition, edit.before)
                matches += [(file, text, match) for match in found]
    if len(matches) != 1:
        raise PatchError(
            f"{edit.definition}: expected once, found {len(matches)} times:"
            f" {edit.before!r}"
        )
    return matches[0]


def occurrences(text: str, definition: Definition, snippet: str) -> Iterator[Match]:
    """Where a snippet occurs in a definition.

    An expression, or statements that follow each other; ``name=value`` is an
    assignment or an argument of a call.
    """
    pieces, dumps = parsed(snippet), [ast.dump(node) for node in parsed(snippet)]
    if not isinstance(pieces[0], ast.stmt):
        for node in ast.walk(definition):
            if type(node) is type(pieces[0]) and ast.dump(node) == dumps[0]:
                yield _match(text, [node])
        return
    for node in ast.walk(definition):
        if isinstance(node, ast.keyword) and _is_argument(node, pieces):
            yield _match(text, [node])
        for _, field in ast.iter_fields(node):
            if isinstance(field, list) and field and isinstance(field[0], ast.stmt):
                for start in range(len(field) - len(pieces) + 1):
                    run = field[start : start + len(pieces)]
                    if [ast.dump(one) for one in run] == dumps:
                        yield _match(text, run)


def _is_argument(node: ast.keyword, pieces: Nodes) -> bool:
    one = pieces[0]
    return (
        len(pieces) == 1
        and isinstance(one, ast.Assign)
        and ast.unparse(one.targets[0]) == node.arg
        and ast.dump(one.value) == ast.dump(node.value)
    )


def replaced(text: str, match: Match, after: str) -> str:
    """The text with a snippet in the place of a match."""
    if isinstance(match.nodes[0], ast.stmt):
        lines = textwrap.indent(textwrap.dedent(after).strip("\n"), " " * match.column)
        choices = [lines.strip()]
    else:
        choices = [after.strip(), f"({after.strip()})"]
    for choice in choices:
        new = text[: match.start] + choice + text[match.end :]
        if _is_whole(text, new, match, after):
            return new
    raise PatchError(f"does not fit in its place: {after!r}")


def _is_whole(old: str, new: str, match: Match, after: str) -> bool:
    """Whether the new text is the old one's tree with the snippet in its place."""
    try:
        tree = ast.parse(new)
    except SyntaxError:
        return False
    expected, first, pieces = ast.parse(old), match.nodes[0], parsed(after)
    for node in ast.walk(expected):
        for name, field in ast.iter_fields(node):
            if isinstance(field, list):
                for k in [k for k, one in enumerate(field) if _is_at(one, first)]:
                    field[k : k + len(match.nodes)] = _as(first, pieces)
            elif _is_at(field, first):
                setattr(node, name, pieces[0])
    return ast.dump(tree) == ast.dump(expected)


def _is_at(one: object, other: ast.AST) -> bool:
    """Whether two nodes of two parses of one text are the same."""
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    return type(one) is type(other) and all(
        getattr(one, name) == getattr(other, name) for name in names
    )


def _as(old: ast.AST, pieces: Nodes) -> Nodes:
    """Pieces in the place of a node: an assignment may be an argument."""
    if isinstance(old, ast.keyword) and isinstance(pieces[0], ast.Assign):
        name = ast.unparse(pieces[0].targets[0])
        return [ast.keyword(arg=name, value=pieces[0].value)]
    return pieces


@cache
def parsed(snippet: str) -> Nodes:
    """An expression alone, or statements; none of an empty snippet."""
    if not snippet.strip():
        return []
    try:
        return [ast.parse(f"({snippet.strip()}\n)", mode="eval").body]
    except SyntaxError:
        return list(ast.parse(textwrap.dedent(snippet)).body)


@cache
def _definitions(text: str) -> dict[str, list[Definition]]:
    """Definitions of a module by qualified name; the module itself has none."""
    tree = ast.parse(text)
    found: dict[str, list[Definition]] = {"": [tree]}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(prefix + child.name, []).append(child)
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(tree, "")
    return found


@cache
def _sources() -> dict[str, str]:
    files = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    return {str(file.relative_to(ROOT)): file.read_text() for file in sorted(files)}


def _match(text: str, nodes: Nodes) -> Match:
    first, last = nodes[0], nodes[-1]
    decorators = getattr(first, "decorator_list", [])
    line, column = (decorators or [first])[0].lineno, first.col_offset

    lines = text.encode().splitlines(keepends=True)

    def at(line: int, column: int) -> int:
        return len(b"".join([*lines[: line - 1], lines[line - 1][:column]]).decode())

    return Match(
        nodes, at(line, column), at(last.end_lineno, last.end_col_offset), column
    )
