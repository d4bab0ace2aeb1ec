"""What is certain of a point, with more effort than `Objective.certify` makes, where that pays."""

from __future__ import annotations

from itertools import islice

from majorant.objective import Objective
from majorant.solvers.dense import small_enough
from majorant.solvers.interior import InteriorPoint
from majorant.status import Certificate, Evaluated, Vector

# The share of the tolerance at which a certificate is good enough, and the most steps to it. (Where an
# interior point proved something on the problems of tests/torture, it took at most 45.)
GOOD = 0.1
MAX_STEPS = 60


def certify(objective: Objective, theta: Vector, tol: float) -> tuple[Evaluated, Certificate]:
    """θ evaluated afresh, and what is certain of it.

    Where φ is not convex, the duality gap of the majorant at θ decides. Its dual variables come from θ, and
    on badly conditioned data rounding may spoil them; of small problems, an interior point has better ones.
    That method is left as soon as its bound proves the tolerance, or its value disproves it.
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
        if fall <= GOOD * tol or disproved:
            break
    return at, Certificate(min(fall, certificate.stationarity))
