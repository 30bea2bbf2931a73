"""Methods on a data set at one epsilon: the engine of ``dperm try`` and of the arena.

A run is a fit by ``DPClassifier`` or ``DPRegressor``, so that what is compared is what
a user gets. Its *excess* is the mean loss on the records that were fitted above the
least one without privacy, over what that least one gains on the best constant: 0 is as
good as without privacy, and 1 is no better than a constant. A fifth of the records is
held out for a metric.

``default`` tunes nothing. ``grid`` takes the setting with the least mean excess, for
free: all settings run once, and the best again on other seeds. Fresh runs have seeds
that chose nothing. Seeds and split do not depend on the name of the data.
"""

from __future__ import annotations

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
from scipy.optimize import minimize_scalar
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from dperm.compare.estimators import SIGNED, DPClassifier, DPRegressor, with_constant
from dperm.compare.methods import Method, Setting
from dperm.core.erm import losses
from dperm.core.erm.optimum import solve
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.experiment.plan import seed_of
from dperm.core.lanes.trials import seeds_of
from dperm.present.tables import number, with_interval

TUNINGS = ("default", "grid")
HELD, SPLIT = 0.2, 20240219  # share of records that are held out, and their seed
TUNED, AHEAD = 3, 3  # runs of the best settings of a grid, and how many these are
CONSTANT = 2.0**10  # the intercept's column without privacy, nearly free of penalty
DENSE = 2**24  # entries up to which a sparse X becomes dense, so that it is centred
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
    """A data set in two parts, its loss, and what a fit of it is told.

    ``told`` has parameters of the estimator, ``bounds`` and ``classes`` or
    ``label_bounds`` among them.
    """

    name: str
    X: Any  #: (n, p), dense or sparse
    y: np.ndarray  #: shape (n,)
    X_held: Any
    y_held: np.ndarray
    loss: str
    told: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, X: Any, y: np.ndarray, loss: str, **told: Any) -> Self:
        """Split records off; ranges and classes that are not told are the data's."""
        if sparse.issparse(X):
            X = X.toarray() if np.prod(X.shape) <= DENSE else sparse.csr_array(X)
        if "bounds" not in told:
            told["bounds"] = ends(X)
        if loss in SIGNED:
            told.setdefault("classes", tuple(np.unique(y).tolist()))
        elif "label_bounds" not in told:
            told["label_bounds"] = tuple(float(one[0]) for one in ends(y[:, None]))
        parts = train_test_split(X, y, test_size=HELD, random_state=SPLIT)
        return cls(name, parts[0], parts[2], parts[1], parts[3], loss, told)

    @property
    def signed(self) -> bool:
        """Whether labels are classes."""
        return self.loss in SIGNED

    def mean_loss(self, scores: Any) -> float:
        """Mean loss of scores (n,), or of one for all records."""
        y = self._signs(self.y) if self.signed else self.y
        margins = scores * y if self.signed else scores - y
        return float(losses.named(self.loss).values(margins).mean())

    def held(self, scores: np.ndarray) -> float:
        """The metric of scores of the held-out records; nan with one class alone."""
        if not self.signed:
            return float(r2_score(self.y_held, scores))
        y = self._signs(self.y_held)
        return float(roc_auc_score(y, scores)) if len({*y}) == 2 else float("nan")

    def _signs(self, y: np.ndarray) -> np.ndarray:
        return np.where(y == self.told["classes"][1], 1.0, -1.0)

    @cached_property
    def constant(self) -> float:
        """The loss of the best constant."""
        return float(minimize_scalar(self.mean_loss).fun)

    @cached_property
    def free(self) -> tuple[float, float]:
        """The certified least loss without privacy, and its held-out metric.

        Columns are standardised, and the ridge is 1 / n.
        """
        scaler = StandardScaler(with_mean=not sparse.issparse(self.X)).fit(self.X)
        A, B = (
            with_constant(scaler.transform(one), CONSTANT)
            for one in (self.X, self.X_held)
        )
        y = self._signs(self.y) if self.signed else self.y
        w = solve(build(self.name, A, y, self.loss, Penalty(l2=1 / len(y)))).w
        return self.mean_loss(A @ w), self.held(B @ w)

    def excess(self, scores: np.ndarray) -> float:
        """The excess of scores (n,) of the fitted records."""
        least = self.free[0]
        return (self.mean_loss(scores) - least) / (self.constant - least)

    def measured(self, scores: np.ndarray, held: np.ndarray) -> Row:
        """Of a row: the excess of fitted records' scores, and the held-out metric."""
        return self._ok(self.excess(scores), self.held(held))

    def ends(self) -> list[Row]:
        """The best constant, and the fit without privacy, as rows of no epsilon."""
        mean = np.full(len(self.y_held), self.y.mean())
        test = 0.5 if self.signed else self.held(mean)
        return [
            {**self.known("constant"), **self._ok(1.0, test)},
            {**self.known("no privacy"), **self._ok(0.0, self.free[1])},
        ]

    def _ok(self, excess: float, test: float) -> Row:
        found = {"excess": excess, "metric": "AUC" if self.signed else "R2"}
        return {**found, "test": test, "status": "ok", "reason": ""}

    def fit(self, method: Method, epsilon: float, setting: Setting, seed: int) -> Any:
        """A fit of the method, from a seed."""
        kind = DPClassifier if self.signed else DPRegressor
        known = {"setting": dict(setting), "loss": self.loss, **self.told}
        model = kind(method, epsilon=epsilon, random_state=seed, **known)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(self.X, self.y)

    def known(self, solver: str) -> Row:
        """What is the same in all rows of a solver."""
        size = {"n": len(self.y), "p": self.X.shape[1], "loss": self.loss}
        return {"problem": self.name, "solver": solver, **size}


