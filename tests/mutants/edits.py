"""Bugs in kernels and accountants: pieces of definitions, and what takes their place.

Each is a slip that somebody could make and that no result on utility would show. A
piece is found by its syntax tree, so that formatting, comments and the place in the
file do not count. It must occur once in the named definition.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "src/dperm",
    "docs/examples/mine",
)  # where definitions are searched for
Definition = ast.FunctionDef | ast.ClassDef


class EditError(ValueError):
    """A bug that does not fit today's source."""


@dataclass(frozen=True)
class Edit:
    """A bug.

    Attributes
    ----------
    name : str
    solvers : str
        Names of solvers whose audit must catch it, any one of them.
    breaks : str
        One line.
    pieces : tuple of (str, str, str)
        Qualified name of a definition, after the module's stem where others have the
        piece too, as in ``dp_gd:ledger``; the piece; what takes its place. Both are an
        expression, a keyword argument or statements.
    """

    name: str
    solvers: str
    breaks: str
    pieces: tuple[tuple[str, str, str], ...]


@cache
def planted(edit: Edit) -> dict[str, str]:
    """The files that a bug changes, with their new text.

    Raises
    ------
    EditError
        If a piece does not occur, or more than once.
    """
    changed: dict[str, ast.Module] = {}
    for place, before, after in edit.pieces:
        stem, _, name = place.rpartition(":")
        found = 0
        for file, text in _sources().items():
            path = Path(file)
            known = path.parent.name if path.stem == "__init__" else path.stem
            if stem not in ("", known) or name.rpartition(".")[2] not in text:
                continue
            tree = changed.get(file) or ast.parse(text)
            swap = Swap(before, after)
            for definition in _definitions(tree, name):
                swap.visit(definition)
            if swap.found:
                changed[file], found = tree, found + swap.found
        if found != 1:
            raise EditError(
                f"{edit.name}: {place}: {before!r} occurs {found} times"
            )
    return {
        f: ast.unparse(ast.fix_missing_locations(t))
        for f, t in changed.items()
    }


@cache
def _sources() -> dict[str, str]:
    files = (
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")
    )
    return {
        str(path.relative_to(ROOT)): path.read_text() for path in sorted(files)
    }


def _definitions(tree: ast.AST, name: str) -> list[ast.AST]:
    """Definitions of a qualified name."""
    first, _, rest = name.partition(".")
    found = [
        node
        for node in ast.iter_child_nodes(tree)
        if isinstance(node, Definition) and node.name == first
    ]
    return (
        [one for node in found for one in _definitions(node, rest)]
        if rest
        else found
    )


class Swap(ast.NodeTransformer):
    """Puts a piece in the place of another one, and counts how often.

    A piece that is one argument is written as an assignment.
    """

    def __init__(self, before: str, after: str):
        self.found = 0
        (self.old,), self.new = _parsed(before), _parsed(after)
        self.dump = ast.dump(self.old)
        self.argument = ast.unparse(self.old).replace(" = ", "=", 1)

    def visit(self, node: ast.AST) -> Any:
        """The node, changed below; or what takes its place."""
        if (
            isinstance(node, ast.keyword)
            and ast.unparse(node) == self.argument
        ):
            self.found += 1
            return ast.keyword(node.arg, self.new[0].value)
        if ast.dump(node) == self.dump:
            self.found += 1
            return self.new if isinstance(node, ast.stmt) else self.new[0]
        return self.generic_visit(node)


def _parsed(snippet: str) -> list[Any]:
    """An expression, or statements; a return may stand alone."""
    body = ast.parse(snippet).body
    only = body[0] if len(body) == 1 else None
    return [only.value] if isinstance(only, ast.Expr) else list(body)


CHANGE = re.compile(r"\{\{(.*?) => (.*?)\}\}", re.DOTALL)


def plant(name: str, solvers: str, breaks: str, *pieces: str) -> Edit:
    """A bug from definitions and pieces; ``{{before => after}}`` is what changes."""
    places = zip(pieces[::2], pieces[1::2], strict=True)
    made = [
        (at, CHANGE.sub(r"\1", it), CHANGE.sub(r"\2", it)) for at, it in places
    ]
    return Edit(name, solvers, breaks, tuple(made))


