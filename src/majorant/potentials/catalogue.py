"""The potentials of this package.

A new potential is a frozen dataclass of about twenty lines: `value`, `weight`, `lipschitz`, and, where the
closed form exists, `prox` and `conjugate` (a convex potential has a duality gap without it, too). The
definition of the class registers it: `SparseSVC(penalty=name)` accepts it and the law tests
(`majorant.testing.check_potential`) run on its `examples()`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

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


class Well(ZeroAtZero):
    """A smooth potential that is not convex: a well of the width δ around zero, flatter and flatter outside.

    From zero, no coefficient leaves a narrow well. A wide one is nearly convex; narrowing it step by step
    leads to a far lower local minimum (graduated non-convexity: Blake and Zisserman, 1987).
    """

    lam: float
    delta: float
    convex = False
    default_delta = 1e-6

    def __post_init__(self) -> None:
        _require("lam", self.lam, positive=False)
        _require("delta", self.delta, positive=True)
        _require("delta²", self.delta * self.delta, positive=True)

    @property
    def lipschitz(self) -> float:
        return float(self.weight(np.zeros(1))[0])  # φ'' is largest at zero

    @property
    def zero_width(self) -> float:
        return 10.0 * self.delta

    def surrogates(self, scale: float) -> tuple[Potential, ...]:
        if not self.lam > 0 or not scale > 3.0 * self.delta:
            return ()
        count = math.ceil(math.log(scale / self.delta, 3.0))
        widths = np.geomspace(scale, self.delta, count + 1)[:-1]
        return tuple(replace(self, delta=float(width)) for width in widths)  # type: ignore[type-var]


@dataclass(frozen=True)
class Welsch(Well):
    """φ(w) = λ (1 - exp(-w²/2δ²)), Eq. (eq:l0Smooth): a smooth, non-convex ℓ0."""

    lam: float = 1.0
    delta: float = 1e-4

    name = "welsch"
    formula = "λ (1 − exp(−w²/2δ²))"

    def value(self, w: Vector) -> Vector:
        return -self.lam * np.expm1(-0.5 * (w / self.delta) ** 2)

    def weight(self, w: Vector) -> Vector:
        return (self.lam / self.delta**2) * np.exp(-0.5 * (w / self.delta) ** 2)

    @property
    def zero_width(self) -> float:
        return 3.0 * self.delta  # beyond it φ is within 1.2 % of its limit λ

    @property
    def max_slope(self) -> float:
        return self.lam / self.delta * math.exp(-0.5)  # at w = δ

    @property
    def limit(self) -> float:
        return self.lam


@dataclass(frozen=True)
class GemanMcClure(Well):
    """φ(w) = λ w²/(w² + δ²): a smooth ℓ0, which it becomes as δ → 0 (Geman and McClure, 1987).

    ψ(w) = 2λ δ²/(w² + δ²)² falls, so φ(√·) is concave; φ'' ≤ ψ(0) = 2λ/δ². Far from zero φ tends to λ like
    δ²/w², where Welsch's potential does so like exp(-w²/2δ²).
    """

    lam: float = 1.0
    delta: float = 1e-4

    name = "geman-mcclure"
    # Narrower than Welsch's, so that the slope far from zero is nothing where the loss is flat.
    default_delta = 1e-8
    formula = "λ w²/(w² + δ²)"

    def value(self, w: Vector) -> Vector:
        ratio = (w / self.delta) ** 2
        return self.lam * (ratio / (1.0 + ratio))

    def weight(self, w: Vector) -> Vector:
        return np.asarray(2.0 * self.lam * (self.delta / (w**2 + self.delta**2)) ** 2)

    @property
    def max_slope(self) -> float:
        return 0.375 * math.sqrt(3.0) * self.lam / self.delta  # at w = δ/√3

    @property
    def limit(self) -> float:
        return self.lam


@dataclass(frozen=True)
class Cauchy(Well):
    """φ(w) = λ/2 log(1 + w²/δ²): the Lorentzian, between ℓ0 and ℓ1; it grows without a bound, but slowly.

    ψ(w) = λ/(w² + δ²) falls, so φ(√·) is concave; φ'' ≤ ψ(0) = λ/δ². A coefficient that is ten times larger
    costs λ log 10 more, however large it is.
    """

    lam: float = 1.0
    delta: float = 1e-4

    name = "cauchy"
    formula = "λ/2 log(1 + w²/δ²)"
    default_delta = 1e-5

    def value(self, w: Vector) -> Vector:
        return 0.5 * self.lam * np.log1p((w / self.delta) ** 2)

    def weight(self, w: Vector) -> Vector:
        return self.lam / (w**2 + self.delta**2)

    @property
    def max_slope(self) -> float:
        return 0.5 * self.lam / self.delta  # at w = δ


@dataclass(frozen=True)
class Lp(Well):
    """φ(w) = λ ((w² + δ²)^(p/2) - δ^p), 0 < p < 1: a smooth λ |w|^p, which it becomes as δ → 0.

    ψ(w) = λ p (w² + δ²)^(p/2 - 1) falls, so φ(√·) is concave; φ'' ≤ ψ(0) = λ p δ^(p - 2). (Chartrand and Yin,
    2008, solve it by the half-quadratic majorant, too.)
    """

    lam: float = 1.0
    delta: float = 1e-4
    p: float = 0.5

    name = "lp"
    default_delta = 1e-7
    formula = "λ ((w² + δ²)^(p/2) − δ^p)"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.p < 1.0:
            raise MajorantError(f"p must lie between 0 and 1, got {self.p!r}: p = 1 is 'hyperbolic'")

    def value(self, w: Vector) -> Vector:
        ratio = (w / self.delta) ** 2
        return np.asarray(self.lam * self.delta**self.p * np.expm1(0.5 * self.p * np.log1p(ratio)))

    def weight(self, w: Vector) -> Vector:
        return np.asarray(self.lam * self.p * (w**2 + self.delta**2) ** (0.5 * self.p - 1.0))

    @property
    def max_slope(self) -> float:
        steepest = np.array([self.delta / math.sqrt(1.0 - self.p)])
        return float(self.derivative(steepest)[0])


class Folded(ZeroAtZero):
    """A potential that is concave on [0, ∞[ with a kink at zero, which makes exact zeros; not convex.

    Its tangent in |w| majorises it, a weighted ℓ1. The first tangent is the one at zero, ℓ1 itself (local
    linear approximation: Zou and Li, 2008).
    """

    lam: float
    delta: float
    convex = False
    concave = True
    default_delta = 0.1

    def __post_init__(self) -> None:
        _require("lam", self.lam, positive=False)
        _require("delta", self.delta, positive=True)

    def derivative(self, w: Vector) -> Vector:
        return self.slope(np.abs(w)) * np.sign(w)

    @abstractmethod
    def slope(self, t: Vector) -> Vector:
        """φ'(t) for t ≥ 0; at zero, φ'(0+)."""

    def weight(self, w: Vector) -> Vector:
        t = np.abs(w)
        with np.errstate(divide="ignore"):
            return self.slope(t) / t if self.lam > 0 else np.zeros_like(t)

    @property
    def lipschitz(self) -> float:
        return math.inf if self.lam > 0 else 0.0

    @property
    def slope_at_zero(self) -> float:
        return float(self.slope(np.zeros(1))[0])

    def surrogates(self, scale: float) -> tuple[Potential, ...]:
        return (L1(self.slope_at_zero),) if self.lam > 0 else ()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls.from_settings(lam=0.7, delta=0.3), cls.from_settings(lam=0.2, delta=2e-3)


@dataclass(frozen=True)
class LogSum(Folded):
    """φ(w) = λ log(1 + |w|/δ): its tangents are the reweighted ℓ1 of Candès, Wakin and Boyd (2008).

    φ'(w) = λ/(δ + |w|) falls, so φ is concave on [0, ∞[. As δ → ∞ with λ/δ fixed, it becomes λ/δ |w|.
    """

    lam: float = 1.0
    delta: float = 0.1

    name = "log-sum"
    formula = "λ log(1 + |w|/δ)"

    def value(self, w: Vector) -> Vector:
        return self.lam * np.log1p(np.abs(w) / self.delta)

    def slope(self, t: Vector) -> Vector:
        return self.lam / (self.delta + t)


@dataclass(frozen=True)
class MCP(Folded):
    """φ(w) = λ (|w| - w²/2δ) up to |w| = δ, λ δ/2 beyond: the minimax concave penalty (Zhang, 2010).

    φ'(w) = λ (1 - |w|/δ) falls to zero at δ, so coefficients beyond δ are not shrunk. In the literature's
    notation δ = γλ; with δ of its own, the same coefficients go free for every λ of a path. δ → ∞ is ℓ1.
    """

    lam: float = 1.0
    delta: float = 0.1

    name = "mcp"
    formula = "λ (|w| − w²/2δ), λ δ/2 beyond δ"

    def value(self, w: Vector) -> Vector:
        t = np.minimum(np.abs(w), self.delta)
        return self.lam * t * (1.0 - 0.5 * t / self.delta)

    def slope(self, t: Vector) -> Vector:
        return np.asarray(self.lam * np.maximum(1.0 - t / self.delta, 0.0))

    @property
    def limit(self) -> float:
        return 0.5 * self.lam * self.delta


@dataclass(frozen=True)
class SCAD(Folded):
    """φ' is λ up to |w| = δ/γ and falls to zero at δ: smoothly clipped absolute deviation (Fan and Li, 2001).

    φ(w) = λ |w| up to δ/γ, then λ |w| - λ (|w| - δ/γ)²/2(δ - δ/γ) up to δ, then λ (δ + δ/γ)/2. In the
    literature's notation, δ/γ is λ itself (for features of unit curvature), with γ = 3.7. δ → ∞ is ℓ1.
    """

    lam: float = 1.0
    delta: float = 0.1
    gamma: float = 3.7

    name = "scad"
    formula = "∫ λ min(1, (δ − w)₊/(δ − δ/γ)) dw"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1.0 < self.gamma < math.inf:
            raise MajorantError(f"gamma must be larger than 1, got {self.gamma!r}")

    def value(self, w: Vector) -> Vector:
        t, knot = np.minimum(np.abs(w), self.delta), self.delta / self.gamma
        return np.asarray(self.lam * (t - 0.5 * np.maximum(t - knot, 0.0) ** 2 / (self.delta - knot)))

    def slope(self, t: Vector) -> Vector:
        span = self.delta - self.delta / self.gamma
        return np.asarray(self.lam * np.clip((self.delta - t) / span, 0.0, 1.0))

    @property
    def limit(self) -> float:
        return 0.5 * self.lam * self.delta * (1.0 + 1.0 / self.gamma)


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
