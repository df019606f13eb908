"""Are the intervals honest on real repeats? Ten disjoint groups of fifty tosses, fitted apart.

Run: ``python -m benchmarks.honesty_real --data DIR [--out FILE.json]``.

Every group gives an estimate and a reported standard deviation of each parameter. If the reported
ones are honest, the scatter of the ten estimates is as large as they say. Each group's fitted world
also predicts all tosses it has not seen, from five warm-up rows; the 90 % intervals should cover
90 % of what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.convention import options, show, write_json
from benchmarks.cube_recipe import load, nominal, predictions
from sameworld.core.prediction import Prediction
from sameworld.loops.metrics import coverage
from sameworld.stages.identify import IdentifyResult, identify
from sameworld.zoo import cube_config

#: Ten disjoint groups of fifty tosses.
GROUPS = np.random.default_rng(1).permutation(570)[:500].reshape(10, 50)


def in_coordinates(result: IdentifyResult) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates, reported and J'J deviations [P], relative for parameters fitted in logarithms."""
    values = np.array([v.value for v in result.verdicts])
    logs = np.array([p.transform == "log" for p in result.posterior.parameters])
    safe = np.where(logs, values, 1.0)
    stds = np.array([v.std for v in result.verdicts]) / safe
    naive = np.array([v.naive_std for v in result.verdicts]) / safe
    return np.where(logs, np.log(safe), values), stds, naive


def scatter(results: Sequence[IdentifyResult]) -> dict[str, dict[str, float]]:
    """Per parameter: scatter between groups, reported deviation, their ratio, share determined."""
    pairs = [in_coordinates(r) for r in results]
    spread = np.std([p[0] for p in pairs], axis=0, ddof=1)
    reported = np.sqrt(np.mean([p[1] ** 2 for p in pairs], axis=0))
    naive = np.sqrt(np.mean([p[2] ** 2 for p in pairs], axis=0))
    table: dict[str, dict[str, float]] = {}
    for i, verdict in enumerate(results[0].verdicts):
        determined = np.mean([r.verdicts[i].verdict == "determined" for r in results])
        table[verdict.name] = {
            "scatter": float(spread[i]),
            "reported": float(reported[i]),
            "ratio": float(spread[i] / reported[i]),
            "naive": float(naive[i]),
            "determined": float(determined),
        }
    return table


def covered(groups: Sequence[Sequence[Prediction]], channel: str) -> float:
    """Mean coverage of a channel's intervals over the groups."""
    return float(np.mean([coverage(g, channel) for g in groups]))


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    tosses = load(opts.data)
    world = nominal(opts.threads)
    results: list[IdentifyResult] = []
    predicted: list[list[Prediction]] = []
    for index, group in enumerate(GROUPS):
        members = set(group.tolist())
        fitted, _, result = identify(
            world, [tosses[i] for i in group], config=cube_config(seed=index, holdout=0.0)
        )
        rest = tuple(t for i, t in enumerate(tosses) if i not in members)
        results.append(result)
        predicted.append(predictions(fitted, rest))
    table = scatter(results)
    rows = [(name, *row.values()) for name, row in table.items()]
    show(
        "Ten groups of fifty real tosses (deviations relative for log parameters)",
        ("parameter", "scatter", "reported", "ratio", "J'J says", "share determined"),
        rows,
    )
    ratios = [row["ratio"] for row in table.values() if row["determined"] > 0.5]
    numbers = {
        "scatter_ratio_min": float(min(ratios)),
        "scatter_ratio_max": float(max(ratios)),
        "determined_parameters": float(len(ratios)),
        "coverage90_position": covered(predicted, "cube.pos"),
        "coverage90_rotation": covered(predicted, "cube.quat"),
    }
    numbers["coverage90"] = 0.5 * (numbers["coverage90_position"] + numbers["coverage90_rotation"])
    each = [coverage(g, c) for g in predicted for c in ("cube.pos", "cube.quat")]
    numbers |= {"coverage90_lowest": min(each), "coverage90_highest": max(each)}
    for name, row in table.items():
        numbers |= {f"{name}.{key}": value for key, value in row.items()}
    show("Honesty", ("number", "value"), [(k, v) for k, v in numbers.items() if ":" not in k])
    write_json(opts.out, numbers)
    return numbers


if __name__ == "__main__":
    main()