EDITS = (
    plant("sum_without_two", "dp_cd dp_sgd", "replacing a record moves a sum by 2 C",
        "sum_sensitivity", "return {{2.0 => 1.0}} * clip",
    ),
    plant("cd_no_clip", "dp_cd", "derivatives are not clipped (dense columns)",
        "_term",
        "return {{clamp(column[i] * derivative(v[i]), bound) => "
        "column[i] * derivative(v[i])}}",
    ),
    plant("cd_warm_start", "dp_cd", "starts at a gradient that is not charged",
        "Run.start",
        "return np.concatenate(({{self.problem.offset => self.problem.offset - "
        "self.problem.A @ self.problem.gradient(np.zeros(self.problem.p))}}, drift))",
        "batched:Run.__init__",
        "start = np.concatenate(({{np.zeros(problem.p) => "
        "-problem.gradient(np.zeros(problem.p))}}, self.start()))",
    ),
    plant("sgd_clip_by_slope", "dp_sgd", "clips phi' to C, not the gradient's norm",
        "dp_sgd:_steps",
        "clamp(derivative(pull[b, setting]), clip[setting]{{ * bound => }})",
        "dp_sgd:_single_steps",
        "clamp(derivative(margin(x, offset[i], w)), clip{{ * bound => }})",
    ),
    plant("equal_shares", "dp_gcd", "C_j are equal, so that scores move unequally",
        "share", "return np.sqrt({{M / M.sum() => np.full(len(M), 1.0 / len(M))}})",
    ),
    plant("priv_bounds_of_the_data", "dp_cd_priv", "b_j are read off the private data",
        "dp_cd_priv:Run.smoothness", "problem.{{known. => }}A",
    ),
    plant("smoothness_half", "dp_cd_priv", "M_j have half of the noise they need",
        "dp_cd_priv:Run.smoothness",
        "scales = {{ => 0.5 * }}event.scale * bounds / problem.n",
    ),
    plant("rows_not_scaled", "phased_sgd sco_dp_fw", "rows keep their norm",
        "Rows.factors",
        "sizes = {{norms(batch.rows.astype(float), q) => np.ones(len(batch.rows))}}",
    ),
    plant("sfw_deep_half", "noisy_sfw", "half of the sensitivity at depth 3 and more",
        "child_sensitivity",
        "return 2 * 2{{**depth =>  ** min(depth, 2)}} / b * setup.smoothness * moved",
    ),
    plant("phased_sensitivity", "phased_sgd", "a phase's average moves by 2 L eta",
        "sensitivity", "return {{2 *  => }}setup.lipschitz * eta",
    ),
    plant("fw_without_two", "dp_fw", "a score moves by 2 r G / n", "sensitivity",
        "{{2.0 *  => }}options.radius",
    ),
    plant("bcfw_sketch_by_n", "dp_bcfw", "a sketched feature's noise is divided by n",
        "sensitivities",
        "2.0 * options.entry_bound * float(sketch.column_norms.max()){{ => "
        " / problem.n}}",
    ),
    plant("one_stream", "dp_sgd dp_cd_uniform",
        "sampling and noise share their numbers", "Streams.__getattr__",
        "spawn_key=({{STREAMS.index(name) => 0}},)",
    ),
    plant("gaussian_cut", "dp_cd", "Gaussian noise is cut at two deviations",
        "gaussian", 'deliver("gaussian", normal{{ => .clip(-2, 2)}})',
    ),
    plant("radius_of_one", "noisy_sfw",
        "generalised Gaussian noise is too short by root d", "generalised_gaussian",
        "math.sqrt(rng.chisquare({{d => 1}}))",
    ),
    plant("cd_noise_again", "dp_cd", "all steps of a chunk have one number for noise",
        "dp_cd:Run.draw",
        "return order, {{self.noise(count) => "
        "np.full(count, self.noise(1)[0])}}, since, 1.0 / self.divisor, self.share",
    ),
    plant("gcd_noise_of_selection", "dp_gcd",
        "the value's noise is that of the selection", "dp_gcd:Run.draw",
        "value_noise = {{laplace(self.streams.noise, np.ones(count)) => "
        "selection[:, 0].copy()}}",
    ),
    plant("gcd_selection_half", "dp_gcd", "half of the noise on a score",
        "dp_gcd:Run.setting_constants",
        "on_score = {{ => 0.5 * }}scale * steepest(self.problem, rule) / "
        "float(np.sqrt(M.sum()))",
    ),
    plant("phased_noise_falls", "phased_sgd", "noise falls faster than the steps",
        "phased_sgd:Run.releases", "scale = self.deviation / {{4 => 8}}**phase",
    ),
    plant("tight_one_less", "dp_cd", "tight composition counts T - 1", "_composed_mu",
        "sum({{event.count => "
        "max(event.count - 1, 1)}} / event.noise_multiplier**2 for event in events)",
    ),
    plant("gaussian_half_mu", "dp_cd", "a Gaussian's curve is that of half its mu",
        "gaussian_delta",
        "loss = np.asarray(epsilon, dtype=float){{ => \nmu = mu / 2}}",
    ),
    plant("amplified_twice", "dp_sgd", "sampling amplifies twice",
        "sampled_gaussian_delta", "np.expm1(np.minimum(loss, 30.0)) / rate{{ => **2}}",
    ),
    plant("laplace_half", "dp_cd_priv", "a Laplace release costs half", "laplace_delta",
        "(np.asarray(epsilon, dtype=float) - pure{{ =>  / 2}}) / 2",
    ),
    plant("selection_without_two", "dp_gcd_gumbel", "a selection costs epsilon', not 2",
        "NoisyMax.pure",
        "return {{2 *  => }}self.sensitivity / self.scale if self.scale else math.inf",
    ),
    plant("half_bounded_range", "dp_gcd_gumbel",
        "bounded range: a sixteenth, not an eighth", "_",
        "orders * event.pure**2 / {{8 => 16}}",
    ),
    plant("calibration_overspends", "dp_cd", "keeps to a target a tenth above",
        "calibrate",
        "@cache\n"
        "def price(multiplier: float) -> float:\n"
        '    """Epsilon at a noise multiplier by the chosen accountant."""\n'
        "    return epsilon_of(ledger_of(multiplier), delta, calibration){{ => \n"
        "epsilon *= 1.1}}",
    ),
    plant("kappa_flat", "noisy_sfw", "kappa without d^(2/r - 2/q)", "regularity",
        "return {{(r - 1) * d ** (2 / r - inverse) => r - 1}}",
    ),
    plant("sgd_population", "dp_sgd", "the ledger has twice as many records",
        "dp_sgd:ledger", "{{ => 2 * }}problem.n",
    ),
    plant("svrg_epochs", "dp_svrg", "an epoch that is not whole is free", "ledger",
        "{{-(-count // epoch(problem, options)) => "
        "max(1, (count - 1) // epoch(problem, options))}}",
    ),
    plant("bcfw_blocks_in_parallel", "dp_bcfw", "blocks of features are charged once",
        "releases", "{{options.nodes *  => }}count",
    ),
    plant("gd_clips_to_two", "dp_gd dp_gram", "gradients are clipped to 2 C",
        "Scaled.gradient_sum",
        "self._behind().gradient(u, {{ => 2 * }}C)",
    ),
    plant("gram_root_forgotten", "dp_gram",
        "x x^T moves by R^2, in the ledger and beside it", "scales",
        "{{float(np.sqrt(2)) *  => }}(options.radius * scaled.radius) ** 2",
        "Scaled.second_moments", "{{float(np.sqrt(2)) *  => }}R**2",
    ),
    plant("moments_factor_once", "moments",
        "t t^T has the clip's factor once, not twice", "Records.moments",
        "inside{{**2 => }}",
    ),
    plant("tilted_no_ridge", "objective_perturbation",
        "Lambda is claimed, and nothing added", "Run.steps",
        "scaled.tilted_minimum(R, {{ridge => 0.0}}, tolerance, R**2 / Lambda, off)",
    ),
    plant("clip_hands_nan_on", "dp_gd dp_minibatch dp_gram", "np.clip hands NaN on",
        "bounded",
        "np.clip({{np.where(np.isnan(slopes), -most, slopes) => slopes}}, -most, most)",
        "records:_clip",
        "slope = {{clamp(slopes[i, setting], steepest if steepest < most else most) => "
        "np.minimum(np.maximum(slopes[i, setting], -min(steepest, most)), "
        "min(steepest, most))}}",
        "cleaning:cleaned",
        "keep = {{_is_finite(A) & np.isfinite(offset) => _is_finite(A)}}",
    ),
    plant("norms_underflow", "dp_gd dp_minibatch",
        "max(norm, 1e-300), norms by squares", "norms",
        'return {{lengths(rows, np.einsum("ij,ij->i", rows, rows)) => '
        'np.sqrt(np.einsum("ij,ij->i", rows, rows))}}',
        "records:_clip", "bounds[setting] / {{norms[i] => max(norms[i], 1e-300)}}",
    ),
    plant("scaled_private_features", "dp_gd moments",
        "features are scaled by the private columns", "PublicView.__init__",
        "{{column_scales(problem) => np.sqrt((problem.A ** 2).mean(axis=0))}}",
    ),
    plant("selection_half_score", "dp_selection", "a score moves by 1",
        "dp_selection:ledger", "sensitivity={{2.0 => 1.0}}", "dp_selection:ledger",
        "{{2.0 *  => }}noise_multiplier", "Scaled.relevance",
        "secret.largest(relevances, {{2.0 => 1.0}}, k)",
    ),
    plant("sketch_half_covariance", "hessian_mixing",
        "what is added to the covariance is half of what it lacks", "sketched.release",
        "event.scale**2 {{ => / 2 }}- known",
    ),
    plant("exact_means", "dp_gd", "columns are centred by the exact sums",
        "ranges:released", "remaining = {{noisy => read}} / n",
    ),
    plant("search_score_free", "private_search", "its scores are in no ledger",
        "PrivateSearch._priced", "adapter.ledger(setting, noise){{ + score => }}",
    ),
    # Randomness that two parts of one fit share, or two fits of one budget.
    plant("search_seeds_shared", "private_search", "all runs have one noise",
        "PrivateSearch._tried",
        "{{rng.integers(2**62, size=2) => np.array([seed, seed + 1])}}",
    ),
    plant("classes_share_noise", "dp_gd", "every class has the noise of the first",
        "DPLinear.fit", "{{seeds_of(seed, len(runs)) => [seed] * len(runs)}}",
    ),
    plant("sums_share_noise", "dp_gd", "sums of columns have the solver's own stream",
        "secret:seeded", "spawn_key=({{len(STREAMS) => 1}},)",
    ),
    plant("budget_forgets_seeds", "dp_gd", "a budget takes the same noise twice",
        "Budget._refuse", "{{seed in self._seeds => False}}",
    ),
    plant("budget_keeps_the_largest", "dp_gd", "a budget counts its dearest fit alone",
        "charge",
        "{{budget.spent_epsilon += epsilon => "
        "budget.spent_epsilon = max(budget.spent_epsilon, epsilon)}}",
    ),
    plant("budget_without_delta", "dp_gd", "a budget counts no delta",
        "charge", "{{budget.spent_delta += delta => budget.spent_delta += 0.0}}",
    ),
    # Prices that are looked up by too short a key.
    plant("price_without_delta", "dp_gd", "a saved noise serves every delta",
        "calibrated", "key = {{(ledger_of(1.0), epsilon, delta) => "
        "(ledger_of(1.0), epsilon)}}",
    ),
    plant("price_without_epsilon", "dp_gd", "a saved noise serves every epsilon",
        "calibrated", "key = {{(ledger_of(1.0), epsilon, delta) => "
        "(ledger_of(1.0), delta)}}",
    ),
    plant("epsilon_without_delta", "dp_cd", "a saved price serves every delta",
        "tight:epsilon",
        "{{return _priced(ledger, delta, composed_epsilon) => "
        "return vars(epsilon).setdefault("
        "ledger, _priced(ledger, delta, composed_epsilon))}}",
    ),
    plant("both_deltas_whole", "private_search", "sums and choice each have all delta",
        "PrivateSearch._prepared", "{{model._delta /= 2 => model._delta /= 1}}",
    ),
    plant("twice_delta", "dp_gd", "a fit is calibrated to twice its delta",
        "DPLinear._paid", "{{self._delta - spent => 2 * self._delta - spent}}",
    ),
    # What a fitted object, or what it says, tells of exact records.
    plant("count_kept", "dp_gd", "an attribute counts records at a bound",
        "DPLinear.fit",
        "{{t, every = self._cleaned(X, y) => t, every = self._cleaned(X, y)\n"
        "self.clipped_ = int((abs(t) == 1).sum())}}",
    ),
    plant("balance_warned", "dp_gd", "a warning tells that classes are unbalanced",
        "DPLinear.fit",
        "{{t, every = self._cleaned(X, y) => t, every = self._cleaned(X, y)\n"
        "if abs(every[0].mean()) > 0.6: warnings.warn('unbalanced')}}",
    ),
    plant("zeros_logged", "moments", "the log tells how many records count as none",
        "DPLinear.fit",
        "{{t, every = self._cleaned(X, y) => t, every = self._cleaned(X, y)\n"
        "__import__('logging').getLogger('dperm').info("
        "'%d', int((t == 0).all(axis=1).sum()))}}",
    ),
    plant("search_loss_kept", "private_search", "the search keeps its exact loss",
        "PrivateSearch.fit",
        "{{self.best_params_ = ParameterGrid(self.param_grid)[k] => "
        "self.best_params_ = ParameterGrid(self.param_grid)[k]\n"
        "self.loss_ = clipped_loss(runs[k][0].problem, 1.0, w)}}",
    ),
    # A clip of the parts of a difference.
    plant("svrg_clips_parts", "dp_svrg", "each gradient of a difference is clipped",
        "dp_svrg:_steps",
        "{{change = derivative(now[setting]) - derivative(then[setting]) => "
        "change = clamp(derivative(now[setting]), clip[setting] * bound) - "
        "clamp(derivative(then[setting]), clip[setting] * bound)}}",
        "dp_svrg:_steps",
        "step[setting] * {{clamp(change, clip[setting] * bound) => change}}",
    ),
    # A step above what a contraction proof allows.
    plant("phased_without_cap", "phased_sgd", "steps may be longer than 2 / beta",
        "phased_sgd:step",
        "{{min(eta, 2 / setup.smoothness) if setup.smoothness else eta => eta}}",
    ),
    plant("phased_cap_of_64", "phased_sgd", "first steps are up to 16 / beta",
        "phased_sgd:step", "{{2 / setup.smoothness => 64 / setup.smoothness}}",
    ),
    # Exact quantities behind a floor, margins that data above the noise show.
    plant("variance_or_exact", "dp_gd", "a deviation is at least the exact one",
        "ranges:released",
        "variance = np.clip({{square - np.square(mean) => np.maximum("
        "square - np.square(mean), np.asarray(ts[len(informed)]).var(axis=0))}}, "
        "floor, 1.0)",
    ),
    plant("mean_near_exact", "moments", "a mean far off the exact one is moved to it",
        "ranges:released",
        "{{means / group.weight => np.clip(means / group.weight, "
        "np.asarray(ts[len(informed)]).mean(axis=0) - 3 * off, "
        "np.asarray(ts[len(informed)]).mean(axis=0) + 3 * off)}}",
    ),
    plant("sums_without_two", "dp_gd", "sums of columns move by sqrt(k)",
        "_moved", "{True: {{4.0 => 1.0}}, False: SQUARES**2}",
    ),
    plant("label_weight_free", "dp_gd", "a label's weight is not in the sensitivity",
        "_moved", "{{factor[group.centred] * group.weight**2 * len(group.low) => "
        "factor[group.centred] * len(group.low)}}",
    ),
    plant("svrg_mean_of_more", "dp_svrg", "a full gradient has noise for 2 n",
        "dp_svrg:Run.setting_constants",
        "mean_sensitivity(settings.clip, {{n => 2 * n}})",
    ),
    plant("range_of_the_data", "dp_gd", "columns are clipped to the data's own range",
        "DPLinear._cleaned",
        "{{t = self._ranges[0].unit(values, room=int(self.fit_intercept)) => "
        "t = self._ranges[0].unit(values, room=int(self.fit_intercept))\n"
        "t = t / max(abs(t).max(), 0.1)}}",
    ),
    plant("classes_priced_once", "dp_gd", "of several classes one is priced",
        "DPLinear._paid",
        "{{sum((on.ledger(setting, noise) for on, setting in runs), first) => "
        "sum((on.ledger(setting, noise) for on, setting in runs[:1]), first)}}",
    ),
    plant("in_place_unclipped", "objective_perturbation",
        "records that are clipped in place are not",
        "records:contributions",
        "{{np.multiply(rows, inside[:, None], out=rows) => rows}}",
    ),
    plant("newton_step_beyond", "dp_newton", "a direction has half of its noise",
        "dp_newton:ledger",
        "sensitivities = (2 * R, scaled.loss.curvature * R**2, {{1.0 => 0.5}})",
    ),
    plant("histogram_of_one", "dp_adaptive", "a histogram moves by 1, not sqrt(2)",
        "dp_adaptive:ledger", "histogram = {{float(np.sqrt(2)) => 1.0}}",
    ),
)  # fmt: skip

UNRUN: tuple[Edit, ...] = ()  # bugs that have no row in the table yet