def ends(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of columns X (n, k), which always differ."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return low, np.where(high > low, high, low + 1.0)


def scores(model: Any, X: Any) -> np.ndarray:
    """Scores of a fitted model for records X (n, p); shape (n,)."""
    found: np.ndarray = getattr(model, "decision_function", model.predict)(X)
    return found


# --- rows -----------------------------------------------------------------------------


def rows(
    case: Case,
    method: Method,
    epsilons: Sequence[float],
    seed: int,
    fresh: int = 10,
    tunings: Sequence[str] = TUNINGS,
) -> list[Row]:
    """One row for each fresh run of a method, or one with the reason for none."""
    known = case.known(method.name)
    drawn = [one % 2**32 for one in seeds_of(seed, TUNED + fresh)]
    found: list[Row] = []
    for epsilon in epsilons:
        for tuning in tunings:
            at = {**known, "epsilon": epsilon, "tuning": tuning}
            try:
                setting = method.default
                if tuning == "grid":
                    setting = _tuned(case, method, epsilon, drawn[:TUNED])
                made = list(_runs(case, method, epsilon, setting, drawn[TUNED:]))
            except ValueError as error:
                gap = {"status": "gap", "reason": str(error)}
                if "cannot do this" in str(error):
                    return [{**known, **gap}]
                made = [gap]
            found += [{**at, **one} for one in made]
    return found


def _tuned(case: Case, method: Method, epsilon: float, seeds: Sequence[int]) -> Setting:
    """The setting of the grid with the least mean excess."""

    def mean(setting: Setting, some: Sequence[int]) -> float:
        runs = [case.fit(method, epsilon, setting, one) for one in some]
        found = [case.excess(scores(model, case.X)) for model in runs]
        return float(np.nan_to_num(np.mean(found), nan=np.inf))

    once, refused = dict[int, float](), ""
    for k, setting in enumerate(method.grid):
        try:
            once[k] = mean(setting, seeds[:1])
        except ValueError as error:  # no noise meets the target
            refused = str(error)
    if not once:
        raise ValueError(refused)
    ahead = sorted(once, key=once.__getitem__)[:AHEAD]
    sums = {k: once[k] + (TUNED - 1) * mean(method.grid[k], seeds[1:]) for k in ahead}
    return method.grid[min(sums, key=sums.__getitem__)]


def _runs(
    case: Case, method: Method, epsilon: float, setting: Setting, seeds: Sequence[int]
) -> Iterator[Row]:
    for seed in seeds:
        start = time.perf_counter()
        model = case.fit(method, epsilon, setting, seed)
        seconds = time.perf_counter() - start
        yield {
            "setting": ", ".join(f"{key} {value:g}" for key, value in setting.items()),
            "run_seed": seed,
            **case.measured(scores(model, case.X), scores(model, case.X_held)),
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
    **how: Any,
) -> pd.DataFrame:
    """All runs of all methods, and both ends; the same for any number of workers."""
    jobs = (
        delayed(rows)(case, one, epsilons, seed_of(seed, "race", "", one.name, 0, 0),
                      **how)
        for one in methods
    )  # fmt: skip
    every = [row for made in Parallel(workers)(jobs) for row in made]
    return pd.DataFrame([*every, *case.ends()])


# --- means and text -------------------------------------------------------------------


def means(runs: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """A row for each problem, method, epsilon and tuning, and for each gap.

    ``mean`` is that of the excess, with Student's interval, infinite if any excess is;
    ``test`` is the mean of the held-out metric; ``algorithm`` is the method's label.
    Both ends have one row a problem, and no epsilon.
    """
    table, known = [], {**labels, **ENDS}
    runs = runs.reindex(columns=COLUMNS)
    for _, some in runs.groupby(KEYS, sort=False, dropna=False):
        first = some.iloc[0].drop(["excess", "run_seed"]).to_dict()
        row = {"algorithm": known.get(first["solver"], first["solver"]), **first}
        if row["status"] == "ok":
            row |= {key: some[key].mean() for key in ("seconds", "test")}
            excesses = some["excess"].to_numpy(dtype=float)
            row |= dict.fromkeys(("mean", "ci_low", "ci_high"), np.inf)
            row |= with_interval(excesses) if np.isfinite(excesses).all() else {}
        table.append(row)
    return pd.DataFrame(table)


def recommended(table: pd.DataFrame) -> Iterator[str]:
    """For each epsilon and tuning of ``means``, whom to take, or that none learns."""
    table = table[table["epsilon"].notna() & (table["status"] == "ok")]
    for (epsilon, tuning), some in table.groupby(["epsilon", "tuning"], sort=False):
        some = some.sort_values("mean")
        first = some.iloc[0]
        level = (
            f"{first['algorithm']}, excess {first['mean']:.3g} "
            f"[{first['ci_low']:.3g}, {first['ci_high']:.3g}]"
        )
        near = some["algorithm"][some["ci_low"] <= first["ci_high"]].tolist()[1:]
        equal = f"; not significantly worse: {', '.join(near)}" if near else ""
        what = f"take {level}{equal}"
        if not first["ci_high"] < 1:
            what = f"none beats the best constant; least is {level}"
        yield f"epsilon {epsilon:g}, {tuning}: {what}"


def words(table: pd.DataFrame) -> str:
    """Text of a table of ``means``, and what is recommended."""
    shown = pd.DataFrame([_line(row) for row in table.to_dict("records")]).fillna("")
    shown = shown.apply(lambda column: column.str.ljust(column.str.len().max()))
    given = table[table["given"].notna()].drop_duplicates("algorithm")
    public = [
        f"epsilon of {', '.join(some['algorithm'])} holds given: {what}"
        for what, some in given.groupby("given", sort=False)
    ]
    return "\n".join(
        [shown.to_string(index=False, justify="left"), "", *recommended(table), *public]
    )


def _line(row: dict[Any, Any]) -> dict[str, str]:
    ran, has_epsilon = row["status"] == "ok", pd.notna(row["epsilon"])
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
