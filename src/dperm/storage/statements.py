"""What the top-level statements of a module hold, as far as keys depend on it.

All of it follows from the module's text and the version of Python alone. Therefore this
module imports nothing of the package: :mod:`dperm.storage.answers` keeps what it reads.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

IN_KEYS = "nothing"  # keys come out of it
DOCUMENTED = frozenset(("__doc__", "getdoc", "getsource", "cleandoc"))
PURE_LIBRARIES = frozenset(
    ("functools", "contextlib", "numba", "abc", "dataclasses", "pytest")
)
PURE = frozenset(
    ("compiled", "njit", "jit", "vectorize", "cache", "lru_cache")
)
Row = tuple[Any, ...]  # what a statement holds, as Python stores it


class Import(NamedTuple):
    """``from module import name as alias``, or ``import module as alias``."""

    module: str
    name: str  #: empty if the module itself is imported
    alias: str  #: empty if there is none
    level: int  #: of dots before the module

    @property
    def local(self) -> str:
        """The name that it binds."""
        return (self.alias or self.name or self.module).partition(".")[0]


class Statement(NamedTuple):
    """What a top-level statement holds. Many entry points of a module share it."""

    text: str  #: as ``ast.dump`` writes it
    strings: frozenset[str]
    names: frozenset[str]  #: and attributes, and what it imports
    attributes: frozenset[str]  #: each also with the name before it
    read_of: dict[
        str, frozenset[str]
    ]  #: names to the attributes that are read of them
    bare: frozenset[str]  #: names of which more than an attribute is read
    imports: tuple[Row, ...]  #: fields of ``Import``
    bound: frozenset[str]  #: names that it binds or changes
    mentioned: frozenset[str]  #: names of the module that it mentions
    acts: bool  #: whether it does something to others when the module is imported
    lines: tuple[
        tuple[int, int], ...
    ]  #: the first and the last, of all its pieces


def read(text: str, is_outside: bool) -> tuple[list[Row], list[Row]]:
    """The statements of a module, and again with one import for each imported name.

    Docstrings do not count, nor annotations of plain functions unless the module
    ``is_outside`` of this package.

    Raises SyntaxError or ValueError if the text is no module.
    """
    used_by = _globals(text)
    body = []
    separate = []
    for node in _tree(text, is_outside).body:
        row = _row(node, used_by)
        body.append(row)
        inner_nodes = [*_parts(node)]
        is_several = len(inner_nodes) > 1
        separate += (
            [_row(inner, used_by) for inner in inner_nodes]
            if is_several
            else [row]
        )
    return body, separate


def _row(
    node: ast.stmt, used_by: Mapping[tuple[str, int], frozenset[str]]
) -> Row:
    """The fields of a ``Statement``."""
    strings = set[str]()
    names = set[str]()
    attributes = set[str]()
    read_of: dict[str, set[str]] = {}
    owners = set[int]()
    plain_names = []
    imports: list[Row] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            plain_names.append(inner)
        elif isinstance(inner, ast.Attribute):
            owners.add(id(inner.value))
            names.add(inner.attr)
            attributes.update(_attribute(inner))
            if isinstance(inner.value, ast.Name):
                read_of.setdefault(inner.value.id, set()).add(inner.attr)
        elif isinstance(inner, ast.Constant):
            if isinstance(inner.value, str):
                strings.add(inner.value)
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            imports += _imports(inner)
            names.update(alias.name for alias in inner.names)
        elif isinstance(inner, ast.MatchClass):
            attributes.update(inner.kwd_attrs)
    names.update(name.id for name in plain_names)
    bare = (name.id for name in plain_names if id(name) not in owners)
    statement = Statement(
        ast.dump(node),
        frozenset(strings),
        frozenset(names),
        frozenset(attributes),
        {name: frozenset(read) for name, read in read_of.items()},
        frozenset(bare),
        tuple(imports),
        frozenset(_bound(node)),
        frozenset(_mentioned(node, used_by)),
        _acts(node),
        tuple(_lines(node)),
    )
    return tuple(statement)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[Row]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            yield (alias.name, "", alias.asname or "", 0)
        else:
            yield (
                node.module or "",
                alias.name,
                alias.asname or "",
                node.level,
            )


def _lines(node: Any) -> Iterator[tuple[int, int]]:
    for piece in (*getattr(node, "decorator_list", ()), node):
        yield (piece.lineno, piece.end_lineno)


def _attribute(node: ast.Attribute) -> set[str]:
    """The name of an attribute, also with the name before it: ``title, paper.title``.

    What a ``match`` reads has no name before it.
    """
    owner = node.value
    if isinstance(owner, ast.Attribute):
        return {node.attr, f"{owner.attr}.{node.attr}"}
    if isinstance(owner, ast.Name):
        return {node.attr, f"{owner.id}.{node.attr}"}
    return {node.attr}


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names and attributes in code."""
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    aliases = (node for node in nodes if isinstance(node, ast.alias))
    return names | {alias.name for alias in aliases}


