"""MuJoCo's own toolbox `mujoco.sysid`, used as its tests and docstrings show.

Parameters with modifiers on an `MjSpec`, `jointpos` sensors as observations, the default residual
and the default optimiser. Needs the extra `mujoco[sysid]`, without which `mujoco.sysid` imports
empty and silent.

The toolbox has a time-stamp trap: `sysid_rollout` gives the sensor values of `mujoco.rollout`,
which belong to the state before each step, the time after it. Data with correct stamps is thus
compared one step too late. `shift=True` moves the stamps of the data by one step to undo this; no
documentation says so, it is the toolbox at its best.

Source: google-deepmind/mujoco pull request 3079, `mujoco.sysid` of mujoco 4.0.0.
"""

import io
from collections.abc import Callable

import mujoco
import numpy as np
from mujoco import sysid

from benchmarks.arm_problem import (
    DT,
    ArmProblem,
    Array,
    RolloutCounter,
    arm_mjcf,
    split_address,
)
from benchmarks.opponents import Fit, cpu_clock, start_of

Modifier = Callable[[mujoco.MjSpec, sysid.Parameter], None]


def fit(problem: ArmProblem, *, start_known: bool, seed: int, shift: bool = False) -> Fit:
    """Fit the eight parameters from their nominal values; deterministic, `seed` is unused.

    Args:
        problem: Recording to fit.
        start_known: Whether the true start is given.
        seed: Unused.
        shift: Whether to move the stamps of the measurements one step later.
    """
    del seed
    clock, counter = cpu_clock(), RolloutCounter()
    spec = mujoco.MjSpec.from_string(arm_mjcf())
    residual = sysid.build_residual_fn(
        models_sequences=[_sequence(problem, spec, start_known=start_known, shift=shift)],
        n_threads=1,
    )

    def counted(x: Array, params: sysid.ParameterDict) -> object:
        counter.rollouts += 1 if x.ndim == 1 else x.shape[1]
        return residual(x, params)

    # The optimiser prints each iteration whatever `verbose` says; `output` is the only way out.
    params, _ = sysid.optimize(_parameters(problem), counted, verbose=False, output=io.StringIO())
    return Fit(
        label="mujoco.sysid, stamps shifted" if shift else "mujoco.sysid",
        factors=params.as_vector() / problem.nominal,
        rollouts=counter.rollouts,
        cpu_seconds=clock(),
    )


def _sequence(
    problem: ArmProblem, spec: mujoco.MjSpec, *, start_known: bool, shift: bool
) -> sysid.ModelSequences:
    """Pack the recording: as many controls as measurements, the last one is never applied."""
    model = spec.compile()
    qpos, qvel = start_of(problem, start_known=start_known)
    controls = np.vstack([problem.controls, problem.controls[-1:]])
    stamps = problem.times + DT if shift else problem.times
    return sysid.ModelSequences(
        name="arm",
        spec=spec,
        sequence_name="recording",
        initial_state=sysid.create_initial_state(model, qpos, qvel),
        control=sysid.TimeSeries(problem.times, controls),
        sensordata=sysid.TimeSeries.from_names(stamps, problem.positions, model),
    )


def _parameters(problem: ArmProblem) -> sysid.ParameterDict:
    """Declare the eight parameters at their nominal values, in the order of the problem."""
    params = sysid.ParameterDict()
    for address, nominal, low, high in zip(
        problem.names, problem.nominal, problem.low, problem.high, strict=True
    ):
        modifier = _modifier(*split_address(address))
        params.add(sysid.Parameter(address, nominal, low, high, modifier=modifier))
    return params


def _modifier(name: str, field: str) -> Modifier:
    """Make the callback with which the toolbox writes one parameter into the spec.

    `sysid.body_inertia_param` of type `Mass` would be the documented way for a mass, but it
    assigns an array of one element to a scalar field, which mujoco 4.0.0 refuses.
    """

    def write(spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
        value = float(parameter.value[0])
        match field:
            case "mass":
                sysid.model_modifier.apply_body_mass_ipos(
                    spec, name, mass=value, rot_inertia_scale=True
                )
            case "damping":
                spec.joint(name).damping[0] = value  # a polynomial since mujoco 4
            case "frictionloss":
                spec.joint(name).frictionloss = value
            case "kp":
                sysid.apply_pgain(spec, name, value)
            case _:
                raise ValueError(f"no modifier for the field {field!r} of {name!r}")

    return write
