"""Every solver of the configuration, and one's own, keeps what its family promises."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from dperm.accountants.noisy_max import NoisyMax
from dperm.audit.mechanism import DELTA
from dperm.audit.solvers import Shape
from dperm.core import solvers
from dperm.core.lanes import Lanes
from dperm.core.privacy import Laplace, streams
from dperm.core.privacy.ledger import Gaussian, NonPrivate, SampledGaussian
from subjects import subjects as made

ROOT = Path(__file__).parents[2]
MINE = ROOT / "docs/examples/mine"
YAMLS = [
    *sorted((ROOT / "conf/solver").glob("*.yaml")),
    *sorted((MINE / "conf/solver").glob("*.yaml")),
]
NORMAL = {"gaussian", "generalised_gaussian"}


@pytest.fixture(autouse=True)
def _mine(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(MINE), *sys.path])
    yield
    sys.modules.pop("noisy_gd", None)


@cache
def read(path):
    return OmegaConf.load(path)


def every(*families):
    """Parametrise over the YAMLs of some families; a module of one's own runs lanes."""
    places = solvers.PLACES
    found = []
    for path in YAMLS:
        place = places.get(read(path).algorithm, ".lanes.")
        if any(f".{family}." in place for family in families):
            found.append(path)
    return pytest.mark.parametrize("path", found, ids=lambda path: path.stem)


def module_of(path):
    return solvers.load(read(path).algorithm)


@every("lanes", "frank_wolfe", "streams", "fits")
def test_it_offers_what_its_family_promises(path):
    module = module_of(path)
    assert solvers.family(module) in solvers.OFFERED
    assert solvers.lacking(module) == []


@every("lanes", "frank_wolfe", "streams", "fits")
def test_unknown_options_are_refused(path):
    with pytest.raises(ValueError, match=r"options\.no_such: unknown"):
        solvers.make_options(module_of(path), {"no_such": 1})


@every("lanes", "frank_wolfe", "streams", "fits")
def test_what_leaves_is_in_the_ledger(path):
    """Every draw that the hook hears belongs to an event, and no event is too short."""
    for subject in made(path):
        run, events = subject.run(subject.base, 7), subject.ledger.events
        assert run.draws and not any(isinstance(e, NonPrivate) for e in events)
        count = counted(subject, run)
        stated = {
            "selections": total(events, NoisyMax),
            "normal": sum(e.count for e in events) - total(events, NoisyMax, Laplace),
            "numbers": total(events, Laplace),
        }
        if (
            solvers.family(module_of(path)) == "streams"
        ):  # a record is in some of them only
            assert all(stated[key] for key, found in count.items() if found)
        elif solvers.family(module_of(path)) == "lanes":
            assert count == stated
        else:  # features that come again are not sent again
            assert all(count[key] <= stated[key] for key in count)


def counted(subject, run):
    """Selections, normal vectors, and other single numbers that were drawn."""
    found = {"selections": 0, "normal": 0, "numbers": 0}
    for places in map(run.behind, range(len(run.views))):
        for order, place in enumerate(places):
            draw = run.draws[place]
            if draw.kind in NORMAL:
                found["normal"] += 1
            elif subject.selections and order == 0:
                found["selections"] += 1
            else:
                found["numbers"] += draw.unit.size
    return found


def total(events, *kinds):
    return sum(event.count for event in events if isinstance(event, kinds))


@every("lanes", "frank_wolfe", "streams", "fits")
def test_what_is_released_is_finite_and_of_one_shape(path):
    for subject in made(path):
        run = subject.run(subject.base, 3)
        several = solvers.family(module_of(path)) == "fits"  # matrices, vectors
        assert several or len({view.shape for view in run.views}) == 1
        assert all(np.isfinite(view).all() for view in run.views)
        assert len(run.ends) == len(run.views) + 1
        # mirror descent's last gradient, which nothing is made of, stays inside
        inside = len(run.draws) - run.ends[-1]
        assert inside == (1 if path.stem == "sco_mirror_descent" else 0)


# --- lanes ----------------------------------------------------------------------------


def started(subject, step, clip, seed=5):
    lanes = Lanes(np.array(step), np.array(clip), 0.7, subject.kind)
    given = (subject.setting["problem"], lanes, streams(seed))
    return subject.setting["module"].Run(*given, subject.setting["options"], 1, 12)


STEPS, CLIPS = [0.05, 0.4, 1.0, 0.7, 0.2], [0.1, 3.0, 0.5, 10.0, 0.02]


@every("lanes")
def test_pieces_are_the_whole_to_the_bit(path):
    for subject in made(path):
        whole, pieces = (started(subject, STEPS, CLIPS) for _ in range(2))
        whole.advance(12)
        for count in (1, 4, 7):
            pieces.advance(count)
        np.testing.assert_array_equal(whole.weights, pieces.weights)
        np.testing.assert_array_equal(whole.released, pieces.released)


@every("lanes")
def test_lanes_do_not_touch_and_may_be_dropped(path):
    for subject in made(path):
        block = started(subject, STEPS, CLIPS)
        block.advance(3)
        kept = np.array([True, False, True, True, False])
        block.keep(kept)
        block.advance(4)
        for row, lane in enumerate(np.flatnonzero(kept)):
            alone = started(subject, STEPS[lane : lane + 1], CLIPS[lane : lane + 1])
            alone.advance(7)
            np.testing.assert_array_equal(block.weights[row], alone.weights[0])
            np.testing.assert_array_equal(block.released[row], alone.released[0])


