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
free: all settings run on the same few seeds, and rows of these runs (``tried``) can be
kept. Fresh runs have seeds that chose nothing. Seeds and split do not depend on the
name of the data.
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

from dperm.benchmark.reference import Reference, losses_of, reference
from dperm.estimators.estimators import SIGNED, DPClassifier, DPRegressor
from dperm.estimators.methods import Method, Setting, UnsuitedError
from dperm.experiments.plan import seed_of
from dperm.plotting.tables import number, with_interval
from dperm.problems import door, losses
from dperm.problems.optimum import NotCertifiedError
from dperm.solvers.batched.trials import seeds_of

log = logging.getLogger(__name__)

TUNINGS = ("default", "grid")
TRIED = "tried"  # of a row: the run of a setting of the grid, on a seed that chooses
HELD_OUT_SHARE = 0.2  # share of records that are held out, and their seed
SPLIT = 20240219
TUNING_RUNS = 3  # runs of every setting of a grid
# Entries of X from which that is one, as noise decides less there
SLOW = 200_000
LONG = 3.0  # seconds of a fit, which is not made twice to foretell its time
MAX_ENTRIES = 2**27  # entries of X, which is dense so that it is centred
ROUNDING = 1e-9  # how far below 0 an excess may be
RUN_COLUMNS = [  # of a run
    "problem",
    "solver",
    "n",
    "p",
    "loss",
    "epsilon",
    "tuning",
    "setting",
    "run_seed",
    "excess",
    "metric",
    "test",
    "accuracy",
    "seconds",
    "true_epsilon",
    "given",
    "status",
    "reason",
]
MEASURED = ("seconds", "test", "accuracy")
MEAN_KEYS = ["problem", "solver", "epsilon", "tuning"]  # of a mean
OF_TRY = [  # columns of try.csv
    "algorithm",
    "tuning",
    "epsilon",
    "true_epsilon",
    "mean",
    "ci_low",
    "ci_high",
    "metric",
    "test",
    "accuracy",
    "seconds",
    "setting",
    "given",
    "solver",
    "status",
    "reason",
]
REFERENCES = {"constant": "the best constant", "no privacy": "without privacy"}
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
    def of(
        cls, name: str, X: Any, y: np.ndarray, loss: str, **declared: Any
    ) -> Self:
        """Split records off; ranges and classes that are not declared are the data's.

        Raises ValueError if X (n, p), dense or sparse, has too many entries.
        """
        if np.prod(X.shape) > MAX_ENTRIES:
            raise ValueError(
                f"{name}: expected at most {MAX_ENTRIES} entries, found {X.shape[0]} x "
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
            X - origin, y, test_size=HELD_OUT_SHARE, random_state=SPLIT
        )
        return cls(
            name, X, y, X_held, y_held, loss, declared, origin, label_origin
        )

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

    def excess(self, scores: np.ndarray, is_affine: bool = True) -> float:
        """The excess of scores (n,) of the fitted records.

        Raises NotCertifiedError if that of affine scores is negative by more than
        rounding, which would show that the least loss is not the least.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            record_losses = losses_of(
                scores / self.unit,
                self._target(self.y),
                losses.named(self.loss),
            )
            above = float((record_losses - self.reference.least).mean())
        excess = above / self.reference.gain
        if is_affine and excess < -ROUNDING:
            raise NotCertifiedError(
                f"{self.name}: found an excess of {excess:g}, expected 0 or more: the "
                "least loss without privacy is wrong. This is an error of dperm"
            )
        return excess

    def held_out_metric(self, scores: np.ndarray) -> float:
        """The metric of scores of the held-out records; nan with one class alone."""
        if not self.signed:
            return float(r2_score(self.y_held, scores))
        y = self._target(self.y_held)
        return (
            float(roc_auc_score(y, scores)) if len({*y}) == 2 else float("nan")
        )

    def accuracy(self, scores: np.ndarray) -> float:
        """Share of the held-out records whose sign of the score is right.

        NaN for numbers.
        """
        if not self.signed:
            return float("nan")
        return float(((scores > 0) == (self._target(self.y_held) > 0)).mean())

    def _target(self, y: np.ndarray) -> np.ndarray:
        """Signs of classes, or labels in their unit; shape (n,)."""
        if self.signed:
            return np.where(y == self.declared["classes"][1], 1.0, -1.0)
        return y / self.unit

    def measured(
        self,
        scores: np.ndarray,
        held_out_scores: np.ndarray,
        is_affine: bool = True,
    ) -> Row:
        """Of a row: the excess of fitted records' scores, and held-out metrics."""
        return self._ok(self.excess(scores, is_affine), held_out_scores)

    def ends(self) -> list[Row]:
        """The best constant, and the fit without privacy, as rows of no epsilon."""
        middle = (
            float(self._target(self.y).mean())
            if self.signed
            else self.y.mean()
        )
        constant = self._ok(1.0, np.full(len(self.y_held), middle))
        if self.signed:
            constant["test"] = 0.5
        free = self.reference
        scores = self.unit * (self.X_held @ free.slopes + free.intercept)
        return [
            {**self.known("constant"), **constant},
            {**self.known("no privacy"), **self._ok(0.0, scores)},
        ]

    def _ok(self, excess: float, held_out_scores: np.ndarray) -> Row:
        return {
            "excess": excess,
            "metric": "AUC" if self.signed else "R2",
            "test": self.held_out_metric(held_out_scores),
            "accuracy": self.accuracy(held_out_scores),
            "status": "ok",
            "reason": "",
        }

    def fit(
        self, method: Method, epsilon: float, setting: Setting, seed: int
    ) -> Any:
        """A fit of the method, from a seed."""
        estimator_type = DPClassifier if self.signed else DPRegressor
        parameters = {
            "setting": dict(setting),
            "loss": self.loss,
            **self.declared,
        }
        model = estimator_type(
            method, epsilon=epsilon, random_state=seed, **parameters
        )
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
    keeps_tried: bool = False,
) -> list[Row]:
    """One row for each fresh run of a method, or one with the reason for none.

    Epsilons and tunings that are listed twice run once. ``keeps_tried``: whether runs
    that choose from the grid have rows too.
    """
    fixed = case.known(method.name)
    drawn = [word % 2**32 for word in seeds_of(seed, TUNING_RUNS + fresh)]
    all_rows: list[Row] = []
    for epsilon in unique(epsilons):
        for tuning in unique(tunings):
            common = {**fixed, "epsilon": epsilon, "tuning": tuning}
            try:
                setting = method.default
                if tuning == "grid":
                    trials = _trials(
                        case, method, epsilon, drawn[: tries(case)]
                    )
                    if keeps_tried:
                        tried = {**common, "tuning": TRIED}
                        all_rows += [
                            {**tried, **run}
                            for _, runs in trials
                            for run in runs
                        ]
                    setting = _least(trials)
                runs = list(
                    _runs(case, method, epsilon, setting, drawn[TUNING_RUNS:])
                )
            except ValueError as error:
                gap = {"status": "gap", "reason": str(error)}
                if isinstance(error, UnsuitedError):
                    return [{**fixed, **gap}]
                runs = [gap]
            all_rows += [{**common, **run} for run in runs]
    return all_rows


