r"""The interface of potentials φ.

The penalty of the objective is Σ_i c_i φ(w_i) + η/2 ‖w‖², Eq. (eq:fReg). A potential is a function
of one number that is even, and such that φ(√·) is concave on [0, ∞[. The
half-quadratic majorant of Prop. (prp:sHingeMM) needs only this concavity: with the weight ψ(w) = φ'(w)/w,

    φ(v) ≤ φ(w) + φ'(w)(v - w) + ψ(w)/2 (v - w)²       for all v, with equality at v = w,

and ψ is non-increasing on [0, ∞[. The slope φ'(0+) is 0 for smooth potentials and positive for potentials
with a kink at zero, which make exact zeros: there the subdifferential is [-φ'(0+), φ'(0+)].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import MISSING, fields, replace
from difflib import get_close_matches
from typing import ClassVar, Self

import numpy as np

from majorant.errors import MajorantError
from majorant.status import Vector

# Larger than any coefficient; the square does not overflow.
FAR = 1e100


class Potential(ABC):
    """An even function φ of one number with φ(√·) concave."""

    registry: ClassVar[dict[str, type[Potential]]] = {}
    name: ClassVar[str]
    formula: ClassVar[str] = ""
    """φ(w) as a formula, for reports."""
    convex: ClassVar[bool]
    concave: ClassVar[bool] = False
    """Whether φ is concave on [0, ∞[, so that a tangent in |w| majorises it."""
    proximable: ClassVar[bool] = False
    default_delta: ClassVar[float] = 1e-6
    """The δ of an estimator without `delta`."""
    quadratic: ClassVar[bool] = False
    """Whether φ'' is the same everywhere."""
    homogeneous: ClassVar[bool] = False
    """Whether φ(tw) = t φ(w) for t ≥ 0: the conjugate of φ is then zero up to `max_slope`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if isinstance(cls.__dict__.get("name"), str):  # a class without a name is a base class
            Potential.registry[cls.name] = cls

    @abstractmethod
    def value(self, w: Vector) -> Vector:
        """φ(w)."""

    @abstractmethod
    def weight(self, w: Vector) -> Vector:
        """ψ(w) = φ'(w)/w, the half-quadratic weight; its limit where w = 0."""

    def derivative(self, w: Vector) -> Vector:
        """φ'(w); at a kink, zero."""
        return np.where(w == 0.0, 0.0, self.weight(np.where(w == 0.0, 1.0, w)) * w)

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """The Lipschitz constant a of φ' (Prop. (prp:sHingeLip)); infinite at a kink."""

    @property
    def slope_at_zero(self) -> float:
        """φ'(0+): zero when φ is differentiable, positive when it has a kink at zero."""
        return 0.0

    @property
    def smooth(self) -> bool:
        """Whether φ is differentiable everywhere."""
        return self.slope_at_zero == 0.0

    @property
    def zero_width(self) -> float:
        """The half-width of the rounded bottom of φ, inside which a coefficient may mean zero."""
        return 0.0

    @property
    def kink_width(self) -> float | None:
        """δ if φ(w) = `max_slope` √(w² + δ²), a kink of that width (0: the kink itself); else None."""
        return None

    def excess(self, w: Vector) -> Vector:
        """φ(w) - φ(0): solvers compare this, since a large φ(0) would cancel the digits that differ."""
        return self.value(w) - self.value(np.zeros(1))

    def excess_conjugate(self, u: Vector) -> Vector:
        """The conjugate of `excess`, φ*(u) + φ(0) ≥ 0."""
        return self.conjugate(u) + self.value(np.zeros(1))

    @property
    def limit(self) -> float:
        """The supremum of φ - φ(0): what a large coefficient costs; infinite where none is stated."""
        return math.inf

    @property
    def max_slope(self) -> float:
        """The supremum of |φ'|."""
        if self.convex:
            return float(self.derivative(np.array([FAR]))[0])
        return self.slope_at_zero if self.concave else math.inf

    def curvature(self, w: Vector) -> Vector:
        """A curvature for Newton's method, at most ψ: φ'' where φ is convex, ψ itself by default."""
        return self.weight(w)

    def conjugate(self, u: Vector) -> Vector:
        """φ*(u) = sup_w (uw - φ(w)) for |u| ≤ `max_slope`, where φ is convex.

        Without a closed form, by bisection for φ'(w) = |u|; the tangent at the lower end bounds the rest.
        """
        u = np.minimum(np.abs(u), (1.0 - 1e-9) * self.max_slope)
        low, high = np.full_like(u, -math.log(FAR)), np.full_like(u, math.log(FAR))
        for _ in range(64):
            middle = 0.5 * (low + high)
            below = self.derivative(np.exp(middle)) <= u
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        low, high = np.exp(low), np.exp(high)
        bound = u * low - self.value(low) + (u - self.derivative(low)) * (high - low)
        return np.maximum(bound, -self.value(np.zeros_like(u)))

    def surrogates(self, scale: float) -> tuple[Potential, ...]:
        """Easier potentials for a continuation that ends with this one, in this order.

        `scale` is the size of the coefficients with a negligible penalty.
        """
        return ()

    def inverse_derivative(self, slope: Vector) -> Vector:
        """The w with φ'(w) = slope, for |slope| below `max_slope`; needed after a surrogate with a kink."""
        raise MajorantError(f"the potential {self.name!r} has no inverse of its derivative")

    def prox(self, w: Vector, step: Vector) -> Vector:
        """argmin_v (v - w)²/2 + step φ(v), elementwise, where `proximable`."""
        raise MajorantError(f"the potential {self.name!r} has no closed-form proximal operator")

    @classmethod
    def from_settings(cls, *, lam: float, delta: float | None) -> Self:
        """The potential with the parameters of an estimator, as far as it has them."""
        known = {"lam": lam, "delta": cls.default_delta if delta is None else delta}
        names = cls._parameters()
        if unknown := {one.name for one in fields(cls) if one.default is MISSING} - known.keys():  # type: ignore[arg-type]
            raise MajorantError(
                f"the potential {cls.name!r} has the parameter {', '.join(sorted(unknown))}: pass an "
                f"object, penalty={cls.__name__}(...), instead of the name"
            )
        return cls(**{name: known[name] for name in names & known.keys()})

    @classmethod
    def _parameters(cls) -> set[str]:
        try:
            return {field.name for field in fields(cls)}  # type: ignore[arg-type]
        except TypeError as error:
            raise MajorantError(
                f"the potential {cls.name!r} must be a dataclass: decorate it with @dataclass(frozen=True)"
            ) from error

    def at_strength(self, lam: float) -> Self:
        """The potential with another factor λ."""
        if "lam" not in self._parameters():
            raise MajorantError(
                f"the potential {self.name!r} has no strength 'lam' to vary: use e.g. penalty='l1'"
            )
        return replace(self, lam=lam)  # type: ignore[type-var]

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Instances for the law tests: a typical one and a sharp one."""
        return (
            cls.from_settings(lam=0.7, delta=0.3),
            cls.from_settings(lam=1e-2, delta=1e-3),
        )


def make_potential(penalty: str | Potential, *, lam: float, delta: float | None) -> Potential:
    """The potential of a name; an object is returned as it is."""
    if isinstance(penalty, Potential):
        return penalty
    if penalty not in Potential.registry:
        near = get_close_matches(penalty.lower(), Potential.registry, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise MajorantError(
            f"penalty={penalty!r} is unknown.{hint} Choose one of {', '.join(Potential.registry)}, "
            "or pass a Potential object."
        )
    return Potential.registry[penalty].from_settings(lam=lam, delta=delta)
