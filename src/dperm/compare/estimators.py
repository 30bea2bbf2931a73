"""Private linear models from Python, by scikit-learn's conventions.

The guarantee is that of one fit. Choosing parameters by comparing several fits of the
same data costs more, which ``dperm.Budget`` counts and ``dperm.PrivateSearch`` pays.
"""

from __future__ import annotations

import math
import re
import secrets
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Number
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.utils import (
    check_array,
    check_consistent_length,
    check_random_state,
    column_or_1d,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dperm import __version__, extras
from dperm.compare import PRIVATE, choosing, contestants, frames, intervals, metrics
from dperm.compare.choosing import AUTO
from dperm.compare.contestants import (
    Contestant,
    Fitting,
    Job,
    Setting,
)
from dperm.compare.exact import minimiser
from dperm.compare.guarantee import (
    Guarantee,
    PrivacyLeakWarning,
    added_or_removed,
    charge,
    check_target,
    is_budgeted,
    use_seed,
)
from dperm.compare.units import Units, units
from dperm.core.calibrations import STRICT
from dperm.core.erm.cleaning import cleaned
from dperm.core.erm.losses import BOUNDED, named
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.lanes.trials import seeds_of
from dperm.core.privacy.accounting import is_closed_form
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import (
    ADD_REMOVE,
    LABEL_SCALE,
    SMOOTHNESS,
    Ledger,
    N,
    NonPrivate,
    moves_with_data,
    united,
)
from dperm.data.blocks import Held, Source, parquet
from dperm.solvers import hidden_number, private_scales
from dperm.solvers.blocks import LARGE, Blocks, Large, of_labels, of_rows
from dperm.solvers.exact_noise import Exact, slack
from dperm.solvers.fits.secret import Normal
from dperm.solvers.private_levels import without_p
from dperm.solvers.scales import column_scales, declared, label_scale

DATA = "data"  # a scale that is computed from the data
REPLACE = "replace"
NEIGHBOURS = (REPLACE, ADD_REMOVE)
RESIDUAL = tuple(name for name in BOUNDED if name not in metrics.SIGNED)
FEWEST = 10  # records; below this a fit shows nothing but noise
# The intercept's column holds this constant, which is also its scale. So solvers that
# count in scales see ones, and its weight adds next to nothing to the penalty.
UNPENALISED = 2.0**20
NEARLY = 2.0**10  # for exact minimisation, which removes the rest
RELEASED = {"minima": "approximate"}  # settings in which no minimum is taken as exact
EXACT = "exact"
DIGITS = 0.01  # share of epsilon, as the mu of the noise that hides digits of minima
FOR_RELEASE = (  # algorithms with a proof for exact, discrete noise
    "ada_ssp",
    "dp_gd",
    "dp_gram",
    "moments",
    "objective_perturbation",
)
EDGE = 1e100  # largest entry and scale of a release, so that no quotient overflows
OPEN = Ledger((NonPrivate(1, "weights", "the minimiser without privacy"),), given=(N,))

PARAMETERS: Any = dataclass(eq=False, repr=False)  # scikit-learn's comparison and repr


@PARAMETERS
class DPLinear(BaseEstimator):
    """Base of classifier and regressor, which document parameters and attributes."""

    solver: str = AUTO
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float | None = None
    l1: float = 0.0
    l2: float | None = None
    fit_intercept: bool = True
    bounds: Any = None
    categories: Any = None
    missing_columns: Any = None
    feature_scale: Any = None
    setting: Mapping[str, float] | None = None
    random_state: Any = None
    release: bool = False
    neighbours: str = REPLACE
    _more = 0  # empty records, added at the end of a fit for add-remove neighbours
    _order: np.ndarray | None = None  # in which its solver gets records
    _assumed: tuple[str, ...] = ()  # read off the data before the fit

    # --- from arrays to problems ------------------------------------------------------

    def prepared(
        self, X: Any, y: Any, method: contestants.Method | None = None
    ) -> tuple[Contestant, Setting]:
        """The solver on the problem of X (n, p) and y (n,), and its setting.

        This is all that a fit does to the data before the solver reads them, except
        that the scales of a private release are 1. With more than two classes it is the
        problem of the first class against the rest. ``method`` is the solver's, if it
        is already known; otherwise it is read from the configuration.

        Raises
        ------
        ValueError
            For unsuitable labels, parameters or solvers.
        """
        return self._runs(*self._cleaned(*self._arrays(X, y)), method)[0]

    def _ready(self, X: Any, y: Any) -> tuple[Any, Sequence[Any]]:
        """Prepare the data; files, and large arrays if possible, are read in blocks."""
        if isinstance(X, str | Path):
            source = parquet(X, y)
            if not (source.has_numbers or hasattr(self, "classes")):
                raise ValueError(f"y: expected numbers in {y!r}, found text")
            self._framed(X)
            self.n_features_in_ = source.shape[1]
            self.feature_names_in_ = self.names_ = np.array(source.names, dtype=object)
            if self._read_off() or getattr(self, "classes", ()) is None:
                raise ValueError(
                    "X: of records in files nothing is read off: expected classes, and "
                    "scales that are not 'data'"
                )
            return self._cleaned(self._blocks(source), y)
        if not isinstance(X, np.ndarray) or X.size <= LARGE or self._read_off():
            return self._cleaned(*self._arrays(X, y))
        X, y = self._arrays(X, y, dtype=X.dtype if X.dtype.kind in "fiub" else float)
        y = y if hasattr(self, "classes") else _labels(y)
        blocks, every = self._cleaned(self._blocks(Held(X, y)), y)
        problems = [self._problem(blocks, one, len(every)) for one in every]
        if self._method(problems).on(problems[0]).in_blocks:
            return blocks, every
        return self._cleaned(
            check_array(X, dtype=np.float64, ensure_all_finite=False), y
        )

    def _blocks(self, source: Source) -> Blocks:
        return Blocks(source, self.loss, None, None, np.ones(source.shape[1]))

    def _arrays(
        self,
        X: Any,
        y: Any,
        layout: frames.Layout | None = None,
        dtype: Any = np.float64,
    ) -> tuple[Any, np.ndarray]:
        """X (n, p) and y (n,) as arrays, whatever numbers they hold.

        The contents of a single record may not decide whether a fit raises. ``layout``
        is that of a data frame whose levels are found.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the "
                "target y is None"
            )
        if isinstance(X, str | Path):
            raise ValueError(f"X: expected an array, found the path {X}")
        if isinstance(y, str):
            raise ValueError(
                f"y: expected a label for each record, found {y!r}; a column is named "
                "where X is a file"
            )
        X = self._framed(X, layout)
        if isinstance(X, np.ndarray) and X.dtype == object:
            X = _without_gaps(X)
        how = {"accept_sparse": "csc", "dtype": dtype, "ensure_min_samples": 2}
        try:
            X = validate_data(self, X, ensure_all_finite=False, **how)
        except ValueError as error:
            raise ValueError(_without_entries(error)) from None
        if sparse.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()  # an entry may be a sum of parts, each within its bounds
        if self._layout:  # the names of the frame's own columns count
            self.n_features_in_ = len(self._layout.columns)
            self.feature_names_in_ = np.array(self._layout.columns, dtype=object)
        y = column_or_1d(self._apart(y), warn=True)
        if getattr(self, "classes", None) is not None:
            classes = self._declared()
            if not {y.dtype.kind, classes.dtype.kind} <= {*"iufb"}:
                y = frames.matched(y, classes)
        check_consistent_length(X, y)
        return X, y

    def _apart(self, y: Any) -> Any:
        """A list's labels as objects: one text would turn all of them into text."""
        is_list = isinstance(y, list | tuple)
        if is_list and getattr(self, "classes", ()) is not None:
            return np.array(y, dtype=object)
        return y

    def _framed(self, X: Any, layout: frames.Layout | None = None) -> Any:
        """X, with the columns that declarations make from a data frame."""
        self._layout: frames.Layout | None = layout
        self.__dict__.pop("names_", None)
        X = frames.as_numbers(X, self.bounds)
        if isinstance(X, pd.DataFrame):
            how = (self.categories, self.missing_columns, self.bounds)
            if how[:2] == (None, None) and not frames.texts(X):
                frames.refuse_others(X, set())
                self.names_ = np.array([*map(str, X.columns)], dtype=object)
                return X
            self._layout = layout or frames.layout(X, *how)
            self.names_ = np.array(self._layout.names, dtype=object)
            return frames.expanded(X, self._layout)
        if self.categories is not None or self.missing_columns is not None:
            raise ValueError(
                "categories, missing_columns: expected with a data frame, found "
                f"{type(X).__name__}"
            )
        return X

    def _cleaned(self, X: Any, y: Any) -> tuple[Any, Sequence[Any]]:
        """X (n, p) within its bounds, and the vectors of labels; all finite."""
        self._check(X.shape[0])
        self._units, self._label = self._scales(X), self._label_units(y)
        self._over = np.ones(X.shape[1])
        if isinstance(X, Blocks):
            of = self._units
            if self.release:
                _within_edge(np.zeros((1, 1)), np.append(of.scale, self._label.scale))
                low, high = np.maximum(of.low, -EDGE), np.minimum(of.high, EDGE)
                of = replace(of, low=low, high=high)
            return self._labelled(replace(X, columns=of, labels=self._label), y)
        return self._labelled(self._units.applied(X), y)

    def _runs(
        self,
        X: Any,
        every: Sequence[np.ndarray],
        method: contestants.Method | None = None,
    ) -> list[tuple[Contestant, Setting]]:
        """The method on the problem of each vector of labels, with its setting."""
        problems = [self._problem(X, one, len(every)) for one in every]
        method = method or self._method(problems)
        if not method.scales_columns:
            self._constant = 1.0
            problems = [self._problem(X, one, len(every)) for one in every]
        reason = method.on(problems[0]).obstacle() or _reads_off(method)
        if reason:
            raise ValueError(f"solver {method.name}: cannot do this: {reason}")
        self.solver_ = method.name
        asked = {} if self.setting is None else self.setting
        is_tilted = method.section.algorithm == "objective_perturbation"
        safe: Mapping[str, Any] = RELEASED if is_tilted else {}
        if is_tilted and self.release:
            safe = {**RELEASED, "digits": DIGITS * self._epsilon}
        setting = {**method.default, **safe, **asked}
        contestants.check_setting(method.section, setting)
        return [(method.on(problem), setting) for problem in problems]

    def _method(self, problems: Sequence[Problem]) -> contestants.Method:
        """The named method, or the first that can solve the problems.

        Several problems need a joint price by a formula, because others take minutes.
        """
        if self.solver != AUTO:
            method = contestants.method(self.solver)
            if self.release and method.section.algorithm not in FOR_RELEASE:
                raise ValueError(
                    f"release: no proof covers the doubles of solver {self.solver}; "
                    f"expected one of {', '.join(FOR_RELEASE)}"
                )
            return method
        if self.setting is not None:
            raise ValueError(
                "setting: expected with a solver that is named, not 'auto'"
            )
        problem, several = problems[0], len(problems) > 1
        for method in choosing.able(problem):
            if self.release and method.section.algorithm not in FOR_RELEASE:
                continue
            ledger = method.on(problem).ledger(method.default, 1.0)
            if several and not is_closed_form(ledger + ledger, STRICT):
                continue
            if not self._is_open() or without_p(ledger, _wider(method, problem)):
                return method
        raise ValueError(
            f"solver: no method can do {problem.loss.name} loss with {problem.p} "
            f"features{' and release=True' * self.release}; expected one of "
            f"{', '.join(FOR_RELEASE if self.release else contestants.known())}"
        )

    def _check(self, n: int) -> None:
        """Refuse meaningless parameters, and warn of weak ones."""
        self._delta = 1 / n**2 if self.delta is None else self.delta
        self._epsilon = self.epsilon
        if self.neighbours != REPLACE and self.epsilon < math.inf:
            self._epsilon *= 1 - hidden_number.SHARE
        self._constant = UNPENALISED
        check_target(self.epsilon, self._delta)
        self._check_release()
        for name in ("l1", "l2"):
            value: Any = getattr(self, name)
            is_default = value is None and name == "l2"
            if not (is_default or (isinstance(value, Number) and value >= 0)):  # type: ignore[operator]
                raise ValueError(f"{name}: expected 0 or more, found {value!r}")
        for name in ("fit_intercept", "release"):
            if getattr(self, name) not in (True, False):
                raise ValueError(
                    f"{name}: expected True or False, found {getattr(self, name)!r}"
                )
        if not isinstance(self.solver, str):
            raise ValueError(f"solver: expected a name, found {self.solver!r}")
        if not isinstance(self.setting, Mapping | None):
            raise ValueError(
                f'setting: expected values by name, as {{"step": 1}}, found '
                f"{self.setting!r}"
            )
        if self._delta > 1 / n:
            warnings.warn(
                f"delta: {self._delta:g} is more than 1/n = {1 / n:g}: to publish one "
                "record as it is would be private by that",
                UserWarning,
                4,
            )
        if n < FEWEST:
            warnings.warn(
                f"X: {n} records, expected {FEWEST} or more: noise hides all else",
                UserWarning,
                4,
            )

    def _check_release(self) -> None:
        if not self.release:
            return
        if self.random_state is not None:
            raise ValueError(
                "random_state: expected None with release=True, whose noise comes from "
                f"the operating system; found {self.random_state!r}"
            )
        if self.epsilon == math.inf:
            raise ValueError("release: expected a finite epsilon, found inf")
        if self._read_off():
            raise ValueError("release: expected scales that are not read off the data")
        extras.require("release", "release=True")

    def _spent(self, shape: tuple[int, int], stated: Ledger) -> float:
        """The share of delta that discrete noise costs in a release of p columns."""
        if not self.release:
            return 0.0
        n, p = shape
        width = p + 2  # with intercept and label
        if self._layout:  # values and gaps; a record is in one per column
            width += n * len(self._layout.columns)
        cells = width * len(private_scales.OCTAVES)
        releases = sum(event.count for event in stated.events)
        found = slack(releases * width * (width + 1) // 2 + cells, self._epsilon)
        if not found < self._delta / 2:
            raise ValueError(
                f"delta: expected more than {2 * found:g} with release=True, found "
                f"{self._delta:g}"
            )
        return found

    def _problem(self, X: Any, y: np.ndarray, count: int = 1) -> Problem:
        """The objective, one of ``count`` that share epsilon, under declared scales."""
        n, scales = X.shape[0], self._units.scale
        penalty = Penalty(self.l1, 1 / n if self.l2 is None else self.l2)
        in_blocks = isinstance(X, Blocks)
        if self.release and not in_blocks:
            X = _within_edge(X, np.append(scales, self._label.scale))
        if self.fit_intercept:
            X = metrics.with_constant(X, self._constant)
            scales = np.append(scales, self._constant)
        X = X if in_blocks else hidden_number.emptied(X, self._more)
        if self._order is not None:
            X, y = X[self._order], y[self._order]
        target = (self._epsilon / math.sqrt(count), self._delta)
        if in_blocks:
            X, loss = replace(X, positive=y), named(self.loss)
            problem: Problem = Large("fit", X, np.zeros(1), loss, penalty, *target)
        else:
            problem = build("fit", X, y, self.loss, penalty, *target, given=(N,))
        return declared(problem, scales, float(self._label.scale[0]))

    def _is_open(self) -> bool:
        return self._layout is not None and self._layout.is_open

    # --- scales -----------------------------------------------------------------------

    def _scales(self, X: Any) -> Units:
        """Ranges and scales of the columns of X (n, p)."""
        p, given = X.shape[1], self.feature_scale
        names = getattr(self, "feature_names_in_", None)
        columns: Any = p if names is None else [*map(str, names)]
        bounds = self.bounds
        if self._layout:
            columns, bounds = p, self._layout.bounds
        made = units("bounds", bounds, columns, self.fit_intercept, hasattr(X, "tocsc"))
        if given is None or self._private()[0]:
            return made if given is None else replace(made, scale=np.ones(p))
        if isinstance(given, str) and given == DATA:
            found = _root_mean_squares(made.applied(X))
            return replace(made, scale=np.where(found > 0, found, 1.0))
        found = _numbers(given)
        if found.shape not in ((), (p,)) or not ((found > 0) & (found < np.inf)).all():
            raise ValueError(
                f"feature_scale must be positive, a number or {p} of them, 'private' "
                f"or 'data'; found {given!r}"
            )
        return replace(made, scale=np.broadcast_to(found, p).copy())

    def _label_units(self, y: np.ndarray) -> Units:
        """Ranges and scales of labels; signs need none."""
        return units("label_bounds", None, 1, False)

    def _private(self) -> tuple[bool, bool]:
        """Whether scales of the features, and that of the label, are released."""
        label = getattr(self, "label_scale", 1.0), getattr(self, "label_bounds", None)
        features, labels = (
            (isinstance(scale, str) and scale == PRIVATE)
            or (scale is None and bounds is None)
            for scale, bounds in ((self.feature_scale, self.bounds), label)
        )
        return features, labels

    def _first(self, shape: tuple[int, int]) -> Ledger:
        """Ledger of the scales released before the solver runs, from public numbers."""
        (n, p), (features, label) = shape, self._private()
        k = self._moved(p) * features + label
        if not k:
            return Ledger()
        return private_scales.ledger(k, n, self._epsilon, self._delta)

    def _sized(self, p: int) -> list[int]:
        """Columns whose scales are released; counts determine the others."""
        return self._layout.numeric if self._layout and self._is_open() else [*range(p)]

    def _moved(self, p: int) -> int:
        """How many of them one record can move: it has one level per category."""
        if self._is_marked():
            assert self._layout is not None
            return len(self._layout.columns) + len(self._layout.flags)
        return len(self._sized(p))

    def _is_marked(self) -> bool:
        """Whether declared levels and gaps are columns of zeros and ones."""
        layout = self._layout
        return layout is not None and not layout.is_open and layout.bounds is None

    def _rescaled(
        self, X: Any, every: Sequence[Any], first: Ledger, normal: Normal | Exact
    ) -> tuple[Any, Sequence[Any], np.ndarray]:
        """X and labels over scales that are released here, and the noisy counts."""
        (n, p), (features, label) = X.shape, self._private()
        some = self._sized(p)
        if isinstance(X, Blocks):
            columns: list[Any] = [partial(X.total, of_rows)] * features
            columns += [partial(X.total, of_labels)] * label
        else:
            columns = [X[:, some]] * features + [every[0][:, None]] * label
        k = self._moved(p) * features + label
        noisy = private_scales.noisy_counts(columns, first, normal, k)
        found, seen = private_scales.scales(noisy, first, n, label)
        if not seen.all():
            warnings.warn(_hidden(seen, label), stacklevel=5)
        if features and self._is_marked():
            assert self._layout is not None
            marks = np.setdiff1d(some, self._layout.numeric)
            found[marks] = private_scales.shares(noisy[marks], first, n)
        size, scales = float(found[-1]) if label else 1.0, np.ones(p)
        if features:
            scales[some] = found[: len(some)]
            if self._layout and self._is_open():
                scales = self._layout.scales(scales, n)
        self._over = scales / size
        self._label = replace(self._label, released=size)
        if isinstance(X, Blocks):
            return X.over(scales, size), every, noisy
        with np.errstate(over="ignore"):
            X = private_scales.divided(X, scales) if features else X
            return X, [y / size for y in every], noisy

    def _read_off(self) -> list[str]:
        scale, label = self.feature_scale, getattr(self, "label_scale", None)
        both = ((SMOOTHNESS, scale), (LABEL_SCALE, label))
        return [name for name, one in both if isinstance(one, str) and one == DATA]

    # --- the fit ----------------------------------------------------------------------

    def fit(self, X: Any, y: Any, **unknown: Any) -> Self:
        """Fit to X (n, p), dense, sparse or a path as for ``dperm.fit``, and labels y.

        Raises
        ------
        ValueError
            For unsuitable labels, parameters or solvers.
        BudgetError
            If an open ``Budget`` has too little left.
        TypeError
            For ``sample_weight`` and other arguments.
        """
        return self._fitted(X, y, unknown)

    def _fitted(self, X: Any, y: Any, unknown: Mapping[str, Any]) -> Self:
        _refuse(unknown)
        _warn_of_search()
        if self.neighbours not in NEIGHBOURS:
            raise ValueError(
                f"neighbours: expected one of {', '.join(NEIGHBOURS)}, found "
                f"{self.neighbours!r}"
            )
        seed = noise_seed(self.random_state)
        if self.epsilon == math.inf and self.solver == AUTO:
            return self._fitted_exactly(X, *self._arrays(X, y))
        if self.neighbours == REPLACE or self.epsilon == math.inf:
            return self._fitted_replacing(X, y, seed)
        return self._fitted_adding(X, y, seed)

    def _fitted_adding(self, X: Any, y: Any, seed: int) -> Self:
        """Fit for add-remove neighbours, after a private release of n."""
        if isinstance(X, str | Path):
            raise ValueError("neighbours: 'add_remove' expects arrays, found a file")
        if self.delta is None:
            raise ValueError(
                "delta: expected a number with neighbours='add_remove', found None, "
                "which would follow from the number of records"
            )
        if getattr(self, "classes", ()) is None or self._read_off():
            raise ValueError(
                "neighbours: 'add_remove' expects classes, and scales that are not "
                "'data'"
            )
        check_target(self.epsilon, self.delta)
        self._check_release()
        number = hidden_number.event(self.epsilon)
        charge(self.epsilon, self.delta, (), ADD_REMOVE)
        y = self._apart(y)
        records = X.shape[0] if hasattr(X, "shape") else len(X)
        if np.ndim(y) != 1 or len(y) != records:  # numbers would tell n
            raise ValueError("X, y: expected one label (n,) for each record")
        m = hidden_number.noisy(len(y), number, None if self.release else seed)
        X, y, self._more = hidden_number.resized(X, y, m)
        self._order = hidden_number.order(m, seed)
        try:
            self._fitted_replacing(X, y, seed, charged=True)
        finally:
            self._more, self._order = 0, None  # nothing that is kept reveals n
        self._guarantee = added_or_removed(self.epsilon_, number)
        return self

    @np.errstate(all="ignore")  # warnings would depend on the records
    def _fitted_replacing(
        self, X: Any, y: Any, seed: int, charged: bool = False
    ) -> Self:
        frame = X
        X, every = self._cleaned(*self._arrays(X, y)) if charged else self._ready(X, y)
        runs, read = self._runs(X, every), self._read_off()
        for name in read:
            warnings.warn(
                f"{name} is read off the data and not paid for by epsilon: "
                "give bounds or scales that do not come from the data",
                PrivacyLeakWarning,
                3,
            )
        spent = self._spent(X.shape, _composed(runs, 1.0))
        goal = (self._epsilon, self._delta - spent, STRICT)
        levels, first, fill = self._before(X.shape)
        found = self._calibrated(levels + first + fill, runs, goal)
        labels = (metrics.CLASSES,) if getattr(self, "classes", ()) is None else ()
        public = [on.public_information(found.ledger) for on, _ in runs]
        types = frames.assumed(
            frame, self.categories, self.missing_columns, self.bounds
        )
        known = (*united(*public), *self._assumed, *labels, *types, *read)
        cost = self._epsilon if levels.events else found.true_epsilon
        if charged:
            charge(0.0, 0.0, moves_with_data(known), ADD_REMOVE)
        else:
            charge(cost, self._delta, known)
        drawn = Exact() if self.release else private_scales.seeded(seed)
        if levels.events:
            X, every = self._settled(frame, y, levels, drawn)
            before, runs = runs, self._runs(X, every, contestants.method(self.solver_))
            if not without_p(_composed(before, 1.0), _composed(runs, 1.0)):
                raise ValueError(
                    f"solver {self.solver_}: its price hangs on columns that were "
                    "found; declare categories and missing_columns, or name dp_gd"
                )
            fill = self._before(X.shape)[2]
            found = self._calibrated(levels + first + fill, runs, goal)
        self._guarantee = Guarantee(found.ledger, self._delta, known, slack=spent)
        noise = found.noise_multiplier
        if first.events:
            X, every = self._rescaled(X, every, first, drawn)[:2]
        if fill.events and self._layout:
            how = (self._units.scale, self._over * self._label.released, fill, drawn)
            X, self._layout = self._layout.filled(X, *how)
        if first.events or fill.events:
            runs = self._runs(X, every, contestants.method(self.solver_))
        seeds = [seed] if len(runs) == 1 else seeds_of(seed, len(runs))
        intervals.recorded(runs[0][0])
        with frames.silent():
            if self.release:
                W = [on.alone(setting, noise, 0, exact=True) for on, setting in runs]  # type: ignore[attr-defined]
            else:
                W = [
                    weights(*run, noise, k) for run, k in zip(runs, seeds, strict=True)
                ]
        self._published(np.array([_finite(w) for w in W]))
        self._spread = intervals.spread(runs[0][0]) if len(runs) == 1 else None
        return self

    def _before(self, shape: tuple[int, int]) -> tuple[Ledger, Ledger, Ledger]:
        """Ledgers of releases before the solver's: columns, scales, fills of gaps.

        They follow from public numbers; that of fills also from the columns that were
        found.
        """
        scales, none = self._first(shape), Ledger()
        if not self._layout:
            return none, scales, none
        how = (self._epsilon, self._delta)
        levels = self._layout.ledger(shape[0], *how)
        return levels, scales, self._layout.fill_ledger(*how)

    def _calibrated(self, before: Ledger, runs: Any, goal: Any) -> Any:
        """The least noise with which all releases together meet the target."""
        return calibrate(lambda noise: before + _composed(runs, noise), *goal)

    def _settled(
        self, frame: Any, y: np.ndarray, levels: Ledger, normal: Normal | Exact
    ) -> tuple[Any, Sequence[Any]]:
        """X and labels with the columns that are found here."""
        assert self._layout is not None
        layout = frames.with_released(frame, self._layout, levels, normal)
        return self._cleaned(*self._arrays(frame, y, layout))

    def _fitted_exactly(self, frame: Any, X: Any, y: np.ndarray) -> Self:
        self.solver_ = EXACT
        X, every = self._cleaned(X, y)
        if self._is_open():
            none = private_scales.seeded(0)
            X, every = self._settled(frame, y, self._before(X.shape)[0], none)
        self._constant = NEARLY
        problems = [self._problem(X, one) for one in every]
        charge(math.inf, self._delta, ())
        self._guarantee, self._spread = Guarantee(OPEN, self._delta, (N,)), None
        self._published(
            np.array([minimiser(one, self.fit_intercept) for one in problems])
        )
        return self

    def _published(self, W: np.ndarray) -> None:
        """Keep weights (K, p) as coefficients in the units of the user's columns."""
        coef, intercept = W, np.zeros(len(W))
        if self.fit_intercept:
            coef, intercept = W[:, :-1], W[:, -1] * self._constant
        coef, intercept = coef / self._over, intercept * self._label.released
        if self.fit_intercept:
            intercept = intercept - coef @ self._units.centre + self._label.centre
        self._keep(coef, intercept)

    def _affine(self) -> np.ndarray:
        """The linear map from one run's weights to coefficients and intercept.

        It omits the centre of the labels. Shape (p + 1, p + 1), or (p + 1, p) without
        an intercept.
        """
        coef = np.diag(1 / self._over)
        whole = np.vstack((coef, -self._units.centre @ coef * self.fit_intercept))
        if not self.fit_intercept:
            return whole
        last = np.zeros((len(whole), 1))
        last[-1] = self._constant * self._label.released
        return np.hstack((whole, last))

    def _labelled(self, X: Any, y: np.ndarray) -> tuple[Any, list[Any]]:
        raise NotImplementedError

    def _keep(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        raise NotImplementedError

    def _check_loss(self, known: tuple[str, ...]) -> None:
        if self.loss not in known:
            raise ValueError(
                f"loss must be one of {', '.join(known)}, found {self.loss!r}"
            )

    # --- after a fit ------------------------------------------------------------------

    @property
    def epsilon_(self) -> Guarantee:
        """The cost of the fit: an interval, and what it takes as public."""
        if not hasattr(self, "_guarantee"):
            raise NotFittedError(f"{type(self).__name__} is not fitted yet: call fit")
        return self._guarantee

    def _scores(self, X: Any) -> np.ndarray:
        """<x, w> plus the intercept for each record and vector of weights, (n, K)."""
        check_is_fitted(self, "coef_")
        return np.asarray(self._read(X) @ np.atleast_2d(self.coef_).T) + self.intercept_

    def _read(self, X: Any) -> Any:
        """Records as the array (n, p) that matches the coefficients."""
        if self._layout:
            X = frames.as_numbers(X, self.bounds)
            return check_array(frames.expanded(X, self._layout))
        how = {"accept_sparse": "csr", "dtype": np.float64}
        return validate_data(self, X, reset=False, **how)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_guarantee")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_dperm_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = dict(state)
        version = kept.pop("_dperm_version", "unknown")
        if version != __version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=f"(dperm) {__version__}",
                    original_sklearn_version=f"(dperm) {version}",
                ),
                stacklevel=2,
            )
        super().__setstate__(kept)


@PARAMETERS
class DPClassifier(ClassifierMixin, DPLinear):
    r"""A private linear classifier.

    Minimises mean_i phi(y_i (x_i . w + b)) + l1 ||w||_1 + (l2 / 2) ||w||^2 with a
    solver that meets (epsilon, delta) for neighbours that differ by *replacing* one
    record, under the strict accountant. ``dp_sgd``, ``dp_svrg`` and DP-SkGD penalise
    the intercept b as well. More than two classes are fitted one against the rest, all
    within one epsilon.

    Parameters
    ----------
    solver : str
        "auto" takes the first method of the arena's advice that can solve the problem,
        by n, p, loss and epsilon alone; see ``solver_``. Otherwise the name of a solver
        in ``conf/solver``, or of a Python file in the current folder.
    epsilon : float
        Positive; ``inf`` gives the minimiser without privacy, or the named solver
        without noise.
    delta : float, optional
        None means 1 / n^2.
    loss : {"logistic", "smoothed_hinge"}
    l1, l2 : float
        ``l2=None`` means 1 / n.
    classes : sequence, optional
        The labels; of two, the second is +1. None reads them off y, which
        ``epsilon_.given`` then states. A record with another label, or with a number
        that is not finite, counts as one of zeros: no single record makes a fit raise.
    bounds : (low, high) or mapping, optional
        Ranges of the columns in their own units: two numbers, two arrays with one
        number per column, or a mapping from the names of a data frame's columns to
        pairs. Data are clipped to them; they must not be computed from the data. With
        ``categories`` or ``missing_columns`` they are those of the numeric columns.
    categories : mapping, optional
        The values of columns of a data frame: ``{"city": ["A", "B"]}``. Every other
        value, and a missing one, is the level "other". They must not be read off the
        data; a column's ``category`` type declares nothing. The values of other text
        columns are found by a noisy count, for a share of epsilon and of delta that
        :mod:`dperm.solvers.private_levels` states; rare ones are "other".
    missing_columns : sequence of str, mapping or "private", optional
        Numeric columns that may have missing values. The middle of the bounds, 0, or
        the number in a mapping replaces them. An indicator column is always added. In
        other columns a record with a gap counts as one of zeros. "private" counts the
        gaps of all other columns with noise; so does None where values of text are
        found. Columns with gaps then get an indicator, and the middle of the bounds or
        a released mean fills them.
    feature_scale : float, ndarray (p,), "private" or "data", optional
        Assumed root mean squares of the columns, about the middle of any bounds. Data
        are clipped in units of them, so that epsilon holds whatever they are; a wrong
        scale costs accuracy. None derives them from the bounds. Without bounds it means
        "private": scales are released with noise, for a share of epsilon that
        :mod:`dperm.solvers.private_scales` states, and penalties weigh w in units of
        them. A number must not be computed from the data. "data" computes it, warns,
        and is stated in ``epsilon_.given``.
    setting : mapping, optional
        Values of a named solver, such as ``{"passes": 10, "step": 1, "clip": 1}``.
    random_state : int, RandomState or None
        None draws from the operating system; a seed that others know hides nothing.
    release : bool
        Whether noise is exact and discrete instead of made of doubles, so that results
        may be published (:mod:`dperm.solvers.exact_noise`). It needs ``pip install
        'dperm[release]'``, no ``random_state``, and a solver whose sums have a proof:
        ``ada_ssp``, ``dp_gd``, ``dp_gram``, ``moments``, objective and output
        perturbation. Others refuse; docs/howto/fit.md gives the reasons.
    neighbours : {"replace", "add_remove"}
        Whether neighbours replace one record, with n public, or add or remove one. In
        the second case n is released with noise, for a fiftieth of epsilon
        (:mod:`dperm.solvers.hidden_number`), and ``delta`` and ``classes`` must be
        declared.

    Attributes
    ----------
    coef_ : ndarray, shape (1, p), or (K, p) for K > 2 classes
    intercept_ : ndarray, shape (1,) or (K,)
    classes_ : ndarray, shape (K,)
    epsilon_ : Guarantee
    solver_ : str
    n_features_in_ : int
    feature_names_in_ : ndarray
        Of a data frame.
    names_ : ndarray, shape (p,)
        Of a data frame, names of the coefficients: ``city=A``, ``age=missing``.

    Examples
    --------
    >>> from dperm import DPClassifier
    >>> X, y = [[1.0], [-1.0]] * 500, [1, 0] * 500
    >>> model = DPClassifier(classes=(0, 1), bounds=(-1, 1), random_state=0).fit(X, y)
    >>> model.predict([[2.0], [-2.0]]).tolist(), model.epsilon_.given
    ([1, 0], ('n',))
    """

    _: KW_ONLY
    loss: str = "logistic"
    classes: Any = None

    def _labelled(self, X: Any, y: np.ndarray) -> tuple[Any, list[Any]]:
        """Labels as signs; one vector per class if there are more than two.

        A record of no class becomes one of zeros.
        """
        self._check_loss(metrics.SIGNED)
        if self.classes is None:
            check_classification_targets(y)
        self.classes_ = np.unique(y) if self.classes is None else self._declared()
        if len(self.classes_) < 2:
            raise ValueError(
                f"y: {type(self).__name__} needs two classes or more, the data have "
                "one class"
            )
        if isinstance(X, Blocks):
            some = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
            return replace(X, classes=self.classes_), [*some]
        return metrics.against_rest(X, y, self.classes_)

    def _declared(self) -> np.ndarray:
        found = np.asarray(self.classes)
        keys = {*map(frames.shared, found.ravel().tolist())}
        if found.ndim != 1 or len(keys) != len(found) or len(found) < 2:
            raise ValueError(
                f"classes: expected two labels or more that differ, found "
                f"{self.classes!r}"
            )
        return found

    def _keep(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_, self.intercept_ = coef, intercept

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of records X (n, p): (n,), positive for the second class; (n, K)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The classes of records X (n, p); shape (n,)."""
        scores = self._scores(X)
        single = scores.shape[1] == 1
        best = (scores[:, 0] > 0).astype(int) if single else scores.argmax(axis=1)
        found: np.ndarray = self.classes_[best]
        return found

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, for the logistic loss only; shape (n, K).

        With more than two classes, each against the rest, divided by their sum.
        """
        return np.exp(self.predict_log_proba(X))

    @available_if(lambda self: self.loss == "logistic")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities; shape (n, K)."""
        scores = self._scores(X)
        if scores.shape[1] == 1:
            scores = np.column_stack((-scores, scores))
            return -np.logaddexp(0, -scores)
        each = -np.logaddexp(0, -scores)
        return each - np.logaddexp.reduce(each, axis=1, keepdims=True)


@PARAMETERS
class DPRegressor(RegressorMixin, DPLinear):
    r"""A private linear regression.

    Minimises mean_i phi(x_i . w + b - y_i) + l1 ||w||_1 + (l2 / 2) ||w||^2; all else is
    as for ``DPClassifier``.

    Parameters
    ----------
    solver, epsilon, delta, l1, l2, fit_intercept, bounds, categories
        As for ``DPClassifier``.
    missing_columns, feature_scale, setting, random_state, release, neighbours
        As for ``DPClassifier``.
    loss : {"least_squares", "huber"}
    label_bounds : (low, high), optional
        The range of the labels, as ``bounds``.
    label_scale : float, "private" or "data", optional
        Assumed root mean square of the labels, as ``feature_scale``.

    Attributes
    ----------
    coef_ : ndarray, shape (p,)
    intercept_ : float
    epsilon_ : Guarantee
    solver_ : str
    n_features_in_, feature_names_in_, names_
        As for ``DPClassifier``.
    """

    _: KW_ONLY
    loss: str = "least_squares"
    label_bounds: Any = None
    label_scale: Any = None

    def _label_units(self, y: np.ndarray) -> Units:
        made = units("label_bounds", self.label_bounds, 1, self.fit_intercept)
        given = self.label_scale
        if given is None or self._private()[1]:
            return made if given is None else replace(made, scale=np.ones(1))
        if isinstance(given, str) and given == DATA:
            found = _root_mean_squares(made.applied(_numbers(y))[:, None])
            return replace(made, scale=np.where(found > 0, found, 1.0))
        found = _numbers(given)
        if found.shape != () or not 0 < found < math.inf:
            raise ValueError(
                f"label_scale must be positive, 'private' or 'data', found {given!r}"
            )
        return replace(made, scale=found[None])

    def _labelled(self, X: Any, y: np.ndarray) -> tuple[Any, list[Any]]:
        """Labels as numbers; a record that is not finite counts as one of zeros."""
        self._check_loss(RESIDUAL)
        if isinstance(X, Blocks):
            return X, [None]
        X, y = cleaned(X, self._label.applied(_labels(y)))
        return X, [y]

    def _keep(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_, self.intercept_ = coef[0], float(intercept[0])

    def predict(self, X: Any) -> np.ndarray:
        """Predicted labels of records X (n, p); shape (n,)."""
        return self._scores(X)[:, 0]

    def intervals(
        self, X: Any = None, level: float = 0.95, labels: bool = False
    ) -> pd.DataFrame:
        """Intervals of the coefficients, or of predictions, from releases alone.

        They cost no further epsilon. They account for the noise and for the sampling of
        records (:mod:`dperm.compare.intervals`).

        Parameters
        ----------
        X : array (m, p) or data frame, optional
            Records to predict; None for intervals of coefficients and intercept.
        level : float
            In (0, 1).
        labels : bool
            Whether to cover single labels instead of their expectation.

        Returns
        -------
        DataFrame
            ``estimate``, ``low``, ``high``; one row per record, or one per coefficient
            by name and one of ``intercept``.

        Raises
        ------
        ValueError
            For a fit by another solver than ``moments`` or ``dp_gram``, with an L1
            norm, or of a setting with too few steps or too narrow clips.
        """
        check_is_fitted(self, "coef_")
        known: intervals.Spread | None = getattr(self, "_spread", None)
        if known is None:
            raise ValueError(
                "intervals: expected a fit by solver moments with l1=0, or by dp_gram "
                'with setting={"steps": 10, "radius": 3.0, "clip": 5.0}, found solver '
                f"{self.solver_} with l1={self.l1}, setting={self.setting}"
            )
        spread = known.mapped(self._affine(), self._label.released)
        if X is not None:
            rows = np.hstack((self._read(X), np.ones((len(X), 1))))
            variance = np.einsum("ij,jk,ik->i", rows, spread.covariance, rows)
            return spread.ends(
                self.predict(X), variance + labels * spread.residual, level
            )
        plain = [f"x{k}" for k in range(len(self.coef_))]
        names = [*getattr(self, "names_", plain), "intercept"]
        centre = np.append(self.coef_, self.intercept_)
        return spread.ends(centre, np.diag(spread.covariance), level, names)


def fit(
    X: Any, y: Any, solver: str = AUTO, epsilon: float = 1.0, **parameters: Any
) -> DPClassifier | DPRegressor:
    """Fit a private linear model: a classifier for classes, otherwise a regression.

    Parameters
    ----------
    X : array (n, p), sparse array or data frame
        Or the path of a Parquet file or of a folder of them. Files are read in blocks,
        by the workers of a Dask client if one is open. Arrays of more than 2^23
        entries, memory-mapped or not, are read in blocks too if the method can.
    y : array, shape (n,)
        For a path, the name of the label's column.
    solver, epsilon
        As for ``DPClassifier``.
    **parameters
        Further ones of ``DPClassifier`` or ``DPRegressor``; ``loss`` or ``classes``
        decides which. Without them y decides, and ``epsilon_.given`` states so: labels
        that are not numbers, or only two numbers, are classes.

    Examples
    --------
    >>> import dperm
    >>> X, y = [[1.0], [-1.0]] * 500, [1.0, -1.0] * 500
    >>> model = dperm.fit(X, y, bounds=(-1, 1), random_state=0)
    >>> type(model).__name__, model.solver_
    ('DPClassifier', 'objective_perturbation')
    """
    loss = parameters.get("loss")
    told = "classes" in parameters or loss is not None
    if not told and parameters.get("neighbours") == ADD_REMOVE:
        raise ValueError(
            "neighbours: 'add_remove' expects classes=(...) or loss='...': whether "
            "there are two labels hangs on a record"
        )
    signed = "classes" in parameters or loss in metrics.SIGNED
    if not told and isinstance(X, str | Path):
        raise ValueError("X: of records in files, expected classes=(...) or loss='...'")
    if not told:
        labels = np.asarray(y)
        signed = labels.dtype.kind not in "iuf" or len(np.unique(labels)) == 2
    kind = DPClassifier if signed else DPRegressor
    model = kind(solver, epsilon=epsilon, **parameters)
    if not told:
        model._assumed = (metrics.TWO,)
    return model.fit(X, y)


def _wider(method: contestants.Method, problem: Problem) -> Ledger:
    """The releases of a method on four times as many columns."""
    p = 4 * problem.p
    wide = replace(problem, A=sparse.csc_array((problem.n, p)), public=None)
    scales = np.resize(column_scales(problem), p)
    return method.on(declared(wide, scales, label_scale(problem))).ledger(
        method.default, 1.0
    )


def _composed(runs: Sequence[tuple[Contestant, Setting]], noise: float) -> Ledger:
    first, *others = (on.ledger(setting, noise) for on, setting in runs)
    return sum(others, first)


def _reads_off(method: contestants.Method) -> str:
    """Why a method needs more than declared scales; empty if it does not."""
    chosen = method.section.options
    sets = chosen.get("blocks") or chosen.get("groups")
    if chosen.get("probabilities") != "importance" or not sets:
        return ""
    return "its number of steps follows from the columns' scales, which it reads off"


def noise_seed(random_state: Any) -> int:
    """The seed of a fit's noise; from the operating system unless one is passed."""
    if random_state is None:
        return secrets.randbits(62)
    seed = int(check_random_state(random_state).randint(2**31))
    use_seed(seed)
    return seed


def weights(
    on: Contestant, setting: Setting, noise_multiplier: float, seed: int
) -> np.ndarray:
    """The weights of one run, shape (p,)."""
    if isinstance(on, Fitting):
        return on.alone(setting, noise_multiplier, seed, exact=False)
    kept: list[np.ndarray] = []

    def keep(W: np.ndarray) -> dict[str, np.ndarray]:
        kept.append(W.copy())
        return {}

    on.run([Job(setting, noise_multiplier, seed)], keep)
    return kept[-1][0]


def _within_edge(X: Any, scales: np.ndarray) -> Any:
    """X (n, p) with entries up to 1e100, for a release.

    Raises ValueError if a scale is beyond that, or below its inverse.
    """
    if not ((scales >= 1 / EDGE) & (scales <= EDGE)).all():
        raise ValueError(
            f"release: expected scales from {1 / EDGE:g} to {EDGE:g}, found {scales}"
        )
    if not sparse.issparse(X):
        return np.clip(X, -EDGE, EDGE)
    X = X.copy()
    X.data = np.clip(X.data, -EDGE, EDGE)
    return X


def _finite(w: np.ndarray) -> np.ndarray:
    """The weights, or zeros if the run diverged; that is post-processing."""
    if np.isfinite(w).all():
        return w
    warnings.warn(
        "the run diverged: weights are 0; expected a smaller step, or scales "
        "nearer to the data's",
        RuntimeWarning,
        4,
    )
    return np.zeros_like(w)


def _without_gaps(X: np.ndarray) -> np.ndarray:
    """An array of objects, with NaN for numbers that no double holds and pandas' NA."""

    def kept(one: Any) -> Any:
        is_number = one is pd.NA or isinstance(one, Number)
        return frames.read(float, one, np.nan) if is_number else one

    every = np.empty(X.size, dtype=object)
    for k, one in enumerate(X.flat):
        every[k] = kept(one)
    return every.reshape(X.shape)


def _without_entries(error: ValueError) -> str:
    """scikit-learn's message about an array, without any of its entries."""
    if "could not convert" in str(error):
        return "X: expected numbers, found text; a data frame may have columns of text"
    if "Complex data" in str(error):
        return "X: expected real numbers: Complex data not supported"
    return re.sub(r"array=.*\.\n", "", str(error), flags=re.DOTALL)


def _labels(y: np.ndarray) -> np.ndarray:
    """Labels of a regression as doubles (n,), NaN for what is no number.

    Raises ValueError for an array of text, whatever it holds.
    """
    if y.dtype.kind in "US":
        raise ValueError("y: expected numbers, found an array of text")
    return frames.numbers(pd.Series(y, dtype=y.dtype))


def _numbers(values: Any) -> np.ndarray:
    """An array of numbers; NaN if it is not numeric."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _hidden(seen: np.ndarray, label: bool) -> str:
    """Warning of scales hidden by noise; it is post-processing and costs nothing."""
    columns = int((~seen[: len(seen) - label]).sum())
    parts = [f"{columns} of {len(seen) - label} columns"] * (columns > 0)
    parts += ["the labels"] * (label and not seen[-1])
    return (
        f"the noise hides the scale of {' and of '.join(parts)}, which the fit has to "
        "guess: declare bounds or scales, or take more records or a larger epsilon"
    )


def _root_mean_squares(X: Any) -> np.ndarray:
    with np.errstate(over="ignore"):
        squares = X.multiply(X) if hasattr(X, "multiply") else X * X
        return np.sqrt(np.asarray(squares.mean(axis=0)).ravel())


def _refuse(unknown: Mapping[str, Any]) -> None:
    if "sample_weight" in unknown:
        raise TypeError(
            "sample_weight: not supported: a weight multiplies what one record can "
            "change, which epsilon would have to pay for; leave records out, or repeat "
            "none"
        )
    if unknown:
        raise TypeError(f"fit: expected X and y, found {', '.join(unknown)}")


def _warn_of_search() -> None:
    """Warn inside a search or a cross-validation without a budget."""
    frame, name = sys._getframe(2), "sklearn.model_selection"
    while frame is not None and not is_budgeted():
        if frame.f_globals.get("__name__", "").startswith(name):
            warnings.warn(
                "every fit of a cross-validation or a grid search costs its own "
                "epsilon, and its scores are not paid for: use dperm.PrivateSearch, or "
                "count them in a dperm.Budget",
                PrivacyLeakWarning,
                4,
            )
            return
        frame = frame.f_back  # type: ignore[assignment]
