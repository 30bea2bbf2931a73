"""Names that say nothing, and names of classes that mean two things.

A local variable says what it holds, in a noun of the field or of the data. Pronouns and
participles (`found`, `one`, `given`) and fillers (`result`, `value`, `data`) do not. A
budget is a share of all locals, counted once a function, and only falls.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
WORDS = {
    name: frozenset((HERE / f"{name}.txt").read_text(encoding="utf-8").split())
    for name in ("pronouns", "fillers")
}
BUDGETS = {"pronouns": 0.02, "fillers": 0.005}
PROTOCOL = frozenset({"Options", "Run"})  # every solver's module has them
DOUBLES = 0  # names of classes that stand in two modules


def locals_of(folder: Path) -> Iterator[str]:
    """Yield the names that functions below `folder` bind, once for each function."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = (
                    name
                    for name in ast.walk(node)
                    if isinstance(name, ast.Name)
                )
                yield from {
                    n.id for n in names if isinstance(n.ctx, ast.Store)
                }


def double_classes(folder: Path) -> dict[str, list[Path]]:
    """Names of classes that two modules define, with the modules."""
    modules = defaultdict(list)
    for path in folder.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name not in PROTOCOL:
                modules[node.name].append(path)
    return {name: paths for name, paths in modules.items() if len(paths) > 1}


def main() -> int:
    """Print the shares and the doubles beside their budgets; 1 if one is above it."""
    folder = Path("src")
    names = list(locals_of(folder))
    is_above = False
    for kind, words in WORDS.items():
        share = sum(name in words for name in names) / len(names)
        print(f"{kind} among locals: {share:.1%}, budget {BUDGETS[kind]:.1%}")
        is_above |= share > BUDGETS[kind]
    doubles = double_classes(folder)
    print(f"classes with two meanings: {len(doubles)}, budget {DOUBLES}")
    if len(doubles) > DOUBLES:
        for name, paths in sorted(doubles.items()):
            print(f"  {name}: {', '.join(map(str, paths))}")
        is_above = True
    return int(is_above)


if __name__ == "__main__":
    sys.exit(main())
