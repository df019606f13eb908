"""Plain words, generated from the numbers: what was found and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sameworld.loops.metrics import trust_score
from sameworld.report.curves import coverage_share, error_by_horizon
from sameworld.report.data import ReportData
from sameworld.report.groups import by_importance, grouped, half_width, moved
from sameworld.report.names import spoken
from sameworld.report.numbers import measure, percent, quantity, scale, signed_percent, together
from sameworld.report.scores import ChannelScore, Scores, scores
from sameworld.stages.identify.result import IdentifyResult, ParameterVerdict, Verdict

__all__ = [
    "VERDICTS",
    "advice",
    "chance",
    "errors_text",
    "gate",
    "headline",
    "judgement",
    "learned",
    "meaning",
    "moves",
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

#: How far beyond the nominal level measured coverage may stray before a sentence warns.
_COVERAGE_SLACK = 0.05

#: Channels that a sentence names.
_NAMED = 4


def headline(data: ReportData) -> str:
    """One sentence with the errors on recordings never seen, fitted world against given one."""
    found = scores(data)
    if not found.channels:
        return "No recording was held back: how well new motions are predicted was not tested."
    seen = "the fit" if found.source == "test" else "a first fit"
    clauses = [_clause(c) for c in found.channels[:_NAMED]]
    more = len(found.channels) - len(clauses)
    rest = f"; {_count(more, 'channel')} more in the table" if more else ""
    return (
        f"Compared with the world as given, on {_count(found.episodes, 'recording')} that {seen} "
        f"never saw the typical open-loop error of {' and that of '.join(clauses)}{rest}."
    )


def _clause(score: ChannelScore) -> str:
    before, after, unit = errors_text(score)
    verb = {-1: "fell", 1: "grew", 0: "did not clearly change, going"}[score.direction]
    change = f" ({_change(score)})" if score.change is not None else ""
    if score.change is None:
        verb, change = "went", " (no interval)"
    return f"{score.name} {verb} from {before} to {after}\u00a0{unit}{change}"


def _change(score: ChannelScore) -> str:
    change = score.change
    assert change is not None
    return (
        f"{signed_percent(change.estimate)}, {percent(change.level)} interval "
        f"{signed_percent(change.low)} to {signed_percent(change.high)}"
    )


def errors_text(score: ChannelScore) -> tuple[str, str, str]:
    """Error before, after, and their unit, rounded together."""
    factor, unit = scale([score.before, score.after], score.unit)
    before, after = (factor * e for e in (score.before, score.after))
    texts = together([before, after], min(before, after))
    return texts[0], texts[1], unit


def judgement(data: ReportData) -> tuple[str, str, str]:
    """Symbol, tone and word of the overall judgement."""
    score, found = data.result.holdout, scores(data)
    if score is not None and not score.passed:
        return "✗", "poor", "not accepted"
    directions = [c.direction for c in found.channels]
    if not directions:
        return "?", "fair", "not tested"
    if all(c.change is None for c in found.channels):
        return "?", "fair", "tested on too few recordings to tell"
    if max(directions) > 0:
        return ("≈", "fair", "mixed") if min(directions) < 0 else ("✗", "poor", "worse")
    return ("✓", "good", "better") if min(directions) < 0 else ("≈", "fair", "no clear change")


def learned(data: ReportData) -> str:
    """One paragraph: what was learned; ``moves`` gives the numbers."""
    result = data.result
    recordings = _count(len(result.episodes), "recording")
    if result.blocks_only:
        return f"A learned world was trained on {recordings}."
    known = sum(v.verdict == "determined" for v in result.verdicts)
    first = (
        f"From {recordings}, {known} of {_count(len(result.verdicts), 'parameter')} "
        "could be determined."
    )
    return " ".join(s for s in (first, _rejected(result), _rest(result)) if s)


def _rejected(result: IdentifyResult) -> str:
    groups = [g for g in by_importance(grouped(result.verdicts)) if g.moved]
    if not groups:
        return (
            "Every value given before the fit lies inside its interval."
            if any(math.isfinite(v.high) for v in result.verdicts)
            else ""
        )
    names: dict[str, list[str]] = {}
    for group in groups:
        names.setdefault(group.target, []).append(group.field)
    words = [f"{_enumerated(fields, 9)} of {target}" for target, fields in names.items()]
    return (
        f"The recordings reject the given {'; '.join(words)}: "
        f"{'each' if len(groups) > 1 else 'it'} lies outside its 90\u00a0% interval."
    )


def moves(result: IdentifyResult) -> list[tuple[str, str, str]]:
    """Parameters that moved, the most telling first: name, value given, value found."""
    return [
        (f"{g.field} ({g.axes}) of {g.target}" if g.axes else g.name, *g.change())
        for g in by_importance(grouped(result.verdicts))
        if g.moved
    ]


def gate(data: ReportData) -> str:
    """What the test before the final fit said; empty if there was none."""
    score = data.result.holdout
    if score is None:
        return ""
    low, high = sorted((score.gain_low, score.gain_high))
    size = f"{percent(abs(score.gain))} {'smaller' if score.gain >= 0 else 'larger'}"
    count = len(score.episodes)
    fitted = set(data.result.episodes)
    after = (
        f" The final fit uses all {len(fitted)} recordings."
        if set(score.episodes) <= fitted
        else ""
    )
    verdict = "passed" if score.passed else "failed: keep the world as it was"
    return (
        f"Gate {verdict}. A first fit that did not see {count} of the recordings predicted them "
        f"with an error {size} than before, channels weighted alike (90\u00a0% interval of "
        f"the reduction {percent(low)} to {percent(high)}).{after}"
    )


def trust(data: ReportData) -> str:
    """One paragraph: how far to trust it."""
    sentences = (
        _misfit(data.result),
        _coverage(data),
        _reach(data),
        _delay(data.result),
        _untested(scores(data)),
    )
    return " ".join(s for s in sentences if s)


def chance(data: ReportData) -> str:
    """How the stated chances of staying within tolerance came true; empty if none was stated."""
    score = trust_score(data.channels, [h.after for h in data.held_out])
    if score is None:
        return ""
    skill = (
        ""
        if math.isnan(score.skill)
        else f", {percent(abs(score.skill))} {'better' if score.skill >= 0 else 'worse'} than "
        "stating that share every time"
    )
    return (
        f"The fitted world also states the chance that every error stays within its tolerance: "
        f"{percent(score.stated)} on average, and in {percent(score.share)} of {score.rows} "
        f"held-out rows it did. Brier score {quantity(score.brier, digits=2)}{skill}; over ten "
        f"bins, chances and shares differ by {percent(score.calibration)} on average."
    )


def meaning(row: ParameterVerdict, names: Sequence[str] = ()) -> str:
    """What one row of the verdict table means."""
    if row.verdict != "determined" or not math.isfinite(row.high - row.low):
        return spoken(row.detail, names) or VERDICTS[row.verdict][2]
    half = half_width(row)
    factor, unit = scale([row.before, row.value, row.low, row.high], row.unit)
    size = quantity(factor * half, unit, digits=2)
    share = half / abs(row.value) if row.value else math.inf
    relative = f" ({percent(share)})" if share < 0.5 else ""
    given = "" if moved(row) else "; the value given stays possible"
    return f"Fixed to ±{size}{relative}{given}."


def advice(result: IdentifyResult) -> list[str]:
    """What to record next, with parameters in words."""
    return [spoken(line, result.posterior.names) for line in result.advice]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


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
        names = [g.name for g in grouped([v for v in result.verdicts if v.verdict == verdict])]
        if names:
            parts.append(f"{_enumerated(names)} ({words})")
    return f"Not settled: {'; '.join(parts)}." if parts else ""


def _enumerated(names: Sequence[str], limit: int = 4) -> str:
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


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
        limit = measure(spec.tolerance, spec.unit or _unit(spec.manifold), digits=2)
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
    return f"The typical open-loop error keeps {_joined(found)}." if found else ""


def _unit(manifold: str) -> str:
    return "rad" if manifold == "quaternion" else ""


def _delay(result: IdentifyResult) -> str:
    names = [d.channel for d in result.delays if d.suspicious]
    if not names:
        return ""
    return f"Check the clocks first: {_enumerated(names)} may be shifted in time."


def _untested(found: Scores) -> str:
    if found.source == "none":
        return (
            "No recording was held back, so nothing here says how well new motions are predicted."
        )
    if found.episodes < 5:
        return "Few recordings were held back; treat the held-out numbers as rough."
    return ""
