import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.report.numbers import measure, percent, quantity, scale, signed_percent, together

reals = st.floats(min_value=-1e9, max_value=1e9, allow_subnormal=False)


@pytest.mark.parametrize(
    ("values", "spread", "texts"),
    [
        ([0.18172, 1.0], 0.0102, ("0.182", "1.000")),
        ([0.41, 0.37], 0.2, ("0.41", "0.37")),
        ([95.11, 90.0], 1.3, ("95.1", "90.0")),
        ([12345.0, 12000.0], 800.0, ("12345", "12000")),
        ([8.62e-4], 2.2e-4, ("8.6\u00a0×\u00a010⁻⁴",)),
        ([2.5e7, 1e6], 1e6, ("2.50\u00a0×\u00a010⁷", "0.10\u00a0×\u00a010⁷")),
        ([-0.00001, 1.0], 0.1, ("0.00", "1.00")),
        ([math.nan, math.inf, -math.inf, 1.0], math.nan, ("–", "∞", "−∞", "1.00")),
        ([0.0, 0.0], 1.0, ("0", "0")),
        ([0.0, 2e-5], 1e-5, ("0", "2.0\u00a0×\u00a010⁻⁵")),
    ],
)
def test_values_share_decimals_given_by_their_spread(values, spread, texts):
    assert together(values, spread) == texts


@given(reals.filter(lambda v: abs(v) > 1e-6), st.floats(min_value=1e-3, max_value=1.0))
def test_rounding_stays_within_the_second_digit_of_the_spread(value, share):
    spread = share * abs(value)
    text = together([value], spread)[0].replace("−", "-").replace("\u00a0", "")
    mantissa, _, power = text.partition("×10")
    exponent = int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)
    assert abs(float(mantissa) * 10.0**exponent - value) <= 0.051 * spread * (1 + 1e-9)


def test_quantities_and_shares_read_well():
    assert quantity(0.0051234, "m") == "0.00512\u00a0m"
    assert quantity(21.73, "s") == "21.7\u00a0s"
    assert quantity(math.nan, "s") == "–"
    assert quantity(0.0, "s") == "0\u00a0s"
    assert percent(0.624) == "62\u00a0%"
    assert percent(-0.021) == "−2.1\u00a0%"
    assert percent(0.0) == "0\u00a0%"
    assert percent(math.nan) == "–"
    assert signed_percent(0.21) == "+21\u00a0%"
    assert signed_percent(-0.21) == "−21\u00a0%"
    assert signed_percent(0.0) == "0\u00a0%"
    assert signed_percent(math.nan) == "–"


def test_small_lengths_times_and_inertias_take_the_smaller_unit():
    assert scale([0.0067, -0.02], "m") == (1e3, "mm")
    assert scale([0.0067, 0.4], "m") == (1.0, "m")
    assert scale([0.0, math.inf], "m") == (1.0, "m")
    assert scale([8e-4], "kg m^2") == (1e3, "g·m²")
    assert scale([0.01], "rad") == (1.0, "rad")
    assert measure(0.0095, "m", digits=2) == "9.5\u00a0mm"
