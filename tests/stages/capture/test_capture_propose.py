import math
from dataclasses import replace

import numpy as np
import pytest
from capture_arm import JOINTS, arm_log, arm_world, recorded

from sameworld.core import EpisodeError
from sameworld.stages.capture import CaptureConfig, apply_mapping, propose_mapping

SIGNALS = [f"j{k + 1}.{part}" for part in ("pos", "vel", "torque") for k in range(JOINTS)]
NAMES = [f"{group}{k + 1}" for group in ("q", "dq", "tau", "cmd") for k in range(JOINTS)]
DEGREES = 180 / math.pi
QUICK = CaptureConfig(poses=60, searches=4)


@pytest.fixture(scope="module")
def world():
    return arm_world()


@pytest.fixture(scope="module")
def log(world):
    return arm_log(world)


def measured(log):
    return log[0], log[1][:, : 3 * JOINTS].copy()


def columns_of(mapping):
    return [int(mapping[name].column.removeprefix("c")) for name in SIGNALS]


def test_untouched_columns_need_no_correction(world, log):
    mapping, result = propose_mapping(world, [recorded(*measured(log))], config=QUICK)
    assert columns_of(mapping) == list(range(9))
    assert result.corrections == () and mapping.undecided == ()
    assert all((s.scale, s.offset, s.delay) == (1.0, 0.0, 0.0) for s in mapping.signals)
    assert mapping.confidence > 0.95
    assert result.missing == ("s1", "s2", "s3") and result.unused == ()


def swapped(columns):
    columns[:, [0, 2]] = columns[:, [2, 0]]
    columns[:, [3, 5]] = columns[:, [5, 3]]


def flipped(columns):
    columns[:, [1, 4, 8]] *= -1


def in_degrees(columns):
    columns[:, :3] *= DEGREES


def with_other_zero(columns):
    columns[:, 1] += 0.7


def shifted(columns):
    columns[:, 3:6] = np.roll(columns[:, 3:6], 1, axis=0)


def with_late_torques(columns):
    columns[:, 6:] = np.roll(columns[:, 6:], 1, axis=0)


@pytest.mark.parametrize(
    "corrupt", [swapped, flipped, in_degrees, with_other_zero, shifted, with_late_torques]
)
def test_a_corruption_is_found_and_undone(world, log, corrupt):
    time, columns = measured(log)
    clean = columns.copy()
    corrupt(columns)
    recording = recorded(time[1:-1], columns[1:-1])
    mapping, result = propose_mapping(world, [recording], config=QUICK)
    assert result.corrections and mapping.undecided == ()
    episode = apply_mapping(world, recording, mapping)
    for k, name in enumerate(SIGNALS):
        channel = episode[name]
        truth = np.interp(channel.time, time, clean[:, k])
        tolerance = 0.03 if name.endswith("pos") else 1e-9
        assert np.abs(channel.values - truth)[2:-2].max() <= tolerance, name


def test_reordered_columns_find_their_joints(world, log):
    time, columns = measured(log)
    order = np.random.default_rng(3).permutation(9)
    mapping, _ = propose_mapping(world, [recorded(time, columns[:, order])], config=QUICK)
    assert columns_of(mapping) == np.argsort(order).tolist()


def test_torques_overrule_names_that_lie(world, log):
    time, columns = measured(log)
    swapped(columns)
    mapping, result = propose_mapping(world, [recorded(time, columns, NAMES[:9])], config=QUICK)
    assert [mapping[f"j{k}.pos"].column for k in (1, 2, 3)] == ["q3", "q2", "q1"]
    assert [mapping[f"j{k}.torque"].column for k in (1, 2, 3)] == ["tau1", "tau2", "tau3"]
    assert any("another order" in text for text in result.corrections)


def test_the_answer_does_not_depend_on_the_seed(world, log):
    time, columns = measured(log)
    order = np.random.default_rng(4).permutation(9)
    recording = recorded(time, columns[:, order])
    found = [propose_mapping(world, [recording], config=replace(QUICK, seed=s))[0] for s in (0, 7)]
    assert columns_of(found[0]) == columns_of(found[1])


# ---- without torques ---------------------------------------------------------------------------


def without_torques(log):
    return log[0], log[1][:, [0, 1, 2, 3, 4, 5, 9, 10, 11]].copy()


