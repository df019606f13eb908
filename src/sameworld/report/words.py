"""Plain words, generated from the numbers: what was learned and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sameworld.core.address import Address
from sameworld.report.curves import coverage_share, error_by_horizon
from sameworld.report.data import ReportData
from sameworld.report.numbers import percent, quantity, together
from sameworld.stages.identify.result import HoldoutScore, IdentifyResult, ParameterVerdict, Verdict

__all__ = [
    "VERDICTS",
    "half_width",
    "headline",
    "judgement",
    "learned",
    "meaning",
    "parameter_name",
    "trust",
]

#: Verdict to its symbol, its tone (a class of the style sheet) and what it means in general.
VERDICTS: dict[Verdict, tuple[str, str, str]] = {
    "determined": ("✓", "good", "The recordings pin this number down."),
    "only in combination": ("⇄", "fair", "Only a combination with other parameters is known."),
    "not excited": ("○", "poor", "The motion never made this parameter matter."),
    "at bound": ("⊣", "fair", "The fit pressed against a bound: widen it or doubt the model."),
    "zero gradient": ("∅", "poor", "Changing this parameter changes nothing that was measured."),
    "no interval": ("?", "poor", "There were too few recordings for an interval."),
}

_FIELDS = {
    "mass": "mass",
    "friction.slide": "sliding friction",
    "friction.spin": "spinning friction",
    "friction.roll": "rolling friction",
    "damping": "damping",
    "stiffness": "stiffness",
    "armature": "armature",
    "frictionloss": "dry friction",
    "kp": "position gain",
    "kv": "velocity gain",
    "delay": "delay",
    "inertia": "inertia",
    "gain": "gain",
    "pos.x": "position x",
    "pos.y": "position y",
    "pos.z": "height",
    "com.x": "centre of mass x",
    "com.y": "centre of mass y",
    "com.z": "centre of mass z",
    "gravity.z": "vertical gravity",
    "solref.timeconst": "contact time constant",
    "solref.dampratio": "contact damping ratio",
    "solimp.width": "contact softness width",
}

#: How far beyond the nominal level measured coverage may stray before a sentence warns.
_COVERAGE_SLACK = 0.05


def parameter_name(name: str) -> str:
    """An address in words, e.g. 'sliding friction of cube on floor'.

    Fields without a known word keep their own, with dots and underscores as spaces.
    """
    address = Address.parse(name)
    field = _FIELDS.get(address.field, address.field.replace(".", " ").replace("_", " "))
    target = address.target.replace("+", " on ").replace("_", " ")
    return f"{field} of {target}"


def headline(score: HoldoutScore | None) -> str:
    """The one number: how much the error on recordings never seen has changed."""
    if score is None:
        return "not tested"
    if score.gain < 0 and max(score.gain_low, score.gain_high) < 0:
        return f"{percent(-score.gain)} larger"
    if min(score.gain_low, score.gain_high) > 0:
        return f"{percent(score.gain)} smaller"
    return "no clear change"


def judgement(score: HoldoutScore | None) -> tuple[str, str, str]:
    """Symbol, tone and word of the overall judgement."""
    if score is None:
        return "?", "fair", "not tested"
    if not score.passed:
        return "✗", "poor", "not accepted"
    if min(score.gain_low, score.gain_high) > 0:
        return "✓", "good", "accepted"
    return "≈", "fair", "accepted, no clear change"


def learned(data: ReportData) -> str:
    """One paragraph: what was learned."""
    result = data.result
    recordings = _count(len(result.episodes), "recording")
    if result.blocks_only:
        first = f"A learned world was trained on {recordings}."
    else:
        known = [v for v in result.verdicts if v.verdict == "determined"]
        first = (
            f"From {recordings}, {len(known)} of {_count(len(result.verdicts), 'parameter')} "
            f"could be determined{_listing(known)}."
        )
    return " ".join(s for s in (first, _rest(result), _gain(result.holdout)) if s)


def trust(data: ReportData) -> str:
    """One paragraph: how far to trust it."""
    sentences = (
        _misfit(data.result),
        _coverage(data),
        _reach(data),
        _delay(data.result),
        _untested(data.result.holdout),
    )
    return " ".join(s for s in sentences if s)


def meaning(row: ParameterVerdict) -> str:
    """What one row of the verdict table means."""
    return row.detail or VERDICTS[row.verdict][2]


def half_width(row: ParameterVerdict) -> float:
    """Half of the 90 % interval [unit], or the standard deviation where there is none."""
    half = 0.5 * (row.high - row.low)
    return half if math.isfinite(half) else row.std


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listing(rows: Sequence[ParameterVerdict], limit: int = 3) -> str:
    if not rows:
        return ""
    shown = [
        f"{parameter_name(r.name)}: {value}{unit} (was {before}{unit})"
        for r in rows[:limit]
        for value, before in [together([r.value, r.before], half_width(r))]
        for unit in [f"\u00a0{r.unit}" if r.unit else ""]
    ]
    rest = f"; and {len(rows) - limit} more" if len(rows) > limit else ""
    return f" ({'; '.join(shown)}{rest})"


def _rest(result: IdentifyResult) -> str:
    groups: dict[Verdict, str] = {
        "only in combination": "known only in combination with others",
        "not excited": "not excited by the motion",
        "at bound": "pressed against a bound",
        "zero gradient": "without any effect on what was measured",
        "no interval": "fitted, but without an interval",
    }
    parts: list[str] = []
    for verdict, words in groups.items():
        names = [parameter_name(v.name) for v in result.verdicts if v.verdict == verdict]
        if names:
            parts.append(f"{_enumerated(names)} ({words})")
    return f"Not settled: {'; '.join(parts)}." if parts else ""


def _enumerated(names: Sequence[str], limit: int = 4) -> str:
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _gain(score: HoldoutScore | None) -> str:
    if score is None:
        return ""
    low, high = sorted((score.gain_low, score.gain_high))
    episodes = _count(len(score.episodes), "recording")
    span = f"90 % interval {percent(low)} to {percent(high)}"
    if low > 0:
        return (
            f"On {episodes} that the fit never saw, the prediction error fell by "
            f"{percent(score.gain)} ({span})."
        )
    if high < 0:
        return (
            f"On {episodes} that the fit never saw, the prediction error grew by "
            f"{percent(-score.gain)} ({span} of reduction): keep the world as it was."
        )
    return (
        f"On {episodes} that the fit never saw, no clear change of the prediction error was found "
        f"(reduction {percent(score.gain)}, {span})."
    )


def _misfit(result: IdentifyResult) -> str:
    factor = result.misfit_factor
    if not math.isfinite(factor) or result.blocks_only:
        return ""
    if factor < 1.5:
        return "The model explains the recordings to about the measurement noise."
    return (
        f"The intervals are {quantity(factor, digits=2)} times wider than measurement noise alone "
        "would make them: the model is not exact, and the intervals already allow for that."
    )


def _coverage(data: ReportData) -> str:
    if not data.held_out:
        return ""
    if not data.calibrated:
        return "The prediction bands were not calibrated on measured errors, so none are drawn."
    share = coverage_share(data.shown, data.held_out)
    level = data.held_out[0].after.level
    if math.isnan(share):
        return ""
    words = f"{percent(share)} of the held-out measurements lie in their {percent(level)} bands"
    if share < level - _COVERAGE_SLACK:
        return f"{words}: the bands are too narrow."
    if share > level + _COVERAGE_SLACK:
        return f"{words}: the bands are cautious."
    return f"{words}, as they should."


def _reach(data: ReportData) -> str:
    """Up to which horizon the typical error stays within the declared tolerance."""
    found: list[str] = []
    for spec in data.shown:
        if not math.isfinite(spec.tolerance):
            continue
        after = error_by_horizon(spec, data.held_out)[1]
        beyond = np.flatnonzero(after.middle > spec.tolerance)
        limit = quantity(spec.tolerance, spec.unit or _unit(spec.manifold), digits=2)
        if not len(after.horizon):
            continue
        if not len(beyond):
            end = quantity(float(after.horizon[-1]), "s", digits=2)
            found.append(f"{spec.name} within {limit} over the whole {end} tested")
        elif beyond[0] == 0:
            found.append(f"{spec.name} beyond {limit} from the start")
        else:
            end = quantity(float(after.horizon[beyond[0] - 1]), "s", digits=2)
            found.append(f"{spec.name} within {limit} for {end}")
    return f"The typical open-loop error keeps {'; '.join(found)}." if found else ""


def _unit(manifold: str) -> str:
    return "rad" if manifold == "quaternion" else ""


def _delay(result: IdentifyResult) -> str:
    names = [d.channel for d in result.delays if d.suspicious]
    if not names:
        return ""
    return f"Check the clocks first: {_enumerated(names)} may be shifted in time."


def _untested(score: HoldoutScore | None) -> str:
    if score is None:
        return (
            "No recording was held back, so nothing here says how well new motions are predicted."
        )
    if len(score.episodes) < 5:
        return "Few recordings were held back; treat the held-out numbers as rough."
    return ""
