from dataclasses import replace

import numpy as np
from report_synthetic import report_data

from sameworld.report import words


def plain(text):
    return text.replace("\u00a0", " ")


def with_result(data, **changes):
    return replace(data, result=replace(data.result, **changes))


def with_score(data, **changes):
    return with_result(data, holdout=replace(data.result.holdout, **changes))


def test_learned_names_what_is_settled_and_what_is_not():
    text = plain(words.learned(report_data()))
    assert "From 50 recordings, 2 of 5 parameters could be determined" in text
    assert "sliding friction of cube on floor: 0.182 (was 1.000)" in text
    assert "mass of cube (known only in combination with others)" in text
    assert "rolling friction of cube on floor (not excited by the motion)" in text
    assert "fell by 62 % (90 % interval 51 % to 70 %)" in text


def test_no_gain_is_called_no_gain():
    data = with_score(report_data(), gain=0.01, gain_low=-0.1, gain_high=0.12)
    assert "no clear change" in plain(words.learned(data))
    assert words.headline(data.result.holdout) == "no clear change"
    assert words.judgement(data.result.holdout)[1] == "fair"
    worse = with_score(report_data(), gain=-0.2, gain_low=-0.3, gain_high=-0.1, passed=False)
    assert "grew by 20 %" in plain(words.learned(worse))
    assert plain(words.headline(worse.result.holdout)) == "20 % larger"
    assert words.judgement(worse.result.holdout)[2] == "not accepted"


def test_without_held_out_recordings_nothing_is_promised():
    data = with_result(replace(report_data(), held_out=()), holdout=None)
    assert words.headline(None) == "not tested"
    assert "fell by" not in words.learned(data)
    assert "No recording was held back" in words.trust(data)


def test_trust_depends_on_misfit_coverage_and_clocks():
    data = report_data()
    assert "8.0 times wider" in words.trust(data)
    assert "cube.quat may be shifted in time" in words.trust(data)
    assert "about the measurement noise" in words.trust(with_result(data, misfit_factor=1.1))
    narrow = replace(data, held_out=tuple(_narrow(h) for h in data.held_out))
    assert "too narrow" in words.trust(narrow)
    assert "not calibrated" in words.trust(report_data(calibrated=False))


def _narrow(item):
    channels = {
        name: replace(c, low=c.low + 0.999 * (c.high - c.low) / 2)
        for name, c in item.after.channels.items()
    }
    return replace(item, after=replace(item.after, channels=channels))


def test_reach_is_the_horizon_at_which_the_typical_error_passes_the_tolerance():
    data = report_data()
    generous = tuple(replace(c, tolerance=100.0) for c in data.channels)
    assert "over the whole" in words.trust(replace(data, channels=generous))
    strict = tuple(replace(c, tolerance=1e-9) for c in data.channels)
    assert "from the start" in words.trust(replace(data, channels=strict))
    silent = tuple(replace(c, tolerance=np.inf) for c in data.channels)
    assert "open-loop" not in words.trust(replace(data, channels=silent))


def test_addresses_become_words():
    assert words.parameter_name("joint:left_elbow.damping") == "damping of left elbow"
    assert words.parameter_name("component:grip.max_force") == "max force of grip"
