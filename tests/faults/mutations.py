"""Every key of every YAML file of conf/, spoilt in every way, and what comes of it.

A mutation is right if it is refused in one line that names file and key, or if what is
composed means the same. Where it is neither, what is composed may be a legal other
configuration: ``default``, as if the key were not there, or ``free``, a name of the
reader's choice or a value that only the paper's own code can judge (``FREE``). All else
is ``accepted``, which is nonsense, or ``unclear``, ``raised``.
"""

import copy
import functools
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from dperm.core.experiment import config, schema, validation
from dperm.core.experiment.locate import ConfigError
from dperm.judge.claims import Claim
from dperm.pipeline import checks, digests, runtable
from dperm.report import claims

KINDS = ("delete", "rename", "type", "range", "duplicate", "empty", "twice")
# Text that may be anything.
TEXTS = ("title", "label", "caption", "reference", "thresholds", "place", "claim",
         "note", "says", "set", "published", "positive", "target")  # fmt: skip
# Keys and values that only the code of a paper, a solver or a rule can judge.
FREE = re.compile(
    r"paper/\w+/(paper\.yaml sweeps\.\w+\.(grid|small|options)\b.*"
    r"|paper\.yaml (figures|tables)\.\w+\.options\b.*"
    r"|paper\.yaml (figures|tables|sweeps|published|runs)\.\w+"
    r"|claims\.yaml \d+\.(anchor|rows|each|without|printed|readings)\b.*)"
    r"|problem/\w+\.yaml dataset\.(name|sources\.\d+\.loader)"  # any package's name
    r"|scale/\w+\.yaml (folder|keep\.\w+)"
)
# What Hydra reads of config.yaml, and we do not.
HYDRA = re.compile(r"config\.yaml (hydra\b.*|defaults\.\d+\.override .*)")
RIGHT = ("refused", "same", "default", "free")


@dataclass(frozen=True)
class Mutation:
    """A key of a file, by its path, and what is done to it."""

    file: str
    key: str
    kind: str
    trail: tuple[int, ...]

    def text(self, before: str) -> str:
        """The spoilt file."""
        root = parsed(before)
        mapping = follow(root, self.trail)
        kept = list(mapping.value)
        spoil(mapping, self.trail[-1], self.kind, self.key)
        made = yaml.serialize(root, Dumper=yaml.CSafeDumper)
        mapping.value[:] = kept
        return made


@functools.lru_cache(4)
def parsed(text: str) -> yaml.Node:
    return yaml.compose(text, Loader=yaml.CSafeLoader)


def mutations(conf: Path) -> Iterator[Mutation]:
    """All of them, in the order of files and keys."""
    for path in sorted(conf.rglob("*.yaml")):
        root, file = parsed(path.read_text()), str(path.relative_to(conf))
        for key, trail in keys(root):
            mapping = follow(root, trail)
            for kind in KINDS:
                kept = list(mapping.value)
                if spoil(mapping, trail[-1], kind, key):
                    yield Mutation(file, key, kind, trail)
                mapping.value[:] = kept


def keys(node: yaml.Node, key: str = "", trail: tuple = (), seen: Any = None):
    """Dotted keys of a document and the way to each, each node once."""
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for number, (name, value) in enumerate(node.value):
            if name.value != "<<":
                inner = f"{key}.{name.value}" if key else name.value
                yield inner, (*trail, number)
                yield from keys(value, inner, (*trail, number), seen)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            inner = f"{key}.{number}" if key else str(number)
            yield from keys(value, inner, (*trail, number), seen)


def follow(node: yaml.Node, trail: tuple) -> yaml.MappingNode:
    """The mapping that holds the last step of a trail."""
    for number in trail[:-1]:
        inner = node.value[number]
        node = inner[1] if isinstance(inner, tuple) else inner
    return node


