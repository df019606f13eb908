import math
from dataclasses import replace

import pytest
from report_synthetic import report_data

from sameworld.report.archive import pack, unpack
from sameworld.report.render import report_html
from sameworld.report.sessions import session_tables
from sameworld.stages.identify import SessionSpread, SessionValue


def spread(*, apart=0.1, high=math.inf, relative=True, unit="kg"):
    rows = tuple(
        SessionValue(
            session=f"day {k + 1}",
            episodes=4,
            value=0.5 + 0.05 * k,
            low=0.48 + 0.05 * k,
            high=0.52 + 0.05 * k,
            std=0.012,
            shrinkage=0.25,
            verdict="determined",
        )
        for k in range(3)
    )
    return SessionSpread(
        name="body:payload.mass",
        unit=unit,
        mean=0.55,
        low=0.45,
        high=0.65,
        std=0.05,
        spread=apart,
        spread_low=0.5 * apart,
        spread_high=high,
        relative=relative,
        values=rows,
    )


def with_sessions(**options):
    data = report_data(episodes=2)
    return replace(data, result=replace(data.result, sessions=(spread(**options),)))


def test_both_levels_are_shown():
    data = with_sessions(high=0.3)
    (table,) = session_tables(data.result)
    assert [r.session for r in table.rows] == ["day 1", "day 2", "day 3"]
    assert all(r.episodes == "4" and r.borrowed.startswith("25") for r in table.rows)
    assert "Mean of all sessions" in table.population
    assert "18" in table.population  # 0.1 of 0.55, in per cent
    page = report_html(data)
    assert "<h3>Sessions</h3>" in page and "day 3" in page
    assert "<h3>Sessions</h3>" not in report_html(report_data(episodes=2))


@pytest.mark.parametrize("relative", [True, False])
def test_a_spread_without_an_upper_end_is_said_to_be_open(relative):
    (table,) = session_tables(with_sessions(relative=relative).result)
    assert "any amount" in table.population
    assert ("%" in table.population.split("varies by")[1]) == relative


def test_sessions_that_do_not_differ_are_said_not_to():
    (table,) = session_tables(with_sessions(apart=0.0, high=0.05).result)
    assert "nothing that shows (at most" in table.population


def test_sessions_survive_the_archive():
    data = with_sessions()
    record, arrays = pack(data)
    again = unpack(record, arrays, data.scene)
    assert again.result.sessions == data.result.sessions
    old = {**record, "result": {k: v for k, v in record["result"].items() if k != "sessions"}}
    assert unpack(old, arrays, data.scene).result.sessions == ()
