"""Components of the zoo's scenes."""

from __future__ import annotations

from sameworld.core.scene import Component

__all__ = ["car_components", "servo_components"]


def servo_components() -> tuple[Component, ...]:
    """Load-dependent friction with a Stribeck term, and a position loop on the duty cycle."""
    return (
        Component(
            name="gearbox",
            type="gear_friction",
            version=1,
            target="joint:horn",
            settings={
                "model": "m4",
                "coulomb": 0.02,
                "viscous": 0.01,
                "stribeck": 0.02,
                "stribeck_velocity": 0.3,
                "load": 0.1,
                "load_stribeck": 0.05,
            },
        ),
        Component(
            name="firmware",
            type="firmware_servo",
            version=1,
            target="actuator:goal",
            settings={
                "kp": 400.0,
                "gain": 0.003,
                "voltage": 7.5,
                "torque_constant": 0.8,
                "resistance": 6.0,
                "delay": 0.01,
            },
        ),
    )


def car_components() -> tuple[Component, ...]:
    """A kinematic bicycle whose commands arrive late and are followed with a lag."""
    return (
        Component(
            name="drive",
            type="kinematic_car",
            version=1,
            target="body:chassis",
            settings={"wheelbase": 0.32, "steer_lag": 0.08, "speed_lag": 0.3, "delay": 0.04},
        ),
    )
