"""The real cube tosses of ``cube_toss`` in the differentiable world: contact with derivatives.

Run: ``python -m benchmarks.diff_cube --data DIR [--out FILE.json] [--predictions FILE.npz]``.

Data, split, warm-up, recipe, metrics and their keys are those of ``cube_toss``; the engine is the
differentiable world, Euler steps and elliptic cones of the same scene. Three fits of the 50
tosses predict the other 520. The first has the options of ``cube_toss``: ``identify`` takes exact
derivatives unless the cost is rough (``exact`` says whether it did). ``exact_*`` asks
for exact derivatives all the same. ``explicit_*`` is MuJoCo with finite differences.

``values_apart_sd`` is the largest difference of a parameter between the first and the explicit fit,
in standard deviations that the explicit one reports.

Source: S. Pfrommer, M. Halm, M. Posa, "ContactNets: Learning discontinuous contact dynamics with
smooth, implicit representations", CoRL 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.convention import options, show, write_json, write_predictions
from benchmarks.cube_recipe import nominal, predictions
from benchmarks.cube_toss import COLUMNS, TEST, fit_and_score, parts, prefixed, raw
from sameworld.stages.identify import IdentifyResult
from sameworld.worlds import build
from sameworld.worlds.differentiable import DifferentiableConfig
from sameworld.zoo import cube_config, scene


def apart(one: IdentifyResult, other: IdentifyResult) -> float:
    """Largest difference of a parameter, in standard deviations of ``other``."""
    return max(abs(one.verdict(v.name).value - v.value) / v.std for v in other.verdicts)


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    train, test = parts(opts.data)
    settings = DifferentiableConfig(threads=opts.threads)
    world, engine = build(scene("cube"), "differentiable", config=settings), nominal(opts.threads)
    before = predictions(world, test)
    numbers, after, result = fit_and_score(world, train, before, test, cube_config())
    numbers["exact"] = float(result.derivatives == "exact")
    explicit, _, reference = fit_and_score(engine, train, before, test, cube_config())
    numbers |= prefixed("explicit", explicit)
    numbers["values_apart_sd"] = apart(result, reference)
    numbers["cpu_over_explicit"] = numbers["fit_cpu_seconds"] / explicit["fit_cpu_seconds"]
    numbers |= prefixed(
        "exact",
        fit_and_score(world, train, before, test, replace(cube_config(), derivatives="exact"))[0],
    )
    show(f"{len(TEST)} held-out cube tosses", ("number", "value"), sorted(numbers.items()))
    write_json(opts.out, numbers)
    write_predictions(opts.predictions, COLUMNS, raw(test, after))
    return numbers


if __name__ == "__main__":
    main()
