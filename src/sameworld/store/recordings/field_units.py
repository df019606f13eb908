"""Units that ROS fixes for its common messages (REP 103: SI, radians)."""

from __future__ import annotations

__all__ = ["field_unit"]

_PACKAGES = frozenset({"geometry_msgs", "sensor_msgs", "nav_msgs", "tf2_msgs", "tf"})
_FIELDS = {
    "position": "m",
    "translation": "m",
    "force": "N",
    "torque": "N*m",
    "angular_velocity": "rad/s",
    "linear_acceleration": "m/s^2",
}
_TWIST = {"linear": "m/s", "angular": "rad/s"}
_ACCEL = {"linear": "m/s^2", "angular": "rad/s^2"}


def field_unit(schema: str, path: str) -> str:
    """Unit of a field of a common message; empty where the definition leaves it open.

    Joint states leave it open: a position is in radians or in metres, by the kind of joint.
    """
    package, _, name = schema.replace("::", "/").rpartition("/")
    if package.split("/")[0] not in _PACKAGES or name == "JointState":
        return ""
    last = path.rpartition(".")[2]
    if last in ("linear", "angular"):
        return (_ACCEL if "Accel" in name else _TWIST)[last]
    if name == "MagneticField" and last == "magnetic_field":
        return "T"
    if name == "Point" or name == "PointStamped":
        return "m"
    return _FIELDS.get(last, "")
