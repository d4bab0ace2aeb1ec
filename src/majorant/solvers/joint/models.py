r"""Minimising the quadratic model of the loss of all classes plus the penalty: dense, in memory.

    m(D) = Σ_c (g_c·D_c + ½ D_cᵀH_cD_c) + Σ_i c_i φ(‖(W + D)_·i‖) + η/2 ‖W + D‖²

for moves D of some features (and of the intercepts), from the gradients g_c of the loss and its curvatures
H_c at (W, β). The joint counterpart of `newton/models.py`: both minimisers stop when the violation has shrunk
to a twentieth, and never return a point where m is larger than at the start.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.joint import JointObjective, lengths
from majorant.potentials import L1
from majorant.solvers.joint.smooth import JointCurvature, newton_direction
from majorant.solvers.newton.models import ACCURACY, ROUNDS, SMOOTH_STEPS, SWEEP_WORK
from majorant.status import Evaluated, Matrix, Vector

# How well the equations of a step are solved where that takes conjugate gradients: no pass depends on it.
EQUATIONS = 1e-3


class JointModel:
    """The model around θ, on the features that H is of.

    Parameters
    ----------
    objective : JointObjective
        With the penalty factors of these features.
    H : array (n_classes, n, n)
        Symmetric, the intercepts last.
    gradient, theta : array (n_classes, n)
        Of the loss, and where.
    scale : array (n,)
        The units of the violations.
    noise : float
        The rounding of a gradient.
    """

    def __init__(
        self,
        objective: JointObjective,
        H: NDArray[np.float64],
        gradient: Matrix,
        theta: Matrix,
        scale: Vector,
        noise: float,
    ) -> None:
        self.objective, self.H, self.scale, self.noise = objective, H, scale, noise
        self.gradient, self.theta = gradient.ravel(), theta.ravel()

    def minimise(self) -> tuple[Matrix, float]:
        """Where m is as good as least, and by how much it is lower there."""
        potential = self.objective.potential
        found, fall = self._minimise_smooth() if potential.smooth else self._minimise_kinked()
        return found.reshape(len(self.H), -1), max(fall, 0.0)

    def _minimise_smooth(self) -> tuple[Vector, float]:
        start = Evaluated(self.theta, 0.0, self.gradient)
        return self._newton(self.objective, start, SMOOTH_STEPS, self._accuracy(self.objective, start))

    def _minimise_kinked(self) -> tuple[Vector, float]:
        """Sweeps over whole features, which find those that are zero; Newton's method on the others.

        A potential that is concave in the length is replaced by its tangent, as ℓ1 with slopes of its own.
        """
        from majorant.solvers.joint import sweeps

        tangent = self._tangent()
        at = Evaluated(self.theta, 0.0, self.gradient)
        accuracy = self._accuracy(tangent, at)
        C, n, _ = self.H.shape
        slopes, ridge = np.append(tangent.factor, 0.0), np.append(np.full(n - 1, tangent.eta), 0.0)
        count = int(np.clip(SWEEP_WORK / (C * n**2), 20, 400))
        room = [np.empty(C) for _ in range(3)]
        for _ in range(ROUNDS):
            check()
            R, W = at.loss_gradient.reshape(C, n).copy(), at.theta.reshape(C, n).T.copy()
            worst = sweeps.sweep_model(
                self.H, R, W, slopes, ridge, self.scale, count, accuracy, *room
            )  # fmt: skip
            theta = np.ascontiguousarray(W.T).ravel()
            at = Evaluated(theta, self._value(tangent, theta, R.ravel()), R.ravel())
            if worst <= accuracy:
                break
            at = self._on_support(tangent, at, accuracy)
        return at.theta, -at.value

    def _tangent(self) -> JointObjective:
        objective, potential = self.objective, self.objective.potential
        slopes = np.full(len(objective.factor), potential.slope_at_zero)
        if not potential.convex:
            t = objective.lengths(self.theta)
            slopes = np.where(t == 0.0, slopes, potential.derivative(t))
        return replace(objective, potential=L1(1.0), penalty_factor=objective.factor * slopes)

    def _on_support(self, tangent: JointObjective, at: Evaluated, accuracy: float) -> Evaluated:
        C, n, _ = self.H.shape
        kept = (tangent.lengths(at.theta) > 0.0) | (tangent.factor == 0.0)
        where = np.append(np.flatnonzero(kept), n - 1)
        part = JointModel(
            replace(tangent, penalty_factor=tangent.factor[kept]),
            self.H[:, where[:, np.newaxis], where],
            at.loss_gradient.reshape(C, n)[:, where],
            at.theta.reshape(C, n)[:, where],
            self.scale[where],
            self.noise,
        )
        start = Evaluated(part.theta, 0.0, part.gradient)
        found, fall = part._newton(part.objective, start, 2, 0.5 * accuracy)
        if fall <= 0.0:
            return at
        theta = at.theta.reshape(C, n).copy()
        theta[:, where] = found.reshape(C, -1)
        gradient = self.gradient + JointCurvature(list(self.H), self.noise).product(
            theta.ravel() - self.theta
        )
        return Evaluated(theta.ravel(), self._value(tangent, theta.ravel(), gradient), gradient)

    def _newton(
        self, objective: JointObjective, at: Evaluated, steps: int, accuracy: float
    ) -> tuple[Vector, float]:
        """Damped Newton steps from where this model is; where to, and how far m falls."""
        curvature = JointCurvature(list(self.H), self.noise)
        theta, linear, value = at.theta, at.loss_gradient, 0.0
        rounding = 1e-14 * objective.penalty(theta)
        previous = np.inf
        for _ in range(steps):
            check()
            here = Evaluated(theta, value, linear)
            violation = self._violation(objective, here)
            if violation <= accuracy:
                break
            gradient = objective.gradient(here)
            d = -newton_direction(objective, curvature, theta, gradient, EQUATIONS)
            image, slope, t = curvature.product(d), float(gradient @ d), 1.0
            while (trial := self._value(objective, theta + t * d, linear + t * image)) > (
                value + 1e-4 * t * slope + rounding
            ):
                t *= 0.5
                if t < 1e-30:
                    return theta, -value
            if trial > value - rounding and violation >= previous:
                break
            previous = violation
            theta, linear, value = theta + t * d, linear + t * image, trial
        return theta, -value

    def _value(self, objective: JointObjective, theta: Vector, gradient: Vector) -> float:
        """The model at θ relative to its start, from the gradient of its quadratic part there."""
        quadratic = 0.5 * float((theta - self.theta) @ (self.gradient + gradient))
        return quadratic + objective.penalty(theta) - objective.penalty(self.theta)

    def _violation(self, objective: JointObjective, at: Evaluated) -> float:
        return float(np.max(lengths(objective.matrix(objective.subgradient(at))) * self.scale))

    def _accuracy(self, objective: JointObjective, at: Evaluated) -> float:
        return ACCURACY * self._violation(objective, at)
