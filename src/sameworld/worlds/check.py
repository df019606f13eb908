"""``check_world``: the World interface as a test-suite, for any implementation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sameworld.core.arrays import Array
from sameworld.core.errors import SameworldError
from sameworld.core.values import Values
from sameworld.core.world import Context, World
from sameworld.worlds.checks import capabilities, contract, purity, values
from sameworld.worlds.checks.probe import (
    CheckFailed,
    CheckSkipped,
    Probe,
    default_actions,
    default_start,
)

__all__ = ["CheckReport", "CheckRow", "WorldCheckError", "check_names", "check_world"]

_BATCH = 3
_TICKS = 12

Outcome = Literal["pass", "fail", "skip"]

_CHECKS: tuple[Callable[[Probe], str], ...] = (
    contract.spec_is_consistent,
    contract.capabilities_are_implemented,
    contract.reset_gives_a_whole_state,
    contract.observations_match_the_spec,
    contract.declared_starts_are_shown,
    contract.start_kind_is_enforced,
    purity.step_leaves_its_input,
    purity.observations_are_copies,
    purity.same_input_gives_same_output,
    purity.global_randomness_is_untouched,
    purity.time_advances_by_the_period,
    purity.seeds_act_as_declared,
    purity.batch_equals_singles,
    purity.clones_continue_exactly,
    purity.restored_states_continue_exactly,
    values.parameters_act_per_element,
    values.parameters_have_an_effect,
    values.missing_values_take_means,
    values.unknown_names_are_refused,
    values.unequal_batches_are_refused,
    values.wrong_actions_are_refused,
    values.nan_actions_are_not_swallowed,
    values.belief_changes_make_new_worlds,
    capabilities.rollout_equals_looping_step,
    capabilities.gradient_agrees_with_differences,
    capabilities.pullback_transposes_the_gradient,
    capabilities.fit_returns_a_new_world,
    capabilities.render_gives_images,
    capabilities.inverse_is_linear_in_inertia,
)


class WorldCheckError(SameworldError):
    """A world does not keep the contract."""


@dataclass(frozen=True, kw_only=True)
class CheckRow:
    """One behaviour.

    Attributes:
        name: The behaviour in words.
        outcome: ``skip`` if it does not apply or could not be seen.
        detail: What was found, or why it failed.
    """

    name: str
    outcome: Outcome
    detail: str


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """What ``check_world`` found.

    Attributes:
        world: Class name of the world.
        rows: One row per behaviour, in a fixed order.
    """

    world: str
    rows: tuple[CheckRow, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[CheckRow, ...]:
        """Rows that failed."""
        return tuple(row for row in self.rows if row.outcome == "fail")

    def row(self, name: str) -> CheckRow:
        """Row of one behaviour.

        Raises:
            WorldCheckError: There is none of that name.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise WorldCheckError(f"No check is called '{name}'. Checks: {list(check_names())}.")

    def raise_if_failed(self) -> None:
        """Raise unless every check passed or was skipped.

        Raises:
            WorldCheckError: Lists every failure.
        """
        if self.failures:
            lines = "\n".join(f"  {row.name}: {row.detail}" for row in self.failures)
            raise WorldCheckError(
                f"{self.world} fails {len(self.failures)} of {len(self.rows)} checks:\n{lines}"
            )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return {
            "world": self.world,
            "passed": self.passed,
            "rows": [dict(vars(row)) for row in self.rows],
        }

    def __str__(self) -> str:
        lines = [f"{row.outcome:4}  {row.name:38}  {row.detail}".rstrip() for row in self.rows]
        counts = {k: sum(r.outcome == k for r in self.rows) for k in ("pass", "fail", "skip")}
        tail = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        return "\n".join([f"{self.world}: {tail}", *lines])


def check_names() -> tuple[str, ...]:
    """Names of all behaviours, in the order of a report."""
    return tuple(_name(check) for check in _CHECKS)


def check_world(
    world: World,
    *,
    starts: Values | Context | None = None,
    actions: Array | None = None,
    parameters: Sequence[str] | None = None,
    seed: int = 0,
) -> CheckReport:
    """Test whether a world keeps the contract, whatever its kind.

    Args:
        world: Any world.
        starts: Starts of at least 2 elements; made from the spec if not given. Choose starts
            from which a short run stays finite.
        actions: Actions [B, T, A] with at least 4 ticks, B as in ``starts``; made from the spec's
            bounds if not given.
        parameters: Names that are varied and differentiated, for worlds where all of them would
            take too long; all if not given.
        seed: Seed of starts, actions and keys.

    Returns:
        One row per behaviour. Nothing is raised for a failing world; see ``raise_if_failed``.

    Raises:
        BeliefError: One of ``parameters`` does not exist.
        WorldCheckError: Starts and actions given here cannot be used for checking.
    """
    batch = _BATCH if actions is None else len(actions)
    batch = batch if starts is None else starts.batch
    start = default_start(world.spec, batch, seed) if starts is None else starts
    acts = default_actions(world.spec, batch, _TICKS, seed) if actions is None else actions
    if batch < 2 or acts.ndim != 3 or len(acts) != batch or acts.shape[1] < 4:
        raise WorldCheckError(
            f"Checking needs at least 2 elements and 4 ticks; got {batch} starts and actions of "
            f"shape {acts.shape}."
        )
    chosen = None if parameters is None else world.parameters.marginal(parameters).names
    probe = Probe(world=world, start=start, actions=acts, seed=seed, chosen=chosen)
    return CheckReport(
        world=type(world).__name__, rows=tuple(_run(check, probe) for check in _CHECKS)
    )


def _run(check: Callable[[Probe], str], probe: Probe) -> CheckRow:
    name = _name(check)
    try:
        return CheckRow(name=name, outcome="pass", detail=check(probe))
    except CheckSkipped as reason:
        return CheckRow(name=name, outcome="skip", detail=str(reason))
    except CheckFailed as failure:
        return CheckRow(name=name, outcome="fail", detail=str(failure))
    except Exception as error:  # a world under test may raise anything
        detail = f"raised {type(error).__name__}: {error}"
        return CheckRow(name=name, outcome="fail", detail=detail)


def _name(check: Callable[[Probe], str]) -> str:
    return check.__name__.replace("_", " ")
