r"""From the point where a solver stopped to the coefficients that a user gets, with a certificate of these.

Two things happen on the way: coefficients that mean zero are set to exactly 0.0, and the coefficients of
single precision data are rounded to single precision. Both move θ, so Φ, the certificate and the status are
those of the point after them. The lower bound of the minimum belongs to the problem, not to a point: the best
one that the run has found is kept.

Zeros, with ``zero_tol="auto"``. A smooth potential leaves the coefficients that mean zero inside its rounded
bottom, |w| ≤ `zero_width`. A zero is possible there if the loss does not pull harder than the potential can
resist, |∂_i loss| ≤ c_i max |φ'|, which is the very condition for a zero of the sharp problem (λ for the
hyperbolic potential, as for ℓ1). Setting w_i to zero costs

    c_i φ*(u_i/c_i) + c_i φ(0),    u_i = -∂_i loss,

to first order, up to c_i λ δ for the hyperbolic potential: the gap of Fenchel's inequality at w_i = 0. The
cheapest zeros are taken, as many as the tolerance allows. If Φ is still too large with them, the other
coefficients are optimised without those that are zero; if that does not help, three quarters of the zeros are
given up, and so on. Potentials with a kink have exact zeros already, but for those that were still on their
way when the solver stopped: what is faint is set to zero if zero holds it and Φ does not rise. ℓ2 and "none"
have no zeros to find: their width is 0.

Of a run that has not converged, what means zero is set to zero if Φ does not rise by more than the tolerance.

A number as `zero_tol` is obeyed, whatever it costs; the status says if that is more than the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.objective import Objective
from majorant.solvers import choose_solver, solve
from majorant.solvers.interior_certificate import certify_with_interior_point
from majorant.status import Certificate, Evaluated, Result, Status, Vector

# A pull within this factor of what can be held is held: on the border the sharp problem is indifferent.
BORDER = 1.001
# Potentials with a kink: coefficients that move the margins by less than this, relative to the slacks. (Along
# paths of w8a and a9a, 1e-2 found no more of them, and took a pass over the rows at every point to say so.)
FAINT = 1e-4
# The share of the tolerance that zeros may use up, and how often three quarters of them are given up.
BUDGET = 0.9
QUARTERINGS = 3
# How much more accurate than the tolerance, and for how many steps, the other coefficients are optimised.
POLISH_ACCURACY = 1e-2
POLISH_STEPS = 50

Mask = NDArray[np.bool_]


def deliver(
    objective: Objective, result: Result, zero_tol: float | str, tol: float, dtype: np.dtype[Any]
) -> Result:
    """The result with the coefficients as the user gets them, and what is true of these.

    Parameters
    ----------
    objective, result
        What was minimised, and where the solver stopped.
    zero_tol : "auto" or float
        Which coefficients become zero.
    tol : float
        The certificate that was asked for.
    dtype : numpy dtype
        The type that the coefficients are stored in. If rounding to it costs more than the tolerance, θ keeps
        its double precision.
    """
    if not math.isfinite(result.iterate.value):
        return result
    delivery = _Delivery(objective, result, tol)
    at = delivery.with_zeros(zero_tol)
    at = delivery.in_precision(at, dtype)
    if at is result.iterate:
        return result
    certificate = delivery.certificate(at)
    return replace(result, iterate=at, certificate=certificate, status=delivery.status(certificate, zero_tol))


class _Delivery:
    def __init__(self, objective: Objective, result: Result, tol: float) -> None:
        self.objective, self.result, self.tol = objective, result, tol
        self.start = result.iterate
        self.converged = result.status.converged

    # What is claimed ---------------------------------------------------------------------------

    def certificate(self, at: Evaluated) -> Certificate:
        if not self.objective.bounded:
            return certify_with_interior_point(self.objective, at.theta, self.tol)[1]
        return Certificate(
            self.objective.stationarity(at), self.objective.relative_gap(at.value, at.lower_bound)
        )

    def status(self, certificate: Certificate, zero_tol: float | str) -> Status:
        status = self.result.status
        within = certificate.error <= self.tol
        if status.converged and not within:
            return Status.STALLED if isinstance(zero_tol, str) else Status.ZERO_TOL
        if within and status in (Status.STALLED, Status.MAX_ITER):
            return Status.CONVERGED
        return status

    def _good(self, at: Evaluated) -> bool:
        """Whether a point after zeros, or rounding, is within the tolerance, or no worse than the start."""
        if self.converged and self.objective.bounded:
            return self.objective.relative_gap(at.value, at.lower_bound) <= self.tol
        if not at.value <= (1.0 + self.tol) * self.start.value:
            return False
        return not self.converged or self.certificate(at).error <= self.tol

    def _evaluated(self, theta: Vector) -> Evaluated:
        return replace(self.objective.evaluate(theta), lower_bound=self.start.lower_bound)

    # Zeros -------------------------------------------------------------------------------------

    def with_zeros(self, zero_tol: float | str) -> Evaluated:
        """The point with what means zero set to 0.0; of a joint problem, whole features."""
        objective, potential = self.objective, self.objective.potential
        sizes = objective.lengths(self.start.theta)
        if not isinstance(zero_tol, str):
            return self._without_small(zero_tol)
        if not potential.smooth:
            held = objective.factor * potential.slope_at_zero
            return self._without_faint(self._faint(sizes, held), held)
        if potential.zero_width == 0.0:
            return self.start
        held = BORDER * objective.factor * potential.max_slope
        pulls = objective.lengths(self.start.loss_gradient)
        small = (sizes <= potential.zero_width) & (sizes > 0.0) & (pulls <= held)
        if potential.kink_width is not None:  # which may be narrower than θ is exact
            at = self._without_faint(small | self._faint(sizes, held / BORDER), held)
            if not objective.lengths(at.theta)[small].any():
                return at
            small |= self._faint(sizes, held)
        order = np.flatnonzero(small)
        costs = self._costs(pulls)[order]
        order = order[np.argsort(costs, kind="stable")]
        if self.converged:
            room = BUDGET * (self.tol - self.result.certificate.error) * self.start.value
            order = order[: np.searchsorted(np.cumsum(np.sort(costs)), room)]
        for _ in range(QUARTERINGS):
            if not len(order):
                break
            small = np.zeros(len(sizes), dtype=np.bool_)
            small[order] = True
            rounded = self._evaluated(_without(self.start.theta, small))
            if self._good(rounded) and self._held(rounded, small, held):
                return rounded
            polished = self._polished(rounded, small)
            if polished is not rounded and self._good(polished) and self._held(polished, small, held):
                return polished
            order = order[: len(order) // 4]
        return self.start

    def _without_small(self, zero_tol: float) -> Evaluated:
        """No coefficient is left that is not larger than the number, also after optimising the others."""
        at = self.start
        zeros = np.zeros(len(self.objective.factor), dtype=np.bool_)
        while True:
            sizes = self.objective.lengths(at.theta)
            small = (sizes <= zero_tol) & (sizes > 0.0)
            if not small.any():
                return at
            zeros |= small
            at = self._evaluated(_without(at.theta, small))
            if not self._good(at):
                at = self._polished(at, zeros)

    def _held(self, at: Evaluated, small: Mask, held: Vector) -> bool:
        return bool(np.all(self.objective.lengths(at.loss_gradient)[small] <= held[small]))

    def _costs(self, pulls: Vector) -> Vector:
        """What a zero costs, feature by feature, to first order: Fenchel's gap, or that of the majorant."""
        factor, potential = self.objective.factor, self.objective.potential
        if not potential.convex:
            weight = factor * potential.weight(np.zeros(1))[0]
            return 0.5 * pulls**2 / np.where(weight > 0.0, weight, np.inf)
        slopes = np.minimum(pulls / np.where(factor > 0.0, factor, 1.0), potential.max_slope)
        return np.asarray(factor * potential.excess_conjugate(slopes))

    def _without_faint(self, faint: Mask, held: Vector) -> Evaluated:
        """The point with those faint features set to zero that the penalty can keep at zero.

        For potentials with a kink at zero, or with a kink that is hardly rounded.
        """
        objective, at = self.objective, self.start
        while faint.any():
            rounded = self._evaluated(_without(at.theta, faint))
            pulled = faint & (objective.lengths(rounded.loss_gradient) > held)
            if not pulled.any():
                allowed = objective.potential.smooth and self._good(rounded)
                return rounded if allowed or rounded.value <= at.value else at
            # If no other feature is used, the intercept may have to move a little before zero holds. (With
            # others it takes as long as the fit itself on a9a and leukemia, where some are faint.)
            if not objective.lengths(rounded.theta).any():
                polished = self._polished(rounded, faint)
                if polished is not rounded and self._good(polished) and self._held(polished, faint, held):
                    return polished
            faint &= ~pulled
        return at

    def _faint(self, sizes: Vector, held: Vector) -> Mask:
        """What moves the margins next to nothing, and is pulled less than zero can hold."""
        objective, at = self.objective, self.start
        faint = sizes * objective.column_lengths <= FAINT * math.sqrt(max(at.value, 0.0))
        return np.asarray(faint & (sizes > 0.0) & (objective.lengths(at.loss_gradient) < held))

    def _polished(self, at: Evaluated, zeros: Mask) -> Evaluated:
        """The point after minimising Φ over the features that are not zero."""
        objective, theta = self.objective, at.theta
        if not self.converged:
            return at
        rest = np.flatnonzero((objective.lengths(theta) > 0.0) | ((objective.factor == 0.0) & ~zeros))
        matrix = theta.reshape(-1, len(zeros) + 1)
        where = np.append(rest, len(zeros))
        start, restricted = matrix[:, where].ravel(), objective.columns(rest)
        solver = choose_solver(restricted)
        polished = solve(solver, restricted, start, tol=POLISH_ACCURACY * self.tol, max_iter=POLISH_STEPS)
        moved = np.zeros_like(matrix)
        moved[:, where] = polished.iterate.theta.reshape(len(matrix), -1)
        after = self._evaluated(moved.ravel())
        return after if after.value < at.value else at

    # Precision ---------------------------------------------------------------------------------

    def in_precision(self, at: Evaluated, dtype: np.dtype[Any]) -> Evaluated:
        """The point with θ rounded to the type, if the certificate allows."""
        if dtype == np.float64 or not np.all(np.abs(at.theta) <= np.finfo(dtype).max):
            return at
        theta = at.theta.astype(dtype).astype(np.float64)
        # A coefficient must not vanish by rounding.
        if np.array_equal(theta, at.theta) or np.any((theta == 0.0) & (at.theta != 0.0)):
            return at
        rounded = self._evaluated(theta)
        return rounded if self._good(rounded) else at


def _without(theta: Vector, features: Mask) -> Vector:
    """θ with these features zero, for every class that it is made of."""
    kept = theta.reshape(-1, len(features) + 1).copy()
    kept[:, :-1][:, features] = 0.0
    return kept.ravel()
