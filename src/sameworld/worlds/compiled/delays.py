"""MuJoCo's own delay buffers, filled as if the start had lasted forever."""

from __future__ import annotations

import copy

import numpy as np

from sameworld.worlds.compiled.engine import Data, Model, mj

__all__ = ["fill_delay_buffers"]


def fill_delay_buffers(model: Model, data: Data) -> None:
    """Fill the buffers of delayed actuators and sensors with the values of the current state.

    MuJoCo starts them at zero, which a servo would take for a command and a fit for a measurement.
    """
    for actuator in np.flatnonzero(model.actuator_history[:, 0]).tolist():
        first, count = int(model.actuator_ctrladr[actuator]), int(model.actuator_ctrlnum[actuator])
        samples = int(model.actuator_history[actuator, 0])
        control = np.repeat(data.ctrl[first : first + count][None], samples, axis=0)
        mj.mj_initCtrlHistory(model, data, actuator, None, np.ascontiguousarray(control.ravel()))
    delayed = np.flatnonzero(model.sensor_history[:, 0]).tolist()
    if not delayed:
        return
    current = _undelayed(model, data)
    for sensor in delayed:
        first, size = int(model.sensor_adr[sensor]), int(model.sensor_dim[sensor])
        samples = int(model.sensor_history[sensor, 0])
        values = np.repeat(current[first : first + size][None], samples, axis=0)
        phase = -float(model.opt.timestep)
        mj.mj_initSensorHistory(model, data, sensor, None, np.ascontiguousarray(values), phase)


def _undelayed(model: Model, data: Data) -> np.ndarray:
    """Sensor values now, as if no sensor were delayed."""
    prompt = copy.copy(model)
    prompt.sensor_delay[:] = 0
    scratch = mj.MjData(prompt)
    full = int(mj.mjtState.mjSTATE_INTEGRATION)
    state = np.empty(mj.mj_stateSize(model, full))
    mj.mj_getState(model, data, state, full)
    mj.mj_setState(prompt, scratch, state, full)
    mj.mj_forward(prompt, scratch)
    return np.array(scratch.sensordata)