def tries(case: Case) -> int:
    """How often every setting of a grid runs."""
    return TUNING_RUNS if case.X.size < SLOW else 1


def fits(
    case: Case, method: Method, fresh: int, tunings: Sequence[str]
) -> int:
    """The number of fits of a method at one epsilon."""
    count = fresh * len(unique(tunings))
    if "grid" in tunings:
        count += tries(case) * len(unique(method.grid))
    return count


def unique(options: Iterable[Any]) -> list[Any]:
    """The values that differ, in their order; 1 and 1.0 are equal."""
    distinct: list[Any] = []
    for option in options:
        if option not in distinct:
            distinct.append(option)
    return distinct


def _trials(
    case: Case, method: Method, epsilon: float, seeds: Sequence[int]
) -> list[tuple[Setting, list[Row]]]:
    """The runs of every setting of the grid; where there are none, a row says why.

    Raises UnsuitedError if the method cannot solve the problem.
    """
    trials = []
    for setting in unique(method.grid):
        try:
            runs = [*_runs(case, method, epsilon, setting, seeds)]
        except UnsuitedError:
            raise
        except ValueError as error:  # no noise meets the target
            refused = {"status": "gap", "reason": str(error)}
            runs = [{"setting": words_of(setting), **refused}]
        trials.append((setting, runs))
    return trials


