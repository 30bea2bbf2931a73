"""Tables of Maranjyan et al. 2024 (DP-SkGD): bounds, errors, and what both say."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from dperm import config as configuration
from dperm import schema
from dperm.erm.optimum import Optimum
from dperm.erm.problem import Problem
from dperm.papers.dpskgd import theory as bounds
from dperm.pipeline import inputs, results
from dperm.pipeline.results import Result
from dperm.present.intervals import student
from dperm.present.method_ratios import compared, measured, retuned, verdict, widest
from dperm.present.tables import Table, number
from dperm.privacy.accounting import gaussian_epsilon, gaussian_renyi_epsilon
from dperm.privacy.calibration import calibrate
from dperm.solvers import load, make_options
from dperm.solvers.lanes import dp_skgd

Bounds = dict[str, bounds.Bound]
CONTROL = "control: one law twice, tuned twice"
DECIDED = 1.02  # a predicted ratio nearer to 1 than this is no prediction


# --- bounds ---------------------------------------------------------------------------


def solver_bounds(name: str, solvers: list[str], dominating: bool = False) -> Bounds:
    """Table 1's row of each solver on a problem; empty without its data."""
    problem, optimum = loaded(name)
    if problem is None or optimum is None:
        return {}
    found = {}
    for solver in solvers:
        module, options = solver_options(solver)
        if module is dp_skgd:
            found[solver] = bounds.sketched(problem, optimum, options, dominating)
        elif solver.startswith("dp_cd"):
            found[solver] = bounds.coordinate_descent(problem, optimum)
        else:
            found[solver] = bounds.stochastic_gradient(problem, optimum)
    return found


def loaded(name: str) -> tuple[Problem | None, Optimum | None]:
    """A problem and its optimum; None without its data."""
    config = configuration.compose([f"problem={name}"])
    problem = inputs.load_problem(config)
    return problem, inputs.load_optimum(config) if problem else None


@functools.cache  # composing takes longer than all else here
def solver_options(solver: str) -> tuple[Any, Any]:
    """The module of a solver's YAML and its Options."""
    chosen = configuration.compose([f"solver={solver}"]).solver
    module = load(chosen.algorithm)
    return module, make_options(module, chosen.options)


