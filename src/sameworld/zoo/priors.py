"""Prior beliefs over the parameters of the zoo's scenes."""

from __future__ import annotations

import math

from sameworld.core.belief import Belief
from sameworld.core.parameters import Parameter

__all__ = [
    "arm_prior",
    "car_prior",
    "cart_prior",
    "cube_prior",
    "pendulum_prior",
    "reacher_prior",
    "rope_prior",
    "servo_prior",
    "sliding_box_prior",
    "tensegrity_prior",
    "tether_prior",
    "thrower_prior",
]


def _scale(name: str, value: float, low: float, high: float, unit: str) -> Parameter:
    """A positive quantity known to about a factor of two."""
    return Parameter(
        name=name,
        value=value,
        low=low,
        high=high,
        unit=unit,
        std=math.log(2) * value,
        transform="log",
    )


def _offset(name: str, reach: float, std: float) -> Parameter:
    """A length around zero."""
    return Parameter(name=name, value=0.0, low=-reach, high=reach, unit="m", std=std)


def cube_prior() -> Belief:
    """Contact at MuJoCo's defaults, the height of the board, and where the mass sits.

    The published centre of mass is the cube's centre and the published inertia isotropic; neither
    was measured, so both are known loosely only.
    """
    pair = "pair:cube_box+floor"
    return Belief(
        parameters=(
            *(_offset(f"body:cube.com.{axis}", 0.015, 0.005) for axis in "xyz"),
            *(
                _scale(f"body:cube.inertia.{axis}", 0.00081, 0.0003, 0.0025, "kg m^2")
                for axis in "xyz"
            ),
            _scale(f"{pair}.friction.slide", 0.18, 0.02, 1.0, ""),
            _scale(f"{pair}.friction.spin", 0.005, 1e-5, 0.1, "m"),
            _scale(f"{pair}.solref.timeconst", 0.02, 0.0035, 0.2, "s"),
            _scale(f"{pair}.solref.dampratio", 1.0, 0.05, 5.0, ""),
            _offset("geom:floor.pos.z", 0.02, 0.005),
        )
    )


def pendulum_prior() -> Belief:
    """Mass of the bob, viscous damping and gravity."""
    return Belief(
        parameters=(
            _scale("body:bob.mass", 0.5, 0.05, 5.0, "kg"),
            _scale("joint:pivot.damping", 0.02, 1e-4, 1.0, "N m s/rad"),
            Parameter(
                name="option:gravity.z", value=-9.81, low=-12.0, high=-1.0, unit="m/s^2", std=0.01
            ),
        )
    )


def cart_prior() -> Belief:
    """Mass, viscous damping and a spring that is absent unless found."""
    return Belief(
        parameters=(
            _scale("body:cart.mass", 1.5, 0.1, 20.0, "kg"),
            _scale("joint:rail.damping", 0.5, 1e-3, 20.0, "N s/m"),
            Parameter(
                name="joint:rail.stiffness", value=0.0, low=0.0, high=100.0, unit="N/m", std=1.0
            ),
        )
    )


def arm_prior() -> Belief:
    """Masses, dampings, Coulomb frictions and servo gains of two links each."""
    parts: list[Parameter] = []
    for link, mass in ((3, 3.0), (5, 2.0)):
        parts.append(_scale(f"body:link{link}.mass", mass, mass / 4, 4 * mass, "kg"))
    for joint, gain in ((2, 400.0), (4, 300.0)):
        parts.append(_scale(f"joint:j{joint}.damping", 1.0, 0.25, 4.0, "N m s/rad"))
        parts.append(_scale(f"joint:j{joint}.frictionloss", 0.3, 0.075, 1.2, "N m"))
        parts.append(_scale(f"actuator:a{joint}.kp", gain, gain / 4, 4 * gain, "N m/rad"))
    return Belief(parameters=tuple(parts))


def sliding_box_prior() -> Belief:
    """Mass of the block and its friction on the table."""
    return Belief(
        parameters=(
            _scale("body:box.mass", 0.8, 0.1, 5.0, "kg"),
            _scale("pair:box_geom+table.friction.slide", 0.4, 0.05, 2.0, ""),
        )
    )


