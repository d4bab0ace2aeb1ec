"""Axes: the mapping from numbers to places, and ticks at round numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from majorant.estimators.plots.data import SMALLEST
from majorant.reporting.text import number, power_of_ten
from majorant.status import Vector

# Well above the subnormal numbers.
TINY = 1e-290


@dataclass(frozen=True)
class Scale:
    """An interval, and the ticks on it as (number, label)."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False
    falling: bool = False
    """Whether the largest number is at the beginning."""

    def __call__(self, values: Any) -> Vector:
        """The places of numbers, from 0 at the beginning to 1 at the end."""
        numbers = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            numbers, low, high = np.log(numbers), math.log(low), math.log(high)
        places = np.clip((numbers - low) / (high - low), 0.0, 1.0)
        return 1.0 - places if self.falling else places


def linear_scale(low: float, high: float, *, most: int = 5, tight: bool = False) -> Scale:
    """Ticks at multiples of 1, 2 or 5 times a power of ten; unless `tight`, the axis ends at ticks."""
    low, high = _widened(low, high)
    step = _round_step((high - low) / most)
    if not tight:
        low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple((step * k, _label(step * k, step)) for k in range(first, last + 1))
    return Scale(low, high, ticks)


def _widened(low: float, high: float) -> tuple[float, float]:
    """The interval, widened if its ends are the same number up to rounding."""
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, TINY):
        return low, high
    padding = 0.1 * size if size > TINY else 0.5
    return low - padding, high + padding


def _round_step(least: float) -> float:
    unit = 10.0 ** math.floor(math.log10(least))
    return next(factor * unit for factor in (1.0, 2.0, 5.0, 10.0) if factor * unit >= least * (1.0 - 1e-9))


def _label(value: float, step: float) -> str:
    """The number with enough digits to distinguish neighbouring ticks."""
    if value == 0.0:
        return "0"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals > 4 or abs(value) >= 1e7:
        return number(value, max(2, 1 + math.ceil(math.log10(abs(value) / step))))
    return f"{value:,.{decimals}f}".replace("-", "−")


def log_scale(low: float, high: float, *, most: int = 6, falling: bool = False) -> Scale:
    """Equal factors: ticks at powers of ten, or at 1, 2 and 5 times them if those are few.

    Both numbers are positive.
    """
    if high <= low * 1.02:
        low, high = low / 1.5, high * 1.5
    decades = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    if len(decades) >= 3:
        every = math.ceil(len(decades) / most)
        # One notation for all ticks: plain numbers while they are short.
        plain = decades[0] >= -3 and decades[-1] <= 4
        ticks = tuple(
            (10.0**k, f"{10.0**k:,g}" if plain or k == 0 else power_of_ten(k))
            for k in decades
            if k % every == 0
        )
    else:
        around = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        numbers = [factor * 10.0**k for k in around for factor in (1.0, 2.0, 5.0)]
        ticks = tuple((n, f"{n:g}" if 1e-4 <= n < 1e6 else number(n)) for n in numbers if low <= n <= high)
        if len(ticks) < 2:
            ticks = linear_scale(low, high, tight=True).ticks
    return Scale(low, high, ticks, log=True, falling=falling)


def scale_of(values: Any, *, log: bool = False, most: int = 5) -> Scale:
    """A scale that contains all values."""
    numbers = np.asarray(values, dtype=np.float64).ravel()
    numbers = numbers[np.isfinite(numbers)]
    if log:
        numbers = np.maximum(numbers, SMALLEST)
        low, high = (numbers.min(), numbers.max()) if numbers.size else (0.1, 1.0)
        return log_scale(10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high)), most=most)
    low, high = (numbers.min(), numbers.max()) if numbers.size else (0.0, 1.0)
    return linear_scale(float(low), float(high), most=most)
