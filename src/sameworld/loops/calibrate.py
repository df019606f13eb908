"""``calibrate``: recordings in, calibrated scene and honest held-out predictions out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sameworld.core.episode import Episode
from sameworld.core.errors import FitError, StoreError
from sameworld.core.predict import predict_all
from sameworld.core.prediction import Prediction
from sameworld.core.progress import Progress, Report, silent
from sameworld.core.scene import HistoryLine, Scene
from sameworld.core.world import World
from sameworld.loops.film import FilmStrip, film_strips
from sameworld.loops.metrics import held_out_metrics
from sameworld.stages.identify import (
    IdentifyConfig,
    IdentifyResult,
    check_inputs,
    identify,
    posterior_table,
)
from sameworld.stages.identify.holdout import HIGHEST_LEVEL
from sameworld.store import (
    RunFolder,
    hash_arrays,
    save_episodes,
    save_scene,
    versions,
    write_json,
    write_npz,
    write_text,
)
from sameworld.worlds import build
from sameworld.worlds.explicit import ExplicitConfig, ExplicitWorld

__all__ = ["CalibrateConfig", "Calibration", "calibrate", "prediction_arrays"]


@dataclass(frozen=True, kw_only=True)
class CalibrateConfig:
    """Options of ``calibrate``.

    Attributes:
        identify: Options of the fit.
        test: Share of the episodes kept for the final predictions and never fitted, used where no
            test episodes are given.
        film: Images per film strip; 0 for none.
        level: Probability of prediction intervals, at most 0.95.
        threads: Threads of simulation; 0 uses all cores. The answer does not depend on it.
    """

    identify: IdentifyConfig
    test: float = 0.2
    film: int = 7
    level: float = 0.9
    threads: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.test < 1 or self.film < 0 or not 0 < self.level <= HIGHEST_LEVEL:
            raise FitError(
                f"test = {self.test} must be a share in [0, 1), film = {self.film} a count, and "
                f"level = {self.level} a probability of at most {HIGHEST_LEVEL}."
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """What ``calibrate`` leaves.

    Attributes:
        scene: The calibrated scene.
        before: The world as given.
        after: The fitted world.
        episodes: Fitted episodes with their start beliefs.
        result: What identification found.
        test: Episodes never fitted.
        predicted_before: Their predictions by the world as given.
        predicted_after: Their predictions by the fitted world.
        film: Film strips of one test episode.
        metrics: Flat numbers, also in ``metrics.json``.
        provenance: Hashes, seeds, versions.
        folder: The run folder.
    """

    scene: Scene
    before: World
    after: World
    episodes: tuple[Episode, ...]
    result: IdentifyResult
    test: tuple[Episode, ...]
    predicted_before: list[Prediction]
    predicted_after: list[Prediction]
    film: tuple[FilmStrip, ...]
    metrics: Mapping[str, float]
    provenance: Mapping[str, str]
    folder: Path


def calibrate(
    scene: Scene,
    episodes: Sequence[Episode],
    *,
    config: CalibrateConfig,
    out: Path,
    test: Sequence[Episode] = (),
    progress: Report | None = None,
) -> Calibration:
    """Identify, predict what was never fitted, and leave a run folder.

    The folder holds ``config.json``, ``versions.json``, ``metrics.json``, ``result.json``,
    ``posterior.json`` (a table for domain randomisation), ``scene/`` (the calibrated scene),
    ``calibrated.xml`` (plain MJCF with the fitted numbers),
    ``episodes/`` (with start beliefs), ``predictions.npz`` and ``checkpoints/``. A killed run that
    is started again with the same inputs resumes and gives the same answer.

    Args:
        scene: The scene to calibrate.
        episodes: Recordings.
        config: Options.
        out: Run folder, made or reopened.
        test: Episodes to predict and never fit; else a share of ``episodes`` is set aside.
        progress: Receives progress.

    Raises:
        StoreError: The folder holds something else, or a run of other inputs.
        FitError: See ``identify``.
    """
    report = progress or silent
    kept, tested = _set_aside(episodes, test, config)
    before = build(scene, "explicit", config=ExplicitConfig(threads=config.threads))
    check_inputs(before, [*kept, *tested], config=config.identify)
    run = RunFolder.create(out)
    provenance = _provenance(scene, kept, tested, config)
    _claim(run, config, provenance)
    after, placed, result = identify(
        before,
        kept,
        config=config.identify,
        progress=report,
        checkpoint=_Kept(run=run),
    )
    report(Progress(stage="predicting", done=0, total=2, message="world as given"))
    warmup, seed = config.identify.warmup, config.identify.seed
    old = predict_all(before, tested, warmup, level=config.level, seed=seed)
    report(Progress(stage="predicting", done=1, total=2, message="fitted world"))
    new = predict_all(after, tested, warmup, level=config.level, seed=seed)
    metrics = held_out_metrics(tested, old, new, result, after.spec.observations)
    calibrated = _calibrated(scene, after, result, provenance, config)
    film = film_strips(after, tested[:1], old[:1], new[:1], config.film)
    _write(run, calibrated, placed, result, tested, new, metrics)
    write_text(run.file("calibrated.xml"), cast(ExplicitWorld, after).mjcf())
    report(Progress(stage="predicting", done=2, total=2, message="done"))
    return Calibration(
        scene=calibrated,
        before=before,
        after=after,
        episodes=placed,
        result=result,
        test=tuple(tested),
        predicted_before=old,
        predicted_after=new,
        film=film,
        metrics=metrics,
        provenance=provenance,
        folder=run.path,
    )


def _set_aside(
    episodes: Sequence[Episode], test: Sequence[Episode], config: CalibrateConfig
) -> tuple[list[Episode], list[Episode]]:
    if test:
        shared = sorted({e.id for e in episodes} & {e.id for e in test})
        if shared:
            raise FitError(f"Episodes {shared} are both fitted and tested. Give disjoint sets.")
        return list(episodes), list(test)
    count = round(config.test * len(episodes)) if len(episodes) >= 2 else 0
    order = np.random.default_rng(config.identify.seed + 1).permutation(len(episodes))
    chosen = set(order[:count].tolist())
    kept = [e for i, e in enumerate(episodes) if i not in chosen]
    return kept, [e for i, e in enumerate(episodes) if i in chosen]


def _provenance(
    scene: Scene, kept: Sequence[Episode], tested: Sequence[Episode], config: CalibrateConfig
) -> dict[str, str]:
    belief = hashlib.sha256(repr(scene.belief.to_json()).encode()).hexdigest()
    found = {
        "scene": scene.name,
        "scene id": scene.id,
        "belief sha256": belief,
        "fitted episodes sha256": _hash_episodes(kept),
        "test episodes sha256": _hash_episodes(tested),
        "seed": str(config.identify.seed),
    }
    return found | {f"{name} version": text for name, text in versions().items()}


def _hash_episodes(episodes: Sequence[Episode]) -> str:
    arrays = {
        f"{e.id}/{c.name}/{part}": array
        for e in episodes
        for c in e.channels
        for part, array in (("time", c.time), ("values", c.values))
    }
    beliefs = [[e.id, e.start.to_json(), e.session.to_json()] for e in episodes]
    facts = [[c.name, c.unit, c.role, c.noise] for e in episodes for c in e.channels]
    told = hashlib.sha256(repr((beliefs, facts)).encode()).hexdigest()
    return hashlib.sha256((hash_arrays(arrays) + told).encode()).hexdigest()


def _claim(run: RunFolder, config: CalibrateConfig, provenance: Mapping[str, str]) -> None:
    """Refuse to mix two runs in one folder; a repeat of the same one resumes."""
    inputs = {k: v for k, v in provenance.items() if "version" not in k}
    record = _jsonable({"config": asdict(config), "inputs": inputs})
    begun = (run.path / "checkpoints").is_dir() or run.file("result.json").exists()
    if begun and run.file("config.json").exists():
        kept = run.read("config.json")
        if kept != record:
            raise StoreError(
                f"'{run.path}' holds a run with other {_differing(kept, record)}. Choose another "
                "folder, or delete it."
            )
        return
    run.save_config(record)


def _differing(kept: Any, record: Mapping[str, Any]) -> str:
    """Names of the inputs and options in which two runs differ."""
    found: list[str] = []
    for part, now in record.items():
        then = kept.get(part, {}) if isinstance(kept, dict) else {}
        flat = {**now, **now.get("identify", {})} if part == "config" else now
        old = {**then, **then.get("identify", {})} if part == "config" else then
        found += [k for k, v in flat.items() if k != "identify" and old.get(k) != v]
    return ", ".join(dict.fromkeys(found)) or "inputs or options"


def _jsonable(value: Any) -> Any:
    """The value as JSON gives it back; infinities, which options may be, in words."""
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_jsonable(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """Checkpoints of a run folder, as stages want them."""

    run: RunFolder

    def load(self, name: str) -> Mapping[str, NDArray[Any]] | None:
        found = self.run.checkpoint(name).load()
        return None if found is None else found[0]

    def save(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.run.checkpoint(name).save(arrays, {})


def _calibrated(
    scene: Scene,
    after: World,
    result: IdentifyResult,
    provenance: Mapping[str, str],
    config: CalibrateConfig,
) -> Scene:
    names = [n for n in result.posterior.names if n in after.parameters.names]
    fitted = after.parameters.marginal(names)
    summary = f"Fitted {len(names)} parameters to {len(result.episodes)} episodes."
    if result.holdout is not None and not result.holdout.passed:
        summary += " Rejected on held-out episodes: the given values were kept."
    line = HistoryLine(
        stage="identify",
        summary=summary,
        inputs={k: v for k, v in provenance.items() if "sha256" in k},
        seed=config.identify.seed,
        version=versions()["sameworld"],
    )
    return scene.with_belief(scene.belief.updated(fitted), line)


def _write(
    run: RunFolder,
    scene: Scene,
    episodes: Sequence[Episode],
    result: IdentifyResult,
    tested: Sequence[Episode],
    predictions: Sequence[Prediction],
    metrics: Mapping[str, float],
) -> None:
    save_scene(scene, run.path / "scene", overwrite=True)
    if not (run.path / "episodes" / "episodes.jsonl").exists():  # else a repeat of the same run
        save_episodes(episodes, run.path / "episodes")
    if tested:
        write_npz(run.path / "predictions.npz", prediction_arrays(predictions))
    run.save_metrics(dict(metrics))
    write_json(run.file("result.json"), result.to_json(), nan="null")
    write_json(run.file("posterior.json"), posterior_table(result.posterior), nan="null")


def prediction_arrays(predictions: Sequence[Prediction]) -> dict[str, NDArray[Any]]:
    """Raw predictions as arrays ``{episode}/{channel}/{time|values|low|high}``."""
    return {
        f"{p.episode}/{name}/{part}": getattr(channel, part)
        for p in predictions
        for name, channel in p.channels.items()
        for part in ("time", "values", "low", "high")
    }
