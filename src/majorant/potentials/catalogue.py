"""The potentials of this package.

A new potential is a frozen dataclass of about twenty lines: `value`, `weight`, `lipschitz`, and, where the
closed form exists, `prox` and `conjugate` (a convex potential has a duality gap without it, too). The
definition of the class registers it: `SparseSVC(penalty=name)` accepts it and the law tests
(`majorant.testing.check_potential`) run on its `examples()`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from majorant.errors import MajorantError
from majorant.potentials.base import Potential
from majorant.status import Vector


def _require(name: str, number: float, *, positive: bool) -> None:
    bound = "positive" if positive else "non-negative"
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        raise MajorantError(f"{name} must be a {bound} finite number, got {number!r}")


class ZeroAtZero(Potential):
    """A potential with φ(0) = 0."""

    def excess(self, w: Vector) -> Vector:
        return self.value(w)

    def excess_conjugate(self, u: Vector) -> Vector:
        return self.conjugate(u)


@dataclass(frozen=True)
class Hyperbolic(Potential):
    """φ(w) = λ √(w² + δ²), Eq. (eq:l1Smooth): a smooth ℓ1, which it becomes as δ → 0."""

    lam: float = 1.0
    delta: float = 1e-4

    name = "hyperbolic"
    formula = "λ √(w² + δ²)"
    convex = True
    # Setting a nearly zero coefficient to zero increases Φ by up to λ δ, usually less than the tolerance.
    # (With the paper's δ = 1e-4, most zeros would cost more.)
    default_delta = 1e-9

    def __post_init__(self) -> None:
        _require("lam", self.lam, positive=False)
        _require("delta", self.delta, positive=True)

    def value(self, w: Vector) -> Vector:
        return self.lam * np.hypot(w, self.delta)

    def excess(self, w: Vector) -> Vector:
        return self.lam * (w * (w / (np.hypot(w, self.delta) + self.delta)))

    def weight(self, w: Vector) -> Vector:
        return self.lam / np.hypot(w, self.delta)

    @property
    def lipschitz(self) -> float:
        return self.lam / self.delta

    @property
    def zero_width(self) -> float:
        return 10.0 * self.delta  # beyond it φ' is within 0.5 % of its limit λ

    @property
    def kink_width(self) -> float:
        return self.delta

    @property
    def max_slope(self) -> float:
        return self.lam

    def curvature(self, w: Vector) -> Vector:
        root = np.hypot(w, self.delta)
        return self.lam / root * (self.delta / root) ** 2

    def conjugate(self, u: Vector) -> Vector:
        return -self.delta * (np.sqrt(self.lam - u) * np.sqrt(self.lam + u))

    def excess_conjugate(self, u: Vector) -> Vector:
        if self.lam == 0.0:
            return np.zeros_like(u)
        return self.delta * (u * (u / (self.lam + np.sqrt(self.lam - u) * np.sqrt(self.lam + u))))

    def surrogates(self, scale: float) -> tuple[Potential, ...]:
        # The ℓ1 problem quickly finds the support.
        return (L1(self.lam),) if self.lam > 0 else ()

    def inverse_derivative(self, slope: Vector) -> Vector:
        t = slope / self.lam
        return self.delta * t / np.sqrt((1.0 - t) * (1.0 + t))


@dataclass(frozen=True)
class Welsch(ZeroAtZero):
    """φ(w) = λ (1 - exp(-w²/2δ²)), Eq. (eq:l0Smooth): a smooth, non-convex ℓ0."""

    lam: float = 1.0
    delta: float = 1e-4

    name = "welsch"
    formula = "λ (1 − exp(−w²/2δ²))"
    convex = False
    default_delta = 1e-6

    def __post_init__(self) -> None:
        _require("lam", self.lam, positive=False)
        _require("delta", self.delta, positive=True)
        _require("delta²", self.delta * self.delta, positive=True)

    def value(self, w: Vector) -> Vector:
        return -self.lam * np.expm1(-0.5 * (w / self.delta) ** 2)

    def weight(self, w: Vector) -> Vector:
        return (self.lam / self.delta**2) * np.exp(-0.5 * (w / self.delta) ** 2)

    @property
    def lipschitz(self) -> float:
        return self.lam / self.delta**2

    @property
    def zero_width(self) -> float:
        return 3.0 * self.delta  # beyond it φ is within 1.2 % of its limit λ

    @property
    def max_slope(self) -> float:
        return self.lam / self.delta * math.exp(-0.5)  # at w = δ

    def surrogates(self, scale: float) -> tuple[Potential, ...]:
        # From zero, no coefficient leaves the narrow well around zero. A wide well is nearly convex;
        # narrowing it step by step leads to a far lower local minimum (graduated non-convexity).
        if not self.lam > 0 or not scale > 3.0 * self.delta:
            return ()
        count = math.ceil(math.log(scale / self.delta, 3.0))
        return tuple(Welsch(self.lam, width) for width in np.geomspace(scale, self.delta, count + 1)[:-1])


@dataclass(frozen=True)
class L1(ZeroAtZero):
    """φ(w) = λ |w|: the limit of the hyperbolic potential as δ → 0, with exact zeros."""

    lam: float = 1.0

    name = "l1"
    formula = "λ |w|"
    convex = True
    concave = True
    proximable = True
    homogeneous = True

    def __post_init__(self) -> None:
        _require("lam", self.lam, positive=False)

    def value(self, w: Vector) -> Vector:
        return self.lam * np.abs(w)

    def derivative(self, w: Vector) -> Vector:
        return self.lam * np.sign(w)

    def weight(self, w: Vector) -> Vector:
        with np.errstate(divide="ignore"):
            return self.lam / np.abs(w) if self.lam > 0 else np.zeros_like(w)

    @property
    def lipschitz(self) -> float:
        return math.inf if self.lam > 0 else 0.0

    @property
    def slope_at_zero(self) -> float:
        return self.lam

    @property
    def max_slope(self) -> float:
        return self.lam

    @property
    def kink_width(self) -> float:
        return 0.0

    def conjugate(self, u: Vector) -> Vector:
        return np.zeros_like(u)

    def prox(self, w: Vector, step: Vector) -> Vector:
        return np.sign(w) * np.maximum(np.abs(w) - step * self.lam, 0.0)


@dataclass(frozen=True)
class L2(ZeroAtZero):
    """φ(w) = λ/2 w²: shrinks every coefficient, makes none zero."""

    lam: float = 1.0

    name = "l2"
    formula = "λ/2 w²"
    convex = True
    proximable = True
    quadratic = True

    def __post_init__(self) -> None:
        _require("lam", self.lam, positive=False)

    def value(self, w: Vector) -> Vector:
        return 0.5 * self.lam * w**2

    def derivative(self, w: Vector) -> Vector:
        return self.lam * w

    def weight(self, w: Vector) -> Vector:
        return np.full_like(w, self.lam)

    @property
    def lipschitz(self) -> float:
        return self.lam

    def conjugate(self, u: Vector) -> Vector:
        return u**2 / (2.0 * self.lam) if self.lam > 0 else np.zeros_like(u)

    def prox(self, w: Vector, step: Vector) -> Vector:
        return w / (1.0 + step * self.lam)


@dataclass(frozen=True)
class Zero(ZeroAtZero):
    """φ ≡ 0: no penalty but the elastic-net part η/2 ‖w‖² (the paper's "only ℓ2" case)."""

    name = "none"
    formula = "0"
    convex = True
    proximable = True
    quadratic = True
    homogeneous = True

    def value(self, w: Vector) -> Vector:
        return np.zeros_like(w)

    def weight(self, w: Vector) -> Vector:
        return np.zeros_like(w)

    @property
    def lipschitz(self) -> float:
        return 0.0

    def conjugate(self, u: Vector) -> Vector:
        return np.zeros_like(u)

    def prox(self, w: Vector, step: Vector) -> Vector:
        return w.copy()
