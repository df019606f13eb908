"""``SignalMapping``: which recorded column is which signal, in what unit, sign, zero and time.

Plain data that a person reads and edits as ``mapping.json``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast, get_args

from sameworld.core.episode import Role
from sameworld.core.errors import EpisodeError, closest, listed

__all__ = ["Alternative", "Question", "SignalMap", "SignalMapping"]

_SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class SignalMap:
    """How one recorded column becomes one component of a channel.

    ``value = scale * raw + offset``, at ``time - delay``.

    Attributes:
        channel: Channel name as in the world's spec.
        stream: Name of the recorded stream.
        column: Label of the column, or its number from 0 as text; empty for a scalar stream.
        component: Component of the channel, counted flat from 0.
        role: Role of the channel.
        scale: Factor from the recorded unit to the channel's, negative for a flipped sign.
        offset: Value of a recorded zero [channel's unit].
        delay: How much too late the samples are stamped [s].
        unit: SI unit of the channel.
        confidence: Probability that all of this is right, as far as the evidence goes.
        evidence: What speaks for it, one sentence each.
    """

    channel: str
    stream: str
    column: str = ""
    component: int = 0
    role: Role = "observation"
    scale: float = 1.0
    offset: float = 0.0
    delay: float = 0.0
    unit: str = ""
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", tuple(self.evidence))
        what = f"Signal of channel '{self.channel}'"
        if not self.channel or not self.stream:
            raise EpisodeError(f"{what} needs a channel and a stream, got stream '{self.stream}'.")
        if self.role not in get_args(Role):
            raise EpisodeError(f"{what} has role '{self.role}'; use {get_args(Role)}.")
        for name in ("scale", "offset", "delay", "confidence"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise EpisodeError(f"{what} has {name} {value}; it must be finite.")
        if self.scale == 0:
            raise EpisodeError(f"{what} has scale 0: the column would be ignored. Remove the line.")
        if not 0 <= self.confidence <= 1:
            raise EpisodeError(f"{what} has confidence {self.confidence}; it is a probability.")
        if self.component < 0:
            raise EpisodeError(f"{what} has component {self.component}; they count from 0.")

    @property
    def place(self) -> tuple[str, int]:
        """Channel and component: what the column is mapped to."""
        return self.channel, self.component

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return {**vars(self), "evidence": list(self.evidence)}

    @classmethod
    def from_json(cls, record: Any) -> SignalMap:
        """Rebuild from ``to_json`` output; what is left out takes its default.

        Raises:
            EpisodeError: An unknown key, a missing one, or a value of the wrong kind.
        """
        given = _object(record, "A signal", {f.name for f in fields(cls)})
        known: dict[str, Any] = {}
        for name, value in given.items():
            what = f"'{name}' of the signal '{given.get('channel', '?')}'"
            known[name] = _texts(value, what) if name == "evidence" else _plain(name, value, what)
        missing = [name for name in ("channel", "stream") if name not in known]
        if missing:
            raise EpisodeError(f"A signal lacks {listed(missing)}. It says: {given}.")
        return cls(**known)


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """One answer to a question.

    Attributes:
        name: What to write as the answer.
        signals: Signals as they are under this answer; they replace those of the same channel
            and component.
    """

    name: str
    signals: tuple[SignalMap, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "signals", tuple(self.signals))


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something the data could not decide.

    Attributes:
        about: Short name of the question, unique in a mapping.
        text: The question, one sentence.
        alternatives: Possible answers, the likeliest first.
    """

    about: str
    text: str
    alternatives: tuple[Alternative, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "alternatives", tuple(self.alternatives))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping; ``answer`` is empty for a person to fill in."""
        return {
            "about": self.about,
            "text": self.text,
            "answer": "",
            "alternatives": [
                {"name": a.name, "signals": [s.to_json() for s in a.signals]}
                for a in self.alternatives
            ],
        }


@dataclass(frozen=True, kw_only=True)
class SignalMapping:
    """Every mapped signal, and what is still open.

    Attributes:
        signals: One per channel component; no component twice.
        undecided: Questions that must be answered before the mapping is used.
        notes: What else a person should know, one sentence each.
    """

    signals: tuple[SignalMap, ...]
    undecided: tuple[Question, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("signals", "undecided", "notes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        places = [s.place for s in self.signals]
        twice = sorted({f"{c}[{k}]" for c, k in places if places.count((c, k)) > 1})
        if twice:
            raise EpisodeError(f"The mapping gives {listed(twice)} twice. Keep one line of each.")
        abouts = [q.about for q in self.undecided]
        if len(set(abouts)) != len(abouts):
            raise EpisodeError(f"The mapping asks a question twice: {listed(abouts)}.")

    def __getitem__(self, channel: str) -> SignalMap:
        """First signal of a channel.

        Raises:
            EpisodeError: The mapping has none.
        """
        for signal in self.signals:
            if signal.channel == channel:
                return signal
        names = list(dict.fromkeys(s.channel for s in self.signals))
        raise EpisodeError(
            f"The mapping has no channel '{channel}'. It has {listed(names)}."
            f"{closest(channel, names)}"
        )

    @property
    def confidence(self) -> float:
        """Confidence of the least certain signal, 0 if there is none."""
        return min((s.confidence for s in self.signals), default=0.0)

    def replaced(self, *signals: SignalMap) -> SignalMapping:
        """Put signals in the place of those of the same channel and component, or add them."""
        fresh = {s.place: s for s in signals}
        kept = [fresh.pop(s.place, s) for s in self.signals]
        return replace(self, signals=(*kept, *fresh.values()))

    def answered(self, about: str, answer: str) -> SignalMapping:
        """Settle one question.

        Args:
            about: The question's ``about``.
            answer: Name of one of its alternatives.

        Raises:
            EpisodeError: There is no such question or no such alternative.
        """
        asked = {q.about: q for q in self.undecided}
        if about not in asked:
            raise EpisodeError(
                f"The mapping asks nothing about '{about}'. Open: {listed(asked)}."
                f"{closest(about, asked)}"
            )
        offered = {a.name: a for a in asked[about].alternatives}
        if answer not in offered:
            raise EpisodeError(
                f"'{answer}' is no answer about '{about}'. Answers: {listed(offered)}."
                f"{closest(answer, offered)}"
            )
        left = tuple(q for q in self.undecided if q.about != about)
        settled = replace(self, undecided=left).replaced(*offered[answer].signals)
        return replace(settled, notes=(*self.notes, f"{about}: answered '{answer}'."))

    def require_decided(self) -> None:
        """Refuse to be used while something is open.

        Raises:
            EpisodeError: A question is open; the message holds all of them.
        """
        if not self.undecided:
            return
        lines = [
            f"{q.text} Answers: {listed(a.name for a in q.alternatives)}." for q in self.undecided
        ]
        raise EpisodeError(
            f"The mapping leaves {len(lines)} question(s) open: " + " ".join(lines) + " Write the "
            "answer into the 'answer' fields of mapping.json, or edit the signals and remove the "
            "question."
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return {
            "schema": _SCHEMA,
            "signals": [s.to_json() for s in self.signals],
            "undecided": [q.to_json() for q in self.undecided],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, record: Any) -> SignalMapping:
        """Rebuild from ``to_json`` output, perhaps edited; filled-in answers are applied.

        Raises:
            EpisodeError: Another schema, an unknown key, or a value that cannot be meant.
        """
        given = _object(record, "A mapping", {"schema", "signals", "undecided", "notes"})
        if given.get("schema") != _SCHEMA:
            raise EpisodeError(
                f"The mapping has schema {given.get('schema')!r}; this version reads {_SCHEMA}."
            )
        questions = [_question(q) for q in _list(given.get("undecided", []), "'undecided'")]
        mapping = cls(
            signals=_signals(given.get("signals", []), "'signals'"),
            undecided=tuple(question for question, _ in questions),
            notes=_texts(given.get("notes", []), "'notes'"),
        )
        for question, answer in questions:
            mapping = mapping.answered(question.about, answer) if answer else mapping
        return mapping


def _question(record: Any) -> tuple[Question, str]:
    """A question and the answer that a person wrote, empty if none."""
    given = _object(record, "A question", {"about", "text", "answer", "alternatives"})
    alternatives: list[Alternative] = []
    for item in _list(given.get("alternatives", []), "'alternatives'"):
        offered = _object(item, "An alternative", {"name", "signals"})
        name = _text(offered.get("name"), "'name' of an alternative")
        signals = _signals(offered.get("signals", []), "'signals' of an alternative")
        alternatives.append(Alternative(name=name, signals=signals))
    question = Question(
        about=_text(given.get("about"), "'about' of a question"),
        text=_text(given.get("text"), "'text' of a question"),
        alternatives=tuple(alternatives),
    )
    return question, _text(given.get("answer", ""), "'answer' of a question")


def _signals(value: Any, what: str) -> tuple[SignalMap, ...]:
    return tuple(SignalMap.from_json(item) for item in _list(value, what))


def _object(record: Any, what: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(record, dict):
        raise EpisodeError(f"{what} must be a JSON object, got {type(record).__name__}.")
    given = cast("dict[str, Any]", record)
    unknown = sorted(set(given) - known)
    if unknown:
        raise EpisodeError(
            f"{what} has no {listed(unknown)}. Known: {listed(sorted(known))}."
            f"{closest(unknown[0], known)}"
        )
    return given


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise EpisodeError(f"{what} must be a JSON list, got {type(value).__name__}.")
    return cast("list[Any]", value)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise EpisodeError(f"{what} must be text, got {value!r}.")
    return value


def _texts(value: Any, what: str) -> tuple[str, ...]:
    return tuple(_text(item, what) for item in _list(value, what))


def _plain(name: str, value: Any, what: str) -> Any:
    if name in ("scale", "offset", "delay", "confidence"):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise EpisodeError(f"{what} must be a number, got {value!r}.")
        return float(value)
    if name == "component":
        if isinstance(value, bool) or not isinstance(value, int):
            raise EpisodeError(f"{what} must be a whole number, got {value!r}.")
        return value
    if name == "column" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(value, what)