def rope_prior() -> Belief:
    """Mass of the hand and gain of the motor that moves it."""
    return Belief(
        parameters=(
            _scale("body:hand.mass", 0.3, 0.05, 3.0, "kg"),
            _scale("actuator:hand_servo.kp", 40.0, 5.0, 400.0, "N/m"),
        )
    )


def reacher_prior() -> Belief:
    """Masses of the links and damping of the joints."""
    links, joints = (f"body:link{k}.mass" for k in range(1, 5)), range(1, 5)
    return Belief(
        parameters=(
            *(_scale(name, 0.5, 0.1, 2.0, "kg") for name in links),
            *(_scale(f"joint:j{k}.damping", 0.05, 0.005, 0.5, "N m s/rad") for k in joints),
        )
    )


def tether_prior() -> Belief:
    """Masses, friction on the table, the two halves of the tether, and what drives the hand."""
    known = {
        "body:hand.mass": (1.0, "kg"),
        "body:knot.mass": (0.05, "kg"),
        "body:puck.mass": (0.1, "kg"),
        "pair:knot_geom+table.friction.slide": (0.4, ""),
        "pair:puck_geom+table.friction.slide": (0.4, ""),
        **{f"tendon:{half}.stiffness": (150.0, "N/m") for half in ("upper", "lower")},
        **{f"tendon:{half}.damping": (1.0, "N s/m") for half in ("upper", "lower")},
        **{f"joint:hand_{axis}.damping": (20.0, "N s/m") for axis in "xy"},
        **{f"actuator:servo_{axis}.kp": (400.0, "N/m") for axis in "xy"},
    }
    return Belief(
        parameters=tuple(
            _scale(name, value, value / 4, 4 * value, unit) for name, (value, unit) in known.items()
        )
    )


def thrower_prior() -> Belief:
    """Masses of ball and links."""
    return Belief(
        parameters=(
            _scale("body:ball.mass", 0.1, 0.02, 0.5, "kg"),
            _scale("body:upper.mass", 0.4, 0.1, 2.0, "kg"),
            _scale("body:hand.mass", 0.14, 0.03, 0.7, "kg"),
        )
    )


def servo_prior() -> Belief:
    """Friction of the gearbox, gain and motor constants behind the firmware."""
    gearbox, firmware = "component:gearbox", "component:firmware"
    return Belief(
        parameters=(
            _scale(f"{gearbox}.coulomb", 0.02, 0.001, 0.5, "N m"),
            _scale(f"{gearbox}.viscous", 0.01, 0.0005, 0.5, "N m s/rad"),
            _scale(f"{gearbox}.load", 0.1, 0.005, 0.8, ""),
            _scale(f"{firmware}.torque_constant", 0.8, 0.1, 5.0, "N m/A"),
            _scale(f"{firmware}.resistance", 6.0, 0.5, 50.0, "ohm"),
        )
    )


def car_prior() -> Belief:
    """Wheelbase, lags and the delay of the commands."""
    return Belief(
        parameters=(
            _scale("component:drive.wheelbase", 0.32, 0.1, 1.0, "m"),
            _scale("component:drive.steer_lag", 0.08, 0.005, 1.0, "s"),
            _scale("component:drive.speed_lag", 0.3, 0.02, 3.0, "s"),
            Parameter(
                name="component:drive.delay", value=0.04, low=0.0, high=0.3, unit="s", std=0.03
            ),
        )
    )


def tensegrity_prior() -> Belief:
    """Masses of the rods, stiffness and damping of every cable, and contact with the floor."""
    parts = [_scale(f"body:rod{k}.mass", 0.25, 0.05, 1.25, "kg") for k in (1, 2, 3)]
    cables = [f"{kind}{k}" for kind in ("bottom", "top", "side") for k in (1, 2, 3)]
    parts += [_scale(f"tendon:{name}.stiffness", 300.0, 60.0, 1500.0, "N/m") for name in cables]
    parts += [_scale(f"tendon:{name}.damping", 4.0, 0.8, 20.0, "N s/m") for name in cables]
    parts.append(_scale("geom:floor.friction.slide", 0.5, 0.05, 2.0, ""))
    parts.append(_scale("geom:floor.solref.timeconst", 0.02, 0.005, 0.1, "s"))
    parts.append(_scale("geom:floor.solref.dampratio", 1.0, 0.2, 5.0, ""))
    return Belief(parameters=tuple(parts))
