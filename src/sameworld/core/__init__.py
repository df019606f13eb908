"""Nouns, protocols and the algorithms that need nothing but the protocols. numpy only."""

from sameworld.core.address import Address, match_names
from sameworld.core.agents import Policy, ResetProcedure, Robot, Task
from sameworld.core.belief import Belief, Block
from sameworld.core.consistency import Consistency, consistency
from sameworld.core.discrepancy import ChannelDiscrepancy, Discrepancy
from sameworld.core.episode import Channel, Episode, Recording, Stream
from sameworld.core.errors import (
    AddressError,
    BeliefError,
    EpisodeError,
    FitError,
    MissingExtraError,
    RolloutError,
    SameworldError,
    SameworldWarning,
    SceneError,
    SpecError,
    StoreError,
)
from sameworld.core.jacobian import Jacobian, jacobian
from sameworld.core.mapping import Alternative, Question, SignalMap, SignalMapping
from sameworld.core.parameters import Parameter
from sameworld.core.predict import predict, predict_all
from sameworld.core.prediction import ChannelPrediction, Prediction
from sameworld.core.records import Camera, Mesh, Splats
from sameworld.core.rollout import rollout, simulate
from sameworld.core.scene import Component, HistoryLine, Scene
from sameworld.core.signals import check_episode
from sameworld.core.silent import SilentGradient, silent_gradients
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.values import Values
from sameworld.core.world import (
    Context,
    FitWorld,
    GradientWorld,
    InverseWorld,
    Mechanism,
    Pullback,
    PullbackWorld,
    RenderWorld,
    Rollout,
    RolloutWorld,
    State,
    World,
)

__all__ = [
    "Address",
    "AddressError",
    "Alternative",
    "Belief",
    "BeliefError",
    "Block",
    "Camera",
    "Channel",
    "ChannelDiscrepancy",
    "ChannelPrediction",
    "ChannelSpec",
    "Component",
    "Consistency",
    "Context",
    "Discrepancy",
    "Episode",
    "EpisodeError",
    "FitError",
    "FitWorld",
    "GradientWorld",
    "HistoryLine",
    "InverseWorld",
    "Jacobian",
    "Mechanism",
    "Mesh",
    "MissingExtraError",
    "Parameter",
    "Policy",
    "Prediction",
    "Pullback",
    "PullbackWorld",
    "Question",
    "Recording",
    "RenderWorld",
    "ResetProcedure",
    "Robot",
    "Rollout",
    "RolloutError",
    "RolloutWorld",
    "SameworldError",
    "SameworldWarning",
    "Scene",
    "SceneError",
    "SignalMap",
    "SignalMapping",
    "SilentGradient",
    "Spec",
    "SpecError",
    "Splats",
    "State",
    "StoreError",
    "Stream",
    "Task",
    "Values",
    "World",
    "check_episode",
    "consistency",
    "jacobian",
    "match_names",
    "predict",
    "predict_all",
    "rollout",
    "silent_gradients",
    "simulate",
]
