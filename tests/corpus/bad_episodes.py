"""Episodes that must be refused, when they are built or when they meet a world."""

import numpy as np
from bad_case import Bad

from sameworld.core import Channel, Episode, EpisodeError, Scene, check_episode
from sameworld.core.signals import held_actions
from sameworld.store import load_episodes, save_episodes
from sameworld.worlds import build

_TIME = 0.02 * np.arange(10)
_ARM = """
<mujoco><worldbody>
  <body name="cube" pos="0 0 1"><freejoint/><geom size=".1"/></body>
  <body name="arm" pos="1 0 1"><joint name="elbow" axis="0 1 0" range="-90 90" limited="true"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body>
</worldbody>
<actuator><motor name="pull" joint="elbow"/></actuator></mujoco>
"""


def _built(what, words, /, **fields):
    """A channel that cannot be built."""

    def attempt(folder):
        channel = {"name": "x", "time": _TIME, "values": np.ones(10), **fields}
        return Episode(id="e", channels=(Channel(**channel),))

    return Bad(name=f"episode: {what}", attempt=attempt, error=EpisodeError, words=words)


def _whole(name, words, make):
    def attempt(folder):
        return make()

    return Bad(name=f"episode: {name}", attempt=attempt, error=EpisodeError, words=words)


def _saved(name, words, episodes):
    def attempt(folder):
        save_episodes(episodes, folder / "store")
        return load_episodes(folder / "store", ids=["missing"])

    return Bad(name=f"episode: {name}", attempt=attempt, error=EpisodeError, words=words)


def _observed(name, values, unit=""):
    return Channel(name=name, time=_TIME[: len(values)], values=values, unit=unit)


def _action(values, name="pull"):
    return Channel(name=name, time=_TIME[: len(values)], values=values, role="action")


def _meets(name, words, *channels):
    """An episode that a world with a free cube and a driven elbow must refuse."""

    def attempt(folder):
        spec = build(Scene(name="s", mjcf=_ARM), "explicit").spec
        episode = Episode(id="e", channels=channels)
        check_episode(spec, episode)
        return held_actions(spec, episode, 0.0, 5)

    return Bad(name=f"episode: {name}", attempt=attempt, error=EpisodeError, words=words)


def _bad(index, value):
    values = np.ones(10)
    values[index] = value
    return values


_GOOD = _observed("elbow.pos", np.zeros(10), "rad")
_TURN = np.tile([1.0, 0, 0, 0], (10, 1))

EPISODES = (
    _built("NaN sample", r"NaN .*index \(3,\)", values=_bad(3, np.nan)),
    _built("infinite sample", "NaN or infinite", values=_bad(0, -np.inf)),
    _built("NaN time", "time holds 1 NaN", time=_bad(2, np.nan)),
    _built("time going back", "does not increase at sample 9", time=np.r_[_TIME[:9], 0.0]),
    _built("time twice", "drop duplicates", time=np.r_[_TIME[:9], _TIME[8]]),
    _built("time standing still", "does not increase at sample 1", time=np.zeros(10)),
    _built("time in two columns", "1 axes", time=_TIME[:, None]),
    _built("more stamps than samples", "10 time stamps and values", values=np.ones(9)),
    _built("more samples than stamps", "9 time stamps", time=_TIME[:9]),
    _built("time last", r"shape \(3, 10\)", values=np.ones((3, 10))),
    _built("a single number", r"shape \(\)", values=1.0),
    _built("no samples", "no samples", time=[], values=[]),
    _built("words", "not numeric", values=["a"] * 10),
    _built("numbers as text", "not numeric: it holds <U3", values=["1.5"] * 10),
    _built("dates as time", "datetime64", time=np.arange(10).astype("datetime64[ms]")),
    _built("ragged samples", "not numeric", values=[[1, 2]] * 9 + [[1]]),
    _built("objects", "not numeric", values=np.array([{}] * 10, dtype=object)),
    _built("nothing", "not numeric|NaN", values=[None] * 10),
    _built("complex samples", "not numeric", values=np.full(10, 1j)),
    _built("negative noise", "noise -0.1", noise=-0.1),
    _built("no noise at all", "noise 0.0", noise=0.0),
    _built("noise without a number", "noise nan", noise=np.nan),
    _built("unknown role", "role 'reward'", role="reward"),
    _built("no name", "needs a name", name=""),
    _whole("no channels", "no observation channel", lambda: Episode(id="e", channels=())),
    _whole(
        "only actions",
        "no observation channel",
        lambda: Episode(id="e", channels=(_action(np.ones(10)),)),
    ),
    _whole("channel twice", "'elbow.pos' twice", lambda: Episode(id="e", channels=(_GOOD, _GOOD))),
    _whole(
        "unknown source",
        "source 'dream'",
        lambda: Episode(id="e", channels=(_GOOD,), source="dream"),
    ),
    _whole(
        "empty window",
        "no observation channel",
        lambda: Episode(id="e", channels=(_GOOD,)).window(8, 9),
    ),
    _saved("id twice", "'e' appear twice", [Episode(id="e", channels=(_GOOD,))] * 2),
    _saved("id that is not stored", "'missing'", [Episode(id="e", channels=(_GOOD,))]),
    _meets("one sample", r"1 sample\(s\)", _GOOD.rows(slice(0, 1))),
    _meets("nothing in common", "nothing in common", _observed("lidar", np.ones(10))),
    _meets(
        "degrees for radians",
        "degrees.*Convert",
        _observed("elbow.pos", np.linspace(-45, 60, 10), "rad"),
    ),
    _meets(
        "millimetres for metres",
        "millimetres.*Convert",
        _observed("cube.pos", np.full((10, 3), 812.0), "m"),
    ),
    _meets(
        "another unit", "in 'deg', the world in 'rad'", _observed("elbow.pos", np.ones(10), "deg")
    ),
    _meets("position without height", r"shape \(2,\)", _observed("cube.pos", np.ones((10, 2)))),
    _meets("quaternions of length two", "unit quaternions", _observed("cube.quat", 2 * _TURN)),
    _meets("quaternions of nought", "unit quaternions", _observed("cube.quat", 0 * _TURN)),
    _meets("rotation vectors", r"shape \(3,\)", _observed("cube.quat", _TURN[:, :3])),
    _meets("no action", "lacks the action channel 'pull'", _GOOD),
    _meets("action of another name", "It has actions 'push'", _GOOD, _action(np.ones(10), "push")),
    _meets("action as a vector", r"shape \(2,\)", _GOOD, _action(np.ones((10, 2)))),
)
