"""Trajectories in, narrower belief out."""

from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.export import posterior_table
from sameworld.stages.identify.identify import check_inputs, identify
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

__all__ = [
    "Combination",
    "DelayAudit",
    "HoldoutScore",
    "IdentifyConfig",
    "IdentifyResult",
    "ParameterVerdict",
    "ResidualSummary",
    "SearchStart",
    "SessionSpread",
    "SessionValue",
    "check_inputs",
    "identify",
    "posterior_table",
]
