"""Bugs in rooms that no audit reaches: slips by operators on the syntax tree.

``rooms.csv`` has a row for every bug: a definition, a piece of it that occurs there
once, what an operator puts in its place, the tests that are run, and the first one that
fails. ``python -m mutants.rooms`` in ``tests/``, or ``make mutants``, plants them anew;
names of modules choose some. A new row may lack its ``after`` and its ``tests``.
"""

from __future__ import annotations

import ast
import shutil
import sys
import tempfile
from pathlib import Path

from mutants.run import NONE, ROOT, Row, first_failed, read, write

TABLE = Path(__file__).with_suffix(".csv")
KEY = 4  # columns that name a bug: module, definition, operator and piece
LEFT = shutil.ignore_patterns(".git", ".venv", ".snakemake", "__pycache__")
OTHER: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


def slip(operator: str, node: ast.AST) -> ast.AST | None:
    """What an operator puts in the place of a node; None where it does not apply."""
    match operator, node:
        case "other", ast.Compare(left, [op], right) if type(op) in OTHER:
            return ast.Compare(left, [OTHER[type(op)]()], right)
        case "other", ast.BinOp(left, op, right) if type(op) in OTHER:
            return ast.BinOp(left, OTHER[type(op)](), right)
        case "other", ast.BoolOp(op, values):
            return ast.BoolOp(OTHER[type(op)](), values)
        case "other", ast.Call(ast.Name(name), args, keywords) if (
            name in NAMES
        ):
            return ast.Call(ast.Name(NAMES[name]), args, keywords)
        case "other", ast.Constant(bool(value)):
            return ast.Constant(not value)
        case "more", ast.Constant(int(value) | float(value)):
            return ast.Constant(value + 1)
        case "never", ast.If(_, body, orelse):
            return ast.If(ast.Constant(False), body, orelse)
        case "never", ast.IfExp(_, _, orelse):
            return orelse
        case "drop", ast.Expr(ast.Call()) | ast.Raise() | ast.AugAssign():
            return ast.Pass()
    return None


class Slip(ast.NodeTransformer):
    """Puts what an operator gives in the place of a piece, and counts how often."""

    def __init__(self, operator: str, before: str):
        self.operator, self.before, self.found = operator, before, list[str]()

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace the node if it is the piece; look into it if not."""
        new = slip(self.operator, node)
        if new is None or shown(node) != self.before:
            return self.generic_visit(node)
        self.found.append(shown(new))
        return new


def shown(node: ast.AST) -> str:
    """The first line of a piece."""
    return ast.unparse(node).partition("\n")[0]


def planted(row: Row) -> tuple[str, str]:
    """The text of a module with its bug, and the piece that is put in.

    Raises
    ------
    ValueError
        If the piece does not occur in its definition, or more than once.
    """
    tree = ast.parse((ROOT / file(row)).read_text(encoding="utf-8"))
    change, found = Slip(row["operator"], row["before"]), [tree]
    for name in row["definition"].split("."):
        inside = (one for node in found for one in ast.iter_child_nodes(node))
        found = [one for one in inside if getattr(one, "name", None) == name]
    for definition in found:
        change.visit(definition)
    if len(change.found) != 1:
        where = f"{row['module']}: {row['definition']}: {row['before']}"
        raise ValueError(
            f"{where}: expected one such piece, found {change.found}"
        )
    return ast.unparse(ast.fix_missing_locations(tree)), change.found[0]


def file(row: Row) -> str:
    """The file of a row's module."""
    return f"src/dperm/{row['module']}.py"


def caught(row: Row, folder: Path) -> str:
    """The first test that fails with a bug planted in a copy of the tree."""
    copy = folder / file(row)
    copy.write_text(planted(row)[0], encoding="utf-8")
    files = [f"tests/{name}" for name in row["near"].split()]
    found = first_failed(files, folder, "-n", "0")
    shutil.copy2(ROOT / file(row), copy)
    return found


def main(names: list[str]) -> None:
    """Plant the bugs of some modules, or all; exit code 1 if one is not caught."""
    rows = read(TABLE)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = shutil.copytree(ROOT, Path(folder, "copy"), ignore=LEFT)
        for row in rows:
            if not names or row["module"].startswith(tuple(names)):
                row["after"], row["tests"] = planted(row)[1], caught(row, copy)
                print(*row.values(), sep=" | ", flush=True)
                write(rows, TABLE, KEY)
    raise SystemExit(int(any(row["tests"] == NONE for row in rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
