"""What would not move as in MuJoCo is refused by name; what makes no difference is accepted."""

from __future__ import annotations

import mujoco
import pytest

from sameworld.core.errors import SceneError
from sameworld.core.scene import Component, Scene
from sameworld.worlds.compiled.config import CompileConfig
from sameworld.worlds.compiled.tables import make_tables
from sameworld.worlds.differentiable.support import refuse_unsupported
from sameworld.worlds.differentiable.touch import candidates

ARM = """
<body name="arm"><joint name="hip" {joint}/><geom name="thigh" size=".1" pos="0 0 1" {geom}/>
  <body name="leg" pos=".3 0 0"><joint name="knee"/><geom name="calf" size=".1" pos="0 0 1.5"/>
  <site name="foot"/></body></body>
<site name="wall"/>
"""
BALLS = """<geom name="floor" type="plane" size="1 1 1" {floor}/>
<body name="b"><freejoint/>{shape}</body>"""
SPHERE = '<geom name="ball" size=".1"/>'
MESH = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'


def model_of(inside: str, *, option: str = "", flag: str = "", more: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><option {option}><flag {flag}/></option>{more}"
        f"<worldbody>{inside}</worldbody></mujoco>"
    )


def arm(
    joint: str = "",
    geom: str = "",
    actuator: str = "",
    tendon: str = "",
    equality: str = "",
    extension: str = "",
    **options: str,
) -> mujoco.MjModel:
    more = f"""{extension}<equality>{equality}</equality><actuator>{actuator}</actuator>
        <tendon><fixed name="rope" {tendon}><joint joint="hip" coef="1"/></fixed></tendon>"""
    return model_of(ARM.format(joint=joint, geom=geom), more=more, **options)


def refuse(model: mujoco.MjModel) -> None:
    refuse_unsupported(model, candidates(model), ())


def floor(shape: str = SPHERE, floor: str = "", more: str = "", option: str = "") -> mujoco.MjModel:
    return model_of(BALLS.format(shape=shape, floor=floor), more=more, option=option)


def pair(attributes: str, option: str = "") -> mujoco.MjModel:
    element = f'<contact><pair geom1="floor" geom2="ball" {attributes}/></contact>'
    return floor(more=element, option=option)


