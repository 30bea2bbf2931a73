"""Prepare the arrays of a problem from the fetched ones of its data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm.config.schema import Data, Preparation, ProblemSection
from dperm.data.arrays import (
    digest_arrays,
    load_arrays,
    nonzeros,
    save_arrays,
    standardize,
)
from dperm.data.fetching import FetchRecord, load_fetched, read_record
from dperm.storage import files as store
from dperm.storage import source_code

META = "meta.json"


@dataclass(frozen=True)
class Prepared:
    """The arrays of a problem; X and y are None when the data set is unavailable."""

    X: Any  #: shape (n, p), float64, in Fortran order or a scipy CSC array
    y: Any  #: shape (n,), float64
    #: name, status, reason, n, p, nnz, digest, dataset, dataset_digest, preparation,
    #: and the digest of what made them
    meta: dict[str, Any]

    @property
    def available(self) -> bool:
        """Whether the arrays are available."""
        return self.meta["status"] == "ok"


def prepared_folder(problem_name: str, data: Data) -> Path:
    """Folder of the prepared arrays of a problem."""
    return Path(data.dir) / "prepared" / problem_name


def prepare(
    problem: ProblemSection,
    data: Data,
    check: Callable[[ProblemSection, np.ndarray], None] | None = None,
) -> Prepared:
    """Make and store the arrays of a problem, in ``<data.dir>/prepared/<name>/``.

    Of an unavailable data set, ``meta.json`` alone is written, with the reason.
    ``check`` is called with the problem and y (n,); it raises if labels do not suit.

    Raises ValueError if the data set was not fetched, successfully or not, or cannot be
    prepared as requested.
    """
    expected = problem.dataset
    record = read_record(problem.dataset.name, data)
    if record is None:
        raise ValueError(
            f"problem {problem.name}: data set {expected.name} was not fetched yet: "
            f"run `dperm fetch problem={problem.name}` first"
        )
    X = y = None
    if record.available:
        if expected.digest not in (None, record.digest):
            raise ValueError(
                f"problem {problem.name}: the fetched {expected.name} has digest "
                f"{record.digest}, expected {expected.digest}: fetch it again"
            )
        X, y = load_fetched(record.name, data)
        if check is not None:
            check(problem, y)
    prepared = _make(problem, record, X, y)
    folder = prepared_folder(problem.name, data)
    with store.locked(folder):
        if prepared.available:
            save_arrays(folder, prepared.X, prepared.y)
        signed = prepared.meta | {"content": store.digest(prepared.meta)}
        store.write_json(folder / META, signed)
    return prepared


def load_prepared(problem_name: str, data: Data) -> Prepared:
    """Load stored arrays of ``prepare`` and verify their digest.

    Raises ValueError if they were not prepared or are damaged.
    """
    folder = prepared_folder(problem_name, data)
    meta = store.known_json(folder / META)
    if meta is None:
        raise ValueError(
            f"problem {problem_name}: not prepared: {folder / META}: "
            f"run `dperm prepare problem={problem_name}` first"
        )
    content = meta.pop("content", None)
    if content != store.digest(meta):
        raise ValueError(
            f"{folder / META} was changed after it was made, or made by an old "
            f"version: delete {folder} and run again"
        )
    if meta["status"] != "ok":
        return Prepared(None, None, meta)
    return Prepared(*load_arrays(folder, meta["digest"]), meta)


def made_by(steps: Preparation) -> str:
    """Digest of a preparation and of the code that carries it out."""
    return store.digest(
        [asdict(steps), source_code.digest("dperm.data.preparing:_make")]
    )


def _make(
    problem: ProblemSection, record: FetchRecord, X: Any, y: Any
) -> Prepared:
    """The arrays and what is known of them; of an unavailable data set, only that."""
    steps = problem.preparation
    meta = {
        "name": problem.name,
        "status": record.status,
        "reason": record.reason,
        "dataset": record.name,
        "dataset_digest": record.digest,
        "preparation": asdict(steps),
        "made": made_by(steps),
        **dict.fromkeys(("n", "p", "nnz", "digest")),
    }
    if X is None:
        return Prepared(None, None, meta)
    try:
        X = _apply(steps, X)
    except ValueError as error:
        raise ValueError(
            f"problem {problem.name}: preparation: {error}"
        ) from error
    y = y - y.mean() if steps.centre else y
    meta |= {"n": X.shape[0], "p": X.shape[1], "nnz": nonzeros(X)}
    return Prepared(X, y, meta | {"digest": digest_arrays(X, y)})


def _apply(steps: Preparation, X: Any) -> Any:
    if steps.drop_zero_columns:
        used = (
            np.diff(X.indptr) > 0
            if sparse.issparse(X)
            else (X != 0.0).any(axis=0)
        )
        if not used.any():
            raise ValueError("drop_zero_columns: every column is zero")
        X = X[:, np.flatnonzero(used)]
    ones = np.ones((X.shape[0], 1))
    if not sparse.issparse(X):
        X = standardize(X) if steps.standardize else X
        return np.asfortranarray(
            np.hstack([X, ones]) if steps.intercept else X
        )
    if steps.standardize:
        raise ValueError(
            "standardize: expected false, as the data are kept sparse"
        )
    return sparse.csc_array(sparse.hstack([X, ones])) if steps.intercept else X
