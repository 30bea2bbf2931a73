"""Private linear models from Python, by scikit-learn's conventions.

A fit clips columns to declared ranges, centres and scales them by two noisy sums
(:mod:`.ranges`), and hands them to a solver. All releases together meet (epsilon,
delta). The guarantee is that of one fit. Choosing parameters by comparing several fits
of the same data costs more, which ``dperm.Budget`` counts and ``dperm.PrivateSearch``
pays.
"""

from __future__ import annotations

import copy
import math
import secrets
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from scipy import sparse
from scipy.special import log_expit, softmax
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from dperm.estimators import methods, ranges
from dperm.estimators.bases import ClassifierMixin, RegressorMixin
from dperm.estimators.guarantee import (
    Counted,
    Guarantee,
    calibrated,
    charge,
    check_target,
    is_number,
)
from dperm.estimators.methods import Setting, SolverAdapter
from dperm.names import hint
from dperm.privacy.accountants.tight import is_closed_form
from dperm.privacy.events import Ledger, N, united
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
from dperm.privacy.noise import seeds_of
from dperm.problems import door
from dperm.problems.cleaning import cleaned
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.solvers import registry
from dperm.solvers.exact_noise import Exact, slack
from dperm.solvers.full_batch.secret import Normal
from dperm.solvers.scales import declared

AUTO = "auto"
SIGNED = ("logistic", "smoothed_hinge")  # losses of two classes
RESIDUAL = ("huber", "least_squares")  # losses of numbers
RIDGE = {
    False: 1.0,
    True: 2.0,
}  # by whether labels are real; measured, bench/fits.py
SHARES = (
    0.02,
    0.98,
)  # least and largest share of a class, as noise may give any
SPREAD = 0.3  # of an intercept about the constant's, a guess
NOTHING_SHOWN = (  # how it may come that released sums show nothing
    "Ranges may be far wider than the columns, records may hold no numbers, or labels "
    "may be of none of the classes (ensembles hand over 0, 1, ...). This is read off "
    "what the fit releases, and costs nothing"
)
MIN_RECORDS = 10  # records; below this a fit shows nothing but noise
# The intercept's column holds this constant, which is also its scale. So solvers that
# count in scales see ones, and its weight adds next to nothing to the penalty.
UNPENALISED = 2.0**20
FOR_RELEASE = (
    "dp_gd",
    "dp_gram",
    "moments",
)  # proved for exact, discrete noise


