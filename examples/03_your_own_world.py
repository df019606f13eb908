"""A world of your own: a motor that follows its command with a lag. Passes ``check_world``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

import sameworld as sw

GAIN, LAG, START = "model:motor.gain", "model:motor.lag", "start:motor.vel"
PRIOR = sw.Belief(
    parameters=(
        sw.Parameter(name=GAIN, value=1.0, low=0.1, high=10.0, unit="rad/(s V)", transform="log"),
        sw.Parameter(name=LAG, value=0.2, low=0.01, high=5.0, unit="s", transform="log"),
    )
)
SPEC = sw.Spec(
    period=0.05,
    observations=(sw.ChannelSpec(name="motor.vel", unit="rad/s", tolerance=0.1, start=(START,)),),
    actions=(sw.ChannelSpec(name="command", unit="V", low=-5.0, high=5.0),),
    start=sw.Belief(
        parameters=(sw.Parameter(name=START, value=0.0, unit="rad/s", std=2.0, scope="episode"),)
    ),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Motor:
    """``lag * dv/dt = gain * command - v``, solved exactly over each control period."""

    parameters: sw.Belief = PRIOR
    scene: sw.Scene = field(default_factory=lambda: sw.Scene(name="motor", mjcf="<mujoco/>"))
    spec: sw.Spec = SPEC

    def with_belief(self, belief: sw.Belief) -> Motor:
        return replace(self, parameters=self.parameters.updated(belief))

    def reset(
        self, start: sw.Values | sw.Context, parameters: sw.Values | None = None, *, seed: int = 0
    ) -> sw.State:
        if isinstance(start, sw.Context):
            raise sw.SpecError("This world starts from named values, not from a context.")
        given = sw.Values.none() if parameters is None else parameters
        unknown = set(start.names) - {START} | set(given.names) - {GAIN, LAG}
        if unknown:
            raise sw.SpecError(f"This world has no {sorted(unknown)}.")
        batch = max(start.batch, given.batch)
        begin = self.spec.start.mean.updated(start).broadcast(batch)
        return sw.State(
            arrays={"vel": begin.column(START).copy()},
            time=np.zeros(batch),
            key=np.full(batch, seed, dtype=np.uint64),  # nothing here is random
            parameters=self.parameters.mean.updated(given).broadcast(batch),
        )

    def step(self, state: sw.State, action: np.ndarray) -> sw.State:
        command = self.spec.check_actions(np.asarray(action)[:, None])[:, 0, 0]
        if len(command) != state.batch:
            raise sw.SpecError(f"{len(command)} actions for {state.batch} elements.")
        target = state.parameters.column(GAIN) * command
        kept = np.exp(-self.spec.period / state.parameters.column(LAG))
        vel = target + kept * (state.arrays["vel"] - target)
        return replace(state, arrays={"vel": vel}, time=state.time + self.spec.period)

    def observe(self, state: sw.State) -> dict[str, np.ndarray]:
        return {"motor.vel": state.arrays["vel"].copy()}


def check() -> None:
    """The motor keeps the contract."""
    sw.check_world(Motor()).raise_if_failed()


if __name__ == "__main__":
    print(sw.check_world(Motor()))
