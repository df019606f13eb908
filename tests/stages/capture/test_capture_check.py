import numpy as np
import pytest
from capture_arm import JOINTS, arm_log, arm_world, recorded

from sameworld.core import EpisodeError, SignalMap, SignalMapping
from sameworld.stages.capture import apply_mapping, check_mapping

PARTS = ("pos", "vel", "torque")
UNITS = {"pos": "rad", "vel": "rad/s", "torque": "N m"}


@pytest.fixture(scope="module")
def world():
    return arm_world()


@pytest.fixture(scope="module")
def recording(world):
    time, columns = arm_log(world)
    return recorded(time, columns[:, : 3 * JOINTS])


def straight(**scales):
    return SignalMapping(
        signals=tuple(
            SignalMap(
                channel=f"j{k + 1}.{part}",
                stream="log",
                column=f"c{JOINTS * p + k}",
                scale=scales.get(f"{part}{k + 1}", 1.0),
                unit=UNITS[part],
            )
            for p, part in enumerate(PARTS)
            for k in range(JOINTS)
        )
    )


def failed(world, recording, mapping):
    return {
        (c.channel, c.subject) for c in check_mapping(world, [recording], mapping) if not c.passed
    }


def test_the_right_mapping_passes_every_check(world, recording):
    checks = check_mapping(world, [recording], straight())
    assert len(checks) == 9 and all(c.passed for c in checks)
    assert {c.subject for c in checks} == {"limits", "velocity", "torque"}


def test_a_flipped_velocity_and_a_flipped_torque_fail(world, recording):
    wrong = failed(world, recording, straight(vel2=-1.0, torque1=-1.0))
    assert ("j2.vel", "velocity") in wrong and ("j1.torque", "torque") in wrong
    assert ("j1.vel", "velocity") not in wrong


def test_degrees_leave_the_limits(world, recording):
    wrong = failed(world, recording, straight(pos1=57.3))
    assert ("j1.pos", "limits") in wrong and ("j1.vel", "velocity") in wrong


def test_exchanged_torques_fail(world, recording):
    mapping = straight()
    first, second = mapping["j1.torque"], mapping["j2.torque"]
    mapping = mapping.replaced(
        SignalMap(**{**vars(first), "column": second.column}),
        SignalMap(**{**vars(second), "column": first.column}),
    )
    assert {("j1.torque", "torque"), ("j2.torque", "torque")} <= failed(world, recording, mapping)


def test_episodes_need_no_mapping_and_recordings_do(world, recording):
    episode = apply_mapping(world, recording, straight())
    assert all(c.passed for c in check_mapping(world, [episode]))
    with pytest.raises(EpisodeError, match="give one"):
        check_mapping(world, [recording])


def test_partial_mappings_are_checked_as_far_as_they_go(world, recording):
    mapping = SignalMapping(signals=tuple(s for s in straight().signals if s.channel == "j1.pos"))
    (check,) = check_mapping(world, [recording], mapping)
    assert (check.subject, check.passed) == ("limits", True)
    assert np.isclose(check.value, 0.0)
