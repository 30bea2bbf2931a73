"""What a run draws: generators that record, wherever the originals are bound.

While :func:`recorded` is open, generators of numpy and of ``random`` record every draw,
and take its numbers from a script if there is one. They take the place of the originals
in ``numpy.random`` and ``random``, and wherever else the process holds those: under a
name that a module imported, as a default argument, in a closure, in an attribute of an
object that was made at import. Numbers of the operating system (``secrets``,
``os.urandom``) follow the run's seed, but have no law that is known. Compiled
generators and those of other processes are not seen.
"""

from __future__ import annotations

import functools
import gc
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

from dperm.audit.mechanism import Array, Draw

# Modules that keep numpy's own generators, as their code needs no record.
UNTOUCHED = {"numpy", __package__}
STANDARD = sys.stdlib_module_names
STATE_WORDS = 4  # of 64 bits, of a generator's state
MANY = 2**20  # more than there are generators that outlive a run
PYTHON = random.Random  # whatever their names hold later
LEGACY = np.random.RandomState


@dataclass
class RecordedRun:
    """One run: its output, and what it drew."""

    seed: int = 0
    #: numbers of unit scale to return instead, as long as their shapes fit
    script: Sequence[Array] = ()
    draws: list[Draw] = field(default_factory=list)
    is_kept: bool = True  #: whether draws are recorded
    others: set[str] = field(
        default_factory=set
    )  #: randomness without a record
    unseeded: int = 0  #: generators that were requested without a seed
    replayed: int = 0  #: draws whose numbers were those of the script
    output: Array = field(default_factory=lambda: np.empty(0))  #: shape (k,)
    raised: str = ""  #: the exception in words; the output is empty then
    legacy: bool = False  #: whether numpy's own generator has this run's seed
    python: bool = False  #: whether that of ``random`` has it
    #: in place of the system's numbers
    system: np.random.Generator | None = None

    def noise(self, law: str, unit: Any, loc: Any, scale: Any) -> Any:
        """Record a draw and return it, with the script's numbers where they fit."""
        if not self.is_kept:
            return loc + scale * unit
        place = len(self.draws)
        shape = np.shape(unit)
        if place < len(self.script) and self.script[place].shape == shape:
            unit = self.script[place] if shape else float(self.script[place])
            self.replayed += 1
        elif self.script:
            self.others.add("another sequence of draws")
        self.draws.append(Draw(law, np.array(unit, dtype=float)))
        return loc + scale * unit

    def fresh(self) -> list[int]:
        """A seed for a generator that was requested without one."""
        self.unseeded += 1
        return [self.seed, self.unseeded]


_current_run = RecordedRun()  # of the current run
#: each restarts a generator that outlives a run, by a seed
_restarts: list[Callable[[list[int]], Any]] = []


def begin(
    seed: int, script: Sequence[Array] = (), is_kept: bool = True
) -> RecordedRun:
    """Start a run: all generators that outlive it start again from the seed."""
    global _current_run
    _current_run = RecordedRun(seed, script, is_kept=is_kept)
    for place, restart in enumerate(_restarts):
        restart([seed, place])
    return _current_run


# --- numpy ----------------------------------------------------------------------------


class MixedSeed(ISpawnableSeedSequence):
    """The state of a generator from a whole number, in a third of numpy's time.

    The numbers are those of splitmix64 (Steele, Lea and Flood 2014), whose outputs for
    different seeds are as good as independent.
    """

    def __init__(self, seed: int):
        self.entropy = seed

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Array:
        """State of that many words."""
        if n_words > STATE_WORDS or self.entropy >= 2**63:
            return np.random.SeedSequence(self.entropy).generate_state(
                n_words, dtype
            )
        state = int(self.entropy) * STATE_WORDS
        words = []
        for _ in range(n_words):
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            word = state
            word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
            word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % 2**64
            words.append(word ^ (word >> 31))
        return np.array(words, dtype=np.uint64).astype(dtype)

    def spawn(self, n_children: int) -> Any:
        """Children, as numpy makes them."""
        return np.random.SeedSequence(self.entropy).spawn(n_children)


