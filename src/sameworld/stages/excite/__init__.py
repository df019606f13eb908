"""The next recordings, designed to be informative within the limits of an arm."""

from sameworld.stages.excite.appraise import appraise
from sameworld.stages.excite.config import ExciteConfig, Limit
from sameworld.stages.excite.excite import excite, random_motions
from sameworld.stages.excite.result import (
    Appraisal,
    ExciteResult,
    Margin,
    Motion,
    ParameterGain,
    Step,
)

__all__ = [
    "Appraisal",
    "ExciteConfig",
    "ExciteResult",
    "Limit",
    "Margin",
    "Motion",
    "ParameterGain",
    "Step",
    "appraise",
    "excite",
    "random_motions",
]
