"""Decimals: the same bits as `float`, or left to it."""

import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from majorant.datasets.decimals import HARD, NO_NUMBER, READ, TOO_LARGE, powers_of_five, read_number

FIXED = settings(deadline=None, derandomize=True)
POWERS = powers_of_five()


def check_number(text):
    """As `float` has it, or left to it."""
    kind, value, end = read_number(np.frombuffer(text.encode() + b"\n", np.uint8), 0, POWERS)
    expected = float(text)
    assert end == len(text)
    if kind != HARD:
        assert struct.pack("d", value) == struct.pack("d", expected)
        assert kind == (TOO_LARGE if np.isinf(expected) else READ)
    else:
        assert sum(c.isdigit() for c in text) > 19
    return kind


@FIXED
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 40))
def test_floats_in_any_number_of_digits(x, digits):
    check_number(repr(x))
    check_number(f"{x:.{digits}e}")


@FIXED
@given(st.from_regex(r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,4})?", fullmatch=True))
@example("9007199254740993")
@example("9007199254740993.0000000000000000000000001")
@example("2.4703282292062327208051355e-324")
@example("2.2250738585072011e-308")
@example("1.7976931348623158e308")
@example("1.7976931348623159e308")
@example("1e400")
@example("0e99999999999999999999")
@example("1e-99999999999999999999")
@example("0." + "0" * 400 + "1e401")
@example("-0")
@example("5.")
@example("+.5")
def test_decimals(text):
    check_number(text)


@FIXED
@given(st.integers(2**53, 2**54 - 1), st.integers(0, 5), st.sampled_from([-1, 0, 1]))
def test_halfway_between_two_floats(mantissa, places, nudge):
    """An odd integer of 54 bits is half-way; so is it divided by a power of two, in decimals."""
    check_number(f"{(mantissa | 1) * 5**places + nudge}e-{places}")
    check_number(f"{(mantissa | 1) * 5**places * 10**9 + nudge}e-{places + 9}")


@FIXED
@given(st.integers(0, 23), st.integers(0, 2**54))
def test_halfway_with_an_exponent(q, seed):
    low = 2**53 // 5**q + 1
    check_number(f"{(low + seed % low) | 1}e{q}")


@FIXED
@given(st.integers(0, 2**53), st.integers(-1074, -1020))
def test_subnormal_numbers_and_their_neighbours(mantissa, exponent):
    x = mantissa * 2.0**exponent
    check_number(f"{x:.16e}")
    check_number(f"{x:.18e}")


def test_numbers_that_are_left_to_float():
    assert check_number("1.00000000000000011102230246251565404236316680908203125") == HARD
    assert check_number("1.00000000000000011102230246251565404236316680908203126") == HARD


@pytest.mark.parametrize("text", ["", "+", "-", ".", "e5", "1e", "1e+", "--1", "nan", "inf", "x"])
def test_what_is_no_number(text):
    kind, _, end = read_number(np.frombuffer(text.encode() + b"\n", np.uint8), 0, POWERS)
    assert kind == NO_NUMBER
    assert end <= len(text)
