import json

import pytest

from sameworld.core.errors import EpisodeError
from sameworld.core.mapping import Alternative, Question, SignalMap, SignalMapping


def signal(channel="j1.pos", column="c0", **fields):
    return SignalMap(channel=channel, stream="log", column=column, unit="rad", **fields)


def asked():
    flipped = signal(scale=-1.0)
    question = Question(
        about="sign of j1",
        text="Which way does j1 turn?",
        alternatives=(
            Alternative(name="as mapped", signals=(signal(),)),
            Alternative(name="flipped", signals=(flipped,)),
        ),
    )
    return SignalMapping(signals=(signal(), signal("j1.vel", "c1")), undecided=(question,))


def test_a_mapping_survives_its_file():
    mapping = SignalMapping(
        signals=(
            signal(scale=-0.017, offset=0.3, delay=0.02, confidence=0.7, evidence=("names",)),
            signal("box.pos", "x", component=2),
        ),
        undecided=asked().undecided,
        notes=("a note",),
    )
    assert SignalMapping.from_json(json.loads(json.dumps(mapping.to_json()))) == mapping


def test_what_a_person_leaves_out_takes_its_default():
    record = {"schema": 1, "signals": [{"channel": "a", "stream": "s", "column": 3}]}
    mapping = SignalMapping.from_json(record)
    assert mapping.signals == (SignalMap(channel="a", stream="s", column="3"),)
    assert mapping.confidence == 1.0


def test_an_answer_in_the_file_settles_the_question():
    record = asked().to_json()
    record["undecided"][0]["answer"] = "flipped"
    settled = SignalMapping.from_json(record)
    settled.require_decided()
    assert settled["j1.pos"].scale == -1.0 and settled["j1.vel"] == asked()["j1.vel"]
    assert settled.notes == ("sign of j1: answered 'flipped'.",)


def test_open_questions_are_refused_with_their_answers():
    with pytest.raises(EpisodeError, match=r"Which way does j1 turn\? Answers: 'as mapped'"):
        asked().require_decided()


def test_unknown_answers_show_the_possible_ones():
    with pytest.raises(EpisodeError, match="Did you mean 'flipped'"):
        asked().answered("sign of j1", "fliped")
    with pytest.raises(EpisodeError, match="Open: 'sign of j1'"):
        asked().answered("sign of j2", "flipped")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "schema 2; this version reads 1"),
        ({"signal": []}, "Did you mean 'signals'"),
        ({"signals": {}}, "'signals' must be a JSON list"),
        ({"signals": [{"channel": "a"}]}, "lacks 'stream'"),
        ({"signals": [{"channel": "a", "stream": "s", "skale": 1}]}, "Did you mean 'scale'"),
        ({"signals": [{"channel": "a", "stream": "s", "scale": "2"}]}, "must be a number, got '2'"),
        ({"signals": [{"channel": "a", "stream": "s", "scale": True}]}, "must be a number"),
        ({"signals": [{"channel": "a", "stream": "s", "scale": 0}]}, "scale 0"),
        ({"signals": [{"channel": "a", "stream": "s", "role": "input"}]}, "role 'input'"),
        ({"signals": [{"channel": "a", "stream": "s", "component": 1.5}]}, "whole number"),
        ({"signals": [{"channel": "a", "stream": "s"}] * 2}, r"'a\[0\]' twice"),
        ({"signals": [{"channel": "", "stream": "s"}]}, "needs a channel"),
        ({"signals": ["a"]}, "must be a JSON object"),
        ({"undecided": [{"about": 3, "text": ""}]}, "must be text, got 3"),
        ({"notes": "one"}, "must be a JSON list"),
    ],
)
def test_edits_that_cannot_be_meant_are_named(change, message):
    record = {"schema": 1, "signals": [], "undecided": [], "notes": []} | change
    with pytest.raises(EpisodeError, match=message):
        SignalMapping.from_json(record)


def test_numbers_must_be_finite_and_confidence_a_probability():
    with pytest.raises(EpisodeError, match="delay nan"):
        signal(delay=float("nan"))
    with pytest.raises(EpisodeError, match="probability"):
        signal(confidence=1.2)


def test_replacing_keeps_the_order_and_adds_what_is_new():
    mapping = asked().replaced(signal(offset=1.0), signal("j2.pos", "c9"))
    assert [s.channel for s in mapping.signals] == ["j1.pos", "j1.vel", "j2.pos"]
    assert mapping["j1.pos"].offset == 1.0
    with pytest.raises(EpisodeError, match=r"Did you mean 'j1\.pos'"):
        mapping["j1.poss"]