def spoil(mapping: yaml.MappingNode, number: int, kind: str, key: str) -> bool:
    """Do it; whether there was anything to do."""
    name, value = mapping.value[number]
    if kind == "delete":
        del mapping.value[number]
    elif kind == "rename":
        other = yaml.ScalarNode(name.tag, f"{name.value}x", style=name.style)
        mapping.value[number] = other, value
    elif kind == "duplicate":
        mapping.value.append((name, copy.deepcopy(value)))
    else:
        new = node_of(kind, value, key)
        mapping.value[number] = name, new
        return new is not None
    return True


def node_of(kind: str, value: yaml.Node, key: str) -> yaml.Node | None:
    """Another value: of no type that the key could have, out of its range, or none."""
    last, is_list = key.rpartition(".")[2], isinstance(value, yaml.SequenceNode)
    is_text = value.tag.endswith(":str")
    if kind == "empty":
        return yaml.compose("~")
    if kind == "type":
        return yaml.compose("[[1], {a: 2}]" if is_text else "nonsense")
    if kind == "twice":
        if not is_list or not value.value:
            return None
        return yaml.SequenceNode(value.tag, [*value.value, value.value[0]])
    if is_list:
        return yaml.compose("[]")
    if is_text:
        return None if last in TEXTS else yaml.compose("nonsense")
    if isinstance(value, yaml.MappingNode) or value.tag.endswith((":bool", ":null")):
        return None
    return yaml.compose("-1" if last != "lower" else "1")


class Judge:
    """Composes what a file is part of, before and after."""

    def __init__(self, conf: Path, monkeypatch: Any):
        self.conf = conf
        self.before: dict[str, str] = {}
        self.homes, self.spoilt = homes(conf), ""
        self.known: dict[tuple, Any] = {}
        self.plain = config.read
        for module in (config, runtable):
            monkeypatch.setattr(module, "read", self.read)

    def read(self, group: str, name: str, overrides: Any = ()) -> Any:
        """A section; one that the spoilt file is no part of is read once."""
        file = f"conf/{config.group_file(group, name)}"
        shared = self.spoilt.startswith("dataset/") and group == "problem"
        if not self.spoilt or file == f"conf/{self.spoilt}" or shared:
            return self.plain(group, name, overrides)
        asked = group, name, tuple(overrides)
        if asked not in self.known:
            self.known[asked] = self.plain(group, name, overrides)
        return self.known[asked]

    def outcome(self, mutation: Mutation) -> tuple[str, str]:
        """One word, and what was said."""
        file = mutation.file
        self.spoilt = file
        if file not in self.before:
            self.before[file] = self.meaning(file)
        path = self.conf / file
        content = path.read_bytes()
        path.write_text(mutation.text(content.decode()))
        try:
            after = self.meaning(file)
        except ConfigError as error:
            return refusal(mutation, str(error)), str(error)
        except Exception as error:  # the finding
            return "raised", f"{type(error).__name__}: {error}"
        finally:
            path.write_bytes(content)
        if after == self.before[file]:
            return "same", ""
        return self.other(mutation, after), ""

    def other(self, mutation: Mutation, after: str) -> str:
        """What another meaning is."""
        at = mutation.file, mutation.key
        if has_default(mutation) and (
            mutation.kind == "delete"
            or (mutation.kind in ("empty", "range") and after == self.without(mutation))
        ):
            return "default"
        if FREE.fullmatch(" ".join(at)) or HYDRA.fullmatch(" ".join(at)):
            return "free"
        return "accepted"

    def without(self, mutation: Mutation) -> str:
        """What is composed without the key; nothing if that is refused."""
        path = self.conf / mutation.file
        content = path.read_bytes()
        path.write_text(replace(mutation, kind="delete").text(content.decode()))
        try:
            return self.meaning(mutation.file)
        except ConfigError:
            return ""
        finally:
            path.write_bytes(content)

    def meaning(self, file: str) -> str:
        """What is composed of a file, as text."""
        digests.solver_of.cache_clear()
        digests.loss_of.cache_clear()
        if config._parsed.cache_info().currsize > 200:  # spoilt files, large ones
            config._parsed.cache_clear()
        group, _, name = file.removesuffix(".yaml").partition("/")
        if file == "config.yaml":
            return repr(config.compose([]))
        if file.endswith("claims.yaml"):
            paper = name.split("/")[0]
            config.validate_section("paper", composed(paper).paper)
            return repr(claims.load(composed(paper)))
        paper, scale = self.homes.get(f"{group}/{name}", ("", "full"))
        if group == "scale":
            paper, scale = "dpcd", name
        if not paper:  # a solver that no grid and no point names
            section = config.read(group, name)
            checks.solver(section)
            return repr(section)
        made = asdict(runtable.run_table([paper], [f"scale={scale}"]))
        extra = config.read(group, name.removesuffix("/paper"))
        if group == "paper":  # of a grid its points count, which the table has
            runs = {key: replace(run, grid={}) for key, run in extra.runs.items()}
            extra = replace(extra, runs=runs)
        return json.dumps(made, sort_keys=True) + repr(extra)