def _least(trials: Sequence[tuple[Setting, list[Row]]]) -> Setting:
    """The setting with the least mean excess. Raises ValueError if none has a run."""
    means = []
    for _, runs in trials:
        excesses = [run.get("excess", np.inf) for run in runs]
        means.append(float(np.nan_to_num(np.mean(excesses), nan=np.inf)))
    if not any("excess" in run for _, runs in trials for run in runs):
        raise ValueError(trials[-1][1][0]["reason"])
    return trials[int(np.argmin(means))][0]


def words_of(setting: Setting) -> str:
    """A setting in a table; empty for a solver's own."""
    return ", ".join(f"{key} {option:g}" for key, option in setting.items())


def _runs(
    case: Case,
    method: Method,
    epsilon: float,
    setting: Setting,
    seeds: Sequence[int],
) -> Iterator[Row]:
    for seed in seeds:
        start = time.perf_counter()
        model = case.fit(method, epsilon, setting, seed)
        seconds = time.perf_counter() - start
        yield {
            "setting": words_of(setting),
            "run_seed": seed,
            **case.measured(
                linear(model, case.X), predicted(model, case.X_held)
            ),
            "seconds": seconds,
            "true_epsilon": model.epsilon_.high
            if seed == seeds[0]
            else np.nan,
            "given": "; ".join(model.epsilon_.given),
        }


def expected(
    case: Case,
    methods: Iterable[Method],
    epsilons: Sequence[float],
    fresh: int,
    tunings: Sequence[str],
) -> list[float]:
    """Seconds that each method will take, by a fit of its default setting; 0 if unable.

    Its first fit may compile, and is not counted if it is short.
    """
    seconds = []
    for method in methods:
        latest = 0.0
        for _ in range(2):
            start = time.perf_counter()
            try:
                case.fit(method, max(epsilons), method.default, 0)
            except ValueError:  # it cannot, and its row says so
                latest = 0.0
                break
            latest = time.perf_counter() - start
            if latest > LONG:
                break
        count = fits(case, method, fresh, tunings) * len(unique(epsilons))
        seconds.append(latest * count)
    return seconds


def race(
    case: Case,
    methods: Iterable[Method],
    epsilons: Sequence[float],
    seed: int,
    workers: int = 1,
    forecast: Sequence[float] = (),
    **counts: Any,
) -> pd.DataFrame:
    """All runs of all methods, and both ends; the same for any number of workers.

    ``forecast`` has the seconds that each method is expected to take, if known.
    """
    jobs = []
    for method in methods:
        method_seed = seed_of(seed, "race", "", method.name, 0, 0)
        jobs.append(
            delayed(rows)(case, method, epsilons, method_seed, **counts)
        )
    all_rows: list[Row] = []
    start = time.perf_counter()
    for count, method_rows in enumerate(
        Parallel(workers, return_as="generator")(jobs)
    ):
        all_rows += method_rows
        left = ""
        if sum(forecast[: count + 1]) > 0 and count + 1 < len(jobs):
            pace = (time.perf_counter() - start) / sum(forecast[: count + 1])
            left = (
                f", about {duration(pace * sum(forecast[count + 1 :]))} left"
            )
        log.info("  %d of %d methods have run%s", count + 1, len(jobs), left)
    return pd.DataFrame([*all_rows, *case.ends()])


