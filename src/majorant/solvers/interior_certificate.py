"""A better certificate for small problems with a non-convex penalty, by the interior-point method."""

from __future__ import annotations

from itertools import islice

from majorant.objective import Objective
from majorant.solvers.dense import small_enough
from majorant.solvers.interior import InteriorPoint
from majorant.status import Certificate, Evaluated, Vector

# The share of the tolerance at which the certificate is good enough, and the most steps of the interior-point
# method. (In tests/torture, whenever it proved something it took at most 45 steps.)
GOOD_SHARE = 0.1
MAX_STEPS = 60


def certify_with_interior_point(
    objective: Objective, theta: Vector, tol: float
) -> tuple[Evaluated, Certificate]:
    """`Objective.certify`; if its error is above `tol`, the interior-point method may find a smaller error.

    Where φ is not convex, the error is the duality gap of the tangent majorant at θ, from dual variables that
    follow from θ; on badly conditioned data their rounding errors make that gap too large. If the problem is
    small, the interior-point method minimises the majorant with dual variables of its own. It stops when its
    lower bound proves the tolerance, or when its value shows that the majorant is lower than `tol` allows. θ
    is returned as it is; only the certificate improves.
    """
    at, certificate = objective.certify(theta)
    if objective.potential.convex or certificate.error <= tol or not small_enough(objective):
        return at, certificate
    majorant = objective.majorant(theta)
    upper = majorant.evaluate(theta).value
    fall = certificate.error
    for _, value, bound in islice(InteriorPoint(majorant).iterates(), MAX_STEPS):
        fall = majorant.relative_gap(upper, bound) * upper / at.value
        disproved = upper - value > max(tol * at.value, 0.5 * (upper - bound))
        if fall <= GOOD_SHARE * tol or disproved:
            break
    return at, Certificate(min(fall, certificate.stationarity))
