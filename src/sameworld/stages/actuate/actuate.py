"""``actuate``: give joints the actuators that a robot has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sameworld.core.address import match_names
from sameworld.core.belief import Belief
from sameworld.core.errors import AddressError, SceneError, listed
from sameworld.core.parameters import Parameter
from sameworld.core.scene import HistoryLine, Scene
from sameworld.stages.actuate.config import ActuateConfig
from sameworld.stages.actuate.edit import edited_mjcf
from sameworld.stages.actuate.gains import Design, design
from sameworld.stages.actuate.plant import JointPlant, Plant, plant_of
from sameworld.stages.actuate.result import ActuateResult, Drive
from sameworld.stages.actuate.servos import SERVOS
from sameworld.worlds.compiled.compile import compile_scene
from sameworld.worlds.compiled.engine import Model

__all__ = ["actuate"]

_TAGS = {
    "torque": "motor",
    "velocity": "velocity",
    "position": "position",
    "impedance": "position",
    "hobby_servo": "position",
}
#: Interface of a robot description that each preset offers.
_OFFERS = {"torque": "effort", "velocity": "velocity"}


def actuate(scene: Scene, *, config: ActuateConfig | None = None) -> tuple[Scene, ActuateResult]:
    """Add actuators to joints of a scene.

    Args:
        scene: The scene.
        config: Which joints, which preset, which gains.

    Returns:
        The scene with actuators and a wide belief over their gains, and what was assumed.

    Raises:
        SceneError: No joint is left to drive, a controller is too fast for the engine step, or the
            scene cannot be edited.
        AddressError: A pattern matches no joint.
    """
    return _Work(scene=scene, config=config or ActuateConfig()).run()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Work:
    scene: Scene
    config: ActuateConfig

    def run(self) -> tuple[Scene, ActuateResult]:
        config = self.config
        plant = plant_of(self.scene, poses=config.poses, seed=config.seed)
        chosen, followers = self._chosen(plant)
        kept = [j.name for j in chosen if j.actuators and not config.replace]
        driven = [j for j in chosen if j.name not in kept]
        if not driven:
            raise SceneError(
                f"Scene '{self.scene.name}': every chosen joint has an actuator already "
                f"({listed(kept)}). Use replace=True (--replace) to exchange them."
            )
        removed = tuple(dict.fromkeys(name for joint in driven for name in joint.actuators))
        designs = self._designs(plant, driven, removed)
        edited = self._edited(plant, designs, removed)
        result = self._result(designs, driven, removed, kept, followers)
        return self._finished(edited, result), result

    # ---- joints -----------------------------------------------------------------------------

    def _chosen(self, plant: Plant) -> tuple[list[JointPlant], list[JointPlant]]:
        """Joints to drive, and followers that a pattern met but nothing drives."""
        names = [joint.name for joint in plant.joints]
        if not names:
            raise SceneError(
                f"Scene '{self.scene.name}' has no hinge or slide to drive; it has "
                f"{listed(plant.others)}."
            )
        described = [joint.name for joint in plant.joints if joint.described[0]]
        patterns = self.config.joints or tuple(described) or ("*",)
        try:
            hits = match_names(patterns, names)
        except AddressError as cause:
            raise AddressError(str(cause).replace("parameter", "hinge or slide")) from cause
        met = [joint for joint in plant.joints if joint.name in hits]
        followers = [j for j in met if j.leader and j.name not in patterns]
        return [j for j in met if j not in followers], followers

    def _designs(
        self, plant: Plant, driven: Sequence[JointPlant], removed: Sequence[str]
    ) -> list[Design]:
        taken = {name for joint in plant.joints for name in joint.actuators} - set(removed)
        designs: list[Design] = []
        for joint in driven:
            name = joint.name
            if self.config.naming == "described" and joint.described[0]:
                name = joint.described[0]
            while name in taken:
                name += "_"
            taken.add(name)
            designs.append(design(joint, name, self.config, plant))
        return designs

    # ---- scene ------------------------------------------------------------------------------

    def _edited(self, plant: Plant, designs: Sequence[Design], removed: Sequence[str]) -> Scene:
        drives = [d.drive for d in designs]
        compensated: dict[str, None] = {}
        if self.config.preset == "impedance":
            compensated = {body: None for d in drives for body in plant.bodies[d.joint]}
        mjcf = edited_mjcf(
            self.scene,
            drives,
            removed=removed,
            compensated=compensated,
            tag=_TAGS[self.config.preset],
        )
        scene = replace(self.scene, mjcf=mjcf, belief=self._belief(drives, removed))
        bare = replace(scene, components=(), belief=Belief())
        _verify(compile_scene(bare).model, drives, self.config)
        return scene

    def _belief(self, drives: Sequence[Drive], removed: Sequence[str]) -> Belief:
        new = [p for drive in drives for p in self._parameters(drive)]
        lost = [n for n in self.scene.belief.names if n.startswith("actuator:")]
        lost = [n for n in lost if n.removeprefix("actuator:").partition(".")[0] in removed]
        return self.scene.belief.without(lost).updated(Belief(parameters=tuple(new)))

    def _parameters(self, drive: Drive) -> list[Parameter]:
        """Wide opinions on what was assumed."""
        spread = self.config.spread
        if self.config.preset == "hobby_servo":
            spread = min(spread, SERVOS[self.config.servo].spread)
        guessed = {
            f"actuator:{drive.actuator}.kp": drive.kp,
            f"actuator:{drive.actuator}.kv": drive.kv,
            f"joint:{drive.joint}.armature": drive.armature,
            f"joint:{drive.joint}.damping": drive.damping,
            f"joint:{drive.joint}.frictionloss": drive.frictionloss,
        }
        return [
            Parameter(name=name, value=_rounded(value), std=spread * _rounded(value))
            for name, value in guessed.items()
            if value
        ]

    def _finished(self, scene: Scene, result: ActuateResult) -> Scene:
        names = listed((drive.actuator for drive in result.drives), 20)
        removed = f", removed {listed(result.removed)}" if result.removed else ""
        summary = f"Actuators of preset '{result.preset}' added: {names}{removed}."
        lines = [HistoryLine(stage="actuate", summary=summary, seed=self.config.seed)]
        lines += [HistoryLine(stage="actuate", summary=_sentence(t)) for t in result.assumed]
        return replace(scene, history=(*scene.history, *lines))

    # ---- words ------------------------------------------------------------------------------

    def _result(
        self,
        designs: Sequence[Design],
        driven: Sequence[JointPlant],
        removed: tuple[str, ...],
        kept: Sequence[str],
        followers: Sequence[JointPlant],
    ) -> ActuateResult:
        assumed = [*self._premises(), *(text for d in designs for text in d.assumed)]
        assumed += [
            f"joint '{joint.name}' follows '{joint.leader}' and gets no actuator."
            for joint in followers
        ]
        assumed += self._other_interfaces(driven)
        return ActuateResult(
            preset=self.config.preset,
            drives=tuple(d.drive for d in designs),
            removed=removed,
            kept=tuple(kept),
            assumed=tuple(assumed),
            measure=self._measure(),
        )

    def _premises(self) -> list[str]:
        config = self.config
        if config.preset == "torque":
            return ["Commands are torques [N m] or forces [N], obeyed at once and exactly."]
        if config.preset == "hobby_servo":
            return [self._servo_premise()]
        if config.kp or (config.preset == "velocity" and config.kv):
            return ["The gains are those given."]
        if config.preset == "velocity":
            aim = f"follow its velocity command with a bandwidth of {config.frequency:g} Hz"
        else:
            aim = (
                f"swing at {config.frequency:g} Hz with a damping ratio of {config.damping_ratio:g}"
            )
        texts = [
            f"Gains let every joint {aim} at the home pose, other joints held still; the real "
            "controller's are unknown."
        ]
        if config.preset == "impedance":
            texts.append("Gravity is compensated exactly, by gravcomp = 1 on every driven body.")
        return texts

    def _servo_premise(self) -> str:
        servo = SERVOS[self.config.servo]
        voltage, gain = self.config.voltage or servo.voltage, self.config.gain or servo.gain
        return (
            f"Servo {servo.name} at {voltage:g} V with a firmware gain of {gain:g}: stall torque "
            f"{servo.stall_torque(voltage):.3g} N m, kp {servo.stiffness(voltage, gain):.3g} "
            f"N m/rad, damping {servo.damping:.3g} N m s/rad with back-EMF. Source: {servo.source}."
        )

    def _other_interfaces(self, driven: Sequence[JointPlant]) -> list[str]:
        offered = _OFFERS.get(self.config.preset, "position")
        wrong = [j for j in driven if j.described[1] and j.described[1] != offered]
        return [
            f"joint '{joint.name}': the robot description commands its {joint.described[1]}, this "
            f"preset its {offered}."
            for joint in wrong
        ]

    def _measure(self) -> tuple[str, ...]:
        gains = "actuator:*.kv" if self.config.preset == "velocity" else "actuator:*.kp"
        common = (
            "Record commands and positions while every joint moves through its range, slowly and "
            f"fast, and let identify fit {gains}, joint:*.damping, joint:*.frictionloss and "
            "joint:*.armature."
        )
        delays = (
            "Free the delay with them (sensor:*.pos.delay): a servo that acts late, taken for a "
            "prompt one, gives wrong gains in narrow intervals."
        )
        if self.config.preset == "torque":
            return (
                "Record torques and positions of every joint, slowly both ways (friction) and fast "
                "(inertia), and let identify fit joint:*.damping, joint:*.frictionloss and "
                "joint:*.armature.",
                delays,
            )
        if self.config.preset == "hobby_servo":
            return (
                "Read the supply voltage under load and the gains set in the servos' firmware.",
                common,
                delays,
            )
        return (common, delays)


def _verify(model: Model, drives: Sequence[Drive], config: ActuateConfig) -> None:
    """Compare what MuJoCo compiled with what was meant: defaults of the scene may interfere."""
    for drive in drives:
        k = model.actuator(drive.actuator).id
        gain, bias = model.actuator_gainprm[k], model.actuator_biasprm[k]
        if config.preset == "torque":
            wanted, found = (1.0, 0.0, 0.0), (gain[0], bias[1], bias[2])
        elif config.preset == "velocity":
            wanted, found = (drive.kv, 0.0, -drive.kv), (gain[0], bias[1], bias[2])
        else:
            wanted, found = (drive.kp, -drive.kp, -drive.kv), (gain[0], bias[1], bias[2])
        same = all(
            math.isclose(float(a), b, rel_tol=1e-6, abs_tol=1e-12)
            for a, b in zip(found, wanted, strict=True)
        )
        plain = float(model.actuator_gear[k, 0]) == 1.0 and int(model.actuator_dyntype[k]) == 0
        if not (same and plain):
            raise SceneError(
                f"Actuator '{drive.actuator}' compiled to other numbers than were written: the "
                "scene's <default> settings of actuators interfere. Move them into a class."
            )


def _rounded(value: float) -> float:
    """As written into the text, so that belief and text agree."""
    return float(f"{value:.9g}")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