def utility(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 1: symbols, and numbers for each problem and sampling that is run."""
    found = results.load(config, problems)
    rows = []
    for name in problems:
        labels = {result.solver: result.label for result in found[name]}
        printed = solver_bounds(name, list(labels))
        safe = solver_bounds(name, list(labels), dominating=True)
        for solver, bound in printed.items():
            convex, strong = bounds.SYMBOLS[bound.kind]
            rows.append(
                {"problem": name, "algorithm": labels[solver], "row": bound.kind,
                 "convex_symbol": convex, "convex": bound.convex,
                 "convex_dominating": safe[solver].convex,
                 "strongly_convex_symbol": strong, "strongly_convex": bound.strong,
                 "noise": bound.noise, "radius": bound.radius}
            )  # fmt: skip
    return _table(rows)


def theory(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Theorem 4.2 beside the measured excess; ranks within each problem."""
    found = results.load(config, problems)
    rows = []
    for name in problems:
        group = _theory_rows(name, found[name], product.calibration)
        frame = pd.DataFrame(group)
        for key in ("convex", "strongly_convex", "excess") if group else ():
            ranks = frame[key].rank()
            for row, rank in zip(group, ranks, strict=True):
                row[f"rank_{key}"] = rank
        rows += group
    return _table(rows)


def _theory_rows(
    name: str, found: list[Result], calibration: str
) -> list[dict[str, Any]]:
    usable = [result for result in found if result.available]
    terms = solver_bounds(name, [result.solver for result in usable])
    if not terms:
        return []
    problem, optimum = loaded(name)
    assert problem is not None and optimum is not None
    once, twice = bounds.rates(problem)
    rows = []
    for result in usable:
        bound, errors = terms[result.solver], fresh(result, calibration)
        low, high = student(errors)
        module, options = solver_options(result.solver)
        whole = (
            (bounds.theorem_convex(problem, bound),
             bounds.theorem_strong(problem, optimum, options, bound))
            if module is dp_skgd
            else (math.nan, math.nan)
        )  # fmt: skip
        rows.append(
            {"problem": name, "algorithm": result.label,
             "convex": bound.convex * once, "strongly_convex": bound.strong * twice,
             "theorem_convex": whole[0], "theorem_strongly_convex": whole[1],
             "excess": errors.mean() * optimum.value,
             "ci_low": low * optimum.value, "ci_high": high * optimum.value}
        )  # fmt: skip
    return rows


def fresh(result: Result, calibration: str) -> np.ndarray:
    """Relative errors of the fresh runs at the best number of passes."""
    passes = result.best_passes(calibration)
    return result.final(calibration, passes)["relative_error"].to_numpy()


def _table(rows: list[dict[str, Any]]) -> Table:
    """Rows as they are, and with numbers for readers."""
    data = pd.DataFrame(rows)
    shown = data.copy()
    for column in data.columns:
        if data[column].dtype.kind == "f":
            shown[column] = [number(value) for value in data[column]]
    return Table(data, shown)


# --- errors ---------------------------------------------------------------------------


def errors(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Best relative error for each number of passes, tuned and fresh."""
    found = results.load(config, problems)
    kind = product.calibration
    rows: list[dict[str, Any]] = []
    for name in problems:
        for result in found[name]:
            head = {"problem": name, "algorithm": result.label}
            if not result.available:
                rows.append(head)
                continue
            for chosen in result.chosen(kind).itertuples():
                values = result.final(kind, chosen.passes)["relative_error"].to_numpy()
                low, high = student(values)
                rows.append(
                    {**head, "passes": chosen.passes, "mean": chosen.mean,
                     "std": chosen.std, "fresh_mean": values.mean(),
                     "fresh_ci_low": low, "fresh_ci_high": high,
                     "step": chosen.step, "clip": chosen.clip}
                )  # fmt: skip
    return Table(pd.DataFrame(rows), _readable(pd.DataFrame(rows)))


def _readable(data: pd.DataFrame) -> pd.DataFrame:
    """One line an algorithm, one column a number of passes; the lowest in bold."""
    lines = []
    for (problem, algorithm), group in data.groupby(
        ["problem", "algorithm"], sort=False
    ):
        line = {"problem": problem, "algorithm": algorithm}
        least = group["mean"].min() if "mean" in group else math.nan
        for row in group.dropna().itertuples():
            text = number(row.mean)
            text = f"**{text}**" if row.mean == least else text
            line[f"{row.passes:g} passes"] = f"{text}; fresh {number(row.fresh_mean)}"
        lines.append(line)
    return pd.DataFrame(lines)


# --- Section 4.3 ----------------------------------------------------------------------


def exponents(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Exponent in d of each regime's gain: measured, and of the rows of Table 1."""
    return _table(fitted(results.load_sweep(config, "regimes")))


def fitted(table: pd.DataFrame) -> list[dict[str, Any]]:
    """One row a regime and n: slopes in log d of ratios worse / better.

    Dimensions where either method's mean excess is above half its start are left out:
    there the noise has drowned the problem.
    """
    rows = []
    law = table[table["source"] == "law"]
    for (regime, n), group in law.groupby(["regime", "n"], sort=False):
        worse, better = group["algorithm"].unique()
        excess = group.pivot(index=["replicate", "draw"], columns=["algorithm", "d"],
                             values="excess")  # fmt: skip
        start = group.groupby("d")["start"].first()
        means = {name: excess[name].mean() for name in (worse, better)}
        kept = [
            d for d in start.index if max(m[d] for m in means.values()) < start[d] / 2
        ]
        if len(kept) < 2:
            continue
        terms = group.groupby(["algorithm", "d"])[["convex", "strong"]].first()
        predicted = {
            key: _slope(kept, terms.loc[worse, key] / terms.loc[better, key])
            for key in ("convex", "strong")
        }
        low, high = _bootstrap(kept, excess[worse], excess[better])
        rows.append(
            {"regime": regime, "worse": worse, "better": better, "n": int(n),
             "d_from": kept[0], "d_to": kept[-1],
             "exponent": _slope(kept, means[worse] / means[better]),
             "ci_low": low, "ci_high": high,
             "gain_at_d_to": means[worse][kept[-1]] / means[better][kept[-1]],
             "convex_row": predicted["convex"], "strong_row": predicted["strong"],
             "runs": len(excess)}
        )  # fmt: skip
    return rows


def _slope(dims: list[int], ratio: pd.Series) -> float:
    return float(np.polyfit(np.log(dims), np.log(ratio[dims].to_numpy()), 1)[0])


def _bootstrap(
    dims: list[int], worse: pd.DataFrame, better: pd.DataFrame, draws: int = 2000
) -> tuple[float, float]:
    """95 % percentile interval of the slope, runs drawn anew for each dimension."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0)))
    tops, bottoms = worse[dims].to_numpy(), better[dims].to_numpy()
    size, count = tops.shape
    pick = rng.integers(0, size, (2, draws, size, count))
    over = np.take_along_axis(tops[None], pick[0], 1).mean(axis=1)
    under = np.take_along_axis(bottoms[None], pick[1], 1).mean(axis=1)
    slopes = np.polyfit(np.log(dims), np.log(over / under).T, 1)[0]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return float(low), float(high)


def blocks(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Relative error of every partition where smoothness comes in groups.

    Intervals are over replicates, each tuned anew; step and passes are medians.
    """
    table = results.load_sweep(config, "blocks")
    rows = []
    for key, group in table.groupby(["correlation", "ratio", "method"], sort=False):
        values = group.groupby("replicate")["relative_error"].mean().to_numpy()
        low, high = student(values)
        rows.append(
            {"correlation": key[0], "ratio": key[1], "method": key[2],
             "relative_error": values.mean(), "ci_low": low, "ci_high": high,
             "tunings": len(values), "runs": len(group),
             "step": group["step"].median(), "passes": group["passes"].median(),
             "factor": group["factor"].iloc[0]}
        )  # fmt: skip
    data = pd.DataFrame(rows).sort_values(["correlation", "ratio"], kind="stable")
    return _table(data.to_dict("records"))


def noise(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Theorem 4.1's noise, its Renyi curve's and the exact one; cost of the first."""
    rows = []
    for name in problems:
        problem, _ = loaded(name)
        if problem is None:
            continue
        logs = math.log(1 / problem.delta)
        for count in (1, 10, 100, 1000):
            printed = math.sqrt(3 * count * logs) / problem.epsilon
            paper, strict = (
                _least(problem.epsilon, problem.delta, count, kind)
                for kind in ("paper", "strict")
            )
            mu = math.sqrt(count) / printed
            rows.append(
                {"problem": name, "epsilon": problem.epsilon, "releases": count,
                 "theorem": printed, "paper": paper, "strict": strict,
                 "renyi_epsilon": gaussian_renyi_epsilon(mu**2 / 2, problem.delta),
                 "true_epsilon": gaussian_epsilon(mu, problem.delta)}
            )  # fmt: skip
    return _table(rows)


def _least(epsilon: float, delta: float, count: int, kind: str) -> float:
    from dperm.privacy.ledger import Gaussian, Ledger

    def ledger(multiplier: float) -> Ledger:
        return Ledger((Gaussian(1.0, multiplier, count, "2 C_S / n", "Theorem 4.1"),))

    return calibrate(ledger, epsilon, delta, kind).noise_multiplier


# --- reading --------------------------------------------------------------------------

# question: (first solver, second solver); below 1 the first is better
QUESTIONS: dict[str, list[tuple[str, str]]] = {
    "importance against uniform": [
        ("dp_skgd_importance", "dp_skgd"),
        ("dp_skgd_blocks4_importance", "dp_skgd_blocks4"),
        ("dp_skgd_blocks2_importance", "dp_skgd_blocks2"),
    ],
    "blocks against single coordinates": [
        (f"dp_skgd_{kind}", "dp_skgd")
        for kind in ("full", "blocks2", "blocks4", "blocks20", "blocks100")
    ],
    "tau-nice against a partition": [
        ("dp_skgd_nice2", "dp_skgd_blocks4"),
        ("dp_skgd_nice4", "dp_skgd_blocks2"),
    ],
    "sketches against DP-SGD": [
        ("dp_skgd_full", "dp_sgd"),
        ("dp_skgd", "dp_sgd"),
        ("dp_skgd_importance", "dp_sgd"),
    ],
    "sketches against DP-SVRG": [("dp_skgd_full", "dp_svrg"), ("dp_skgd", "dp_svrg")],
    "uniform draws against a cycle": [("dp_skgd", "dp_cd")],
}

ALIGNED = [("aligned", "misaligned"), ("aligned", "single"), ("aligned IS", "aligned")]


def reading(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """One page: what helps, what hurts, and whether Table 1 said so."""
    rows = comparisons(config, product, problems)
    lines = [_summary(question, rows) for question in (*QUESTIONS, CONTROL)]
    lines.insert(0, _band(rows))
    told = (*list(QUESTIONS)[:2], CONTROL)
    lines += [_line(row) for row in rows if row["question"] in told]
    lines += _ranks(theory(config, product, problems).data)
    lines += [_regime_line(row) for row in fitted(results.load_sweep(config,
              "regimes"))]  # fmt: skip
    lines += _alignment(results.load_sweep(config, "blocks"))
    return Table(pd.DataFrame(rows), pd.DataFrame(lines).fillna(""))


def comparisons(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> list[dict[str, Any]]:
    """Every question on every problem: measured ratio, predicted ratios, verdict.

    Where two samplings have one law, their ratio shows what luck alone can do. The
    widest such ratio is a band: no ratio inside it is called decided elsewhere.
    """
    found = results.load(config, problems)
    rows: list[dict[str, Any]] = []
    for name in problems:
        by_name = {r.solver: r for r in found[name] if r.available}
        rows += _asked(name, by_name, product.calibration)
    controls = [row["ratio"] for row in rows if row["question"] == CONTROL]
    for row in rows:
        row["band"] = 1.0 if row["question"] == CONTROL else widest(controls)
        row["verdict"] = verdict(row, row["band"])
        for key in ("convex", "strong"):
            row[f"{key}_right"] = agrees(row[f"predicted_{key}"], row["verdict"])
    return rows


def _asked(name: str, by_name: dict[str, Result], kind: str) -> list[dict[str, Any]]:
    """The questions that a problem's solvers can answer."""
    terms = solver_bounds(name, list(by_name)) if by_name else {}
    problem, _ = loaded(name)
    known = {
        solver: measured(
            fresh(result, kind), result.tuned[result.tuned["calibration"] == kind]
        )
        for solver, result in by_name.items()
    }
    return [
        {"question": CONTROL if same_law(problem, first, second) else question,
         "problem": name, "first": by_name[first].label,
         "second": by_name[second].label, **compared(known[first], known[second]),
         **_predicted(terms[first], terms[second])}
        for question, pairs in QUESTIONS.items()
        for first, second in pairs
        if first in known and second in known
    ]  # fmt: skip


def same_law(problem: Problem | None, first: str, second: str) -> bool:
    """Whether two samplings coincide on a problem: importance where all M are equal."""
    chosen = [solver_options(solver) for solver in (first, second)]
    if problem is None or any(module is not dp_skgd for module, _ in chosen):
        return False
    a, b = (dp_skgd.Sketch(problem, options) for _, options in chosen)
    if a.nice or b.nice or len(a.sets) != len(b.sets):
        return False
    return np.allclose(a.q, b.q, rtol=1e-9) and all(
        np.array_equal(*pair) for pair in zip(a.sets, b.sets, strict=True)
    )


def _predicted(first: bounds.Bound, second: bounds.Bound) -> dict[str, float]:
    strong = math.isfinite(first.strong) and math.isfinite(second.strong)
    return {
        "predicted_convex": first.convex / second.convex,
        "predicted_strong": first.strong / second.strong if strong else math.nan,
    }


def agrees(predicted: float, verdict: str) -> str:
    """Whether a ratio of bounds has the direction of a decided comparison."""
    if verdict == "undecided" or math.isnan(predicted):
        return ""
    if 1 / DECIDED < predicted < DECIDED:
        return "says nothing"
    return "yes" if (predicted < 1) == (verdict == "helps") else "no"


def _band(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The rule, with what the controls say about it."""
    controls = [row for row in rows if row["question"] == CONTROL]
    if not controls:
        return {"what": "band of the controls", "measured": "no control"}
    wrong = sum(row["verdict"] != "undecided" for row in controls)
    band = number(widest([row["ratio"] for row in controls]))
    return {
        "what": "band of the controls: a factor below it decides nothing",
        "measured": f"{band}; by the interval alone {wrong} of {len(controls)} "
        "controls would be decided",
    }


def _summary(question: str, rows: list[dict[str, Any]]) -> dict[str, str]:
    asked = [row for row in rows if row["question"] == question]
    count = {
        verdict: sum(row["verdict"] == verdict for row in asked)
        for verdict in ("helps", "hurts", "undecided")
    }
    decided = count["helps"] + count["hurts"]
    right = {
        key: sum(row[f"{key}_right"] == "yes" for row in asked)
        for key in ("convex", "strong")
    }
    return {
        "what": question,
        "measured": f"better in {count['helps']}, worse in {count['hurts']}, undecided "
        f"in {count['undecided']} of {len(asked)}",
        "convex row": f"direction right in {right['convex']} of {decided}",
        "strongly convex row": f"direction right in {right['strong']} of {decided}",
    }


def _line(row: dict[str, Any]) -> dict[str, str]:
    said = {
        key: f"{number(row[f'predicted_{key}'], 2)} {row[f'{key}_right']}".strip()
        for key in ("convex", "strong")
    }
    return {
        "what": f"{row['problem']}: {row['first']} / {row['second']}",
        "measured": _ratio(row),
        "convex row": said["convex"],
        "strongly convex row": said["strong"],
    }


def _regime_line(row: dict[str, Any]) -> dict[str, str]:
    interval = f"[{number(row['ci_low'])}, {number(row['ci_high'])}]"
    return {
        "what": f"Section 4.3, {row['regime']}: {row['worse']} / {row['better']}, "
        f"n = {row['n']}, exponent in d",
        "measured": f"{number(row['exponent'])} {interval}",
        "convex row": number(row["convex_row"]),
        "strongly convex row": number(row["strong_row"]),
    }


def _ranks(table: pd.DataFrame) -> list[dict[str, str]]:
    """How well the order of the bounds is the order of the errors, by problem."""
    lines = []
    for name, group in table.groupby("problem", sort=False):
        told = {
            key: stats.spearmanr(group[key], group["excess"]).statistic
            if np.isfinite(group[key]).all() and len(group) > 2
            else math.nan
            for key in ("convex", "strongly_convex")
        }
        lines.append(
            {"what": f"{name}: rank correlation of bound and error, "
             f"{len(group)} methods",
             "convex row": number(told["convex"], 2),
             "strongly convex row": number(told["strongly_convex"], 2)}
        )  # fmt: skip
    return lines


def _alignment(table: pd.DataFrame) -> list[dict[str, str]]:
    """Aligned against misaligned blocks, for each strength of the structure."""
    lines = []
    for (correlation, ratio), group in table.groupby(["correlation", "ratio"]):
        by = {name: retuned(part) for name, part in group.groupby("method")}
        where = f"groups, M ratio {ratio:g}, correlation {correlation:g}"
        for first, second in ALIGNED:
            if first in by and second in by:
                found = compared(by[first], by[second])
                lines.append(
                    {"what": f"{where}: {first} / {second}", "measured": _ratio(found)}
                )
    return lines


def _ratio(found: dict[str, Any]) -> str:
    """A ratio with its interval and its verdict, its own where it has one."""
    low, high = (number(found[key], 2) for key in ("ci_low", "ci_high"))
    said = found.get("verdict", verdict(found))
    return f"{number(found['ratio'], 2)} [{low}, {high}], {said}"
