"""Reading the configuration: one group's section, or all of it.

``read`` returns one section, ``sections`` several, ``compose`` all of them for the
command line of a stage. Hydra composes them of the files in ``conf/``
(``composition``), and pydantic makes the frozen sections of ``schema`` of them, once.
Every refusal is a ``ConfigError`` whose one-line text names the file, the key, the
value found and the value expected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dperm.config import grid, run_spec, schema, scope
from dperm.config.locate import (
    RESERVED,
    ConfigError,
    available,
    conf_file,
    group_file,
)
from dperm.config.validation import check, key_of, one_of

IN_KEYS = "nothing"  # a key has the settings that come out of it
CHOSEN = ("paper", "problem", "solver")  # by a target, where there are several
TOGETHER = 16  # sections of one composition: its time grows with its square


def read(group: str, name: str, overrides: Iterable[str] = ()) -> Any:
    """One group's section by itself, without a whole configuration around it.

    Parameters
    ----------
    group : {"paper", "problem", "solver", "scale", "dataset"}
    name : str
        Name of its YAML.
    overrides : iterable of str
        As on a command line; those of keys below the group are applied.
    """
    return sections(group, [name], overrides)[name]


def sections(
    group: str, names: Iterable[str], overrides: Iterable[str] = ()
) -> dict[str, Any]:
    """Several sections of a group by their names, in a third of the time of ``read``.

    The overrides are applied to each.
    """
    inner = run_spec.of_group(group, overrides)
    all_names = list(dict.fromkeys(names))
    contents = run_spec.sections(group, all_names, inner)
    unread = [name for name in all_names if name not in contents]
    if unread:
        contents |= _sections(group, unread, inner)
    return {
        name: scope.seen(group, name, contents[name]) for name in all_names
    }


def _sections(
    group: str, all_names: Sequence[str], inner: Sequence[str]
) -> dict[str, Any]:
    """Sections that no file of a job has; ``inner`` are overrides below the group."""
    from dperm.config import composition

    trees: dict[str, Any] = {}
    if not inner:
        trees = {
            name: composition.as_written(group, name) for name in all_names
        }
    inner_orders = [composition.hydra_override(text) for text in inner]
    composed = [name for name in all_names if trees.get(name) is None]
    for begin in range(0, len(composed), TOGETHER):
        orders = []
        group_names = composed[begin : begin + TOGETHER]
        for number, name in enumerate(group_names):
            orders.append(f"+{group}@s{number}='{name}'")
            orders += [
                text.replace(f"{group}.", f"s{number}.", 1)
                for text in inner_orders
            ]
        tree, _ = composition.compose(composition.SECTIONS_CONFIG, orders)
        for number, name in enumerate(group_names):
            trees[name] = tree[f"s{number}"]
    contents: dict[str, Any] = {}
    for name in all_names:
        where = composition.place_of({group: name}, inner, group)
        contents[name] = check(trees[name], schema.GROUPS[group], where)
        _check_section(group, name, contents[name], inner)
    return contents


@cache
def paper_label(name: str) -> str:
    """What pages call a paper: its label, or the name of one that has none."""
    # Verdicts may be of a paper that went.
    return str(
        (name in available("paper") and read("paper", name).label) or name
    )


def settings(overrides: Sequence[str]) -> schema.Config:
    """Settings outside of paper, problem and solver: scale, seed, folders, workers.

    The sections of these three are left empty.

    Raises
    ------
    ConfigError
        If a setting is invalid, or a paper, problem or solver is among the overrides.
    """
    for text in overrides:
        if key_of(text) in CHOSEN:
            raise ConfigError(
                f"{text}: expected a key below it, as in {key_of(text)}.name: what is "
                "made is chosen by the target"
            )
    free = [
        text for text in overrides if key_of(text).split(".")[0] not in CHOSEN
    ]
    removals = [f"~{group}" for group in CHOSEN]
    tree, names = _composed([*free, *removals])
    tree = {key: setting for key, setting in tree.items() if key not in CHOSEN}
    chosen = _object(schema.Settings, tree, names, free)
    return schema.Config(**{**vars(chosen), "overrides": [*overrides]})


def compose(overrides: Sequence[str]) -> schema.Config:
    """Compose one configuration and check it.

    Parameters
    ----------
    overrides : sequence of str
        Such as ``problem=california_norm`` or ``problem.privacy.epsilon=2``.
    """
    return checked(*_composed(overrides), overrides)


def _composed(
    overrides: Sequence[str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """What Hydra composes for a command line, and the chosen name in each group."""
    from dperm.config import composition

    orders = [*map(composition.hydra_override, overrides)]
    return composition.compose(composition.FULL_CONFIG, orders)


def checked(
    tree: dict[str, Any], names: dict[str, str], overrides: Sequence[str]
) -> schema.Config:
    """What Hydra composed for a command line, as a configuration.

    Parameters
    ----------
    tree : dict
        Plain values.
    names : dict
        The chosen name in each group.
    overrides : sequence of str
        Of the command line; they are recorded.
    """
    config: schema.Config = _object(schema.Config, tree, names, overrides)
    paper = at_scale(config.paper, config.scale)
    return replace(config, paper=paper, overrides=[*overrides])


def _object(
    section_type: Any,
    tree: dict[str, Any],
    names: dict[str, str],
    overrides: Sequence[str],
) -> Any:
    """Plain values as the configuration or its settings.

    The mirror's folder is that of the environment where none is set, and folders of
    results and figures are those of the scale.
    """
    from dperm.config import composition

    config = check(tree, section_type, composition.place_of(names, overrides))
    for group, name in names.items():
        _check_section(group, name, getattr(config, group), overrides)
    mirror = config.data.mirror or os.environ.get("DPERM_MIRROR") or None
    folder = config.scale.folder
    output = schema.Output(
        Path(config.output.results, folder).as_posix(),
        Path(config.output.figures, folder).as_posix(),
    )
    return replace(
        config, data=replace(config.data, mirror=mirror), output=output
    )


# --- the part of a paper that a scale runs --------------------------------------------


def at_scale(paper: schema.Paper, scale: schema.Scale) -> schema.Paper:
    """The part of a paper that a scale runs, with its problems at this scale.

    A scale that is not thorough drops sweeps and products marked ``smoke: false``. The
    small scales run sweeps on their own grids and problems, and drop sweeps none of
    whose problems they run. Products that show a dropped sweep are dropped too.
    """
    is_small = scale.problems == "small"
    swept = {
        name: _small(sweep, paper.small_problems) if is_small else sweep
        for name, sweep in paper.sweeps.items()
        if sweep.smoke or scale.thorough
    }
    sweeps = {name: sweep for name, sweep in swept.items() if sweep.grid}

    def kept(products: dict[str, schema.Product]) -> dict[str, schema.Product]:
        return {
            name: product
            for name, product in products.items()
            if (product.smoke or scale.thorough)
            and sweeps.keys() >= {*product.sweeps}
        }

    return replace(
        paper,
        problems=paper.small_problems if is_small else paper.problems,
        sweeps=sweeps,
        figures=kept(paper.figures),
        tables=kept(paper.tables),
    )


def _small(sweep: schema.Sweep, small_problems: list[str]) -> schema.Sweep:
    """A sweep at the small scales, whose grid is the points on their problems."""
    spec = sweep.grid if sweep.small is None else sweep.small
    points = grid.points(spec, axes=None)
    prepared = small_problems if sweep.prepared else []
    return replace(
        sweep,
        grid=[
            point
            for point in points
            if point.get("problem") in (None, *small_problems)
        ],
        problems=[name for name in sweep.problems if name in small_problems],
        prepared=prepared,
    )


def papers(
    names: Sequence[str], scale: schema.Scale, overrides: Iterable[str]
) -> list[schema.Paper]:
    """Papers at a scale, with the overrides of a run; they are read together."""
    papers_by_name = sections("paper", names, overrides)
    return [at_scale(papers_by_name[name], scale) for name in names]


# --- what one section must tell of others ---------------------------------------------


def _check_section(
    group: str, name: str, section: Any, overrides: Sequence[str]
) -> None:
    """Refuse a section of another name, or a paper that does not hold together."""
    if section.name != name:
        where = f"conf/{group_file(group, name)}: name"
        raise ConfigError(f"{where}: expected {name}, found {section.name!r}")
    if group == "paper":
        if name in RESERVED or name in available("scale"):
            raise ConfigError(
                f"conf/{group_file(group, name)}: name: expected another, found "
                f"{name!r}, a word of the command line or a folder of results"
            )
        replaced = {"paper.problems", "paper.small_problems"} & {
            *map(key_of, overrides)
        }
        problems = available("problem") if replaced else []
        _check_paper(section, problems)


def _check_paper(paper: schema.Paper, problems: list[str]) -> None:
    """Refuse what a paper names and does not have.

    ``problems`` are all that there are where overrides replace its own, of which its
    file may then name others.
    """
    where = f"conf/{group_file('paper', paper.name)}"
    if not any(
        (paper.runs, paper.sweeps, paper.figures, paper.tables, paper.claims)
    ):
        raise ConfigError(
            f"{where}: runs: expected runs, sweeps or tables, found none"
        )
    if paper.runs and not (paper.problems or problems):
        raise ConfigError(
            f"{where}: problems: expected at least one, found none"
        )
    allowed = problems or [*paper.problems, *paper.small_problems]
    for collection in ("runs", "figures", "tables"):
        for name, product in getattr(paper, collection).items():
            for problem in product.problems or ():
                one_of(
                    f"{where}: {collection}.{name}.problems", problem, allowed
                )
            for sweep in getattr(product, "sweeps", ()):
                one_of(
                    f"{where}: {collection}.{name}.sweeps", sweep, paper.sweeps
                )
    files = {
        f"published.{name}": file for name, file in paper.published.items()
    }
    for key, file in (files | {"claims": paper.claims}).items():
        if file and paper_file(paper, file) is None:
            raise ConfigError(
                f"{where}: {key}: no file conf/paper/{paper.name}/{file}"
            )
    for source in paper.printed_numbers:
        key = f"{where}: printed_numbers"
        printed_table = source.paper_table or source.table
        one_of(f"{key}.table", source.table, paper.tables)
        one_of(f"{key}.paper_table", printed_table, paper.published)


def paper_file(paper: schema.Paper, name: str) -> Path | None:
    """A file in the paper's folder of configuration; None if missing."""
    return conf_file(f"paper/{paper.name}/{name}")
