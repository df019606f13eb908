"""The contract can be broken in many ways, and each is caught by the check that names it."""

import random
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from sameworld.core import ChannelSpec, Context, Rollout, Spec, SpecError, Values
from sameworld.core.rollout import loop
from sameworld.worlds.check import WorldCheckError, check_names, check_world
from sameworld.zoo import AnalyticCart, learned_cart


class Honest:
    """Passes every call on to a sound world; each broken world below changes one thing."""

    def __init__(self, inner=None):
        self.inner = AnalyticCart() if inner is None else inner

    @property
    def spec(self):
        return self.inner.spec

    @property
    def scene(self):
        return self.inner.scene

    @property
    def parameters(self):
        return self.inner.parameters

    def with_belief(self, belief):
        return type(self)(self.inner.with_belief(belief))

    def reset(self, start, parameters=None, *, seed=0):
        return self.inner.reset(start, parameters, seed=seed)

    def step(self, state, action):
        return self.inner.step(state, action)

    def observe(self, state):
        return self.inner.observe(state)

    def gradient(self, start, actions, parameters, wrt, *, seed):
        return self.inner.gradient(start, actions, parameters, wrt, seed=seed)

    def pullback(self, start, actions, weights, parameters=None, *, wrt=(), seed=0):
        return self.inner.pullback(start, actions, weights, parameters, wrt=wrt, seed=seed)


class HonestLearner(Honest):
    def __init__(self, inner=None):
        super().__init__(learned_cart() if inner is None else inner)

    def fit(self, episodes, *, seed):
        return type(self)(self.inner.fit(episodes, seed=seed))


class StartIsAlsoParameter(Honest):
    @property
    def spec(self):
        start = self.inner.parameters.parameters[0]
        spec = self.inner.spec
        both = replace(spec.start, parameters=(replace(start, scope="episode"),), correlation=None)
        bare = tuple(replace(c, start=(), rate=()) for c in spec.observations)
        return replace(spec, start=both, observations=bare)


class ChannelShowsUnknownStart(Honest):
    @property
    def spec(self):
        first, second = self.inner.spec.observations
        return replace(
            self.inner.spec, observations=(replace(first, start=("start:no.pos",)), second)
        )


class DeclaresWhatItLacks(Honest):
    @property
    def spec(self):
        return replace(self.inner.spec, capabilities=frozenset({"gradient", "rollout"}))


class SharesOneKey(Honest):
    def reset(self, start, parameters=None, *, seed=0):
        state = super().reset(start, parameters, seed=seed)
        return replace(state, key=state.key[:1])


class ObservesAnotherShape(Honest):
    def observe(self, state):
        return {name: values[:, None] for name, values in super().observe(state).items()}


class ObservesTooMuch(Honest):
    def observe(self, state):
        return {**super().observe(state), "rail.acc": state.time}


class StartsElsewhere(Honest):
    def reset(self, start, parameters=None, *, seed=0):
        state = super().reset(start, parameters, seed=seed)
        return replace(state, arrays={**state.arrays, "pos": state.arrays["pos"] + 0.1})


class TakesAnyStart(Honest):
    def reset(self, start, parameters=None, *, seed=0):
        start = Values.none(start.batch) if isinstance(start, Context) else start
        return super().reset(start, parameters, seed=seed)


class IgnoresItsContext(HonestLearner):
    def reset(self, start, parameters=None, *, seed=0):
        state = super().reset(start, parameters, seed=seed)
        return replace(state, arrays={**state.arrays, "seen": 0 * state.arrays["seen"]})


class MutatesItsState(Honest):
    def step(self, state, action):
        after = super().step(state, action)
        state.arrays["pos"][...] = after.arrays["pos"]
        return after


class MutatesItsAction(Honest):
    def step(self, state, action):
        after = super().step(state, action)
        action *= 0.5
        return after


class LeaksItsArrays(Honest):
    def observe(self, state):
        return {"rail.pos": state.arrays["pos"], "rail.vel": state.arrays["vel"]}


class RemembersCalls(Honest):
    calls = 0

    def step(self, state, action):
        self.calls += 1
        return super().step(state, action * (1 + 1e-9 * self.calls))


class DrawsGlobally(Honest):
    def step(self, state, action):
        return super().step(state, action + 1e-6 * np.random.standard_normal())  # noqa: NPY002


class DrawsFromPython(Honest):
    def step(self, state, action):
        return super().step(state, action + 1e-6 * random.random())


class RunsSlow(Honest):
    def step(self, state, action):
        after = super().step(state, action)
        return replace(after, time=state.time + 0.5 * self.spec.period)


class HidesItsNoise(Honest):
    def __init__(self, inner=None):
        super().__init__(AnalyticCart(noise=0.1) if inner is None else inner)

    @property
    def spec(self):
        return replace(self.inner.spec, stochastic=False)


class PretendsNoise(Honest):
    @property
    def spec(self):
        return replace(self.inner.spec, stochastic=True)


class MixesItsBatch(Honest):
    def step(self, state, action):
        return super().step(state, 0.5 * action + 0.5 * action.mean(axis=0))