REFUSED = {
    "integrator RK4": (lambda: arm(option='integrator="RK4"'), "'RK4'.*implicitfast"),
    "integrator implicit": (lambda: arm(option='integrator="implicit"'), "'IMPLICIT'"),
    "integrator discrete": (lambda: arm(option='integrator="discrete"'), "'DISCRETE'"),
    "override": (lambda: arm(flag='override="enable"'), "'override'.*geoms or pairs"),
    "sleep": (lambda: arm(flag='sleep="enable"'), "'sleep'"),
    "diagexact": (lambda: arm(flag='diagexact="enable"'), "'diagexact'"),
    "speculative": (lambda: arm(flag='speculative="enable"'), "'speculative'.*margin"),
    "ipc": (lambda: arm(flag='ipc="enable"', option='integrator="discrete"'), "'ipc'"),
    "noslip": (lambda: arm(option='noslip_iterations="2"'), "noslip_iterations.*impratio"),
    "density": (lambda: arm(option='density="1"'), "density.*damping"),
    "viscosity": (lambda: arm(option='viscosity="1"'), "viscosity"),
    "polynomial stiffness": (lambda: arm('stiffness="1 2 0"'), "'hip'.*polynomial stiffness"),
    "polynomial damping": (lambda: arm('damping="1 2 0"'), "'hip'.*polynomial damping"),
    "yielding spring": (lambda: arm('stiffness="1" springyield=".1"'), "'hip'.*yield"),
    "gravity by actuators": (lambda: arm('actuatorgravcomp="true"'), "'hip'.*gravcomp"),
    "joint after a ball": (
        lambda: model_of(
            '<body name="b"><joint name="first" type="ball"/><joint name="then" type="slide"/>'
            '<geom size=".1"/></body>'
        ),
        "'first'.*'b'.*child body",
    ),
    "motor of a ball joint": (
        lambda: model_of(
            '<body><joint name="hip" type="ball"/><geom size=".1"/></body>',
            more='<actuator><motor name="m" joint="hip" gear="1 2 3"/></actuator>',
        ),
        "'m'.*'hip'.*hinges",
    ),
    "site transmission": (lambda: arm(actuator='<motor name="m" site="foot"/>'), "'m'.*site"),
    "slidercrank": (
        lambda: arm(
            actuator='<motor name="m" cranksite="foot" slidersite="wall" cranklength="1"/>'
        ),
        "'m'.*slidercrank",
    ),
    "adhesion actuator": (
        lambda: arm(actuator='<adhesion name="m" body="leg" ctrlrange="0 1"/>'),
        "'m'.*body",
    ),
    "filter": (
        lambda: arm(actuator='<general name="m" joint="hip" dyntype="filter"/>'),
        "'m'.*'filter'.*component",
    ),
    "integrated velocity": (
        lambda: arm(actuator='<intvelocity name="m" joint="hip" kp="1" actrange="-1 1"/>'),
        "'m'.*'integrator'",
    ),
    "muscle": (
        lambda: arm(actuator='<muscle name="m" joint="hip" lengthrange="0 1"/>'),
        "'m'.*'muscle'",
    ),
    "DC motor": (
        lambda: arm(actuator='<dcmotor name="m" joint="hip" motorconst="0.05" resistance="2"/>'),
        "'m'.*'dcmotor'",
    ),
    "polynomial damping of an actuator": (
        lambda: arm(actuator='<motor name="m" joint="hip" damping="1 2 0"/>'),
        "'m'.*polynomial",
    ),
    "delayed actuator": (
        lambda: arm(actuator='<motor name="m" joint="hip" nsample="3" delay=".002"/>'),
        "'m'.*delayed",
    ),
    "disabled group": (
        lambda: arm(
            actuator='<motor name="m" joint="hip" group="2"/>', option='actuatorgroupdisable="2"'
        ),
        "'m'.*group 2",
    ),
    "ellipsoid": (
        lambda: floor('<geom name="egg" type="ellipsoid" size=".1 .2 .1"/>'),
        r"plane and ellipsoid, of 'floor\+egg'.*ignore=\('floor\+egg'",
    ),
    "mesh on sphere": (
        lambda: model_of(
            '<geom name="ball" size=".1"/><body><freejoint/>'
            '<geom name="mesh" type="mesh" mesh="m"/></body>',
            more=MESH,
        ),
        "sphere and mesh.*exclude",
    ),
    "height field": (
        lambda: model_of(
            '<geom name="hills" type="hfield" hfield="h"/><body><freejoint/>'
            '<geom name="ball" size=".1"/></body>',
            more='<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>',
        ),
        "hfield and sphere",
    ),
    "adhesive geom": (lambda: floor(floor='adhesion="1"'), r"'floor\+ball' has adhesion"),
    "adhesive pair": (lambda: pair('adhesion="1"'), r"'floor\+ball' has adhesion"),
    "negative gap": (lambda: floor(floor='margin=".01" gap="-.005"'), "negative gap"),
    "negative gap of a pair": (lambda: pair('margin=".01" gap="-.005"'), "negative gap"),
    "conveyor": (lambda: floor(floor='surfacevel="1 0 0 0 0 0"'), "surfacevel"),
    "solreffriction": (
        lambda: pair('solreffriction=".1 1"', option='cone="elliptic"'),
        "solreffriction.*pyramidal",
    ),
    "tendon around a geom": (
        lambda: model_of(
            ARM.format(joint="", geom=""),
            more='<tendon><spatial name="t"><site site="wall"/><geom geom="thigh"/>'
            '<site site="foot"/></spatial></tendon>',
        ),
        "'t' wraps",
    ),
    "mixed solref of a limit": (
        lambda: arm('range="0 1" limited="true" solreflimit="-100 1"'),
        "Joint 'hip' has a solreflimit with one positive number.*two negative",
    ),
    "mixed solref of friction": (
        lambda: arm('frictionloss="1" solreffriction=".02 -1"'),
        "Joint 'hip' has a solreffriction",
    ),
    "mixed solref of a tendon": (
        lambda: arm(tendon='range="0 1" limited="true" solreflimit="-9 1"'),
        "Tendon 'rope' has a solreflimit",
    ),
    "mixed solref of an equality": (
        lambda: arm(equality='<joint name="e" joint1="knee" solref=".02 -1"/>'),
        "Equality 'e' has a solref",
    ),
    "mixed solref of a geom": (lambda: floor(floor='solref=".01 -1"'), "Geom 'floor' has a solref"),
    "mixed solref of a pair": (lambda: pair('name="p" solref="-9 5"'), "Pair 'p' has a solref"),
    "plugin": (
        lambda: arm(
            actuator='<plugin name="m" plugin="mujoco.pid" joint="hip" dyntype="none"/>',
            extension='<extension><plugin plugin="mujoco.pid"/></extension>',
        ),
        "Plugins.*of MuJoCo itself, or components",
    ),
    "flex": (
        lambda: model_of(
            '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" '
            'rigid="true"/>'
        ),
        "flex.*stiffness",
    ),
}


