import math
from dataclasses import replace

import pytest
from report_synthetic import report_data

from sameworld.report.groups import by_importance, grouped, moved
from sameworld.report.tables import verdict_rows
from sameworld.stages.identify.result import ParameterVerdict


def row(name, before, value, half, unit="", verdict="determined"):
    std = half / 1.645
    return ParameterVerdict(
        name=name,
        unit=unit,
        before=before,
        value=value,
        low=value - half,
        high=value + half,
        std=std,
        naive_std=std / 4,
        verdict=verdict,
        detail="",
        partners={},
    )


COM = tuple(
    row(f"body:cube.com.{axis}", 0.0, value, half, "m")
    for axis, value, half in (("x", 4.2e-4, 5.4e-4), ("y", 9.0e-4, 4.1e-4), ("z", 6.73e-3, 5.3e-4))
)


def test_components_of_a_vector_are_one_group_with_one_unit():
    groups = grouped((row("pair:a+b.solref.timeconst", 0.02, 0.0084, 0.0009, "s"), *COM))
    assert [g.name for g in groups] == ["contact time constant of a on b", "centre of mass of cube"]
    assert groups[1].axes == "x, y, z"
    assert groups[1].change() == ("0", "0.4, 0.9, 6.7\u00a0mm")
    assert groups[0].change() == ("20.0", "8.4\u00a0ms")


def test_a_lone_component_stays_a_parameter_of_its_own():
    (group,) = grouped([row("geom:floor.pos.z", 0.0, -0.0019, 0.0002, "m")])
    assert (group.name, group.axes) == ("height of floor", "")


def test_a_parameter_moved_where_its_interval_excludes_the_value_given():
    assert [moved(r) for r in COM] == [False, True, True]
    assert not moved(row("body:cube.mass", 1.0, 2.0, math.inf))


def test_what_is_not_determined_is_not_called_moved_in_words():
    loose = row("body:cube.mass", 1.0, 2.0, 0.9, verdict="not excited")
    assert moved(loose) and not grouped([loose])[0].moved


def test_things_come_before_numbers_of_the_contact_model_and_far_moves_before_near_ones():
    rows = (
        row("pair:a+b.solref.timeconst", 0.02, 0.008, 0.0001, "s"),
        row("pair:a+b.friction.slide", 0.18, 0.171, 0.004),
        *COM,
    )
    names = [g.field for g in by_importance(grouped(rows))]
    assert names == ["centre of mass", "sliding friction", "contact time constant"]


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        (COM, ["0.00", "0.00", "0.00", "0.42", "0.90", "6.73"]),
        (
            tuple(row(f"body:c.inertia.{a}", 8.1e-4, 1.176e-3, 5e-5, "kg m^2") for a in "xyz"),
            ["0.810"] * 3 + ["1.176"] * 3,
        ),
    ],
)
def test_numbers_of_one_vector_share_decimals(rows, column):
    found = verdict_rows(replace(report_data(episodes=2).result, verdicts=rows))
    assert [r.before for r in found] + [r.value for r in found] == column
    assert len({r.unit for r in found}) == 1 and found[0].unit in ("mm", "g·m²")
