"""Forty corrupted logs of an arm: are the corruptions found, and are the columns put right?

Columns of a real (or simulated) log of joint positions, velocities and torques are exchanged,
flipped, turned to degrees, given another zero, shifted by one row, reordered, and all of that
together. In at least half of the cases the columns are called c0, c1, ...

Offsets are put on joints whose zero the torques can show (second to second last of a serial arm):
the first turns about the vertical, on the last hardly anything hangs.

``python -m benchmarks.mapping [--data DIR --model FILE.xml] [--out FILE.json]``
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.convention import options, show, write_json
from sameworld.core.arrays import Array
from sameworld.core.episode import Recording, Stream
from sameworld.core.mapping import SignalMapping
from sameworld.core.values import Values
from sameworld.core.world import World
from sameworld.stages.capture import CaptureResult, propose_mapping
from sameworld.store import load_scene
from sameworld.worlds import build

__all__ = ["Case", "cases", "corrupted", "log_of", "main", "repaired", "simulated_log"]

CASES = 40
CLEAN = 8
#: Rate to which the log is thinned by picking rows, never by averaging [Hz].
RATE = 50.0
#: Length of the stretch of the log that a case sees [s].
STRETCH = (14.0, 20.0)
#: Allowed error of a zero offset [rad].
OFFSET_TOLERANCE = 0.05
OFFSETS = (0.25, 1.5)
KINDS = ("swap", "flip", "degrees", "offset", "shift", "reorder")
GROUPS = ("q", "dq", "tau")


@dataclass(frozen=True, kw_only=True)
class Log:
    """A log of an arm: stamps [T] s; columns [T, 3 n]: positions, velocities, torques."""

    time: Array
    columns: Array

    @property
    def joints(self) -> int:
        """Number of joints."""
        return self.columns.shape[1] // 3


@dataclass(frozen=True, kw_only=True)
class Case:
    """A corruption and the truth about it.

    Attributes:
        kinds: What was done.
        named: Whether columns carry telling names.
        recording: The corrupted recording.
        column: Column of each signal [3 n].
        scale: True factor [3 n].
        offset: True offset [3 n].
        delay: True delay [3 n] s.
    """

    kinds: tuple[str, ...]
    named: bool
    recording: Recording
    column: Array
    scale: Array
    offset: Array
    delay: Array


@dataclass(kw_only=True)
class _Draft:
    """Signals on their way to columns."""

    values: Array
    column: Array
    scale: Array
    offset: Array
    delay: Array
    step: float


def _columns(rng: np.random.Generator, joints: int) -> list[int]:
    """One column, all of a joint, or all of a kind."""
    joint, group = int(rng.integers(joints)), int(rng.integers(3))
    choices = ([group * joints + joint], [g * joints + joint for g in range(3)])
    return choices[int(rng.integers(2))]


def _swap(draft: _Draft, rng: np.random.Generator, joints: int) -> None:
    first, second = rng.choice(joints, 2, replace=False).tolist()
    which = [(0,), (1,), (2,), (0, 1, 2)][int(rng.integers(4))]
    for group in which:
        i, j = group * joints + first, group * joints + second
        draft.column[[i, j]] = draft.column[[j, i]]


def _flip(draft: _Draft, rng: np.random.Generator, joints: int) -> None:
    for k in _columns(rng, joints):
        draft.scale[k] *= -1


def _degrees(draft: _Draft, rng: np.random.Generator, joints: int) -> None:
    joint = int(rng.integers(joints))
    own = range(joints) if rng.random() < 0.7 else [joint]
    for group in [(0,), (1,), (0, 1)][int(rng.integers(3))]:
        for k in own:
            draft.scale[group * joints + k] *= math.pi / 180


def _offset(draft: _Draft, rng: np.random.Generator, joints: int) -> None:
    joint = int(rng.integers(1, joints - 1))
    draft.offset[joint] = float(rng.uniform(*OFFSETS)) * rng.choice([-1.0, 1.0])


def _shift(draft: _Draft, rng: np.random.Generator, joints: int) -> None:
    group = int(rng.integers(3))
    own = slice(group * joints, (group + 1) * joints)
    sign = int(rng.choice([-1, 1]))
    draft.values[:, own] = np.roll(draft.values[:, own], sign, axis=0)
    draft.delay[own] = sign * draft.step


def _reorder(draft: _Draft, rng: np.random.Generator, joints: int) -> None:
    draft.column[:] = rng.permutation(3 * joints)[draft.column.astype(int)]


_CORRUPTIONS: dict[str, Callable[[_Draft, np.random.Generator, int], None]] = {
    "swap": _swap,
    "flip": _flip,
    "degrees": _degrees,
    "offset": _offset,
    "shift": _shift,
    "reorder": _reorder,
}


def corrupted(log: Log, kinds: Sequence[str], *, named: bool, rng: np.random.Generator) -> Case:
    """Corrupt a stretch of a log; without kinds only the stretch and the names are chosen."""
    span = float(log.time[-1] - log.time[0])
    length = min(float(rng.uniform(*STRETCH)), span)
    begin = float(log.time[0]) + float(rng.uniform(0, span - length))
    inside = (log.time >= begin) & (log.time <= begin + length)
    time, size = log.time[inside], log.columns.shape[1]
    draft = _Draft(
        values=log.columns[inside].copy(),
        column=np.arange(size, dtype=np.float64),
        scale=np.ones(size),
        offset=np.zeros(size),
        delay=np.zeros(size),
        step=float(np.median(np.diff(time))),
    )
    for kind in KINDS:
        if kind in kinds:
            _CORRUPTIONS[kind](draft, rng, log.joints)
    raw = (draft.values - draft.offset) / draft.scale
    table = np.empty_like(raw)
    table[:, draft.column.astype(int)] = raw
    labels = [f"{g}{j + 1}" for g in GROUPS for j in range(log.joints)]
    plain = [f"c{k}" for k in range(size)]
    stream = Stream(
        name="log", time=time[1:-1], values=table[1:-1], labels=tuple(labels if named else plain)
    )
    return Case(
        kinds=tuple(kinds),
        named=named,
        recording=Recording(id="log", streams=(stream,)),
        column=draft.column,
        scale=draft.scale,
        offset=draft.offset,
        delay=draft.delay,
    )


def cases(log: Log, seed: int) -> list[Case]:
    """The forty cases of a seed: every kind alone four times, and sixteen combinations."""
    found: list[Case] = []
    for number in range(CASES):
        rng = np.random.default_rng([seed, number])
        if number < 24:
            kinds: tuple[str, ...] = (KINDS[number % 6],)
        else:
            chosen = set(rng.choice(KINDS, int(rng.integers(2, 5)), replace=False).tolist())
            kinds = tuple(k for k in KINDS if k in chosen)
        named = number % 12 >= 6 and "reorder" not in kinds
        found.append(corrupted(log, kinds, named=named, rng=rng))
    return found


def repaired(case: Case, mapping: SignalMapping, channels: Sequence[str]) -> list[str]:
    """What is still wrong, one word per fault; empty if everything is right."""
    labels = case.recording.streams[0].labels
    step = float(np.median(np.diff(case.recording.streams[0].time)))
    found = {s.channel: s for s in mapping.signals}
    faults = ["open question"] if mapping.undecided else []
    if any(name not in found for name in channels):
        return [*faults, "missing"]
    signals = [found[name] for name in channels]
    shift = np.array([s.delay for s in signals]) - case.delay
    shift -= np.median(shift)
    for k, signal in enumerate(signals):
        if labels.index(signal.column) != int(case.column[k]):
            faults.append(f"column of {signal.channel}")
        if abs(signal.scale / case.scale[k] - 1) > 1e-6:
            faults.append(f"scale of {signal.channel}")
        if abs(signal.offset - case.offset[k]) > OFFSET_TOLERANCE:
            faults.append(f"offset of {signal.channel}")
        if abs(shift[k]) >= 0.5 * step:
            faults.append(f"delay of {signal.channel}")
    return faults


def log_of(data: Path | None, world: World) -> Log:
    """The real log thinned to ``RATE``, or a simulated one."""
    if data is None:
        return simulated_log(world, seed=0)
    with np.load(data / "exciting_traj_1.npz") as archive:
        time = archive["t"].astype(np.float64)
        columns = [archive[k].astype(np.float64) for k in GROUPS]
    rows = np.searchsorted(time, np.arange(time[0], time[-1], 1 / RATE))
    rows = np.unique(rows)
    return Log(time=time[rows], columns=np.concatenate(columns, axis=1)[rows])


_LINK = """<body name="l{k}" pos="{pos}"><joint name="j{k}" axis="{axis}" range="-2.8 2.8"
 damping="{damping}" frictionloss="{friction}" armature="0.02"/>
 <geom type="capsule" size="0.04" fromto="0 0 0 {pos2}" mass="{mass}" contype="0" conaffinity="0"/>
 <geom type="sphere" size="0.05" pos="0.03 0.02 0.05" mass="0.5" contype="0" conaffinity="0"/>"""
AXES = ("0 0 1", "0 1 0", "0 0 1", "0 1 0", "1 0 0")


def arm_mjcf(joints: int = 5) -> str:
    """A serial arm with servos and torque sensors."""
    links = "".join(
        _LINK.format(
            k=k + 1,
            pos="0 0 0.3" if k else "0 0 0.2",
            pos2="0 0 0.3",
            axis=AXES[k % 5],
            mass=3.0 / (k + 1),
            damping=0.2 / (k + 1),
            friction=0.3 / (k + 1),
        )
        for k in range(joints)
    )
    servos = "".join(
        f'<position name="s{k + 1}" joint="j{k + 1}" kp="{120 / (k + 1)}" kv="{12 / (k + 1)}" '
        'ctrlrange="-2.8 2.8"/>'
        for k in range(joints)
    )
    sensors = "".join(
        f'<jointactuatorfrc name="j{k + 1}.torque" joint="j{k + 1}"/>' for k in range(joints)
    )
    head = (
        '<compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"/>'
        '<custom><numeric name="control_period" data="0.002"/></custom>'
    )
    return (
        f'<mujoco model="arm">{head}<worldbody>{links}{"</body>" * joints}</worldbody>'
        f"<actuator>{servos}</actuator><sensor>{sensors}</sensor></mujoco>"
    )


def simulated_log(world: World, *, seed: int, duration: float = 21.0) -> Log:
    """Log of an arm that follows sums of sines, with noise as of encoders and torque sensors."""
    from sameworld.core.rollout import rollout

    rng = np.random.default_rng(seed)
    count = len(world.spec.actions)
    ticks = np.arange(round(duration / world.spec.period) + 1, dtype=np.float64)
    clock = ticks * world.spec.period
    tones = rng.uniform(0.08, 0.45, (4, count))
    phases, sizes = rng.uniform(0, 2 * math.pi, (4, count)), rng.uniform(0.15, 0.5, (4, count))
    turns = 2 * math.pi * tones * clock[:, None, None] + phases
    wanted = np.sum(sizes * np.sin(turns), axis=1)
    starts = Values.of({f"start:j{k + 1}.pos": wanted[0, k] for k in range(count)})
    run = rollout(world, starts, wanted[None, :-1])
    parts = [
        np.stack([run.signals[f"j{k + 1}.{part}"][0] for k in range(count)], axis=1)
        for part in ("pos", "vel", "torque")
    ]
    noise = [1e-4, 2e-3, 0.02]
    noisy = [p + n * rng.standard_normal(p.shape) for p, n in zip(parts, noise, strict=True)]
    kept = slice(500, None, 10)  # at 50 Hz, once the servos have caught up
    return Log(time=clock[kept], columns=np.concatenate(noisy, axis=1)[kept])


def _world(model: Path | None, *, simulated: bool) -> World:
    from sameworld.core.scene import Scene

    if simulated:
        return build(Scene(name="arm", mjcf=arm_mjcf()))
    if model is None:
        raise SystemExit("--data needs --model FILE.xml, the MJCF of the arm that was recorded.")
    return build(load_scene(model))


def _channels(world: World) -> list[str]:
    names = [c.name.removesuffix(".pos") for c in world.spec.observations if c.name[-4:] == ".pos"]
    return [f"{n}.{part}" for part in ("pos", "vel", "torque") for n in names]


def _judge(case: Case, world: World) -> tuple[list[str], CaptureResult, SignalMapping]:
    mapping, result = propose_mapping(world, [case.recording])
    return repaired(case, mapping, _channels(world)), result, mapping


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run and write the numbers."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--model", type=Path)
    own, rest = parser.parse_known_args(argv)
    chosen = options(__doc__ or "", rest)
    world = _world(own.model, simulated=chosen.data is None)
    log = log_of(chosen.data, world)
    rows, began = list[tuple[object, ...]](), time.process_time()
    found, right = np.zeros(CASES, dtype=bool), np.zeros(CASES, dtype=bool)
    all_cases = cases(log, chosen.seed)
    for number, case in enumerate(all_cases):
        faults, result, mapping = _judge(case, world)
        found[number] = bool(result.corrections or mapping.undecided)
        right[number] = not faults
        name = "names" if case.named else "c0..."
        rows.append((number, " ".join(case.kinds), name, found[number], right[number], faults[:3]))
        sys.stderr.write(f"{number} {' '.join(case.kinds)} {faults[:3]}\n")
    alarms = questions = 0
    for number in range(CLEAN):
        rng = np.random.default_rng([chosen.seed, 1000 + number])
        case = corrupted(log, (), named=number % 2 == 1, rng=rng)
        faults, result, mapping = _judge(case, world)
        alarms += bool(result.corrections or set(faults) - {"open question"})
        questions += bool(mapping.undecided)
        rows.append((f"clean {number}", "-", "", bool(result.corrections), not faults, faults[:3]))
    numbers = {
        "detected_pct": 100 * float(found.mean()),
        "repaired_pct": 100 * float(right.mean()),
        "false_alarms": float(alarms),
        "clean_logs": float(CLEAN),
        "clean_questions": float(questions),
        "uninformative_cases": float(sum(not c.named for c in all_cases)),
        "cpu_s_per_log": (time.process_time() - began) / (CASES + CLEAN),
    }
    for kind in KINDS:
        own_cases = [k for k, c in enumerate(all_cases) if c.kinds == (kind,)]
        numbers[f"{kind}.repaired_pct"] = 100 * float(right[own_cases].mean())
    combined = [k for k, c in enumerate(all_cases) if len(c.kinds) > 1]
    numbers["combined.repaired_pct"] = 100 * float(right[combined].mean())
    show("Corrupted logs", ("case", "corruption", "names", "found", "repaired", "faults"), rows)
    show("Numbers", ("key", "value"), list(numbers.items()))
    write_json(chosen.out, numbers)
    return numbers


if __name__ == "__main__":
    main()
