"""Casting a puck on a tether: identify a stand-in from a few casts, plan by gradient, execute.

Run: ``python -m benchmarks.cast [--out FILE.json] [--seed N]``.

The hand's two servos cast the puck over a table to a target. A stand-in plays reality: MuJoCo with
thirteen parameters (masses, friction on the table, tether, servos) off by factors drawn
log-uniformly from [0.5, 2]. Knot and puck lie where they are put to ``JITTER`` only, in every cast;
nobody knows where. ``CASTS`` random casts are recorded (noisy positions of hand, knot and puck at
50 Hz) and identified. Plans are made in the differentiable world: the random cast that lands
nearest in simulation, then Levenberg-Marquardt with reverse-mode Jacobians to ``GOOD``.

Each plan is executed ``REPEATS`` times on the stand-in; its error is the mean distance of the puck
from the target at the end. Plans differ in parameters only: ``before`` nominal, ``after``
identified, ``true`` those of the stand-in, whose error is what the unknown start leaves. Medians
over stand-ins and targets; intervals (90 %) by bootstrap over stand-ins.

Source: Lim et al., "Planar robot casting with Real2Sim2Real self-supervised learning", ICRA 2022.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from benchmarks.control_gradient import Goal, descend
from benchmarks.control_problems import Problem
from benchmarks.convention import options, show, write_json
from sameworld.core import Belief, Episode, Values, World, rollout
from sameworld.core.arrays import Array, Signals
from sameworld.robots import StandIn, record
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.zoo import scene

STANDINS = 8
TARGETS = 3
CASTS = 6
REPEATS = 8
JITTER = 0.005
NOISE = {"hand": 2e-4, "knot": 1e-3, "puck": 1e-3}
"""Noise of measured positions [m]."""
FACTORS = (0.5, 2.0)
TICKS = 90
MOVING = 50
"""Ticks in which the hand moves; the puck then comes to rest."""
REACH = 0.25
"""Largest position of the hand in random casts [m]."""
LIBRARY = 128
GOOD = 0.001
"""Planned distance from the target at which a plan is good [m]."""
PLACED = tuple(f"start:{body}_{axis}.pos" for body in ("knot", "puck") for axis in "xy")
HOME = np.array([0.0, -0.5])
"""Where the puck's joints are zero [m]."""
DRAWS = 2000


@final
class Cast(Problem):
    """Targets of the hand over 1 s, linear between six knots, the first at rest."""

    name, scene, hit = "cast", "tether", GOOD

    def __init__(self) -> None:
        at = np.linspace(0, MOVING, 6)
        units = [np.interp(np.arange(TICKS), at, unit) for unit in np.eye(6)[1:]]
        self.basis = np.stack(units, axis=1)
        self.first = np.zeros((5, 2))

    def target(self, seed: int) -> Array:
        """Draw a target on the table [m]."""
        return np.random.default_rng([seed, 3]).uniform((-0.3, -0.2), (0.3, 0.3))

    def residuals(self, signals: Signals, target: Array) -> Array:
        """Miss [B, 2]."""
        ends = [signals[f"puck_{axis}.pos"][:, -1] for axis in "xy"]
        return np.stack(ends, axis=1) + HOME - target

    def weights(self, signals: Signals) -> Mapping[str, Array]:
        """Derivatives of the miss by signals."""
        found = {f"puck_{axis}.pos": np.zeros((2, TICKS + 1, 1)) for axis in "xy"}
        for row, weight in enumerate(found.values()):
            weight[row, -1] = 1.0
        return found

    def random(self, count: int, seed: int) -> Array:
        """Numbers of random casts [count, 5, 2]."""
        rng = np.random.default_rng([seed, 4])
        return rng.uniform(-REACH, REACH, (count, 5, 2)) / self.limits

    def planned(self, target: Array) -> tuple[Array, float]:
        """Numbers of a plan [5, 2], and the distance at which it ends in simulation [m]."""
        tries = self.random(LIBRARY, 0)
        missed = self.residuals(self.seen(self.engine, tries), target)
        self.first = tries[int(np.argmin(np.sum(missed**2, axis=1)))]
        goal = Goal(problem=self, target=target, metric=np.zeros((10, 10)))
        best = descend(goal, 1.0)[-1]
        return best.z, float(self.hit * np.sqrt(best.cost))


# ---- the stand-in ------------------------------------------------------------------------------


def hidden(seed: int) -> Values:
    """Parameters of a stand-in."""
    belief = scene("tether").belief
    rng = np.random.default_rng([seed, 5])
    factors = np.exp(rng.uniform(np.log(FACTORS[0]), np.log(FACTORS[1]), len(belief)))
    return Values(names=belief.names, array=belief.mean.array * factors)


def placed(world: World) -> Belief:
    """What is known of a start: at rest, knot and puck where they are put to ``JITTER``."""
    return Belief(
        parameters=tuple(
            replace(p, std=JITTER if p.name in PLACED else 1e-9)
            for p in world.spec.start.parameters
        )
    )