class _RecordedDraws:
    """Methods that override those of a numpy generator, to record draws."""

    normal: Callable[..., Any]

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """Draw by ``normal``."""
        return self.normal(size=size)

    def randn(self, *shape: int) -> Any:
        """Draw by ``normal``."""
        return self.normal(size=shape or None)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw in units of the scale, and record it."""
        _ready(self)
        unit = super().standard_exponential(_shape(size, scale))  # type: ignore[misc]
        return _current_run.noise("exponential", unit, 0.0, scale)

    def standard_exponential(
        self, size: Any = None, *_: Any, **__: Any
    ) -> Any:
        """Draw by ``exponential``."""
        return self.exponential(size=size)


def _ready(generator: Any) -> None:
    """Give numpy's own generator the run's seed before its first draw."""
    if generator is _numpy_global and not _current_run.legacy:
        _current_run.legacy = True
        LEGACY.seed(_numpy_global, _current_run.seed % 2**32)


def _shape(size: Any, *parameters: Any) -> Any:
    """The shape of a draw: ``size``, or what the parameters broadcast to."""
    if size is not None:
        return size
    if all(type(parameter) in (int, float) for parameter in parameters):
        return None
    return np.broadcast(*parameters).shape or None


def _located(law: str) -> Callable[..., Any]:
    def draw(
        self: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None
    ) -> Any:
        """Draw in units of the scale, and record it."""
        _ready(self)
        unit = getattr(super(_RecordedDraws, self), law)(
            0.0, 1.0, _shape(size, loc, scale)
        )
        return _current_run.noise(law, unit, loc, scale)

    return draw


def _not_replayed(name: str) -> Callable[..., Any]:
    def draw(self: Any, *args: Any, **named: Any) -> Any:
        """Draw, and record that numbers of another law were drawn."""
        _ready(self)
        _current_run.others.add(name)
        return getattr(super(_RecordedDraws, self), name)(*args, **named)

    return draw


_STATE = ("bit_generator", "spawn")  # draw nothing
_LEGACY_STATE = ("seed", "get_state", "set_state")
for _name in ("normal", "laplace", "logistic", "gumbel"):
    setattr(_RecordedDraws, _name, _located(_name))
for _name in {*dir(np.random.Generator), *dir(np.random.RandomState)}:
    is_draw = _name not in (*_STATE, *_LEGACY_STATE) and not _name.startswith(
        "_"
    )
    if is_draw and not hasattr(_RecordedDraws, _name):
        setattr(_RecordedDraws, _name, _not_replayed(_name))


class Generator(_RecordedDraws, np.random.Generator):
    """``numpy.random.Generator`` that records its draws."""


class RandomState(_RecordedDraws, np.random.RandomState):
    """``numpy.random.RandomState`` that records its draws."""

    def __init__(self, seed: Any = None):
        if isinstance(seed, np.random.BitGenerator):
            super().__init__(seed)
            return
        # numpy would ask the system for a seed first
        bits = np.random.MT19937(0)
        bits._legacy_seeding(_current_run.fresh() if seed is None else seed)  # type: ignore[attr-defined]
        super().__init__(bits)

    def seed(self, seed: Any = None) -> None:
        """Start again from a seed, by default one of the run's."""
        _current_run.legacy |= self is _numpy_global
        super().seed(_current_run.fresh() if seed is None else seed)

    def get_state(self, legacy: bool = True) -> Any:
        """The state, as numpy gives it."""
        _ready(self)
        return super().get_state(legacy=legacy)  # type: ignore[call-overload]

    def set_state(self, state: Any) -> None:
        """Set a state, as numpy takes it."""
        _current_run.legacy |= self is _numpy_global
        super().set_state(state)


def default_rng(seed: Any = None) -> Any:
    """``numpy.random.default_rng`` that records; its default seed is the run's."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, np.random.RandomState):
        return Generator(seed._bit_generator)  # type: ignore[attr-defined]
    if isinstance(seed, np.random.BitGenerator):
        return Generator(seed)
    if type(seed) is int and seed >= 0:
        state: Any = MixedSeed(seed)
        return Generator(np.random.PCG64(state))
    return Generator(
        np.random.PCG64(_current_run.fresh() if seed is None else seed)
    )


_numpy_global = RandomState(0)  # behind np.random.normal and similar functions


# --- the standard library -------------------------------------------------------------


class Mersenne(random.Random):
    """``random.Random`` that records its draws."""

    def __init__(self, seed: Any = None):
        super().__init__(str(_current_run.fresh()) if seed is None else seed)

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        """A normal number, with no second one kept for later."""
        return self.normalvariate(mu, sigma)

    def normalvariate(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        """A normal number."""
        unit = self._unit("normalvariate", 0.0, 1.0)
        return float(_current_run.noise("normal", unit, mu, sigma))

    def expovariate(self, lambd: float = 1.0) -> float:
        """An exponential number of that rate."""
        unit = self._unit("expovariate", 1.0)
        return float(_current_run.noise("exponential", unit, 0.0, 1.0 / lambd))

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Start again from a seed, by default one of the run's."""
        if self is _python_global:
            _current_run.python = True
        super().seed(str(_current_run.fresh()) if a is None else a, version)

    def _begin(self) -> None:
        """Give the generator of the module the run's seed before its first draw."""
        if self is _python_global and not _current_run.python:
            self.seed(_current_run.seed)

    def _unit(self, law: str, *parameters: float) -> float:
        """A number of unit scale, whose parts are no draws of their own."""
        before = set(_current_run.others)
        unit: float = getattr(PYTHON, law)(self, *parameters)
        _current_run.others = before
        return unit

    def random(self) -> float:
        """A number in [0, 1)."""
        self._begin()
        _current_run.others.add("random")
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        """A number of k bits."""
        self._begin()
        _current_run.others.add("getrandbits")
        return super().getrandbits(k)


