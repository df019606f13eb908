"""A seeded, made-up identification of a tossed cube: everything a report can show."""

from __future__ import annotations

import numpy as np

from sameworld.core import Belief, Channel, ChannelSpec, Episode, HistoryLine, Parameter, Scene
from sameworld.core.manifolds import compose, inverse, quat_exp, quat_log
from sameworld.core.prediction import ChannelPrediction, Prediction
from sameworld.core.values import Values
from sameworld.report import FilmRow, HeldOut, ReportData
from sameworld.stages.identify.result import (
    Combination,
    DelayAudit,
    HoldoutScore,
    IdentifyResult,
    ParameterVerdict,
    ResidualSummary,
    SearchStart,
)

POSITION = ChannelSpec(name="cube.pos", shape=(3,), unit="m", tolerance=0.005)
ROTATION = ChannelSpec(name="cube.quat", shape=(4,), manifold="quaternion", tolerance=0.2)
WARMUP = 5
ROWS = 70
MJCF = "<mujoco><worldbody/></mujoco>"


def report_data(*, seed: int = 0, episodes: int = 12, calibrated: bool = True) -> ReportData:
    rng = np.random.default_rng(seed)
    held_out = tuple(held_out_toss(f"toss-{k:03d}", rng, calibrated) for k in range(episodes))
    result = identify_result(held_out)
    return ReportData(
        title="Tossed cube: what 50 recordings say about friction & bounce",
        scene=Scene(name="cube_toss", mjcf=MJCF, history=(_line(),)),
        result=result,
        channels=(POSITION, ROTATION),
        held_out=held_out,
        film=film(rng),
        provenance={
            "command": "sameworld identify cube_toss --free 'pair:*' --seed 0",
            "sameworld": "0.1.0",
            "mujoco": "4.0.0",
            "recordings sha256": "9f2c" * 16,
            "started": "2026-11-30 12:00 UTC",
        },
        files={"scene": "scene", "belief": "scene/belief.json"},
    )


def _line() -> HistoryLine:
    return HistoryLine(stage="identify", summary="Fitted 5 parameters to 50 recordings.", seed=0)


def held_out_toss(name: str, rng: np.random.Generator, calibrated: bool) -> HeldOut:
    time = np.arange(ROWS) / 148.0
    speed = rng.normal([0.6, 0.1, 0.8], 0.3)
    truth = np.stack([speed[k] * time for k in range(3)], axis=1)
    truth[:, 2] = np.abs(0.3 + speed[2] * time - 4.905 * time**2)
    spin = quat_exp(np.outer(time, rng.normal(0.0, 4.0, 3)))
    noise = rng.normal(0.0, 0.0006, truth.shape)
    turned = compose(spin, quat_exp(rng.normal(0.0, 0.004, (ROWS, 3))))
    episode = Episode(
        id=name,
        channels=(
            Channel(name="cube.pos", time=time, values=truth + noise, unit="m"),
            Channel(name="cube.quat", time=time, values=turned),
        ),
        source="analytic",
    )
    drifts = (rng.normal(0.0, 0.03, (2, 3)), rng.normal(0.0, 0.009, (2, 3)))
    before, after = (
        prediction(episode, truth, spin, drift, calibrated and k == 1)
        for k, drift in enumerate(drifts)
    )
    return HeldOut(episode=episode, before=before, after=after)


def prediction(
    episode: Episode, truth: np.ndarray, spin: np.ndarray, drift: np.ndarray, calibrated: bool
) -> Prediction:
    clock = episode["cube.pos"].time[WARMUP:]
    horizon = (clock - episode["cube.pos"].time[WARMUP - 1])[:, None]
    values = truth[WARMUP:] + horizon * drift[0] * 3
    width = (0.0012 + 0.045 * horizon) * np.ones(3) if calibrated else np.zeros((len(clock), 3))
    turns = compose(spin[WARMUP:], quat_exp(horizon * drift[1] * 30))
    error = quat_log(compose(inverse(turns), episode["cube.quat"].values[WARMUP:]))
    angle = (0.008 + 0.45 * horizon) * np.ones(3) if calibrated else np.zeros((len(clock), 3))
    channels = {
        "cube.pos": ChannelPrediction(
            time=clock,
            values=values,
            low=values - width,
            high=values + width,
            error=episode["cube.pos"].values[WARMUP:] - values,
        ),
        "cube.quat": ChannelPrediction(
            time=clock, values=turns, low=-angle, high=angle, error=error
        ),
    }
    return Prediction(
        episode=episode.id,
        warmup=WARMUP,
        channels=channels,
        level=0.9,
        calibrated=calibrated,
        valid=True,
        start=Values.none(),
        trust=np.full(len(clock), 0.8),
        trust_time=clock,
    )


def _row(
    name, unit, before, value, std, verdict, detail, naive=8.0, **partners
) -> ParameterVerdict:
    return ParameterVerdict(
        name=name,
        unit=unit,
        before=before,
        value=value,
        low=value - 1.645 * std,
        high=value + 1.645 * std,
        std=std,
        naive_std=std / naive,
        verdict=verdict,
        detail=detail,
        partners={key.replace("__", ":", 1).replace("_", "."): v for key, v in partners.items()},
    )