@every("lanes")
def test_weights_are_released_with_whatever_else(path):
    for subject in made(path):
        run = started(subject, STEPS, CLIPS)
        run.advance(2)
        size, p = len(STEPS), subject.setting["problem"].p
        assert run.weights.shape == (size, p) and run.released.shape[0] == size
        np.testing.assert_array_equal(run.released[:, :p], run.weights)


@every("lanes")
def test_a_step_that_releases_is_seen_in_what_is_released(path):
    """What the noise moves is in ``released``: nothing leaves beside it."""
    for subject in made(path):
        if not subject.whole:
            continue  # looks at a part on purpose
        seen = subject.run(subject.base, 3)
        for t in range(len(seen.views)):
            if not list(seen.behind(t)):
                continue  # nothing is released before the first step
            place = list(seen.behind(t))[-1]
            script = list(seen.draws)
            script[place] = script[place].moved(np.full(script[place].unit.size, 3.0))
            other = subject.run(subject.base, 3, script, None, t)
            assert (other.views[t] != seen.views[t]).any()


@every("lanes")
def test_passes_are_steps_and_lanes_have_a_size(path):
    for subject in made(path):
        module, problem = module_of(path), subject.setting["problem"]
        options = subject.setting["options"]
        few, many = (module.steps(problem, x, options) for x in (1e-9, 40))
        assert few == 1 < many and isinstance(many, int)
        assert module.lane_bytes(problem) >= 8 * problem.p


# --- Frank-Wolfe methods and streams --------------------------------------------------


@every("frank_wolfe")
def test_steps_of_frank_wolfe_in_pieces(path):
    for subject in made(path):
        ends, told = [], []
        for pieces in ((2,), (1, 1)):
            with subject.setting["begun"](subject.base, streams(4)) as run:
                for count in pieces:
                    run.advance(count)
                ends.append(run.weights.copy())
                told.append([release.copy() for release in run.released])
        np.testing.assert_array_equal(*ends)
        for one, two in zip(*told, strict=True):
            np.testing.assert_array_equal(one, two)
        assert ends[0].shape == (1, subject.setting["d"])


@every("frank_wolfe")
def test_without_noise_frank_wolfe_says_that_it_is_not_private(path):
    module, chosen = module_of(path), read(path)
    options = solvers.make_options(module, dict(chosen.get("options", {})))
    shape = Shape(p=6)
    problem = shape.problem(shape.records())
    goal = (np.inf, problem.delta, "strict")
    found = module.noise(problem, 3, options, *goal)
    assert any(isinstance(event, NonPrivate) for event in found.ledger.events)
    if chosen.algorithm in ("bcfw", "fw"):
        stated = module.ledger(problem, 3, 1.0, options, "strict").events
        assert [type(event) for event in stated] == [NonPrivate]
        assert made(path) == []


@every("streams")
def test_a_stream_run_at_once_ends_where_its_releases_end(path):
    for subject in made(path):
        run = subject.run(subject.base, 4)
        solved = subject.together(subject.base, streams(4))
        assert run.views and all(release.ndim == 1 for release in run.views)
        np.testing.assert_allclose(solved, run.weights, rtol=0, atol=1e-12)


@every("streams")
def test_targets_of_a_stream_do_not_touch(path):
    module = module_of(path)
    from dperm.solvers.streams import Target
    from dperm.solvers.streams.sources import Rows

    for subject in made(path)[:1]:
        at, base = subject, subject.base
        targets = [Target(e, DELTA, at.kind) for e in (0.5, 1.0, 4.0)]

        def solved(targets, at=at, base=base):
            given = (at.setting["setup"], targets, streams(9), Rows(base.X, base.y))
            return module.Run(*given, len(base.y), at.setting["options"]).solve()

        together = solved(targets)
        for lane, target in enumerate(targets):
            np.testing.assert_array_equal(together[lane], solved([target])[0])


# --- what is refused ------------------------------------------------------------------


def test_a_solver_that_breaks_its_familys_promise_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    text = (MINE / "noisy_gd.py").read_text()
    (tmp_path / "bare.py").write_text(text.replace("class Run(Block)", "class Run"))
    (tmp_path / "strange.py").write_text('FAMILY = "lane"\n' + text)
    for name, said in [
        ("bare", r"has no Run\.keep, Run\.released"),
        ("strange", "FAMILY: expected one of lanes, frank_wolfe, streams"),
    ]:
        with pytest.raises(ValueError, match=f"'{name}': .*{said}"):
            solvers.load(name)
        sys.modules.pop(name)


def test_each_solver_of_this_package_is_checked_too(monkeypatch):
    from dperm.solvers.streams import poly_sfw

    monkeypatch.delattr(poly_sfw.Run, "solve")
    monkeypatch.delattr(poly_sfw.Run.__mro__[1], "solve", raising=False)
    with pytest.raises(ValueError, match=r"'poly_sfw': has no Run\.solve"):
        solvers.load("poly_sfw")


def test_events_are_all_of_a_kind_that_is_counted():
    """The counts above tell selections, numbers and normal vectors apart."""
    kinds = {type(e) for path in YAMLS for s in made(path) for e in s.ledger.events}
    known = (NoisyMax, Laplace, Gaussian, SampledGaussian)
    others = {kind.__name__ for kind in kinds if not issubclass(kind, known)}
    assert others == {"GaussianSketch", "GeneralisedGaussian", "PerturbedObjective"}
