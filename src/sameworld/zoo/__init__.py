"""Small scenes, worlds and recordings to try things on."""

from sameworld.zoo.cart import AnalyticCart
from sameworld.zoo.cube import CUBE_CONTACT, CUBE_INERTIAL, cube_config
from sameworld.zoo.hobby_arm import HOBBY_ARM_TRUTH, hobby_arm_urdf, write_hobby_arm
from sameworld.zoo.learned import RegressionWorld, learned_cart
from sameworld.zoo.pendulum import AnalyticPendulum
from sameworld.zoo.recordings import cube_tosses, read_cube_tosses
from sameworld.zoo.scenes import scene, scene_names
from sameworld.zoo.tensegrity import (
    TENSEGRITY_CABLES,
    TENSEGRITY_FLOOR,
    TENSEGRITY_NOISE,
    TENSEGRITY_SCALED,
    tensegrity_throw,
)

__all__ = [
    "CUBE_CONTACT",
    "CUBE_INERTIAL",
    "HOBBY_ARM_TRUTH",
    "TENSEGRITY_CABLES",
    "TENSEGRITY_FLOOR",
    "TENSEGRITY_NOISE",
    "TENSEGRITY_SCALED",
    "AnalyticCart",
    "AnalyticPendulum",
    "RegressionWorld",
    "cube_config",
    "cube_tosses",
    "hobby_arm_urdf",
    "learned_cart",
    "read_cube_tosses",
    "scene",
    "scene_names",
    "tensegrity_throw",
    "write_hobby_arm",
]
