import pytest

from sameworld.report.names import parameter_name, spoken, unit_name


def test_addresses_become_words():
    assert parameter_name("joint:left_elbow.damping") == "damping of left elbow"
    assert parameter_name("component:grip.max_force") == "max force of grip"
    assert parameter_name("body:cube.com.z") == "centre of mass z of cube"
    assert parameter_name("geom:floor.pos.z") == "height of floor"


def test_only_whole_addresses_are_replaced_in_a_text():
    names = ["body:cube.com.x", "body:cube.com", "pair:a+b.friction.slide"]
    text = "To settle pair:a+b.friction.slide: body:cube.com.x, not body:cube.com.xx."
    assert spoken(text, names) == (
        "To settle sliding friction of a on b: centre of mass x of cube, not body:cube.com.xx."
    )


@pytest.mark.parametrize(
    ("unit", "written"),
    [
        ("kg m^2", "kg·m²"),
        ("kg*m^2", "kg·m²"),
        ("m/s^2", "m/s²"),
        ("N m s/rad", "N·m·s/rad"),
        ("s^-1", "s⁻¹"),
        ("kg m²", "kg·m²"),
        ("", ""),
    ],
)
def test_units_are_written_as_people_do(unit, written):
    assert unit_name(unit) == written