class KeepsStateOutside(Honest):
    """Acts differently on states it did not make itself."""

    made: ClassVar[dict] = {}

    def step(self, state, action):
        known = id(state.arrays) in self.made
        after = super().step(state, action if known or not state.time.any() else 0 * action)
        self.made[id(after.arrays)] = after  # kept alive, so that ids stay unique
        return after


class MarksItsStates(Honest):
    """Tells its own states apart by something that no file keeps."""

    def reset(self, start, parameters=None, *, seed=0):
        state = super().reset(start, parameters, seed=seed)
        return replace(state, arrays=Unsaved(state.arrays))

    def step(self, state, action):
        kept = isinstance(state.arrays, Unsaved)
        after = super().step(state, action if kept else 0 * action)
        return replace(after, arrays=Unsaved(after.arrays)) if kept else after


class Unsaved(dict):
    """Arrays whose class carries meaning."""


class UsesFirstParameters(Honest):
    def step(self, state, action):
        first = state.parameters.rows([0] * state.batch)
        return replace(super().step(replace(state, parameters=first), action), parameters=first)


class TakesZerosForMissing(Honest):
    def reset(self, start, parameters=None, *, seed=0):
        if parameters is not None and len(parameters.names) < 3:
            others = [n for n in self.parameters.names if n not in parameters.names]
            parameters = parameters.updated(Values.of(dict.fromkeys(others, 1.0)))
        return super().reset(start, parameters, seed=seed)


class AcceptsAnyName(Honest):
    def reset(self, start, parameters=None, *, seed=0):
        if parameters is not None:
            parameters = parameters.select(
                [n for n in parameters.names if n in self.parameters.names]
            )
        return super().reset(start, parameters, seed=seed)


class RefusesWithoutNaming(Honest):
    def reset(self, start, parameters=None, *, seed=0):
        try:
            return super().reset(start, parameters, seed=seed)
        except SpecError as error:
            raise SpecError("wrong name") from error


class RaisesSomethingElse(Honest):
    def reset(self, start, parameters=None, *, seed=0):
        try:
            return super().reset(start, parameters, seed=seed)
        except SpecError as error:
            raise KeyError(str(error)) from error


class CutsBatches(Honest):
    def reset(self, start, parameters=None, *, seed=0):
        if parameters is not None and parameters.batch > start.batch > 1:
            parameters = parameters.rows(slice(0, start.batch))
        return super().reset(start, parameters, seed=seed)


class BroadcastsActions(Honest):
    def step(self, state, action):
        return super().step(state, action.reshape(-1)[: state.batch, None])


class SwallowsNaN(Honest):
    def step(self, state, action):
        return super().step(state, np.nan_to_num(action))


class SpreadsNaN(Honest):
    def step(self, state, action):
        bad = not np.isfinite(action).all()
        after = super().step(state, np.nan_to_num(action))
        lost = {name: np.full_like(a, np.nan) for name, a in after.arrays.items()}
        return replace(after, arrays=lost) if bad else after


class ChangesItsOwnBelief(Honest):
    def with_belief(self, belief):
        self.inner = self.inner.with_belief(belief)
        return self


class ForgetsItsNewBelief(Honest):
    def with_belief(self, belief):
        return Honest(self.inner)


class Rolling(Honest):
    @property
    def spec(self):
        return replace(self.inner.spec, capabilities=frozenset({"rollout"}))


class RollsOutLate(Rolling):
    def rollout(self, state, actions):
        late = loop(self.inner, state, np.roll(actions, 1, axis=1))
        return replace(late, actions=actions)


class RollsOutNominalParameters(Rolling):
    def rollout(self, state, actions) -> Rollout:
        values = self.parameters.mean.broadcast(state.batch)
        return loop(self.inner, replace(state, parameters=values), actions)


class GradientOfHalf(Honest):
    def gradient(self, *args, **kwargs):
        return {name: 0.999 * values for name, values in super().gradient(*args, **kwargs).items()}


class GradientWithoutMass(Honest):
    def gradient(self, start, actions, parameters, wrt, *, seed):
        exact = super().gradient(start, actions, parameters, wrt, seed=seed)
        keep = np.array([name != "body:cart.mass" for name in wrt])
        return {name: values * keep for name, values in exact.items()}


class PullsWithoutDamping(Honest):
    def pullback(self, *args, **kwargs):
        back = super().pullback(*args, **kwargs)
        keep = np.array([name != "joint:rail.damping" for name in self.parameters.names])
        return back._replace(parameters=back.parameters * keep)


class PullsActionsLate(Honest):
    def pullback(self, *args, **kwargs):
        back = super().pullback(*args, **kwargs)
        return back._replace(actions=np.roll(back.actions, 1, axis=1))


class FitsItself(HonestLearner):
    def fit(self, episodes, *, seed):
        self.inner = self.inner.fit(episodes, seed=seed)
        return type(self)(self.inner)


class FitsByChance(HonestLearner):
    fits = 0

    def fit(self, episodes, *, seed):
        FitsByChance.fits += 1
        return type(self)(self.inner.fit(episodes[: 1 + self.fits % 2], seed=seed))