@functools.cache
def composed(paper: str) -> schema.Config:
    return config.compose([f"paper={paper}"])


def homes(conf: Path) -> dict[str, tuple[str, str]]:
    """For sections by file, a paper and a scale whose run table is made of them."""
    found: dict[str, tuple[str, str]] = {}
    for paper in ("arena", "dpskgd", "dpgcd", "dpbcfw", "dpsco", "dpcd"):
        said = yaml.safe_load((conf / f"paper/{paper}/paper.yaml").read_text())
        found[f"paper/{paper}/paper"] = paper, "full"
        named = {"smoke": said["offline"], "full": said["problems"]}
        for scale, problems in named.items():
            for name in problems:
                section = yaml.safe_load((conf / f"problem/{name}.yaml").read_text())
                found[f"problem/{name}"] = paper, scale
                for dataset in section.get("defaults", [{}])[0].values():
                    found[f"dataset/{dataset}"] = paper, scale
        swept = (sweep["grid"] for sweep in said.get("sweeps", {}).values())
        grids = [
            one for grid in swept for one in (grid if type(grid) is list else [grid])
        ]
        solvers = [name for one in grids for name in one.get("solver", ())]
        for name in (*solvers, *said.get("runs", ())):
            found[f"solver/{name}"] = paper, "full"
    return found


def refusal(mutation: Mutation, text: str) -> str:
    """``refused`` if it is one line with the file and the key, else ``unclear``."""
    parts = [part for part in mutation.key.split(".") if not part.isdigit()]
    named = not parts or any(part in text for part in parts[-3:])
    is_clear = f"conf/{mutation.file}" in text and named and "\n" not in text
    return "refused" if is_clear else "unclear"


def has_default(mutation: Mutation) -> bool:
    """Whether the key of a section may be left out."""
    group = mutation.file.partition("/")[0]
    section = config.CLASSES.get(group, schema.Config)
    above, _, last = mutation.key.rpartition(".")
    if mutation.file.endswith("claims.yaml"):
        section, above = Claim, above.partition(".")[2]
    fields = fields_of(section, re.sub(r"\.\d+", "", above))
    inline = group == "problem" and above.startswith("dataset.")
    optional = above.endswith("options") and (group in ("dataset", "solver") or inline)
    return last in fields or last == "defaults" or optional


@functools.cache
def fields_of(section: Any, key: str) -> frozenset[str]:
    """The fields of a section, or of what lies below a key of it."""
    hint = validation.type_of(section, key.split(".")) if key else section
    while getattr(hint, "__args__", None):  # what a list, mapping or union holds
        hint = [one for one in hint.__args__ if one is not type(None)][-1]
    return frozenset(getattr(hint, "__dataclass_fields__", {}))