def _tree(text: str, is_outside: bool) -> ast.Module:
    """A module's statements without docstrings and annotations that do not count.

    A decorator may read annotations, as ``singledispatch`` does.
    """
    tree = ast.parse(text)
    is_written = any(name in text for name in DOCUMENTED)
    is_read = is_written and bool(_names([*ast.walk(tree)]) & DOCUMENTED)
    for node in _blocks(tree):
        if isinstance(node, _DOCUMENTED) and not is_read:
            is_first = ast.get_docstring(node, clean=False) is not None
            node.body = node.body[is_first:]
        is_plain = (
            isinstance(node, ast.FunctionDef) and not node.decorator_list
        )
        if is_plain and not is_outside:
            _bare(node)
    return tree


def _blocks(node: ast.AST) -> Iterator[Any]:
    """A statement and those in it; expressions hold no definitions."""
    yield node
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, name, ()):
            yield from _blocks(inner)


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _bare(function: Any) -> None:
    """Leave out the annotations of a function's arguments and result."""
    function.returns = None
    for argument in _arguments(function.args):
        argument.annotation = None


def _arguments(signature: ast.arguments) -> list[ast.arg]:
    starred = [
        argument
        for argument in (signature.vararg, signature.kwarg)
        if argument is not None
    ]
    return [
        *signature.posonlyargs,
        *signature.args,
        *signature.kwonlyargs,
        *starred,
    ]


def _globals(text: str) -> dict[tuple[str, int], frozenset[str]]:
    """The names of the module that each top-level function or class uses inside.

    They are by its name and line; names that are local to it are not among them.
    """
    tables = symtable.symtable(text, "module", "exec").get_children()
    return {
        (table.get_name(), table.get_lineno()): frozenset(_global_names(table))
        for table in tables
    }


def _global_names(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_global():
            yield symbol.get_name()
    for child in table.get_children():
        yield from _global_names(child)


def _acts(node: ast.stmt) -> bool:
    """Whether a statement does something to others when the module is imported."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return any(
            not _is_pure(decorator) for decorator in node.decorator_list
        )
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return isinstance(node, ast.For | ast.While | ast.With | ast.AugAssign)


def _is_pure(decorator: ast.expr) -> bool:
    """Whether a decorator changes its function alone."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(function, ast.Attribute):
        library = function.value
        return isinstance(library, ast.Name) and library.id in PURE_LIBRARIES
    pure_names = PURE | {
        "contextmanager",
        "dataclass",
        "final",
        "overload",
        "wraps",
    }
    return isinstance(function, ast.Name) and function.id in pure_names


def _parts(node: ast.stmt) -> Iterator[ast.stmt]:
    """A statement; for an import of several names, one statement for each."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        yield node
        return
    for alias in node.names:
        statement: ast.stmt = ast.Import([alias])
        if isinstance(node, ast.ImportFrom):
            statement = ast.ImportFrom(node.module, [alias], node.level)
        yield ast.copy_location(statement, alias)


def _bound(node: ast.stmt) -> set[str]:
    """The names that a top-level statement binds or changes."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {_local(alias) for alias in node.names}
    inner = [*ast.walk(node)]
    defined = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    names = {
        inner_node.name
        for inner_node in inner
        if isinstance(inner_node, defined)
    }
    names |= {
        _local(inner_node)
        for inner_node in inner
        if isinstance(inner_node, ast.alias)
    }
    return names | _mentioned(node, {})


def _local(alias: ast.alias) -> str:
    return (alias.asname or alias.name).partition(".")[0]


def _mentioned(
    node: ast.AST, used_by: Mapping[tuple[str, int], frozenset[str]]
) -> set[str]:
    """The names of the module in a statement; ``used_by`` has those of definitions."""
    subtrees = [node]
    names = set[str]()
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and (
        (node.name, node.lineno) in used_by
    ):
        names |= used_by[node.name, node.lineno]
        subtrees = [*node.decorator_list]
        if isinstance(node, ast.FunctionDef):
            subtrees += filter(None, node.args.kw_defaults)
            subtrees += node.args.defaults
            if node.decorator_list:
                subtrees += _arguments(node.args)
                subtrees += filter(None, [node.returns])
        else:
            subtrees += [*node.bases, *node.keywords]
    for subtree in subtrees:
        name_nodes = [n for n in ast.walk(subtree) if isinstance(n, ast.Name)]
        names |= {name_node.id for name_node in name_nodes}
    return names
