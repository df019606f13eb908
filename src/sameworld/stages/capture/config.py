"""Options of ``propose_mapping``."""

from __future__ import annotations

from dataclasses import dataclass

from sameworld.core.errors import EpisodeError

__all__ = ["CaptureConfig"]


@dataclass(frozen=True, kw_only=True)
class CaptureConfig:
    """Options of ``propose_mapping``.

    Attributes:
        recordings: Most recordings looked at.
        rows: Most rows, over all recordings, on which columns are compared.
        poses: Most rows at which torques are computed from the scene.
        cutoff: Low-pass cut-off before differentiation [Hz]; never above a fifth of the rate.
        pair: Least R^2 at which a column counts as the derivative of another.
        decide: Standard errors by which the best answer must beat an alternative.
        offset: Smallest zero offset that is corrected [rad or m]; below, model errors look alike.
        lag: Largest time shift looked for [s].
        confidence: Confidence below which a signal may not be used without a person's word.
        torques: Whether the scene's inverse dynamics may be used as evidence.
        searches: Most searches for the order of the joints, each from another random start.
        seed: Seed of these starts.
    """

    recordings: int = 8
    rows: int = 4000
    poses: int = 160
    cutoff: float = 10.0
    pair: float = 0.9
    decide: float = 3.0
    offset: float = 0.1
    lag: float = 0.5
    confidence: float = 0.8
    torques: bool = True
    searches: int = 12
    seed: int = 0

    def __post_init__(self) -> None:
        if self.recordings < 1 or self.rows < 50 or self.poses < 20 or self.searches < 1:
            raise EpisodeError(
                "CaptureConfig needs recordings >= 1, rows >= 50, poses >= 20 and searches >= 1."
            )
        if not (self.cutoff > 0 and self.lag > 0 and self.decide > 0 and self.offset > 0):
            raise EpisodeError("CaptureConfig needs cutoff, lag, decide and offset above 0.")
        if not (0 < self.pair < 1 and 0 <= self.confidence <= 1):
            raise EpisodeError("CaptureConfig.pair and .confidence are shares between 0 and 1.")
