"""Methods on a data set at one epsilon: the engine of ``dperm try`` and of the arena.

A run is a fit by ``DPClassifier`` or ``DPRegressor``, so that what is compared is what
a user gets. Its *excess* is the mean loss on the records that were fitted above the
least one without privacy, over what that least one gains on the best constant: 0 is as
good as without privacy, and 1 is no better than a constant. A fifth of the records is
held out for a metric.

A fit, the best constant and the least loss (:mod:`.reference`) share one problem, whose
columns and real labels are counted from the middle of their range. So no excess is
negative, and origins and units of columns and labels do not matter: residuals are
counted in standard deviations of the labels. The excess is of linear scores, and the
metric of predictions, which are clipped to declared ranges.

``default`` tunes nothing. ``grid`` takes the setting with the least mean excess, for
free: all settings run once, and the best again on other seeds. Fresh runs have seeds
that chose nothing. Seeds and split do not depend on the name of the data.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from dperm.compare.estimators import SIGNED, DPClassifier, DPRegressor
from dperm.compare.methods import Method, Setting, UnsuitedError
from dperm.compare.reference import Reference, losses_of, reference
from dperm.core.erm import door, losses
from dperm.core.erm.optimum import NotCertifiedError
from dperm.core.experiment.plan import seed_of
from dperm.core.lanes.trials import seeds_of
from dperm.present.tables import number, with_interval

log = logging.getLogger(__name__)

TUNINGS = ("default", "grid")
HELD = 0.2  # share of records that are held out, and their seed
SPLIT = 20240219
TUNED = 3  # runs of the best settings of a grid, and how many these are
AHEAD = 3
LARGEST = 2**27  # entries of X, which is dense so that it is centred
ROUNDING = 1e-9  # how far below 0 an excess may be
COLUMNS = [  # of a run
    *("problem", "solver", "n", "p", "loss", "epsilon", "tuning", "setting"),
    *("run_seed", "excess", "metric", "test", "seconds", "true_epsilon", "given"),
    *("status", "reason"),
]
KEYS = ["problem", "solver", "epsilon", "tuning"]  # of a mean
OF_TRY = [  # columns of try.csv
    *("algorithm", "tuning", "epsilon", "true_epsilon", "mean", "ci_low", "ci_high"),
    *("metric", "test", "seconds", "setting", "given", "solver", "status", "reason"),
]
ENDS = {"constant": "the best constant", "no privacy": "without privacy"}
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A data set in two parts, its loss, and what is declared to a fit of it.

    Columns and real labels are counted from an origin, which is the middle of the
    data's range, or 0 if there is no intercept. ``declared`` has parameters of the
    estimator, ``bounds`` and ``classes`` or ``label_bounds`` among them, counted
    likewise.
    """

    name: str
    X: np.ndarray  #: (n, p)
    y: np.ndarray  #: shape (n,)
    X_held: np.ndarray
    y_held: np.ndarray
    loss: str
    declared: Mapping[str, Any]
    origin: np.ndarray  #: of the columns, shape (p,)
    label_origin: float  #: of the labels; 0 for classes

    @classmethod
    def of(cls, name: str, X: Any, y: np.ndarray, loss: str, **declared: Any) -> Self:
        """Split records off; ranges and classes that are not declared are the data's.

        Raises ValueError if X (n, p), dense or sparse, has too many entries.
        """
        if np.prod(X.shape) > LARGEST:
            raise ValueError(
                f"{name}: expected at most {LARGEST} entries, found {X.shape[0]} x "
                f"{X.shape[1]}: without privacy, columns are centred and kept dense"
            )
        X = door.table(X).values
        X = X.toarray() if sparse.issparse(X) else X
        has_intercept = declared.get("fit_intercept", True)
        columns = ends(X)
        origin = _middle(columns) * has_intercept
        low, high = declared.get("bounds", columns)
        declared["bounds"] = (low - origin, high - origin)
        label_origin = 0.0
        if loss in SIGNED:
            declared.setdefault("classes", tuple(np.unique(y).tolist()))
        else:
            labels = ends(y)
            label_origin = float(_middle(labels)) * has_intercept
            low, high = declared.get("label_bounds", labels)
            declared["label_bounds"] = (
                float(low) - label_origin,
                float(high) - label_origin,
            )
            y = y - label_origin
        X, X_held, y, y_held = train_test_split(
            X - origin, y, test_size=HELD, random_state=SPLIT
        )
        return cls(name, X, y, X_held, y_held, loss, declared, origin, label_origin)

    @property
    def signed(self) -> bool:
        """Whether labels are classes."""
        return self.loss in SIGNED

    @cached_property
    def unit(self) -> float:
        """What residuals are counted in: the standard deviation of real labels."""
        deviation = 0.0 if self.signed else float(np.std(self.y))
        return deviation or 1.0

    @cached_property
    def reference(self) -> Reference:
        """The least loss without privacy, and that of the best constant."""
        return reference(self.X, self._target(self.y), losses.named(self.loss))

    def excess(self, scores: np.ndarray) -> float:
        """The excess of linear scores (n,) of the fitted records.

        Raises NotCertifiedError if it is negative by more than rounding, which would
        show that the least loss is not the least.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            record_losses = losses_of(
                scores / self.unit, self._target(self.y), losses.named(self.loss)
            )
            above = float((record_losses - self.reference.least).mean())
        excess = above / self.reference.gain
        if excess < -ROUNDING:
            raise NotCertifiedError(
                f"{self.name}: found an excess of {excess:g}, expected 0 or more: the "
                "least loss without privacy is wrong. This is an error of dperm"
            )
        return excess

    def held(self, scores: np.ndarray) -> float:
        """The metric of scores of the held-out records; nan with one class alone."""
        if not self.signed:
            return float(r2_score(self.y_held, scores))
        y = self._target(self.y_held)
        return float(roc_auc_score(y, scores)) if len({*y}) == 2 else float("nan")

    def _target(self, y: np.ndarray) -> np.ndarray:
        """Signs of classes, or labels in their unit; shape (n,)."""
        if self.signed:
            return np.where(y == self.declared["classes"][1], 1.0, -1.0)
        return y / self.unit

    def measured(self, scores: np.ndarray, held: np.ndarray) -> Row:
        """Of a row: the excess of fitted records' scores, and the held-out metric."""
        return self._ok(self.excess(scores), self.held(held))

    def ends(self) -> list[Row]:
        """The best constant, and the fit without privacy, as rows of no epsilon."""
        mean = np.full(len(self.y_held), self.y.mean())
        test = 0.5 if self.signed else self.held(mean)
        free = self.reference
        scores = self.unit * (self.X_held @ free.slopes + free.intercept)
        return [
            {**self.known("constant"), **self._ok(1.0, test)},
            {**self.known("no privacy"), **self._ok(0.0, self.held(scores))},
        ]

    def _ok(self, excess: float, test: float) -> Row:
        measures = {"excess": excess, "metric": "AUC" if self.signed else "R2"}
        return {**measures, "test": test, "status": "ok", "reason": ""}

    def fit(self, method: Method, epsilon: float, setting: Setting, seed: int) -> Any:
        """A fit of the method, from a seed."""
        kind = DPClassifier if self.signed else DPRegressor
        parameters = {"setting": dict(setting), "loss": self.loss, **self.declared}
        model = kind(method, epsilon=epsilon, random_state=seed, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(self.X, self.y)

    def known(self, solver: str) -> Row:
        """What is the same in all rows of a solver."""
        size = {"n": len(self.y), "p": self.X.shape[1], "loss": self.loss}
        return {"problem": self.name, "solver": solver, **size}


def ends(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of columns X (n, k), which always differ."""
    low = X.min(axis=0)
    high = X.max(axis=0)
    if sparse.issparse(X):
        low = low.toarray().ravel()
        high = high.toarray().ravel()
    above = low + np.maximum(1.0, np.abs(low))
    return low, np.where(high > low, high, above)


def _middle(pair: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The middle of ranges, whose sum may overflow."""
    return pair[0] / 2 + pair[1] / 2


def linear(model: Any, X: np.ndarray) -> np.ndarray:
    """Linear scores of a fitted model for records X (n, p), not clipped; (n,)."""
    slopes = np.ravel(model.coef_)
    intercept = np.ravel(model.intercept_)
    scores: np.ndarray = X @ slopes + intercept
    return scores


def predicted(model: Any, X: np.ndarray) -> np.ndarray:
    """What a metric reads of a fitted model for records X (n, p); shape (n,)."""
    scores: np.ndarray = getattr(model, "decision_function", model.predict)(X)
    return scores


# --- rows -----------------------------------------------------------------------------


def rows(
    case: Case,
    method: Method,
    epsilons: Sequence[float],
    seed: int,
    fresh: int = 10,
    tunings: Sequence[str] = TUNINGS,
) -> list[Row]:
    """One row for each fresh run of a method, or one with the reason for none.

    Epsilons and tunings that are listed twice run once.
    """
    fixed = case.known(method.name)
    drawn = [word % 2**32 for word in seeds_of(seed, TUNED + fresh)]
    all_rows: list[Row] = []
    for epsilon in unique(epsilons):
        for tuning in unique(tunings):
            common = {**fixed, "epsilon": epsilon, "tuning": tuning}
            try:
                setting = method.default
                if tuning == "grid":
                    setting = _tuned(case, method, epsilon, drawn[:TUNED])
                runs = list(_runs(case, method, epsilon, setting, drawn[TUNED:]))
            except ValueError as error:
                gap = {"status": "gap", "reason": str(error)}
                if isinstance(error, UnsuitedError):
                    return [{**fixed, **gap}]
                runs = [gap]
            all_rows += [{**common, **run} for run in runs]
    return all_rows


def unique(options: Iterable[Any]) -> list[Any]:
    """The values that differ, in their order; 1 and 1.0 are equal."""
    distinct: list[Any] = []
    for option in options:
        if option not in distinct:
            distinct.append(option)
    return distinct


def _tuned(case: Case, method: Method, epsilon: float, seeds: Sequence[int]) -> Setting:
    """The setting of the grid with the least mean excess."""

    def mean(setting: Setting, some_seeds: Sequence[int]) -> float:
        runs = [case.fit(method, epsilon, setting, seed) for seed in some_seeds]
        excesses = [case.excess(linear(model, case.X)) for model in runs]
        return float(np.nan_to_num(np.mean(excesses), nan=np.inf))

    once = dict[int, float]()
    refused = ""
    grid = unique(method.grid)
    for k, setting in enumerate(grid):
        try:
            once[k] = mean(setting, seeds[:1])
        except ValueError as error:  # no noise meets the target
            refused = str(error)
    if not once:
        raise ValueError(refused)
    ahead = sorted(once, key=once.__getitem__)[:AHEAD]
    sums = {k: once[k] + (TUNED - 1) * mean(grid[k], seeds[1:]) for k in ahead}
    return grid[min(sums, key=sums.__getitem__)]


def _runs(
    case: Case, method: Method, epsilon: float, setting: Setting, seeds: Sequence[int]
) -> Iterator[Row]:
    for seed in seeds:
        start = time.perf_counter()
        model = case.fit(method, epsilon, setting, seed)
        seconds = time.perf_counter() - start
        yield {
            "setting": ", ".join(
                f"{key} {option:g}" for key, option in setting.items()
            ),
            "run_seed": seed,
            **case.measured(linear(model, case.X), predicted(model, case.X_held)),
            "seconds": seconds,
            "true_epsilon": model.epsilon_.high if seed == seeds[0] else np.nan,
            "given": "; ".join(model.epsilon_.given),
        }


def race(
    case: Case,
    methods: Iterable[Method],
    epsilons: Sequence[float],
    seed: int,
    workers: int = 1,
    **counts: Any,
) -> pd.DataFrame:
    """All runs of all methods, and both ends; the same for any number of workers."""
    jobs = []
    for method in methods:
        method_seed = seed_of(seed, "race", "", method.name, 0, 0)
        jobs.append(delayed(rows)(case, method, epsilons, method_seed, **counts))
    all_rows: list[Row] = []
    for count, method_rows in enumerate(Parallel(workers, return_as="generator")(jobs)):
        all_rows += method_rows
        log.info("  %d of %d methods have run", count + 1, len(jobs))
    return pd.DataFrame([*all_rows, *case.ends()])


# --- means and text -------------------------------------------------------------------


def means(runs: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """A row for each problem, method, epsilon and tuning, and for each gap.

    ``mean`` is that of the excess, with Student's interval, infinite if any excess is;
    ``test`` is the mean of the held-out metric; ``algorithm`` is the method's label.
    Both ends have one row a problem, and no epsilon.
    """
    table = []
    names = {**labels, **ENDS}
    runs = runs.reindex(columns=COLUMNS)
    for _, group in runs.groupby(KEYS, sort=False, dropna=False):
        shared = group.iloc[0].drop(["excess", "run_seed"]).to_dict()
        row = {"algorithm": names.get(shared["solver"], shared["solver"]), **shared}
        if row["status"] == "ok":
            row |= {key: group[key].mean() for key in ("seconds", "test")}
            excesses = group["excess"].to_numpy(dtype=float)
            row |= dict.fromkeys(("mean", "ci_low", "ci_high"), np.inf)
            row |= with_interval(excesses) if np.isfinite(excesses).all() else {}
        table.append(row)
    return pd.DataFrame(table)


def recommended(table: pd.DataFrame) -> Iterator[str]:
    """For each epsilon and tuning of ``means``, whom to take, or that none learns."""
    table = table[table["epsilon"].notna() & (table["status"] == "ok")]
    for (epsilon, tuning), group in table.groupby(["epsilon", "tuning"], sort=False):
        group = group.sort_values("mean")
        best = group.iloc[0]
        level = (
            f"{best['algorithm']}, excess {best['mean']:.3g} "
            f"[{best['ci_low']:.3g}, {best['ci_high']:.3g}]"
        )
        near = group["algorithm"][group["ci_low"] <= best["ci_high"]].tolist()[1:]
        equal = f"; not significantly worse: {', '.join(near)}" if near else ""
        advice = f"take {level}{equal}"
        if not best["ci_high"] < 1:
            advice = f"none beats the best constant; least is {level}"
        yield f"epsilon {epsilon:g}, {tuning}: {advice}"


def words(table: pd.DataFrame) -> str:
    """Text of a table of ``means``, and what is recommended."""
    texts = pd.DataFrame([_line(row) for row in table.to_dict("records")]).fillna("")
    texts = texts.apply(lambda column: column.str.ljust(column.str.len().max()))
    assumed = table[table["given"].notna()].drop_duplicates("algorithm")
    public = [
        f"epsilon of {', '.join(group['algorithm'])} holds given: {assumption}"
        for assumption, group in assumed.groupby("given", sort=False)
    ]
    return "\n".join(
        [texts.to_string(index=False, justify="left"), "", *recommended(table), *public]
    )


def _line(row: dict[Any, Any]) -> dict[str, str]:
    ran = row["status"] == "ok"
    has_epsilon = pd.notna(row["epsilon"])
    ends = f"[{number(row['ci_low'])}, {number(row['ci_high'])}]" if ran else ""
    return {
        "method": row["algorithm"],
        "tuning": row["tuning"] if has_epsilon else "",
        "epsilon": number(row["epsilon"]),
        "excess": number(row["mean"]) if ran else "",
        "95 % interval": ends if has_epsilon else "",
        "true epsilon": number(row["true_epsilon"], 4),
        "held out": f"{row['metric']} {number(row['test'])}" if ran else "",
        "setting": row["setting"] if ran else row["reason"],
        "seconds a fit": number(row["seconds"], 2),
    }
