"""Beliefs come back bit-exactly or not at all."""

import math

import numpy as np
import pytest

from sameworld.core import Belief, BeliefError, Block, ChannelDiscrepancy, Discrepancy, Parameter
from sameworld.core.errors import StoreError
from sameworld.store import load_belief, save_belief


def _belief():
    mass = Parameter(
        name="body:cube.mass", value=0.1 + 0.2, low=0, std=1 / 3, unit="kg", transform="log"
    )
    loose = Parameter(name="joint:j.damping", value=math.pi, scope="session", source="measured")
    channel = ChannelDiscrepancy(
        horizon=[0.1, 0.2],
        levels=[0.5, 0.9],
        quantiles=np.random.default_rng(0).random((2, 2, 3)),
        magnitude=[[1.0, 2.0], [3.0, 4.0]],
    )
    return Belief(
        parameters=(mass, loose),
        correlation=np.array([[1.0, -0.1], [-0.1, 1.0]]),
        blocks=(Block(name="dynamics", sha256="ab" * 32, representation="ensemble:5"),),
        discrepancy=Discrepancy(channels={"cube.pos": channel}, episodes=7, warmup=5),
    )


def test_a_belief_survives_the_disk(tmp_path):
    belief = _belief()
    save_belief(belief, tmp_path / "belief.json")
    back = load_belief(tmp_path / "belief.json")
    assert back.parameters == belief.parameters
    assert back.blocks == belief.blocks
    np.testing.assert_array_equal(back.correlation, belief.correlation)
    np.testing.assert_array_equal(
        back.discrepancy.channels["cube.pos"].quantiles,
        belief.discrepancy.channels["cube.pos"].quantiles,
    )
    assert (back.discrepancy.episodes, back.discrepancy.warmup) == (7, 5)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "odd.json"
    with pytest.raises(StoreError, match=r"odd\.json"):
        load_belief(path)
    path.write_text('{"schema": 1, "parameters": [{"name": "body:a.mass", "value": NaN}]}')
    with pytest.raises(StoreError, match=r"odd\.json.* holds NaN"):
        load_belief(path)
    path.write_text('{"schema": 1, "parameters": [{"name": "body:a", "value": 1}]}')
    with pytest.raises(BeliefError, match=r"odd\.json.*needs a target and a field"):
        load_belief(path)