@dataclass(eq=False, repr=False)  # comparison and repr are scikit-learn's
class DPLinear(Counted):
    """Base of classifier and regressor, which document parameters and attributes."""

    solver: Any = AUTO
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float | None = None
    l1: float = 0.0
    l2: float | None = None
    fit_intercept: bool = True
    bounds: Any = None
    setting: Mapping[str, float] | None = None
    random_state: Any = None
    release: bool = False
    if TYPE_CHECKING:  # a field of each class, with its default
        loss: str
    _label: ClassVar[str]  # the declaration of labels
    _losses: ClassVar[tuple[str, ...]]
    _is_real: ClassVar[bool]  # labels are centred and scaled like a column
    _read: ClassVar[Any]  # labels by the door
    _labelled: ClassVar[Any]  # makes vectors of labels, and finite columns

    # --- from arrays to problems ------------------------------------------------------

    def _cleaned(self, X: Any, y: Any) -> tuple[Any, Sequence[Any]]:
        """X (n, p) as t in its ranges, and the vectors of labels; all finite.

        The contents of a single record may not decide whether this raises.
        """
        how: dict[str, Any] = {"reset": True, "ensure_min_samples": 2}
        how |= {"accept_sparse": "csc", "ensure_all_finite": False}
        table = door.table(X)
        values = self._validated(table, **how)
        columns: Any = values.shape[1]
        if table.names is not None:
            columns = [*map(str, table.names)]
        absent = self._undeclared(columns)
        if absent:
            which, templates = zip(*absent.items(), strict=True)
            raise ValueError(
                f"{', '.join(which)}: expected what the columns and labels may hold, "
                f"from what they mean and not from these data. Declare "
                f"{', and '.join(templates)}"
            )
        labels = self._read(y)
        if len(labels.values) != values.shape[0]:
            raise ValueError(
                f"y: expected a label for each of the {values.shape[0]} records of X, "
                f"found {len(labels.values)}"
            )
        self._public = (*table.public, *labels.public)
        self._check(values.shape[0])
        self._ranges = [
            ranges.declared(
                "bounds",
                self.bounds,
                columns,
                self.fit_intercept,
                sparse.issparse(values),
            )
        ]
        t = self._ranges[0].unit(values, room=int(self.fit_intercept))
        found: tuple[Any, Sequence[Any]] = self._labelled(t, labels.values)
        return found

    def _undeclared(self, columns: Sequence[str] | int) -> dict[str, str]:
        """How to declare what is not declared, by parameter."""
        absent = {}
        if self.bounds is None:
            absent["bounds"] = ranges.template(columns)
        parameter = self._label.split("=")[0]
        if getattr(self, parameter) is None:
            absent[parameter] = self._label
        return absent

    def _validated(self, table: door.Table, **how: Any) -> Any:
        """The numbers of a table, after scikit-learn's checks of shape and names."""
        names = table.names or ()
        twice = [
            str(name) for name, count in Counter(names).items() if count > 1
        ]
        if twice:
            named = ", ".join(twice)
            raise ValueError(
                f"X: expected columns of different names, found two {named}"
            )
        with warnings.catch_warnings():
            if table.names is not None:  # of these it is told below
                warnings.filterwarnings(
                    "ignore", "X does not have valid feature names"
                )
            try:
                values = validate_data(
                    self, table.values, dtype=np.float64, **how
                )
            except ValueError as error:  # of shapes, which are public
                raise ValueError(f"X: {error}") from None
        if names and all(isinstance(name, str) for name in names):
            import pandas as pd

            header = pd.DataFrame(columns=[*names], dtype=np.float64)
            reset = how["reset"]
            validate_data(self, header, reset=reset, skip_check_array=True)
        return values

    def _check(self, n: int) -> None:
        """Refuse meaningless parameters, and warn of weak ones."""
        self._n = n
        delta = 1 / n**2 if self.delta is None else self.delta
        self._epsilon, self._delta = check_target(self.epsilon, delta)
        l2 = 0.0 if self.l2 is None else self.l2
        is_released = _is_flag(self.release) and self.release
        for name, is_right, expected in (
            ("loss", isinstance(self.loss, str) and self.loss in self._losses,
             f"one of {', '.join(self._losses)}"),
            ("setting", isinstance(self.setting, Mapping | None), "values by name"),
            ("setting", self.setting is None or not self._is_auto,
             "with a solver that is named, not 'auto'"),
            ("l1", is_number(self.l1) and 0 <= self.l1 < math.inf,
             "a finite number from 0"),
            ("l2", is_number(l2) and 0 <= l2 < math.inf, "a finite number from 0"),
            ("fit_intercept", _is_flag(self.fit_intercept), "True or False"),
            ("release", _is_flag(self.release), "True or False"),
            ("random_state", self.random_state is None or not is_released,
             "None with release=True, which takes the system's"),
            ("epsilon", not is_released or self._epsilon < math.inf,
             "a finite epsilon with release=True"),
        ):  # fmt: skip
            if not is_right:
                found = getattr(self, name)
                raise ValueError(
                    f"{name}: expected {expected}, found {door.shown(found)}"
                )
        if self.release:
            from dperm import extras

            extras.require("release", "release=True")
        for is_weak, what in (
            (self._delta > 1 / n, f"delta: {self._delta:g} is more than 1/n = {1 / n:g}"
             ": to publish one record as it is would be private by that"),
            (n < MIN_RECORDS, f"X: {n} records, expected {MIN_RECORDS} or more: noise "
             "hides all else"),
        ):  # fmt: skip
            if is_weak:
                warnings.warn(what, UserWarning, 5)

    @property
    def _is_auto(self) -> bool:
        """Whether the method is ours to choose."""
        return isinstance(self.solver, str) and self.solver == AUTO

    def __sklearn_clone__(self) -> Any:
        """A copy without a fit; a solver that is an object is the same one."""
        plain = copy.copy(self)
        plain.solver = AUTO
        made: Any = Counted.__sklearn_clone__(plain)
        made.solver = self.solver
        return made

    def _runs(
        self, X: Any, every: Sequence[Any], chosen: str = "", own: bool = False
    ) -> list[tuple[SolverAdapter, Setting]]:
        """A method on the problem of each vector of labels, with its setting.

        ``chosen`` is the method that was chosen before, if it was ours to choose.
        ``own`` lets the only problem change X and keep it.
        """
        method = None
        if chosen or not self._is_auto:
            method = methods.method(chosen or self.solver)
        scales = method is None or method.scales_columns
        self._constant = UNPENALISED if scales else 1.0
        by_rows = (
            method is not None
            and registry.family(method.module) == "full_batch"
        )
        problems = [
            self._problem(X, y, len(every), own, by_rows) for y in every
        ]
        method = method or self._usual(problems)
        if reason := self._obstacle(method, problems[0]):
            raise methods.UnsuitedError(
                f"solver {method.name}: cannot do this: {reason}"
            )
        self.solver_ = method.name
        is_tilted = method.algorithm == "objective_perturbation"
        safe: dict[str, Any] = {"minima": "approximate"} if is_tilted else {}
        setting = {**method.default, **safe, **(self.setting or {})}
        method.check(setting)
        return [(method.on(problem), setting) for problem in problems]

    def _alone(
        self, X: Any, every: Sequence[Any], chosen: str = ""
    ) -> list[tuple[SolverAdapter, Setting]]:
        """The runs of one fit, which hold records once: one alone may change X."""
        own = len(every) == 1
        runs = self._runs(X, every, chosen, own)
        for on, _ in runs:
            on.exact = self.release
            on.once = True
            on.own = own
        return runs

    def _usual(self, problems: Sequence[Problem]) -> methods.Method:
        """The first method that can solve the problems; no data decide.

        Several problems need a joint price by a formula, because others take minutes.
        """
        first = problems[0]
        p = first.p - self.fit_intercept
        size = first.n * self._epsilon / max(p, 1)
        *names, last = methods.usual(first.loss.quadratic, p, size)
        for method in map(methods.method, names):
            if not self._obstacle(method, first):
                ledger = method.on(first).ledger(method.default, 1.0)
                if len(problems) == 1 or is_closed_form(ledger + ledger):
                    return method
        return methods.method(last)

    def _obstacle(self, method: methods.Method, problem: Problem) -> str:
        """Why a method cannot fit a problem of declared scales; empty if it can."""
        if self.release and method.algorithm not in FOR_RELEASE:
            return (
                f"release=True has no proof for {method.name}; expected one of "
                f"{', '.join(FOR_RELEASE)}"
            )
        chosen = method.options
        sets = getattr(chosen, "blocks", 0) or getattr(chosen, "groups", 0)
        if getattr(chosen, "probabilities", "") == "importance" and sets:
            return "its number of steps follows from columns' scales that it reads off"
        return method.on(problem).obstacle()

    def _problem(
        self, X: Any, y: np.ndarray, count: int, own: bool, by_rows: bool
    ) -> Problem:
        """The objective, one of ``count`` that share epsilon, under scales of 1.

        Without ``l2`` its ridge is 1 / n, or where the noise of one release costs least
        beside l2 |w|^2: p (z R / (n (1 + l2)))^2, z the multiplier and R^2 = p + 2.
        """
        n, p = X.shape
        target = (self._epsilon / math.sqrt(count), self._delta)
        l2 = None if self.l2 is None else float(self.l2)
        if l2 is None:
            noise = p * (p + 2) * (ranges.whole(*target) / n) ** 2
            l2 = max(1 / n, RIDGE[self._is_real] * noise)
        scales = np.ones(p)
        if self.fit_intercept:
            X = with_constant(X, self._constant, own)
            scales = np.append(scales, self._constant)
        known = (self.loss, Penalty(float(self.l1), l2), *target)
        own |= self.fit_intercept
        problem = build(
            "fit", X, y, *known, given=(N,), own=own, by_rows=by_rows
        )
        return declared(problem, scales)

    # --- the fit ----------------------------------------------------------------------

    @np.errstate(all="ignore")  # warnings would depend on the records
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (n, p) and labels y, of any kind that ``dperm.problems.door`` reads.

        Raises ValueError for unsuitable labels, parameters or solvers, and BudgetError
        if an open ``Budget`` has too little left.
        """
        self._refuse_elsewhere()
        t, every = self._cleaned(X, y)
        seed = noise_seed(self.random_state)
        first = ranges.ledger(
            self._ranges, self._n, self._epsilon, self._delta
        )
        noise = self._paid(t, every, first, seed)
        drawn = Exact() if self.release else ranges.seeded(seed)
        standard, every, _ = self._standardised(
            t, every, first, drawn, own=True
        )
        del (
            t,
            X,
            y,
        )  # no second copy of the records is held while a solver runs
        chosen = self.solver_ if self._is_auto else ""
        runs = self._alone(standard, every, chosen)
        del standard
        seeds, W = [seed] if len(runs) == 1 else seeds_of(seed, len(runs)), []
        with door.silent():
            for (on, setting), one in zip(runs, seeds, strict=True):
                W.append(on.weights(setting, noise, one))
        lost = ~np.isfinite(np.array(W)).all(axis=1)
        if lost.any():
            what = "the run diverged: weights are 0; expected a smaller step"
            warnings.warn(what, RuntimeWarning, 3)
        self._published(np.where(lost[:, None], 0.0, W))
        return self

    def _paid(
        self, t: Any, every: Sequence[Any], first: Ledger, seed: int
    ) -> float:
        """The noise multiplier of a fit, whose cost open budgets pay.

        The price is that of a problem of zeros, so no record has a say in it.
        """
        shape = (self._n, t.shape[1])
        zeros: Any = sparse.csc_array(shape)
        if not sparse.issparse(t):
            zeros = np.zeros(
                (shape[0], shape[1] + self.fit_intercept), order="F"
            )
            zeros = zeros[:, : shape[1]]
        runs = self._runs(zeros, [np.ones(self._n) for _ in every], own=True)

        def stated(noise: float) -> Ledger:
            return sum(
                (on.ledger(setting, noise) for on, setting in runs), first
            )

        spent = (
            self._spent(t.shape[1] + 2, stated(1.0)) if self.release else 0.0
        )
        least = calibrated(stated, self._epsilon, self._delta - spent)
        public = [on.public_information(least.ledger) for on, _ in runs]
        runs.clear()  # with their zeros, whoever still holds ``stated``
        given = united(*public, self._public)
        charge(least.true_epsilon, self._delta, given, seed)
        cost = (least.true_epsilon, spent)
        self.epsilon_ = Guarantee(least.ledger, self._delta, given, *cost)
        return least.noise_multiplier

    def _spent(self, width: int, stated: Ledger) -> float:
        """The share of delta that discrete noise costs, with intercept and label."""
        # after the sums
        releases = sum(event.count for event in stated.events[1:])
        numbers = releases * width * (width + 1) // 2 + 2 * width
        cost = slack(numbers, self._epsilon)
        if not cost < self._delta / 2:
            unit = slack(numbers, 0.0) / 2  # of 1 + e^epsilon
            room = self._delta / (2 * unit) - 1
            largest = (
                math.floor(100 * math.log(room)) / 100 if room > 1 else 0.0
            )
            if not largest > 0:
                raise ValueError(
                    f"delta: expected more than {4 * unit:g} with release=True, found "
                    f"{self._delta:g}"
                )
            raise ValueError(
                f"epsilon: expected at most {largest:g} with release=True at delta "
                f"{self._delta:g}, found {self._epsilon:g}"
            )
        return cost

    def _standardised(
        self,
        t: Any,
        every: Sequence[Any],
        given: Ledger,
        normal: Normal | Exact,
        own: bool = False,
    ) -> tuple[Any, list[Any], np.ndarray]:
        """Columns and labels over what is released here, and the noisy sums.

        ``own`` says that t may be changed.
        """
        ts = [t, every[0][:, None]][: len(self._ranges)]
        self._ranges, noisy = ranges.released(self._ranges, ts, given, normal)
        for what in ranges.doubts(
            self._ranges, noisy, given, t, is_real=self._is_real
        ):
            warnings.warn(f"{what}. {NOTHING_SHOWN}", UserWarning, 4)
        first, *label = self._ranges
        every = (
            [label[0].standard(y) for y in every]
            if self._is_real
            else [*every]
        )
        return first.standard(t, own), every, noisy

    def _published(self, W: np.ndarray) -> None:
        """Keep weights (K, p) as coefficients in the units of the user's columns."""
        columns, *label = self._ranges
        coef: Any = W[:, : len(columns.low)]
        of_constant = W[:, len(columns.low) :]  # nothing without an intercept
        intercept: Any = of_constant.sum(axis=1) * self._constant
        if self._is_real:
            coef = coef * label[0].scale
            intercept = intercept * label[0].scale + label[0].centre
        elif label:
            coef, intercept = self._cautious(coef, intercept, label[0])
        coef = np.where(columns.idle, 0.0, coef / columns.scale)
        intercept = intercept - coef @ columns.centre
        if self._is_real:
            coef, intercept = coef[0], float(intercept[0])
        self.coef_, self.intercept_ = coef, intercept

    def _cautious(
        self, coef: np.ndarray, intercept: np.ndarray, label: ranges.Ranges
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights of objective perturbation, nearer to the best constant under noise.

        The tilt's noise, over n times the loss's curvature at the share of the second
        class, is the intercept's, and with Lambda that of a weight. Weights keep |w|^2
        / (|w|^2 + 2 noise); the intercept is averaged with the constant's by precision.
        """
        first, *others = self.epsilon_.ledger.events
        tilts = [one for one in others if isinstance(one, PerturbedObjective)]
        if not tilts or not first.scale:
            return coef, intercept
        tilt = tilts[0]
        share = float(np.clip(0.5 + label.mean / 2, *SHARES)[0])
        curvature = share * (1 - share)
        ridge = (tilt.sensitivity / 2) ** 2 / tilt.curvature
        off = coef.size * (tilt.scale / (self._n * curvature + ridge)) ** 2
        kept = 1 / (1 + 2 * off / max(float(np.sum(coef**2)), 1e-300))
        of_constant = first.scale / (label.weight * self._n * 2 * curvature)
        constant = of_constant**2 + (SPREAD * kept) ** 2
        own = (tilt.scale / (self._n * curvature)) ** 2
        best = math.log(share / (1 - share))
        return kept * coef, (constant * intercept + own * best) / (
            constant + own
        )

    # --- after a fit ------------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """<x, w> plus the intercept for each record and vector of weights, (n, K)."""
        check_is_fitted(self, "coef_")
        how = {"reset": False, "accept_sparse": ("csr", "csc")}
        X = self._validated(door.table(X), **how)
        return np.asarray(X @ np.atleast_2d(self.coef_).T) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False)
class DPClassifier(ClassifierMixin, DPLinear):
    r"""A private linear classifier.

    Minimises mean_i phi(y_i (x_i . w + b)) + l1 ||w||_1 + (l2 / 2) ||w||^2 with a
    solver that meets (epsilon, delta) for neighbours that differ by *replacing* one
    record, under the tight accountant. ``dp_sgd``, ``dp_svrg`` and DP-SkGD penalise
    the intercept b as well. More than two classes are fitted one against the rest, all
    within one epsilon.

    Parameters
    ----------
    solver : str, module or object
        "auto" takes the first method that can solve the problem, by loss and p alone.
        Otherwise the name of a solver of this package or of an entry point of
        ``dperm.solvers``, ``module:name``, or a module or object of one's own with the
        names of a solver (:mod:`dperm.solvers.registry`). The current folder has no
        say.
    epsilon : float
        Positive; ``inf`` gives the solver without noise.
    delta : float, optional
        None means 1 / n^2.
    loss : {"logistic", "smoothed_hinge"}
    l1, l2 : float
        They weigh w in units of the released scales. ``l2=None`` means 1 / n, or more
        where noise would cost more than such a ridge.
    classes : sequence
        Required. The labels; of two, the second is +1. A record with another label, or
        with NaN, counts as one in the middle of all ranges.
    bounds : (low, high), list of pairs, pair of arrays, or mapping
        Required. Ranges to which columns are clipped, not computed from the data: one
        pair for all, a list of one for each, a tuple of two arrays with lower and upper
        ends, or pairs by the names of a data frame's columns.
    setting : mapping, optional
        Values of a named solver, such as ``{"steps": 10, "clip": 1}`` of ``dp_gd``.
    random_state : int, RandomState or None
        None draws from the operating system; a seed that others know hides nothing.
    release : bool
        Whether noise is exact and discrete instead of made of doubles, so that results
        may be published (:mod:`dperm.solvers.exact_noise`). It needs ``pip install
        'dperm[release]'``, no ``random_state``, and a solver whose sums have a proof:
        ``dp_gd``, ``dp_gram`` or ``moments``.

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

    Raises
    ------
    ValueError
        By ``fit``, for what is no record or parameter, before anything is released.
    BudgetError
        By ``fit``, if an open ``Budget`` has too little left.

    Examples
    --------
    >>> from dperm import DPClassifier
    >>> X, y = [[1.0], [-1.0]] * 500, [1, 0] * 500
    >>> model = DPClassifier(classes=(0, 1), bounds=(-1, 1), random_state=0).fit(X, y)
    >>> model.predict([[2.0], [-2.0]]).tolist(), model.epsilon_.given
    ([1, 0], ('n', 'width of rows', 'types of columns', 'type of labels'))
    """

    _: KW_ONLY
    loss: str = "logistic"
    classes: Any = None
    _label, _losses = "classes=(first, second, ...)", SIGNED
    _is_real = False

    def _read(self, y: Any) -> door.Labels:
        """The class of each label."""
        declared = door.classes(self._declared(y))
        self.classes_ = declared.values
        return door.codes(y, declared)

    def _declared(self, y: Any) -> Any:
        """The classes; the labels y have no say."""
        return self.classes

    def _labelled(self, X: Any, codes: np.ndarray) -> tuple[Any, list[Any]]:
        """Labels as signs, a vector per class beyond two; of no class, zeros all."""
        X, known = cleaned(X, np.where(codes >= 0, 1.0, np.nan))
        first = 1 if len(self.classes_) == 2 else 0
        every = [
            np.where((codes == place) | (known == 0), 1.0, -1.0)
            for place in range(first, len(self.classes_))
        ]
        if self.fit_intercept and len(every) == 1:
            self._ranges.append(
                ranges.of_label(-1, 1, True, X.shape[1], is_real=False)
            )
        return X, every

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of records X (n, p): (n,), positive for the second class; (n, K)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The classes of records X (n, p); shape (n,)."""
        scores = self._scores(X)
        single = scores.shape[1] == 1
        best = (
            (scores[:, 0] > 0).astype(int) if single else scores.argmax(axis=1)
        )
        classes: np.ndarray = self.classes_[best]
        return classes

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, for the logistic loss only; shape (n, K).

        With more than two classes, each against the rest, divided by their sum.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            scores = np.column_stack((-scores, scores))
        shares: np.ndarray = softmax(log_expit(scores), axis=1)
        return shares


@dataclass(eq=False, repr=False)
class DPRegressor(RegressorMixin, DPLinear):
    r"""A private linear regression.

    Minimises mean_i phi(x_i . w + b - y_i) + l1 ||w||_1 + (l2 / 2) ||w||^2. Parameters
    and attributes that are not named here are those of ``DPClassifier``.

    Parameters
    ----------
    loss : {"least_squares", "huber"}
    label_bounds : (low, high)
        Required. The range of the labels, as ``bounds``.

    Attributes
    ----------
    coef_ : ndarray, shape (p,)
    intercept_ : float

    Raises
    ------
    ValueError, BudgetError
        As ``DPClassifier``.

    Examples
    --------
    >>> from dperm import DPRegressor
    >>> X, y = [[0.0], [1.0]] * 2000, [0.0, 2.0] * 2000
    >>> model = DPRegressor(bounds=(0, 1), label_bounds=(0, 2), random_state=0)
    >>> [round(label) for label in model.fit(X, y).predict([[0.0], [1.0]])]
    [0, 2]
    """

    _: KW_ONLY
    loss: str = "least_squares"
    label_bounds: Any = None
    _label, _losses, _is_real = "label_bounds=(low, high)", RESIDUAL, True

    def _read(self, y: Any) -> door.Labels:
        """The number that each label is."""
        return door.numbers(y)

    def _labelled(self, X: Any, y: np.ndarray) -> tuple[Any, list[Any]]:
        """Labels as t in their range; a record with NaN becomes zeros."""
        ends = ranges.declared(
            "label_bounds",
            self.label_bounds,
            1,
            self.fit_intercept,
            is_sparse=False,
        )
        label = ranges.of_label(ends.low, ends.high, ends.centred, X.shape[1])
        self._ranges.append(label)
        X, y = cleaned(X, label.unit(y))
        return X, [y]

    def predict(self, X: Any) -> np.ndarray:
        """Predicted labels of records X (n, p), within their range; shape (n,)."""
        scores = self._scores(X)[:, 0]
        label = self._ranges[1]
        return np.clip(scores, label.low, label.high)


@overload
def fit(
    X: Any,
    y: Any,
    solver: Any = ...,
    epsilon: float = ...,
    *,
    classes: Any,
    bounds: Any = ...,
    delta: float | None = ...,
    loss: str = ...,
    l1: float = ...,
    l2: float | None = ...,
    fit_intercept: bool = ...,
    setting: Mapping[str, float] | None = ...,
    random_state: Any = ...,
    release: bool = ...,
) -> DPClassifier: ...


@overload
def fit(
    X: Any,
    y: Any,
    solver: Any = ...,
    epsilon: float = ...,
    *,
    label_bounds: Any,
    bounds: Any = ...,
    delta: float | None = ...,
    loss: str = ...,
    l1: float = ...,
    l2: float | None = ...,
    fit_intercept: bool = ...,
    setting: Mapping[str, float] | None = ...,
    random_state: Any = ...,
    release: bool = ...,
) -> DPRegressor: ...


def fit(
    X: Any, y: Any, solver: Any = AUTO, epsilon: float = 1.0, **parameters: Any
) -> DPClassifier | DPRegressor:
    """Fit a private linear model to X (n, p) and labels y (n,).

    Parameters
    ----------
    X : array, sparse array, data frame, list of rows or mapping of columns, (n, p)
    y : array, series, list or column, (n,)
        Labels of classes, or numbers in the units that predictions will have.
    solver : str, module or object
        "auto" takes the first method that can solve the problem, by loss, n epsilon / p
        and p alone.
    epsilon : float
        Of the whole fit, for neighbours that differ by replacing one record.
    classes : sequence
        Gives a ``DPClassifier``.
    label_bounds : (low, high)
        Gives a ``DPRegressor``. The labels have no say in which of the two it is.
    bounds, delta, loss, l1, l2, fit_intercept, setting, random_state, release
        As those classes document them.

    Returns
    -------
    DPClassifier or DPRegressor
        Fitted; ``epsilon_`` says in a sentence what it costs.

    Raises
    ------
    ValueError
        For what is no record, label or parameter; the line names it and the cure.
    TypeError
        For a parameter that there is not.
    BudgetError
        If an open ``Budget`` has too little left.

    Examples
    --------
    >>> import dperm
    >>> X, y = [[1.0], [-1.0]] * 500, [1.0, -1.0] * 500
    >>> model = dperm.fit(X, y, bounds=(-1, 1), classes=(-1, 1), random_state=0)
    >>> type(model).__name__, model.solver_
    ('DPClassifier', 'objective_perturbation')
    """
    chosen = [
        name for name in ("classes", "label_bounds") if name in parameters
    ]
    estimator_type = DPClassifier if chosen == ["classes"] else DPRegressor
    named = {
        *signature(DPClassifier).parameters,
        *signature(DPRegressor).parameters,
    }
    strange = [name for name in parameters if name not in named]
    if strange:
        name = strange[0]
        raise TypeError(f"fit: no parameter {name}{hint(name, named)}")
    if len(chosen) != 1:
        names = door.table(X).names
        columns: Any = 1 if names is None else [*map(str, names)]
        too = f". Declare {ranges.template(columns)} too"
        raise ValueError(
            "classes, label_bounds: expected classes=(first, second, ...) for "
            "labels of classes, or label_bounds=(low, high) for numbers, found "
            f"{' and '.join(chosen) or 'neither'}{too * ('bounds' not in parameters)}"
        )
    return estimator_type(solver, epsilon=epsilon, **parameters).fit(X, y)


def _is_flag(choice: Any) -> bool:
    return isinstance(choice, Integral | np.bool_) and choice in (True, False)


def with_constant(X: Any, value: float, own: bool = False) -> Any:
    """X (n, p) with a last column of that value, whose weight is the intercept.

    A dense X that is one's ``own`` with room beside it (:meth:`.ranges.Ranges.unit`)
    is not copied.
    """
    n, p = X.shape
    if sparse.issparse(X):
        ones = sparse.csc_array(np.full((n, 1), value))
        return sparse.hstack((X, ones), format="csc")
    if own and X.base is not None and X.base.shape == (n, p + 1):
        whole: np.ndarray = X.base
    else:
        whole = np.empty((n, p + 1), order="F")  # the order of problems
        whole[:, :p] = X
    whole[:, p] = value
    return whole


def noise_seed(random_state: Any) -> int:
    """The seed of a fit's noise; from the operating system unless one is passed."""
    if random_state is None:
        return secrets.randbits(62)
    try:
        return int(check_random_state(random_state).randint(2**31))
    except (ValueError, TypeError) as error:
        raise ValueError(
            "random_state: expected None, a whole number in [0, 2^32) or a "
            f"RandomState, found {door.shown(random_state)}"
        ) from error
