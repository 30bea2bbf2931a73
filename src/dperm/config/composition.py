"""Hydra composes ``conf/``: where it finds the files, and its errors in one line.

A :class:`Conf` is Hydra's source of configuration: a file is the user's own or the
package's, and ``paper=dpcd`` is ``paper/dpcd/paper.yaml``. Everything else (groups,
defaults lists, overrides, multirun, completion) is Hydra's.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from dperm.config import schema
from dperm.config.locate import (
    GROUPS,
    ROOT,
    ConfigError,
    available,
    conf_dir,
    conf_file,
    conf_files,
    group_file,
)
from dperm.config.scope import unwatched
from dperm.config.validation import below, check, key_of, load_yaml, one_of
from dperm.names import parsed

IN_KEYS = "nothing"  # a key has the settings that come out of it
VERSION = "1.3"  # of Hydra, whose rules hold
# Primary configurations: the root's file, and one of nothing, to which sections are
# added.
FULL_CONFIG = "config"
SECTIONS_CONFIG = "alone"
DATASET = "/dataset@dataset"  # in a defaults list, the data set of a problem
# Parts of Hydra's own configuration, which only its applications need.
_PARTS = ("env", "help", "hydra_help", "hydra_logging", "job_logging", "launcher",
          "output", "sweeper")  # fmt: skip
_NOTHING = ["_self_", *({f"override hydra/{part}": None} for part in _PARTS)]
# Besides its own errors OmegaConf raises these on senseless values.
_SENSELESS = (
    HydraException,
    OmegaConfBaseException,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
)


def compose(
    name: str, overrides: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """What Hydra composes, as plain values, and the name chosen in each group.

    Parameters
    ----------
    name : str
        ``FULL_CONFIG`` or ``SECTIONS_CONFIG``.
    overrides : sequence of str
        In Hydra's grammar.

    Raises
    ------
    ConfigError
    """
    register()
    with (
        refusing(overrides),
        hydra.initialize(config_path=None, version_base=VERSION),
    ):
        tree: Any = OmegaConf.to_container(
            hydra.compose(name, [*overrides], return_hydra_config=True)
        )
        return tree, _chosen(tree.pop("hydra")["runtime"]["choices"])


def application(task: Callable[..., Any]) -> Callable[[], None]:
    """A function as an application of Hydra's, called for each job of a multirun.

    It is passed plain values, the name chosen in each group, and the job's overrides.
    """
    register()
    # Errors are raised, to be told in one line
    os.environ["HYDRA_FULL_ERROR"] = "1"

    def job(composed: DictConfig) -> None:
        now = HydraConfig.get()
        overrides = [text.removeprefix("++") for text in now.overrides.task]
        task(
            OmegaConf.to_container(composed),
            _chosen(now.runtime.choices),
            overrides,
        )

    command: Callable[[], None] = hydra.main(
        str(conf_dir()), FULL_CONFIG, VERSION
    )(job)
    return command


def refuse_flags(flags: Sequence[str]) -> None:
    """Refuse an option that is not Hydra's, where Hydra would print its usage.

    Raises ConfigError of one line.
    """
    parsed(get_args_parser(), flags)


def _chosen(choices: Mapping[str, Any]) -> dict[str, str]:
    """The name chosen in each group, of Hydra's choices."""
    return {
        group: name
        for group, name in choices.items()
        if group in GROUPS and name
    }


@contextmanager
def refusing(overrides: Sequence[str] = ()) -> Iterator[None]:
    """Turn errors of Hydra and OmegaConf into a ConfigError of one line.

    It names the override of the command line that the error is about.
    """
    try:
        yield
    except ConfigError:
        raise
    except MissingConfigException as error:
        group, _, name = str(error.missing_cfg_file).partition("/")
        one_of(f"command line: {group}", name, available(group))
        raise ConfigError(
            f"conf/{group_file(group, name)}: expected a file, found a folder or a "
            "link to nothing"
        ) from error
    except RecursionError as error:
        raise ConfigError(
            "conf/: defaults: expected no circle, found one"
        ) from error
    except _SENSELESS as error:
        texts = [f"{error}"]
        if error.__cause__:
            texts.append(f"{error.__cause__}")
        lines = [
            text.strip().splitlines()[0] for text in texts if text.strip()
        ]
        reason = ": ".join(lines) or type(error).__name__
        about = [text for text in overrides if key_of(text) in reason]
        where = "".join(f"{text.removeprefix('++')}: " for text in about[-1:])
        raise ConfigError(f"command line: {where}{reason}") from error


