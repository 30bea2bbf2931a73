"""The picture of the rooms is that of the code, and no import goes up or in a circle.

An import counts wherever it stands, also one of types alone and one by a string such as
``"dperm.data.fetching:serve"``, which import-linter does not see.
"""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/dperm"
PICTURE = re.compile(r"^(\d|  ?) +(\w+) +\S.*$", re.MULTILINE)
STRING = re.compile(r"(dperm(?:\.\w+)+)\.?(:[\w.]+)?")
# A paper is found by the name that its YAML has, a user's own one as well.
BY_NAME = {("experiments", "papers")}


def module(path: Path) -> str:
    """The name of a file's module; of the package itself it is empty."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def nearest(name: str) -> str:
    """The module that a dotted name is of."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def named(node: ast.AST) -> list[str]:
    """The modules of this package that a piece of code names."""
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        match = STRING.fullmatch(node.value)
        names = [match[1]] if match else []
    ours = [name for name in names if name.startswith("dperm.")]
    return [nearest(name.removeprefix("dperm.")) for name in ours]


def imports(source: str) -> set[str]:
    """The modules that a text of Python names; the package itself is in all of them."""
    nodes = ast.walk(ast.parse(source))
    return {name for node in nodes for name in named(node)} - {""}


@cache
def graph() -> dict[str, set[str]]:
    return {
        name: imports(path.read_text("utf-8")) - {name}
        for name, path in MODULES.items()
        if name  # the package offers names of its rooms, and all import it
    }


def rooms() -> dict[str, int]:
    """The rooms of the picture with their layers, from the top."""
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    picture = page.partition("```\n")[2].partition("```")[0]
    layers, layer = {}, 0
    for number, room, *_ in PICTURE.findall(picture):
        layer = int(number) if number.strip() else layer
        layers[room] = layer
    return layers


def room(name: str) -> str:
    return name.partition(".")[0]


def test_the_picture_has_every_room_and_no_other():
    assert {*rooms()} == {*map(room, MODULES)} - {"", "__main__"}
    assert max(rooms().values()) <= 8 and [*rooms().values()][-1] == 1


def test_a_room_imports_what_stands_below_it():
    order = [*rooms()]
    arrows = {
        (room(name), room(used)) for name in graph() for used in graph()[name]
    }
    arrows = {
        (a, b) for a, b in arrows if a != b and a != "__main__"
    } - BY_NAME
    up = {(a, b) for a, b in arrows if order.index(a) > order.index(b)}
    assert len(arrows) > 50 and up == set()


def test_no_file_imports_itself_through_others():
    [*order] = TopologicalSorter(graph()).static_order()
    assert len(order) == len(graph())


def test_the_contract_of_the_linter_has_the_order_of_the_picture():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    layers = text.partition("exhaustive_ignores")[2].partition("]\n\n")[0]
    assert re.findall(r"\w+", layers.partition("layers")[2]) == [*rooms()]


@pytest.mark.parametrize(
    ("source", "used"),
    [("from dperm.data import fetching", {"data.fetching"}),
     ("def f():\n    import dperm.cli as c", {"cli"}),
     ("from dperm.privacy.events import Ledger", {"privacy.events"}),
     ("if TYPE_CHECKING:\n    from dperm.data import fetching", {"data.fetching"}),
     ("x = 'dperm.report.page:report'", {"report.page"}),
     ("x = f'dperm.papers.{name}.sweeps'", {"papers"}),
     ("import dperm, numpy; x = 'dperm.lock is a file'", set())],
)  # fmt: skip
def test_an_import_is_seen_wherever_it_stands(source, used):
    assert imports(source) == used


def test_a_circle_is_seen():
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
