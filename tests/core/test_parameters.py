"""A parameter has an address, bounds and an origin, or it does not exist."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.core import Address, AddressError, BeliefError, Parameter, match_names
from sameworld.core.address import KINDS

words = st.text(st.characters(codec="utf-8", exclude_characters=".:"), min_size=1, max_size=8)
fields = st.lists(words, min_size=1, max_size=3).map(".".join)
finite = st.floats(-1e6, 1e6)


@given(st.sampled_from(KINDS), words, fields)
def test_an_address_is_its_text(kind, target, field):
    text = f"{kind}:{target}.{field}"
    address = Address.parse(text)
    assert (address.kind, address.target, address.field) == (kind, target, field)
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cube.mass", "known kind"),
        ("bdy:cube.mass", "Did you mean 'body'"),
        ("body:cube", "needs a target and a field"),
        ("body:.mass", "needs a target and a field"),
        ("body:cube.", "needs a target and a field"),
        ("", "known kind"),
    ],
)
def test_a_malformed_address_shows_a_good_one(text, words):
    with pytest.raises(AddressError, match=words):
        Address.parse(text)


def test_patterns_pick_in_the_order_of_the_names():
    names = ["joint:b.damping", "joint:a.damping", "body:a.mass"]
    assert match_names(["body:*", "joint:*.damping"], names) == tuple(names)
    assert match_names(["joint:a.*"], names) == ("joint:a.damping",)
    with pytest.raises(AddressError, match="matches no parameter"):
        match_names(["joint:a.damping", "joint:c.*"], names)


def test_patterns_match_brackets_only_as_sets_and_respect_case():
    assert match_names(["body:[ab].mass"], ["body:a.mass", "body:c.mass"]) == ("body:a.mass",)
    with pytest.raises(AddressError):
        match_names(["BODY:a.mass"], ["body:a.mass"])


@st.composite
def parameters(draw):
    low, value, high = sorted(draw(st.tuples(finite, finite, finite)))
    return Parameter(
        name=f"body:{draw(words)}.mass",
        value=value,
        low=draw(st.sampled_from([low, -math.inf])),
        high=draw(st.sampled_from([high, math.inf])),
        unit=draw(st.sampled_from(["", "kg", "m"])),
        std=draw(st.sampled_from([0.0, 0.1, math.inf])),
        source=draw(st.sampled_from(["assumed", "measured", "identified", "sampled"])),
        scope=draw(st.sampled_from(["scene", "session", "episode"])),
    )


@given(parameters())
def test_json_gives_the_same_parameter_back(parameter):
    record = json.loads(json.dumps(parameter.to_json(), allow_nan=False))
    assert Parameter.from_json(record) == parameter


def test_a_minimal_record_has_no_opinion():
    parameter = Parameter.from_json({"name": "body:a.mass", "value": 1})
    assert (parameter.low, parameter.high, parameter.std) == (-math.inf, math.inf, math.inf)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"value": math.nan}, "give a number"),
        ({"value": math.inf}, "give a number"),
        ({"low": 2.0}, "outside its bounds"),
        ({"high": 0.5}, "outside its bounds"),
        ({"low": 3.0, "high": 2.0}, r"bounds \[3.0, 2.0\]"),
        ({"low": math.nan}, r"bounds \[nan"),
        ({"std": -1.0}, "std -1"),
        ({"std": math.nan}, "std nan"),
        ({"source": "guessed"}, "source 'guessed'"),
        ({"scope": "world"}, "scope 'world'"),
        ({"transform": "sqrt"}, "transform 'sqrt'"),
        ({"transform": "log", "low": -1.0}, "'log' but its low bound"),
        ({"transform": "logit", "low": 0.0}, "two finite bounds"),
    ],
)
def test_impossible_parameters_are_refused(fields, words):
    with pytest.raises(BeliefError, match=words):
        Parameter(**{"name": "body:a.mass", "value": 1.0, **fields})


def test_a_moved_parameter_keeps_the_rest():
    parameter = Parameter(name="body:a.mass", value=1, low=0, high=2, std=0.1, unit="kg")
    moved = parameter.with_value(1.5, source="identified")
    assert (moved.value, moved.std, moved.source, moved.high) == (1.5, 0.1, "identified", 2.0)
    assert parameter.with_value(1.5, std=0.0).std == 0
    with pytest.raises(BeliefError, match="outside its bounds"):
        parameter.with_value(3)