@functools.cache
def register() -> None:
    """Tell Hydra of :class:`Conf`, and of the keys that no file gives."""
    Plugins.instance().register(Conf)
    Plugins.instance().register(_Searched)
    stored = ConfigStore.instance()
    stored.store("schema", asdict(schema.Config()))
    stored.store(SECTIONS_CONFIG, {"defaults": _NOTHING})


class _Searched(SearchPathPlugin):
    """Has Hydra search :class:`Conf`."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add it in front of Hydra's own configuration."""
        search_path.prepend("dperm", f"{Conf.scheme()}://conf")


class Conf(ConfigSource):
    """The files below ``conf/``, each checked when it is read."""

    @staticmethod
    def scheme() -> str:
        """Its name in a search path."""
        return "dperm"

    def available(self) -> bool:
        """Whether it is there."""
        return True

    def load_config(self, config_path: str) -> ConfigResult:
        """Read a file; ConfigError if it is not one of settings."""
        content = OmegaConf.create(contents(_file(config_path)))
        return ConfigResult(
            self.provider, self.full_path(), content, {"package": None}
        )

    def is_config(self, config_path: str) -> bool:
        """Whether there is such a file."""
        return conf_file(_file(config_path)) is not None

    def is_group(self, config_path: str) -> bool:
        """Whether it is a group, or the root."""
        return config_path in ("", *GROUPS)

    def list(
        self, config_path: str, results_filter: ObjectType | None
    ) -> list[str]:
        """The names in a group, or the groups."""
        if config_path == "":
            return (
                [] if results_filter == ObjectType.CONFIG else [*GROUPS[:-1]]
            )
        return (
            []
            if results_filter == ObjectType.GROUP
            else available(config_path)
        )


def _file(config_path: str) -> str:
    group, _, name = config_path.removesuffix(".yaml").partition("/")
    return group_file(group, name) if name else f"{group}.yaml"


# --- files ----------------------------------------------------------------------------


def as_written(group: str, name: str) -> dict[str, Any] | None:
    """A section that its file has, or with the data set that the file names.

    None if there is no file, or its defaults list says more, so that Hydra composes it,
    in fifty times the time.
    """
    file = group_file(group, name)
    if conf_file(file) is None:
        return None
    section = contents(file)
    defaults = section.pop("defaults", [])
    if not defaults:
        return section
    is_one = isinstance(defaults, list) and len(defaults) == 1
    shared = defaults[0] if is_one and isinstance(defaults[0], dict) else {}
    if [*shared] != [DATASET] or "dataset" in section:
        return None
    dataset = as_written("dataset", shared[DATASET])
    return dataset and {"dataset": dataset, **section}


def contents(file: str) -> dict[str, Any]:
    """The content of a file below ``conf/``; ConfigError if it cannot be one."""
    path = conf_file(file)
    where = f"conf/{file}"
    if path is None:
        raise ConfigError(f"{where}: no such file")
    try:
        with unwatched:  # what is read of it is watched by its keys
            text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{where}: {error.strerror}") from error
    if re.search(rb"@\s*package", text):  # a directive of Hydra
        raise ConfigError(
            f"{where}: expected settings of its group, not @package"
        )
    content = load_yaml(where, text)
    if not content or not isinstance(content, dict):
        raise ConfigError(
            f"{where}: expected keys and values, name first of all"
        )
    if file != ROOT:
        _add_products(file, content)
        settings = {
            key: setting
            for key, setting in content.items()
            if key != "defaults"
        }
        section_type = schema.GROUPS[file.partition("/")[0]]
        check(settings, section_type, f"{where}: ", is_whole=False)
        _check_defaults(file, content)
    return content


