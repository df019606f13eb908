"""A hobby arm from URDF and LeRobot dataset to a servo with intervals; docs/your_robot.md walks it.

No real dataset may be bundled: a stand-in plays the robot. Its servos differ from their data sheet
and act 25 ms late; here they are found again, from a small dataset so that it takes seconds.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

from sameworld import IdentifyConfig, IdentifyResult, build, identify
from sameworld.core import Question, SameworldWarning
from sameworld.stages.actuate import ActuateConfig, actuate
from sameworld.stages.capture import apply_mapping, propose_mapping
from sameworld.store import read_lerobot, read_urdf
from sameworld.worlds.explicit.urdf import UrdfConfig, scene_from_urdf
from sameworld.zoo import HOBBY_ARM_TRUTH, write_hobby_arm

JOINT = "gripper"
FREE = ("actuator:{}.kp", "joint:{}.damping", "joint:{}.frictionloss", "sensor:{}.pos.delay")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came out.

    Attributes:
        questions: What the mapping could not decide.
        result: What identification found about one joint.
    """

    questions: tuple[Question, ...]
    result: IdentifyResult


def run(episodes: int = 6) -> Outcome:
    """Make a dataset, give the URDF servos, map the columns, fit one servo."""
    with tempfile.TemporaryDirectory() as folder:
        write_hobby_arm(folder, episodes=episodes, camera=False)
        recordings = list(read_lerobot(Path(folder) / "dataset"))
        robot = read_urdf(Path(folder) / "arm.urdf")
    config = UrdfConfig(timestep=1 / 120, integrator="RK4")
    scene, _ = actuate(
        scene_from_urdf(robot, config=config)[0], config=ActuateConfig(preset="hobby_servo")
    )
    world = build(scene)
    mapping, _ = propose_mapping(world, recordings)
    questions = mapping.undecided
    for question in questions:  # only who set up the recording knows
        unit = "percent" if "gripper" in question.about else "degrees"
        mapping = mapping.answered(question.about, unit)
    data = [apply_mapping(world, recording, mapping) for recording in recordings]
    free = tuple(pattern.format(JOINT) for pattern in FREE)
    options = IdentifyConfig(free=free, search="none", holdout=0.0, rounds=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SameworldWarning)  # other joints keep their delay
        _, _, result = identify(world, data, config=options)
    return Outcome(questions=questions, result=result)


def check() -> None:
    """Both questions are asked; the servo is determined, near the truth for its interval's size.

    Three half-widths are allowed: the other servos keep the numbers of their data sheet.
    """
    found = run()
    assert {a.name for q in found.questions for a in q.alternatives} == {"degrees", "percent"}
    for row in found.result.verdicts:
        truth = HOBBY_ARM_TRUTH.get(row.name, 0.025)
        assert row.verdict == "determined", row.detail
        assert abs(row.value - truth) < 1.5 * (row.high - row.low), (row.name, row.value, truth)
        assert abs(row.value / truth - 1) < 0.1


if __name__ == "__main__":
    for row in run().result.verdicts:
        known = HOBBY_ARM_TRUTH.get(row.name, 0.025)
        print(f"{row.name}: {row.value:.4g} [{row.low:.4g}, {row.high:.4g}], true {known:.4g}")
