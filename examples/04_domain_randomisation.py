"""From recordings to randomised simulations: draw worlds from the posterior, run them in a batch.

The spread of the draws is what the recordings left open, correlations included: no ranges to guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sameworld import IdentifyConfig, Rollout, Values, build, identify, rollout
from sameworld.policies import MultiSine
from sameworld.robots import StandIn, record
from sameworld.stages.identify import posterior_table
from sameworld.zoo import AnalyticCart, scene

TRUTH = {"body:cart.mass": 2.3, "joint:rail.damping": 0.7}
TICKS = 200


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came out.

    Attributes:
        table: The posterior as a JSON-ready table, for other simulators.
        draws: Parameter values [B, P].
        randomised: Rollouts of the draws in MuJoCo.
        reality: The same push with the hidden numbers.
    """

    table: dict[str, object]
    draws: Values
    randomised: Rollout
    reality: Rollout


def run(draws: int = 256) -> Outcome:
    """Identify a cart, then push 256 carts that the recordings allow."""
    robot = StandIn(
        AnalyticCart(),
        parameters=Values.of(TRUTH),
        noise={"rail.pos": 2e-3, "rail.vel": 2e-2},
    )
    robot.connect()
    drivers = [MultiSine(amplitude=np.array([8.0]), period=0.02, seed=k) for k in range(4)]
    episodes = [record(robot, d, TICKS, id=f"push_{k}") for k, d in enumerate(drivers)]
    config = IdentifyConfig(free=tuple(TRUTH), search="none", weighting="noise", loss="linear")
    _, _, result = identify(AnalyticCart(), episodes, config=config)
    values = result.posterior.sample(draws, seed=0)
    world, push = build(scene("cart")), np.full((1, TICKS, 1), 5.0)
    begin = Values.of({"start:rail.pos": 0.0, "start:rail.vel": 0.0})
    return Outcome(
        table=posterior_table(result.posterior),
        draws=values,
        randomised=rollout(world, begin, push, parameters=values),
        reality=rollout(world, begin, push, parameters=Values.of(TRUTH)),
    )


def check() -> None:
    """Draws stay near the truth, differ from each other, and their futures enclose reality's."""
    found = run()
    ends = found.randomised.signals["rail.pos"][:, -1]
    truth = float(found.reality.signals["rail.pos"][0, -1])
    assert found.randomised.valid.all()
    assert ends.min() < truth < ends.max()
    assert 0 < ends.std() < 0.1 * abs(truth)
    assert {row["name"] for row in found.table["parameters"]} == set(TRUTH)  # type: ignore[union-attr]


if __name__ == "__main__":
    outcome = run()
    ends = outcome.randomised.signals["rail.pos"][:, -1]
    print(f"after the push: {ends.mean():.3f} m, spread {ends.std():.4f} m over {len(ends)} draws")
    print(f"reality: {float(outcome.reality.signals['rail.pos'][0, -1]):.3f} m")
