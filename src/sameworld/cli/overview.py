"""The verbs, and the page that ``sameworld --help`` shows. Imports nothing heavy."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

__all__ = ["VERBS", "Command", "Verb", "overview", "suggestion"]


class Command(Protocol):
    """A parsed verb."""

    def run(self) -> int:
        """Do it and return the exit code."""
        ...


@dataclass(frozen=True, kw_only=True)
class Verb:
    """Where a verb lives; its module is imported only when it is used.

    Attributes:
        module: Module of the verb.
        command: Name of its dataclass.
        summary: One line for the overview.
        draws: Whether it may render pictures, so that a renderer has to be chosen before.
    """

    module: str
    command: str
    summary: str
    draws: bool = False

    def load(self) -> type[Command]:
        """Import the dataclass behind the verb."""
        return cast("type[Command]", getattr(import_module(self.module), self.command))


def _verb(name: str, summary: str) -> Verb:
    return Verb(
        module=f"sameworld.cli.{_MODULES.get(name, name)}",
        command=name.capitalize(),
        summary=summary,
        draws=name in _DRAWING,
    )


_DRAWING = ("demo", "identify", "check")
#: Verbs that are words of Python live in a module of another name.
_MODULES: dict[str, str] = {"import": "importing"}
_SUMMARIES = {
    "demo": "Fit a cube's friction to real, recorded tosses; writes a report.",
    "identify": "Fit a scene's parameters to recordings; writes a run folder.",
    "predict": "Predict episodes from their first rows and score the predictions.",
    "report": "Render report.html of a run folder again.",
    "inspect": "Say what is in a scene, recording, episode store or run folder; propose a mapping.",
    "import": "Turn recordings (CSV, NPZ, MCAP, ROS bags, LeRobot) into an episode store.",
    "export": "Write episodes as a LeRobot dataset and say what that lost.",
    "actuate": "Give a robot's joints actuators; a URDF becomes a scene on the way.",
    "excite": "Design the motions whose recordings would say most about a scene.",
    "check": "Test whether a scene's world keeps the World contract.",
    "doctor": "Say what is installed, which renderer really works, and what is missing.",
}

VERBS: dict[str, Verb] = {name: _verb(name, summary) for name, summary in _SUMMARIES.items()}

_HEAD = """sameworld: recordings in, trustworthy simulators out.

usage: sameworld VERB [options]
       sameworld VERB --help
"""

_TAIL = """
  --version  Print the version.
  --debug    Show the whole traceback of an error.
"""


def overview() -> str:
    """The overview page."""
    width = max(len(name) for name in VERBS)
    lines = [f"  {name:<{width}}  {verb.summary}" for name, verb in VERBS.items()]
    return "\n".join([_HEAD, "verbs:", *lines]) + "\n" + _TAIL


def suggestion(name: str) -> str:
    """What to type instead of an unknown verb."""
    match = difflib.get_close_matches(name, list(VERBS), n=1, cutoff=0.5)
    hint = f" Did you mean '{match[0]}'?" if match else ""
    return f"There is no verb '{name}'. Verbs: {', '.join(VERBS)}.{hint}"