@pytest.mark.parametrize("label", REFUSED)
def test_is_refused_by_name_with_what_to_use_instead(label: str) -> None:
    make, message = REFUSED[label]
    with pytest.raises(SceneError, match=f"(?s){message}"):
        refuse(make())


ACCEPTED = {
    "Euler": lambda: arm(option='integrator="Euler"'),
    "implicitfast": lambda: arm(option='integrator="implicitfast"'),
    "flags without effect": lambda: arm(
        flag='energy="enable" fwdinv="enable" invdiscrete="enable" island="disable" '
        'midphase="disable" warmstart="disable" autoreset="disable" sensor="disable"'
    ),
    "wind in a vacuum": lambda: arm(option='wind="1 0 0" magnetic="0 1 0"'),
    "servo": lambda: arm(actuator='<position joint="hip" kp="3" kv="1" forcerange="-1 1"/>'),
    "pull on a tendon": lambda: arm(actuator='<velocity tendon="rope" kv="1"/>'),
    "heavy tendon": lambda: arm(
        actuator='<motor tendon="rope" armature=".1" damping=".2"/>', tendon='armature=".1"'
    ),
    "armature and damping of a motor": lambda: arm(
        actuator='<motor joint="hip" armature=".1" damping=".2"/>'
    ),
    "solref of two negative numbers": lambda: arm(
        'range="0 1" limited="true" solreflimit="-100 -3"'
    ),
    "mixed solref of what touches nothing": lambda: floor(
        SPHERE + '<geom contype="0" conaffinity="0" size=".1" solref=".01 -1"/>'
    ),
    "positive gap": lambda: floor(floor='margin=".01" gap=".005"'),
    "solreffriction of a pyramid": lambda: pair('solreffriction=".1 1"'),
    "mesh on plane": lambda: floor('<geom name="mesh" type="mesh" mesh="m"/>', more=MESH),
    "mocap body": lambda: model_of('<body mocap="true"><geom size=".1"/></body>'),
}


@pytest.mark.parametrize("label", ACCEPTED)
def test_what_the_core_computes_is_accepted(label: str) -> None:
    refuse(ACCEPTED[label]())


def test_pairs_that_are_left_out_are_not_judged() -> None:
    model = floor('<geom name="egg" type="ellipsoid" size=".1 .2 .1"/>')
    refuse_unsupported(model, [], ())


def test_all_reasons_are_told_at_once_and_long_lists_are_cut() -> None:
    motors = "".join(f'<muscle name="m{k}" joint="hip" lengthrange="0 1"/>' for k in range(4))
    with pytest.raises(SceneError, match=r"(?s)RK4.*'m0'.*and 5 more"):
        refuse(arm(actuator=motors, option='integrator="RK4"'))


def test_components_whose_friction_a_flag_disables_are_refused() -> None:
    mjcf = f"""<mujoco><option><flag frictionloss="disable"/></option>
        <worldbody>{ARM.format(joint="", geom="")}</worldbody></mujoco>"""
    gear = Component(name="gear", type="gear_friction", version=1, target="joint:hip")
    tables = make_tables(
        Scene(name="arm", mjcf=mjcf, components=(gear,)), CompileConfig(), capabilities=("rollout",)
    )
    with pytest.raises(SceneError, match=r"'gear'.*frictionloss"):
        refuse_unsupported(tables.model, [], tables.groups)