def recorded(problem: Cast, truth: Values, seed: int) -> list[Episode]:
    """Random casts of a stand-in, as a camera and the hand's encoders see them."""
    engine = problem.engine
    kept = {f"{body}_{axis}.pos": sd for body, sd in NOISE.items() for axis in "xy"}
    robot = StandIn(
        engine, parameters=truth, noise=kept, start=placed(engine).marginal(PLACED), seed=seed
    )
    robot.connect()
    episodes: list[Episode] = []
    for number, actions in enumerate(problem.actions(problem.random(CASTS, 1 + seed))):
        robot.place(seed=number)
        episode = record(robot, actions, id=f"cast{number}", start=placed(engine))
        seen = (c for c in episode.channels if c.name in kept or c.role == "action")
        episodes.append(replace(episode, channels=tuple(seen)))
    return episodes


def fitted(problem: Cast, episodes: Sequence[Episode]) -> Values:
    """Parameters identified from the casts."""
    config = IdentifyConfig(
        free=scene("tether").belief.names,
        weighting="noise",
        window=float("inf"),
        starts="joint",
        search="none",
        holdout=0.0,
    )
    result = identify(problem.engine, episodes, config=config)[2]
    names = scene("tether").belief.names
    return Values.of({name: result.verdict(name).value for name in names})


def executed(problem: Cast, truth: Values, z: Array, target: Array, seed: int) -> float:
    """Mean distance of the puck from the target over the repeats [m]."""
    rng = np.random.default_rng([seed, 6])
    names = placed(problem.engine).marginal(PLACED).mean
    start = Values(
        names=PLACED, array=names.array + JITTER * rng.standard_normal((REPEATS, len(PLACED)))
    )
    actions = problem.actions(z[None])
    signals = rollout(problem.engine, start, actions, parameters=truth).signals
    return float(np.mean(np.linalg.norm(problem.residuals(signals, target), axis=1)))


# ---- the benchmark -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Errors of one stand-in.

    Attributes:
        errors: Landing errors [T, 3] of plans before, after and true [m].
        planned: Distances at which the plans end in their own simulation [T, 3].
        fit_cpu_seconds: CPU time of the identification.
    """

    errors: Array
    planned: Array
    fit_cpu_seconds: float


def tried(problem: Cast, seed: int) -> Outcome:
    """Identify one stand-in, and cast to every target with three sets of parameters."""
    truth = hidden(seed)
    episodes = recorded(problem, truth, seed)
    began = time.process_time()
    known = (scene("tether").belief.mean, fitted(problem, episodes), truth)
    spent = time.process_time() - began
    errors, planned = np.zeros((2, TARGETS, len(known)))
    for row in range(TARGETS):
        target = problem.target(100 * seed + row)
        for column, parameters in enumerate(known):
            problem.parameters = parameters
            z, planned[row, column] = problem.planned(target)
            errors[row, column] = executed(problem, truth, z, target, 100 * seed + row)
    problem.parameters = None
    return Outcome(errors=errors, planned=planned, fit_cpu_seconds=spent)


def summary(errors: Array) -> dict[str, float]:
    """Medians of errors [S, T, 3] and their ratios."""
    before, after, true = np.median(errors.reshape(-1, 3), axis=0).tolist()
    return {
        "before_mm": 1e3 * before,
        "after_mm": 1e3 * after,
        "true_mm": 1e3 * true,
        "after_over_true": after / true,
        "after_over_before": after / before,
    }


def intervals(errors: Array) -> dict[str, float]:
    """90 % bootstrap intervals of the summary, over stand-ins."""
    rng, count = np.random.default_rng(0), len(errors)
    draws = [summary(errors[rng.integers(count, size=count)]) for _ in range(DRAWS)]
    found: dict[str, float] = {}
    for key in draws[0]:
        low, high = np.quantile([draw[key] for draw in draws], (0.05, 0.95)).tolist()
        found |= {f"{key}_low": low, f"{key}_high": high}
    return found


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    problem = Cast()
    outcomes = [tried(problem, 1000 * opts.seed + k) for k in range(STANDINS)]
    errors = np.stack([o.errors for o in outcomes])
    rows = [
        (k, *(1e3 * np.median(o.errors, axis=0)), *(1e3 * np.max(o.planned, axis=0)))
        for k, o in enumerate(outcomes)
    ]
    columns = ("stand-in", *(f"{n} mm" for n in ("before", "after", "true")))
    show("Median landing errors", (*columns, *(f"worst plan {k}" for k in range(3))), rows)
    numbers = summary(errors) | intervals(errors)
    numbers["plans_good"] = float(np.mean([o.planned <= GOOD for o in outcomes]))
    numbers["fit_cpu_seconds"] = float(np.median([o.fit_cpu_seconds for o in outcomes]))
    show("Casting", ("number", "value"), sorted(numbers.items()))
    write_json(opts.out, numbers)
    return numbers


if __name__ == "__main__":
    main()