def urandom(size: int, /) -> bytes:
    """Bytes in place of the operating system's, from the run's seed."""
    _current_run.others.add("numbers of the operating system")
    if _current_run.system is None:
        bits = np.random.PCG64(_current_run.fresh())
        _current_run.system = np.random._generator.Generator(bits)  # type: ignore[attr-defined]
    return bytes(_current_run.system.bytes(size))


_python_global: Any = None  # until it is made
_python_global = Mersenne(0)  # behind random.gauss and similar functions


# --- wherever they are bound ----------------------------------------------------------


class Replacements:
    """The originals, and what takes the place of each."""

    def __init__(self) -> None:
        self.originals: list[Any] = []
        self.ours: dict[int, Any] = {}  # by the identity of the original
        self.restarts: dict[int, Callable[[list[int]], Any]] = {}
        hidden = np.random.mtrand._rand  # type: ignore[attr-defined]
        instance = random._inst  # type: ignore[attr-defined]
        self._add(np.random.Generator, Generator)
        self._add(np.random.RandomState, RandomState)
        self._add(np.random.default_rng, default_rng)
        self._add(random.Random, Mersenne)
        self._add(os.urandom, urandom)
        self._add(hidden, _numpy_global)
        self._add(instance, _python_global)
        self._add_methods(vars(np.random), hidden, _numpy_global)
        self._add_methods(vars(random), instance, _python_global)
        for original in gc.get_objects():
            if original is not hidden and original is not instance:
                self._add_existing(original)

    def _add(self, original: Any, ours: Any) -> None:
        self.originals.append(original)
        self.ours[id(original)] = ours

    def _add_methods(
        self, names: dict[str, Any], owner: Any, ours: Any
    ) -> None:
        for name, bound in names.items():
            if getattr(bound, "__self__", None) is owner:
                self._add(bound, getattr(ours, name))

    def _add_existing(self, original: Any) -> None:
        """A recording generator in place of one that was made before the runs."""
        generator_type = type(original)
        if generator_type is np.random.Generator:
            bits = original.bit_generator
            self._add(original, Generator(bits))
            self.restarts[id(original)] = functools.partial(_restart, bits)
        elif generator_type is np.random.RandomState:
            state = RandomState(original._bit_generator)
            self._add(original, state)
            self.restarts[id(original)] = state.seed
        elif generator_type is random.Random:
            generator = Mersenne(0)
            self._add(original, generator)
            self.restarts[id(original)] = lambda seed: generator.seed(
                str(seed)
            )

    def __contains__(self, bound: Any) -> bool:
        return id(bound) in self.ours

    def take(self, bound: Any) -> Any:
        """What takes the place of an object, or itself; a run restarts it from then."""
        restart = self.restarts.pop(id(bound), None)
        if restart is not None:
            _restarts.append(restart)
        return self.ours.get(id(bound), bound)


def _restart(bits: Any, seed: list[int]) -> None:
    base, place = seed
    bits.state = type(bits)(MixedSeed(base * MANY + place)).state


Undo = Callable[[], Any]


def _is_untouched(module: Any) -> bool:
    """Whether a module's names stay as they are."""
    is_listed = any(f"{module}.".startswith(f"{name}.") for name in UNTOUCHED)
    return is_listed or str(module).partition(".")[0] in STANDARD