def duration(seconds: float) -> str:
    """A time in words, for people."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return (
        f"{minutes} minutes"
        if minutes < 100
        else f"{seconds / 3600:.1f} hours"
    )


# --- means and text -------------------------------------------------------------------


def means(
    runs: pd.DataFrame,
    labels: Mapping[str, str],
    keys: Sequence[str] = MEAN_KEYS,
) -> pd.DataFrame:
    """A row for each problem, method, epsilon and tuning, and for each gap.

    ``mean`` is that of the excess, with Student's interval, infinite if any excess is;
    ``test`` and ``accuracy`` are means of held-out metrics; ``algorithm`` is the
    method's label. Both ends have one row a problem, and no epsilon.
    """
    table = []
    names = {**labels, **REFERENCES}
    runs = runs.reindex(columns=RUN_COLUMNS)
    for _, group in runs.groupby([*keys], sort=False, dropna=False):
        shared = group.iloc[0].drop(["excess", "run_seed"]).to_dict()
        row = {
            "algorithm": names.get(shared["solver"], shared["solver"]),
            **shared,
        }
        if row["status"] == "ok":
            row |= {key: group[key].mean() for key in MEASURED}
            excesses = group["excess"].to_numpy(dtype=float)
            row |= dict.fromkeys(("mean", "ci_low", "ci_high"), np.inf)
            row |= (
                with_interval(excesses) if np.isfinite(excesses).all() else {}
            )
        table.append(row)
    return pd.DataFrame(table)


def recommended(table: pd.DataFrame) -> Iterator[str]:
    """For each epsilon and tuning of ``means``, whom to take, or that none learns."""
    table = table[table["epsilon"].notna() & (table["status"] == "ok")]
    for (epsilon, tuning), group in table.groupby(
        ["epsilon", "tuning"], sort=False
    ):
        group = group.sort_values("mean")
        best = group.iloc[0]
        level = (
            f"{best['algorithm']}, excess {best['mean']:.3g} "
            f"[{best['ci_low']:.3g}, {best['ci_high']:.3g}]"
        )
        near = group["algorithm"][group["ci_low"] <= best["ci_high"]].tolist()[
            1:
        ]
        equal = f"; not significantly worse: {', '.join(near)}" if near else ""
        advice = f"take {level}{equal}"
        if not best["ci_high"] < 1:
            advice = f"none beats the best constant; least is {level}"
        yield f"epsilon {epsilon:g}, {tuning}: {advice}"


def answers(table: pd.DataFrame) -> Iterator[str]:
    """For each epsilon of ``means``, in one sentence: what to expect, and of what.

    Of methods without tuning, if they ran, as no epsilon pays for a search.
    """
    ran = table[table["epsilon"].notna() & (table["status"] == "ok")]
    is_default = ran["tuning"] == "default"
    ran = ran[is_default] if is_default.any() else ran
    for epsilon, group in ran.groupby("epsilon", sort=False):
        best = group.sort_values("mean", kind="stable").iloc[0]
        features = f"{int(best['p']):,} feature{'s' if best['p'] > 1 else ''}"
        where = f"At epsilon {epsilon:g} with {int(best['n']):,} records and {features}"
        tuned = "" if best["tuning"] == "default" else ", tuned for free"
        if best["ci_high"] < 1:
            low, high = (
                100 * (1 - best[end]) for end in ("ci_high", "ci_low")
            )
            kept = f"{100 * (1 - best['mean']):.0f} % [{low:.0f}, {min(high, 100):.0f}]"
            yield (
                f"{where} expect to keep {kept} of what can be learned; take "
                f"{best['algorithm']}{tuned}."
            )
        else:
            yield f"{where} expect to learn nothing; no method beats the best constant."


def words(table: pd.DataFrame) -> str:
    """Text of a table of ``means``: the answers, the rows, whom to take and why."""
    texts = pd.DataFrame(
        [_line(row) for row in table.to_dict("records")]
    ).fillna("")
    texts = texts.loc[:, (texts != "").any()]
    texts = texts.apply(
        lambda column: column.str.ljust(column.str.len().max())
    )
    assumed = table[table["given"].notna()].drop_duplicates("algorithm")
    public = [
        f"epsilon of {', '.join(group['algorithm'])} holds given: {assumption}"
        for assumption, group in assumed.groupby("given", sort=False)
    ]
    return "\n".join(
        [
            *answers(table),
            "",
            texts.to_string(index=False, justify="left"),
            "",
            *recommended(table),
            *public,
        ]
    )


def _line(row: dict[Any, Any]) -> dict[str, str]:
    ran = row["status"] == "ok"
    has_epsilon = pd.notna(row["epsilon"])
    ends = (
        f"[{number(row['ci_low'])}, {number(row['ci_high'])}]" if ran else ""
    )
    return {
        "method": row["algorithm"],
        "tuning": row["tuning"] if has_epsilon else "",
        "epsilon": number(row["epsilon"]),
        "excess": number(row["mean"]) if ran else "",
        "95 % interval": ends if has_epsilon else "",
        "true epsilon": number(row["true_epsilon"], 4),
        "held out": f"{row['metric']} {number(row['test'])}" if ran else "",
        "accuracy": number(row["accuracy"]) if ran else "",
        "setting": row["setting"] if ran else row["reason"],
        "seconds a fit": number(row["seconds"], 2),
    }