def verdicts() -> tuple[ParameterVerdict, ...]:
    return (
        _row(
            "pair:cube+floor.friction.slide",
            "",
            1.0,
            0.1817,
            0.0062,
            "determined",
            "Sliding after the second impact fixes it to 6 %.",
        ),
        _row(
            "pair:cube+floor.solref.timeconst",
            "s",
            0.02,
            0.00813,
            0.00041,
            "determined",
            "The length of every impact shows it.",
        ),
        _row(
            "body:cube.mass",
            "kg",
            0.37,
            0.41,
            0.12,
            "only in combination",
            "A heavier cube on a stiffer floor moves alike.",
            body__cube_inertia=0.97,
        ),
        _row(
            "body:cube.inertia",
            "kg m²",
            8.1e-4,
            8.6e-4,
            2.2e-4,
            "at bound",
            "The upper bound stopped the fit.",
        ),
        _row(
            "pair:cube+floor.friction.roll",
            "m",
            1e-4,
            1.0e-4,
            float("inf"),
            "not excited",
            "The cube hardly rolls in these tosses.",
            naive=float("nan"),
        ),
    )


def identify_result(held_out: tuple[HeldOut, ...]) -> IdentifyResult:
    rows = verdicts()
    correlation = np.eye(len(rows))
    correlation[2, 3] = correlation[3, 2] = 0.97
    correlation[0, 1] = correlation[1, 0] = -0.41
    posterior = Belief(
        parameters=tuple(
            Parameter(name=v.name, value=v.value, unit=v.unit, std=v.std, source="identified")
            for v in rows
        ),
        correlation=correlation,
    )
    return IdentifyResult(
        posterior=posterior,
        naive_covariance=np.diag([1e-6] * len(rows)),
        covariance_kind="episode sandwich",
        misfit_factor=8.0,
        verdicts=rows,
        combinations=(
            Combination(
                weights={"body:cube.mass": 1.0, "body:cube.inertia": -1.0},
                std=0.021,
                text="body:cube.inertia / body:cube.mass",
            ),
        ),
        holdout=holdout_score(held_out),
        residuals=(
            ResidualSummary(
                channel="cube.pos",
                unit="m",
                noise=0.0006,
                weight_std=0.0011,
                rms_before=0.0142,
                rms_after=0.00171,
                whiteness=0.62,
                white=False,
            ),
            ResidualSummary(
                channel="cube.quat",
                unit="rad",
                noise=0.004,
                weight_std=0.006,
                rms_before=0.21,
                rms_after=0.0048,
                whiteness=-0.03,
                white=True,
            ),
        ),
        delays=(
            DelayAudit(
                channel="cube.pos", delay=0.0001, std=0.0004, suspicious=False, text="Nothing."
            ),
            DelayAudit(
                channel="cube.quat",
                delay=0.0068,
                std=0.0003,
                suspicious=True,
                text="One sample late: shift its time stamps.",
            ),
        ),
        advice=(
            "Record a few tosses with a payload of known mass: mass and inertia separate then.",
            "Let the cube roll slowly along one edge to excite rolling friction.",
        ),
        searches=tuple(
            SearchStart(
                values={"pair:cube+floor.friction.slide": 0.1 * (k + 1)},
                screened=4000.0 + 900 * k,
                cost=1234.5 + 0.01 * k if k < 3 else float("nan"),
                message="step below tolerance" if k < 3 else "screened out",
            )
            for k in range(8)
        ),
        cost=1234.5,
        history=(4000.0, 2100.0, 1500.0, 1260.0, 1236.0, 1234.5),
        episodes=tuple(f"fit-{k}" for k in range(50)),
        windows=150,
        rollouts=1874,
        cpu_seconds=21.73,
        seed=0,
    )


def holdout_score(held_out: tuple[HeldOut, ...]) -> HoldoutScore | None:
    if not held_out:
        return None
    errors = [
        {
            name: tuple(
                float(np.linalg.norm(p.channels[name].error, axis=1).mean())
                for p in ([h.before, h.after][k] for h in held_out)
            )
            for name in ("cube.pos", "cube.quat")
        }
        for k in range(2)
    ]
    return HoldoutScore(
        episodes=tuple(h.episode.id for h in held_out),
        warmup=WARMUP,
        before=errors[0],
        after=errors[1],
        gain=0.624,
        gain_low=0.511,
        gain_high=0.703,
        passed=True,
    )


def film(rng: np.random.Generator) -> tuple[FilmRow, ...]:
    times = np.linspace(0.0, 0.4, 7)
    rows = []
    for label, shift in (("recorded", 0.0), ("simulated, before", 0.5), ("simulated, after", 0.05)):
        images = np.full((len(times), 96, 128, 3), 205, np.uint8)
        images[:, 80:] = (150, 140, 128)
        for k, t in enumerate(times):
            x = int(20 + 160 * t * (1 + shift))
            z = int(60 - 120 * t + 260 * t**2 * (1 + shift))
            images[k, max(z, 0) : z + 20, x : x + 20] = (188, 62, 44)
        images = np.clip(images + rng.integers(-6, 6, images.shape), 0, 255).astype(np.uint8)
        rows.append(FilmRow(label=label, time=times, images=images))
    return tuple(rows)