BROKEN = [
    (StartIsAlsoParameter, "spec is consistent"),
    (ChannelShowsUnknownStart, "spec is consistent"),
    (DeclaresWhatItLacks, "capabilities are implemented"),
    (SharesOneKey, "reset gives a whole state"),
    (ObservesAnotherShape, "observations match the spec"),
    (ObservesTooMuch, "observations match the spec"),
    (StartsElsewhere, "declared starts are shown"),
    (TakesAnyStart, "start kind is enforced"),
    (IgnoresItsContext, "start kind is enforced"),
    (MutatesItsState, "step leaves its input"),
    (MutatesItsAction, "step leaves its input"),
    (LeaksItsArrays, "observations are copies"),
    (RemembersCalls, "same input gives same output"),
    (DrawsGlobally, "global randomness is untouched"),
    (DrawsFromPython, "global randomness is untouched"),
    (RunsSlow, "time advances by the period"),
    (HidesItsNoise, "seeds act as declared"),
    (PretendsNoise, "seeds act as declared"),
    (MixesItsBatch, "batch equals singles"),
    (KeepsStateOutside, "clones continue exactly"),
    (MarksItsStates, "restored states continue exactly"),
    (UsesFirstParameters, "parameters act per element"),
    (TakesZerosForMissing, "missing values take means"),
    (AcceptsAnyName, "unknown names are refused"),
    (RefusesWithoutNaming, "unknown names are refused"),
    (RaisesSomethingElse, "unknown names are refused"),
    (CutsBatches, "unequal batches are refused"),
    (BroadcastsActions, "wrong actions are refused"),
    (SwallowsNaN, "nan actions are not swallowed"),
    (SpreadsNaN, "nan actions are not swallowed"),
    (ChangesItsOwnBelief, "belief changes make new worlds"),
    (ForgetsItsNewBelief, "belief changes make new worlds"),
    (RollsOutLate, "rollout equals looping step"),
    (RollsOutNominalParameters, "rollout equals looping step"),
    (GradientOfHalf, "gradient agrees with differences"),
    (GradientWithoutMass, "gradient agrees with differences"),
    (PullsWithoutDamping, "pullback transposes the gradient"),
    (PullsActionsLate, "pullback transposes the gradient"),
    (FitsItself, "fit returns a new world"),
    (FitsByChance, "fit returns a new world"),
]


@pytest.mark.parametrize("sound", [Honest, HonestLearner])
def test_the_worlds_that_are_broken_below_are_sound_before(sound):
    check_world(sound()).raise_if_failed()


@pytest.mark.parametrize(("broken", "name"), BROKEN)
def test_a_broken_world_fails_the_check_that_names_it(broken, name):
    report = check_world(broken())
    row = report.row(name)
    assert row.outcome == "fail", str(report)
    assert row.detail
    with pytest.raises(WorldCheckError, match=name):
        report.raise_if_failed()


def test_every_check_is_failed_by_some_broken_world():
    never = {
        "parameters have an effect",
        "render gives images",
        "inverse is linear in inertia",
    }
    assert {name for _, name in BROKEN} | never == set(check_names())


def test_a_world_that_raises_is_reported_not_raised():
    class Exploding(Honest):
        def step(self, state, action):
            raise ZeroDivisionError("boom")

    report = check_world(Exploding())
    assert "ZeroDivisionError: boom" in report.row("step leaves its input").detail


def test_parameters_without_effect_are_pointed_out():
    class Deaf(Honest):
        def step(self, state, action):
            nominal = self.parameters.mean.broadcast(state.batch)
            return replace(
                super().step(replace(state, parameters=nominal), action),
                parameters=state.parameters,
            )

    row = check_world(Deaf()).row("parameters have an effect")
    assert row.outcome == "skip" and "no effect" in row.detail


class Painter(Honest):
    """Renders noise-free images of the wrong kind unless told otherwise."""

    kind = np.uint8
    shade = 0

    @property
    def spec(self):
        return replace(self.inner.spec, capabilities=frozenset({"render"}))

    def render(self, state, camera):
        return np.full((state.batch, 4, 6, 3), self.shade, dtype=self.kind)


def test_images_are_checked():
    class Floats(Painter):
        kind = np.float64

    class Flickers(Painter):
        def render(self, state, camera):
            self.shade += 1
            return super().render(state, camera)

    class NoDriver(Painter):
        def render(self, state, camera):
            raise RuntimeError("an OpenGL platform library has not been loaded: EGL")

    rows = [
        check_world(w()).row("render gives images") for w in (Painter, Floats, Flickers, NoDriver)
    ]
    assert [row.outcome for row in rows] == ["pass", "fail", "fail", "skip"]
    assert rows[0].detail == "6 x 4 px"


def test_a_spec_without_a_start_is_still_checked():
    class Bare(Honest):
        @property
        def spec(self):
            spec = self.inner.spec
            return Spec(
                period=spec.period,
                observations=tuple(ChannelSpec(name=c.name) for c in spec.observations),
                actions=spec.actions,
            )

    assert check_world(Bare()).row("declared starts are shown").outcome == "skip"
