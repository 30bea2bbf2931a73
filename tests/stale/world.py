"""A composed configuration, of which any leaf can be changed, and its jobs run.

Sections are objects and not files, so that a leaf is changed and all keys are made anew
in a fraction of a second.
"""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from threadpoolctl import threadpool_limits

from dperm.config import config as configuration
from dperm.config import schema, scope
from dperm.config.config import at_scale
from dperm.experiments import digests, inputs, plan, products, stages
from dperm.experiments.task import PROVENANCE
from dperm.storage import files as store
from dperm.workflow import jobs

# Columns and entries that say when and by what rows were made, or how long it took.
APART = (*PROVENANCE, "made", "content")
# of a leaf: group, name of its section, then fields and keys
Path_ = tuple[Any, ...]


class World:
    """The sections of a paper at a scale: ``scale`` and ``seed`` are sections too."""

    def __init__(self, paper: str, *overrides: str):
        self.paper = paper
        self.base = configuration.settings([*overrides])
        self.given = [*overrides]
        self.others: dict[tuple[str, str], Any] = {}
        self.values: dict[Path_, Any] = {}  # of leaves that refuse ``other``
        read = functools.partial(configuration.sections, overrides=overrides)
        self.sections: dict[tuple[str, str], Any] = {
            ("paper", paper): read("paper", [paper])[paper],
            ("scale", ""): self.base.scale,
            ("seed", ""): self.base.seed,
        }
        small = at_scale(self.sections["paper", paper], self.base.scale)
        names = {"problem": {*small.problems}, "solver": {*small.runs}}
        for sweep in small.sweeps.values():
            words = digests.texts(sweep.grid)
            names["problem"] |= {*sweep.problems, *sweep.prepared}
            names["solver"] |= {*digests.solvers_in(words)}
        for group, some in names.items():
            for name, section in read(group, sorted(some)).items():
                self.sections[group, name] = section

    def config(self) -> schema.Config:
        """The configuration of the paper at the scale."""
        scale, seed = self.sections["scale", ""], self.sections["seed", ""]
        paper = at_scale(self.sections["paper", self.paper], scale)
        return replace(self.base, scale=scale, seed=seed, paper=paper)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Have all code read these sections in place of files."""
        plain = configuration.sections

        def read(
            group: str, names: Any, overrides: Any = ()
        ) -> dict[str, Any]:
            names = [*dict.fromkeys(names)]
            kept = {one: self.sections[group, one] for one in names
                    if (group, one) in self.sections}  # fmt: skip
            left = [name for name in names if name not in kept]
            for name in left:  # by no setting of the paper
                if (group, name) not in self.others:
                    self.others[group, name] = plain(group, [name], overrides)[
                        name
                    ]
                kept[name] = self.others[group, name]
            return {
                name: scope.seen(group, name, kept[name]) for name in names
            }

        digests.SECTIONS.clear()
        with patch.object(configuration, "sections", read):
            yield
        digests.SECTIONS.clear()

    def jobs(self) -> jobs.Jobs:
        """The jobs of the paper. Raises ConfigError where that refuses a leaf."""
        with self.installed():
            config = self.config()
            return jobs.assemble(
                replace(config, paper=self.base.paper), [config]
            )

    # --- leaves -----------------------------------------------------------------------

    def leaves(self) -> list[Path_]:
        """The paths of all values in its sections."""
        return [
            (*key, *path)
            for key, section in sorted(self.sections.items())
            for path in _paths(section)
        ]

    def changed(self, *paths: Path_) -> World:
        """The same with other values at some leaves."""
        other = object.__new__(World)
        vars(other).update(vars(self))
        other.sections = dict(self.sections)
        for group, name, *inner in paths:
            section = other.sections[group, name]
            path = (group, name, *inner)
            other.sections[group, name] = _with(
                section, inner, self.values.get(path)
            )
        return other

    def alternatives(self, path: Path_) -> list[Any]:
        """Values that other leaves of the same name have, at most six."""
        values: list[Any] = []
        own = self.value(path)
        for leaf in self.leaves():
            if _name(leaf) == _name(path):
                value = self.value(leaf)
                if value not in (None, own, *values):
                    values.append(value)
        return values[:6]

    def value(self, path: Path_) -> Any:
        """What a leaf has."""
        group, name, *inner = path
        content = self.sections[group, name]
        for key in inner:
            is_section = is_dataclass(content)
            content = getattr(content, key) if is_section else content[key]
        return content

    # --- running ----------------------------------------------------------------------

    def run(self, name: str, folder: Path) -> None:
        """Run a job in a folder that has what it reads."""
        stage, *values = name.split("/")
        with self.installed(), threadpool_limits(1):
            digests.SECTIONS.clear()
            config = self.config()
            below = config.scale.folder
            tops = (
                str(folder / top / below) for top in ("results", "figures")
            )
            output = schema.Output(*tops)
            where = replace(config.data, dir=str(folder / "data"))
            config = replace(config, output=output, data=where)
            if stage in ("fetch", "prepare", "optimum"):
                problem = values[0]
                if stage == "fetch":
                    problem = self.jobs().problem_of(problem)
                section = configuration.read("problem", problem)
                getattr(inputs, stage)(replace(config, problem=section))
            elif stage == "solve":
                stages.solve(plan.at_run(config, *values[1:]))
            elif stage == "sweep":
                stages.sweep(replace(config, product=values[1]))
            elif stage == "timing":
                stages.timing(config)
            elif stage == "draw":
                made = self.jobs().jobs[name].products
                products.draw(replace(config, drawn=made))


def _paths(content: Any) -> Iterator[Path_]:
    if is_dataclass(content):
        for field in fields(content):
            if field.name != "name":
                inner = getattr(content, field.name)
                yield from ((field.name, *rest) for rest in _paths(inner))
    elif isinstance(content, dict) and content:
        for key, inner in content.items():
            yield from ((key, *rest) for rest in _paths(inner))
    elif isinstance(content, list) and any(map(_is_inner, content)):
        for number, inner in enumerate(content):
            yield from ((number, *rest) for rest in _paths(inner))
    else:
        yield ()


def _is_inner(content: Any) -> bool:
    return is_dataclass(content) or isinstance(content, dict)


def _name(path: Path_) -> Any:
    """The last key of a path that is no number of a list."""
    return [key for key in path if not isinstance(key, int)][-1]


def _with(content: Any, path: list[Any], value: Any) -> Any:
    """A section with a value at a path, or with ``other`` for None."""
    if not path:
        return other(content) if value is None else value
    key, *rest = path
    if is_dataclass(content):
        inner = _with(getattr(content, key), rest, value)
        return replace(content, **{key: inner})  # type: ignore[type-var]
    copied = content.copy()
    copied[key] = _with(content[key], rest, value)
    return copied


def other(content: Any) -> Any:
    """Another value of the same type."""
    if isinstance(content, bool):
        return not content
    if isinstance(content, int):
        return content + 1
    if isinstance(content, float):
        return (
            1.0
            if content in (0.0, float("inf"), float("-inf"))
            else 0.75 * content
        )
    if isinstance(content, str):
        return "1/n" if content == "1/n^2" else f"{content}x"
    if isinstance(content, list) and content:
        return [*content[:-1], other(content[-1])]
    return {dict: {"x": 1}, list: ["x"]}.get(type(content), 1)


# --- what a job has made --------------------------------------------------------------


def made(files: list[str], folder: Path) -> dict[str, str]:
    """What the rows, figures and tables of a job say, by their files."""
    return {
        file: _content(folder / file)
        for file in files
        if (folder / file).exists()
    }


def _content(path: Path) -> str:
    if path.suffix == ".parquet":
        table = store.unthreaded(path)
        return table.drop(columns=[*APART], errors="ignore").to_json(
            double_precision=15
        )
    if path.suffix == ".json":
        content = json.loads(path.read_text())
        return json.dumps(
            {key: content[key] for key in content if key not in APART}
        )
    if path.suffix == ".png":
        return ""
    return path.read_text()


def without(files: list[str], source: Path, target: Path) -> Path:
    """A copy of a folder of results without some files and the parts of these."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    for file in files:
        path = target / file
        path.unlink(missing_ok=True)
        for parts in (path.parent / "parts", path.with_suffix("") / "parts"):
            shutil.rmtree(parts, ignore_errors=True)
    return target
