"""``ReportData`` as one JSON record and flat arrays, so that a page can be rendered again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sameworld.core.belief import Belief
from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import SameworldError, StoreError
from sameworld.core.prediction import ChannelPrediction, Prediction
from sameworld.core.scene import Scene
from sameworld.core.spec import ChannelSpec
from sameworld.core.values import Values
from sameworld.report.data import FilmRow, HeldOut, ReportData
from sameworld.stages.identify.result import (
    Combination,
    DelayAudit,
    HoldoutScore,
    IdentifyResult,
    ParameterVerdict,
    ResidualSummary,
    SearchStart,
    SessionSpread,
    SessionValue,
)

__all__ = ["pack", "unpack"]

_SCHEMA = 1
_PARTS = ("time", "values", "low", "high", "error")
_Row = TypeVar("_Row")


def pack(data: ReportData) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Everything but the scene, which has a folder of its own.

    Returns:
        A JSON-ready record (NaN and infinities as ``None``) and arrays by name.
    """
    arrays: dict[str, NDArray[Any]] = {}
    record = {
        "schema": _SCHEMA,
        "title": data.title,
        "result": data.result.to_json(),
        "channels": [_channel_record(c) for c in data.channels],
        "held_out": [_pack_held_out(h, f"h{k}", arrays) for k, h in enumerate(data.held_out)],
        "film": [row.label for row in data.film],
        "provenance": dict(data.provenance),
        "files": dict(data.files),
    }
    for k, row in enumerate(data.film):
        arrays |= {f"film{k}.time": row.time, f"film{k}.images": row.images}
    return record, arrays


def unpack(record: Any, arrays: Mapping[str, NDArray[Any]], scene: Scene) -> ReportData:
    """Rebuild what ``pack`` took apart.

    Args:
        record: The JSON record.
        arrays: The arrays.
        scene: The calibrated scene.

    Raises:
        StoreError: The record is of another version, or something is missing.
    """
    if not isinstance(record, dict) or record.get("schema") != _SCHEMA:
        raise StoreError(f"This is no report record of schema {_SCHEMA}. Run the fit again.")
    try:
        return ReportData(
            title=record["title"],
            scene=scene,
            result=_result(record["result"]),
            channels=tuple(_channel_spec(c) for c in record["channels"]),
            held_out=tuple(
                _unpack_held_out(h, f"h{k}", arrays) for k, h in enumerate(record["held_out"])
            ),
            film=tuple(
                FilmRow(label=label, time=arrays[f"film{k}.time"], images=arrays[f"film{k}.images"])
                for k, label in enumerate(record["film"])
            ),
            provenance=record["provenance"],
            files=record["files"],
        )
    except SameworldError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        raise StoreError(f"Report record is damaged: {cause!r}. Run the fit again.") from cause


def _channel_record(spec: ChannelSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "shape": list(spec.shape),
        "unit": spec.unit,
        "tolerance": spec.tolerance if math.isfinite(spec.tolerance) else None,
        "manifold": spec.manifold,
    }


def _channel_spec(record: Mapping[str, Any]) -> ChannelSpec:
    tolerance = record["tolerance"]
    return ChannelSpec(
        name=record["name"],
        shape=tuple(record["shape"]),
        unit=record["unit"],
        tolerance=math.inf if tolerance is None else tolerance,
        manifold=record["manifold"],
    )


def _pack_held_out(item: HeldOut, key: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    names = [n for n in item.before.channels if n in item.after.channels and n in item.episode]
    for name in names:
        measured = item.episode[name]
        arrays |= {f"{key}.{name}.time": measured.time, f"{key}.{name}.values": measured.values}
    predictions = {
        which: _pack_prediction(prediction, names, f"{key}.{which}", arrays)
        for which, prediction in (("before", item.before), ("after", item.after))
    }
    units = {name: item.episode[name].unit for name in names}
    return {"id": item.episode.id, "source": item.episode.source, "units": units, **predictions}


def _pack_prediction(
    prediction: Prediction, names: list[str], key: str, arrays: dict[str, NDArray[Any]]
) -> dict[str, Any]:
    for name in names:
        channel = prediction.channels[name]
        arrays |= {f"{key}.{name}.{part}": getattr(channel, part) for part in _PARTS}
    arrays |= {f"{key}.trust": prediction.trust, f"{key}.trust_time": prediction.trust_time}
    return {
        "warmup": prediction.warmup,
        "level": prediction.level,
        "calibrated": prediction.calibrated,
        "valid": prediction.valid,
        "start": dict(zip(prediction.start.names, prediction.start.array[0].tolist(), strict=True)),
    }


def _unpack_held_out(record: Any, key: str, arrays: Mapping[str, NDArray[Any]]) -> HeldOut:
    channels = tuple(
        Channel(
            name=name,
            time=arrays[f"{key}.{name}.time"],
            values=arrays[f"{key}.{name}.values"],
            unit=unit,
        )
        for name, unit in record["units"].items()
    )
    before, after = (
        _unpack_prediction(record, which, f"{key}.{which}", arrays) for which in ("before", "after")
    )
    episode = Episode(id=record["id"], channels=channels, source=record["source"])
    return HeldOut(episode=episode, before=before, after=after)


def _unpack_prediction(
    record: Any, which: str, key: str, arrays: Mapping[str, NDArray[Any]]
) -> Prediction:
    mine = record[which]
    return Prediction(
        episode=record["id"],
        warmup=mine["warmup"],
        channels={
            name: ChannelPrediction(**{part: arrays[f"{key}.{name}.{part}"] for part in _PARTS})
            for name in record["units"]
        },
        level=mine["level"],
        calibrated=mine["calibrated"],
        valid=mine["valid"],
        start=Values.of(mine["start"]),
        trust=arrays[f"{key}.trust"],
        trust_time=arrays[f"{key}.trust_time"],
    )


def _result(record: Mapping[str, Any]) -> IdentifyResult:
    rows: dict[str, Any] = {
        "posterior": Belief.from_json(record["posterior"]),
        "naive_covariance": np.array(record["naive_covariance"], dtype=np.float64),
        "verdicts": _rows(ParameterVerdict, record["verdicts"]),
        "combinations": _rows(Combination, record["combinations"]),
        "residuals": _rows(ResidualSummary, record["residuals"]),
        "delays": _rows(DelayAudit, record["delays"]),
        "searches": _rows(SearchStart, record["searches"]),
        "sessions": tuple(_session_spread(r) for r in record.get("sessions", ())),
        "holdout": None if record["holdout"] is None else _row(HoldoutScore, record["holdout"]),
    }
    return _row(IdentifyResult, {**record, **rows})


def _session_spread(record: Mapping[str, Any]) -> SessionSpread:
    """Population and sessions; an open upper end of a spread was written as ``None``."""
    high = record["spread_high"]
    whole = {
        **record,
        "values": _rows(SessionValue, record["values"]),
        "spread_high": math.inf if high is None else high,
    }
    return _row(SessionSpread, whole)


def _rows(kind: type[_Row], records: list[Mapping[str, Any]]) -> tuple[_Row, ...]:
    return tuple(_row(kind, record) for record in records)


def _row(kind: type[_Row], record: Mapping[str, Any]) -> _Row:
    """A dataclass from its JSON record: ``None`` is NaN where a float belongs, lists are tuples."""
    kinds = {f.name: f.type for f in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: _value(kinds[name], value) for name, value in record.items()})


def _value(kind: object, value: Any) -> Any:
    if value is None and kind == "float":
        return math.nan
    if isinstance(value, list):
        return tuple(math.nan if v is None and "float" in str(kind) else v for v in value)
    return value