def test_names_are_enough_where_there_are_no_torques(world, log):
    time, columns = without_torques(log)
    columns[:, :3] *= DEGREES
    labels = [*(f"{n} [deg]" for n in NAMES[:3]), *NAMES[3:6], *NAMES[9:]]
    mapping, _ = propose_mapping(world, [recorded(time, columns, labels)])
    assert mapping.undecided == () and mapping.confidence >= 0.8
    assert mapping["j2.pos"].scale == pytest.approx(math.pi / 180)
    assert mapping["j2.vel"].scale == 1.0
    assert {s.channel: s.column for s in mapping.signals if s.role == "action"} == {
        "s1": "cmd1",
        "s2": "cmd2",
        "s3": "cmd3",
    }


def test_nameless_columns_without_torques_are_asked_about(world, log):
    time, columns = without_torques(log)
    recording = recorded(time, columns[:, :6])
    mapping, _ = propose_mapping(world, [recording])
    (question,) = mapping.undecided
    assert "position of j1, j2, j3" in question.text
    with pytest.raises(EpisodeError, match=r"Which of log\.c0"):
        apply_mapping(world, recording, mapping)
    settled = mapping.answered(question.about, "in this order")
    assert apply_mapping(world, recording, settled)["j3.pos"].values[0] == columns[0, 2]


def test_a_sign_that_position_and_velocity_dispute_is_asked_about(world, log):
    time, columns = without_torques(log)
    columns[:, 4] *= -1
    mapping, _ = propose_mapping(world, [recorded(time, columns[:, :6], NAMES[:6])])
    (question,) = mapping.undecided
    assert question.about == "sign of j2"
    by_velocity = mapping.answered("sign of j2", "the velocity")
    by_position = mapping.answered("sign of j2", "the position")
    assert (by_velocity["j2.pos"].scale, by_velocity["j2.vel"].scale) == (1.0, -1.0)
    assert (by_position["j2.pos"].scale, by_position["j2.vel"].scale) == (-1.0, 1.0)


def test_a_position_beyond_the_limits_asks_for_its_zero(world, log):
    time, columns = without_torques(log)
    columns[:, 2] += math.pi
    mapping, _ = propose_mapping(world, [recorded(time, columns[:, :6], NAMES[:6])])
    (question,) = mapping.undecided
    assert question.about == "zero of j3"
    offsets = {a.name: a.signals[0].offset for a in question.alternatives}
    assert any(abs(o + math.pi) < 1e-9 for o in offsets.values()) and offsets["as recorded"] == 0


def test_joints_that_never_move_are_asked_about(world, log):
    time, columns = without_torques(log)
    columns[:, [0, 1, 3, 4]] = 0.0
    mapping, _ = propose_mapping(world, [recorded(time, columns[:, :6])])
    texts = " ".join(q.text for q in mapping.undecided)
    assert "log.c0 (never moves)" in texts and "log.c1 (never moves)" in texts


def test_commands_are_found_by_what_follows_them_and_their_lag_is_left_in(world, log):
    time, columns = log
    mixed = columns.copy()
    mixed[:, 9:] = np.roll(columns[:, 9:], -5, axis=0) * DEGREES
    mapping, result = propose_mapping(world, [recorded(time[:-6], mixed[:-6])])
    assert result.missing == ()
    for k in range(JOINTS):
        signal = mapping[f"s{k + 1}"]
        assert (signal.column, signal.role, signal.delay) == (f"c{9 + k}", "action", 0.0)
        assert signal.scale == pytest.approx(math.pi / 180)
    (note,) = mapping.notes
    assert "later than their commands" in note and all(f"j{k}" in note for k in (1, 2, 3))


def test_worlds_without_a_force_channel_get_one_of_their_own(log):
    mapping, _ = propose_mapping(arm_world(sensors=False), [recorded(*measured(log))], config=QUICK)
    assert mapping["j2.torque"].unit == "N m" and mapping["j2.torque"].role == "observation"


def test_nothing_to_map_is_an_error(world):
    with pytest.raises(EpisodeError, match="no recording"):
        propose_mapping(world, [])
    tiny = recorded(np.arange(5.0), np.zeros((5, 2)))
    with pytest.raises(EpisodeError, match="at least 10 finite numbers"):
        propose_mapping(world, [tiny])


@pytest.mark.parametrize(
    "wrong", [{"rows": 3}, {"cutoff": 0.0}, {"pair": 1.5}, {"searches": 0}, {"confidence": 2.0}]
)
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(EpisodeError, match="CaptureConfig"):
        CaptureConfig(**wrong)