def _replaced(replacements: Replacements) -> Iterator[Undo]:
    """Put replacements wherever originals are bound; yields how to take them back."""
    public = (vars(np.random), vars(np.random.mtrand), vars(random), vars(os))
    for names in public:
        yield from _in_mapping(names, replacements)
    for holder in gc.get_objects():
        # the type alone is asked: an object may run code of its own for its class
        if issubclass(type(holder), type) and not _is_untouched(
            holder.__module__
        ):
            yield from _in_attributes(holder, dict(vars(holder)), replacements)
    own_ids = {
        id(replacements.originals),
        *map(id, public),
        *map(id, replacements.ours.values()),
    }
    tuples = []
    for holder in gc.get_referrers(*replacements.originals):
        if id(holder) in own_ids or holder in replacements:
            continue
        if isinstance(holder, tuple):
            tuples.append(holder)
        else:
            yield from _in_holder(holder, replacements)
    tuple_ids = {*map(id, tuples)}
    for holder in gc.get_referrers(*tuples):
        if (
            isinstance(holder, FunctionType)
            and id(holder.__defaults__) in tuple_ids
        ):
            yield from _in_defaults(holder, replacements)
        elif isinstance(holder, dict) and not _is_untouched(
            holder.get("__name__")
        ):
            for key, defaults in list(holder.items()):
                if id(defaults) in tuple_ids and type(defaults) is tuple:
                    holder[key] = tuple(map(replacements.take, defaults))
                    yield functools.partial(holder.__setitem__, key, defaults)


def _in_holder(holder: Any, replacements: Replacements) -> Iterator[Undo]:
    """In whatever refers to an original, but for tuples."""
    if isinstance(holder, dict):
        if not _is_untouched(holder.get("__name__")):
            yield from _in_mapping(holder, replacements)
    elif isinstance(holder, list):
        yield from _in_list(holder, replacements)
    elif isinstance(holder, CellType):
        cell = {"cell_contents": holder.cell_contents}
        if not isinstance(holder.cell_contents, type):  # that of ``super()``
            yield from _in_attributes(holder, cell, replacements)
    elif isinstance(holder, functools.partial):
        yield from _in_partial(holder, replacements)
    elif not isinstance(holder, type) and not _is_untouched(
        type(holder).__module__
    ):
        yield from _in_attributes(holder, _attributes(holder), replacements)


def _attributes(holder: Any) -> dict[str, Any]:
    """Attributes of an object, those of its slots too."""
    attributes = dict(getattr(holder, "__dict__", {}))
    for base in type(holder).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(holder, name):
                attributes[name] = getattr(holder, name)
    return attributes


def _in_mapping(names: Any, replacements: Replacements) -> Iterator[Undo]:
    for key, bound in list(names.items()):
        if bound in replacements:
            names[key] = replacements.take(bound)
            yield functools.partial(names.__setitem__, key, bound)


def _in_list(
    bound_list: list[Any], replacements: Replacements
) -> Iterator[Undo]:
    for place, bound in enumerate(bound_list):
        if bound in replacements:
            bound_list[place] = replacements.take(bound)
            yield functools.partial(bound_list.__setitem__, place, bound)


def _in_attributes(
    holder: Any, attributes: dict[str, Any], replacements: Replacements
) -> Iterator[Undo]:
    for name, bound in attributes.items():
        is_static = isinstance(bound, staticmethod)
        plain = bound.__func__ if is_static else bound
        if plain not in replacements:
            continue
        replacement = replacements.take(plain)
        if is_static:
            replacement = staticmethod(replacement)
        for assign in (
            setattr,
            object.__setattr__,
        ):  # the second for frozen objects
            with suppress(AttributeError, TypeError):
                assign(holder, name, replacement)
                yield functools.partial(assign, holder, name, bound)
                break


def _in_defaults(
    function: FunctionType, replacements: Replacements
) -> Iterator[Undo]:
    defaults = function.__defaults__ or ()
    function.__defaults__ = tuple(map(replacements.take, defaults))
    yield functools.partial(setattr, function, "__defaults__", defaults)


def _in_partial(call: Any, replacements: Replacements) -> Iterator[Undo]:
    state: Any = call.__reduce__()[2]
    function, args, keywords, attributes = state
    keywords = {
        key: replacements.take(argument) for key, argument in keywords.items()
    }
    args = tuple(map(replacements.take, args))
    call.__setstate__(
        (replacements.take(function), args, keywords, attributes)
    )
    yield functools.partial(call.__setstate__, state)


@contextmanager
def recorded() -> Iterator[None]:
    """Put recording generators wherever the process holds the originals."""
    undone: list[Undo] = []
    try:
        undone.extend(_replaced(Replacements()))
        yield
    finally:
        for undo in reversed(undone):
            undo()
        _restarts.clear()
