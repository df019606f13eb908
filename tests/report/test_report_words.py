import re
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


def test_the_headline_compares_both_worlds_on_test_recordings():
    text = plain(words.headline(report_data()))
    assert text.startswith("Compared with the world as given, on 12 recordings that the fit never")
    assert re.search(r"cube\.pos fell from [\d.]+ to [\d.]+ mm \(−\d+ %, 90 % interval −", text)
    assert re.search(r"cube\.quat fell from [\d.]+ to [\d.]+ rad", text)
    assert "a first fit never saw" in words.headline(replace(report_data(), held_out=()))


def test_learned_names_what_is_settled_what_moved_and_what_is_open():
    text = plain(words.learned(report_data()))
    assert "From 50 recordings, 2 of 5 parameters could be determined" in text
    rejected = "reject the given sliding friction and contact time constant of cube on floor"
    assert rejected in text
    assert "mass of cube (known only in combination with others)" in text
    assert "rolling friction of cube on floor (not excited by the motion)" in text
    moved = [tuple(map(plain, row)) for row in words.moves(report_data().result)]
    assert moved == [
        ("sliding friction of cube on floor", "1.00", "0.18"),
        ("contact time constant of cube on floor", "20.0", "8.1 ms"),
    ]


def test_what_did_not_move_is_said_to_have_stayed():
    data = report_data()
    rows = tuple(replace(v, before=v.value) for v in data.result.verdicts)
    same = with_result(data, verdicts=rows)
    assert words.moves(same.result) == []
    assert "Every value given before the fit lies inside its interval" in words.learned(same)


def test_the_gate_is_named_for_what_it_is():
    text = plain(words.gate(report_data()))
    assert text.startswith("Gate passed. A first fit that did not see 12 of the recordings")
    assert "62 % smaller" in text and "51 % to 70 %" in text and "The final fit" not in text
    data = report_data()
    episodes = (*data.result.episodes, *data.result.holdout.episodes)
    assert "final fit uses all 62" in words.gate(with_result(data, episodes=episodes))
    failed = with_score(data, gain=-0.2, gain_low=-0.3, gain_high=-0.1, passed=False)
    assert "failed" in words.gate(failed) and "20 % larger" in plain(words.gate(failed))
    assert words.judgement(failed)[2] == "not accepted"
    assert words.gate(with_result(data, holdout=None)) == ""


def test_judgement_follows_the_test_recordings():
    data = report_data()
    assert words.judgement(data)[1:] == ("good", "better")
    swapped = tuple(replace(h, before=h.after, after=h.before) for h in data.held_out)
    assert words.judgement(replace(data, held_out=swapped))[1:] == ("poor", "worse")
    assert "grew" in words.headline(replace(data, held_out=swapped))
    equal = tuple(replace(h, after=h.before) for h in data.held_out)
    assert words.judgement(replace(data, held_out=equal))[1:] == ("fair", "no clear change")
    assert "did not clearly change" in words.headline(replace(data, held_out=equal))


def test_few_held_out_recordings_are_no_lack_of_change():
    data = report_data()
    few = replace(data, held_out=data.held_out[:3])
    assert words.judgement(few)[2] == "tested on too few recordings to tell"
    assert " went from " in words.headline(few) and "(no interval)" in words.headline(few)


def test_without_held_out_recordings_nothing_is_promised():
    data = with_result(replace(report_data(), held_out=()), holdout=None)
    assert "was not tested" in words.headline(data)
    assert words.judgement(data)[2] == "not tested"
    assert "No recording was held back" in words.trust(data)


def test_verdicts_are_explained_in_readable_numbers():
    rows = {v.name: v for v in report_data().result.verdicts}
    known = rows["pair:cube+floor.solref.timeconst"]
    assert plain(words.meaning(known)) == "Fixed to ±0.67 ms (8.3 %)."
    kept = plain(words.meaning(replace(known, before=0.0080)))
    assert kept == "Fixed to ±0.67 ms (8.3 %); the value given stays possible."
    loose = replace(rows["body:cube.mass"], detail="Known only with body:cube.inertia.")
    assert words.meaning(loose, list(rows)) == "Known only with inertia of cube."


def test_the_stated_chance_is_scored_where_there_is_one():
    text = plain(words.chance(report_data()))
    assert "80 % on average" in text and "Brier score" in text
    assert words.chance(replace(report_data(), held_out=())) == ""


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