def _add_products(file: str, content: dict[str, Any]) -> None:
    """Add to a paper what files of its folder name: ``figures/<name>.yaml`` and such.

    So a figure is added to a paper of the package without a copy of its YAML.
    """
    folder, _, name = file.rpartition("/")
    if name != "paper.yaml":
        return
    for collection, section_type in schema.PRODUCTS.items():
        for path in conf_files(f"{folder}/{collection}"):
            where = f"conf/{folder}/{collection}/{path.name}"
            with unwatched:
                added = load_yaml(where, path.read_bytes())
            check(added, section_type, f"{where}: ")
            products = content.get(collection) or {}
            if path.stem in products:
                raise ConfigError(
                    f"{where}: expected another name, found one that the paper has"
                )
            content[collection] = {**products, path.stem: added}


def _check_defaults(file: str, content: dict[str, Any]) -> None:
    """Refuse a defaults list that reaches out of the group, or a data set's name.

    Fetched data are stored by that name, so that it stands for one data set only.
    """
    group = file.partition("/")[0]
    where = f"conf/{file}: defaults"
    defaults = content.get("defaults", [])
    for default in defaults if isinstance(defaults, list) else [defaults]:
        if (
            group == "problem"
            and isinstance(default, dict)
            and [*default] == [DATASET]
        ):
            one_of(
                f"{where}: {DATASET}", default[DATASET], available("dataset")
            )
        else:
            names = available(group) if group != "paper" else []
            choices = [
                name for name in names if group_file(group, name) != file
            ]
            one_of(where, default, ["_self_", *choices])
    inline = content.get("dataset") if group == "problem" else None
    name = inline.get("name") if isinstance(inline, dict) else None
    if name is not None and name in available("dataset"):
        raise ConfigError(
            f"conf/{file}: dataset.name: expected another name, found {name!r}, which "
            f"conf/dataset/{name}.yaml has (defaults: [{DATASET}: {name}] takes it)"
        )


def place_of(
    names: dict[str, str], overrides: Sequence[str], *above: str
) -> Callable[[Sequence[Any]], str]:
    """A function that says where the value at a path of keys was given.

    A file says itself what is wrong in it, so that this is the command line, or the
    file of a section that leaves something out.

    Parameters
    ----------
    names : dict
        The chosen name in each group.
    overrides : sequence of str
        Of the command line.
    above : str
        Keys above the path.
    """

    def place(path: Sequence[Any]) -> str:
        keys = [*above, *path] or [""]
        group = keys[0]
        key = ".".join(map(str, keys)) + "."
        for text in reversed(overrides):
            start = f"{key_of(text)}."
            is_near = key.startswith(start) or start.startswith(key)
            if is_near and start[:-1] not in GROUPS:
                return f"command line: {text}: {below('', keys)}"
        if group not in names:
            return f"conf/{ROOT}: {below('', keys)}"
        return below(f"conf/{group_file(group, names[group])}: ", keys[1:])

    return place


# --- the command line -----------------------------------------------------------------


def hydra_override(override: str, several: bool = False) -> str:
    """An override as Hydra takes it, for keys that no file gives as well.

    ``.inf`` may stand for ``inf``, as in a YAML. ``several`` allows several values.

    Raises
    ------
    ConfigError
        If it is not ``key=value``.
    """
    where = f"command line: {override}"
    try:
        text = re.sub(r"(?<=[=,\[])(-?)\.inf\b", r"\1inf", override)
        order = OverridesParser.create().parse_override(text)
    except HydraException as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{where}: expected key=value: {reason}") from error
    if "${" in override:
        raise ConfigError(
            f"{where}: {key_of(override)}: expected a value, found ${{"
        )
    if order.package is not None or (
        order.is_sweep_override() and not several
    ):
        raise ConfigError(
            f"{where}: expected key=value, one value; --multirun takes several"
        )
    is_plain = not (
        order.is_add() or order.is_delete() or order.is_force_add()
    )
    return (
        f"++{text}" if is_plain and order.key_or_group not in GROUPS else text
    )
