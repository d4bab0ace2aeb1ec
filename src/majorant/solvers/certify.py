"""What is certain of a point, with more effort than `Objective.certify` makes, where that pays."""

from __future__ import annotations

from majorant.joint import AnyObjective
from majorant.solvers.dense import small_enough
from majorant.solvers.interior import interior_point
from majorant.status import Certificate, Evaluated, Vector


def certify(objective: AnyObjective, theta: Vector, tol: float) -> tuple[Evaluated, Certificate]:
    """θ evaluated afresh, and what is certain of it.

    Where φ is not convex, the duality gap of the majorant at θ decides. Its dual variables come from θ, and
    on badly conditioned data rounding may spoil them; of small problems, an interior point has better ones.
    """
    at, certificate = objective.certify(theta)
    if objective.potential.convex or certificate.error <= tol or not small_enough(objective):
        return at, certificate
    majorant = objective.majorant(theta)
    upper = majorant.evaluate(theta).value
    bound = max(point.lower_bound for point in interior_point(majorant) if isinstance(point, Evaluated))
    fall = majorant.relative_gap(upper, bound) * upper / at.value
    return at, Certificate(min(fall, certificate.stationarity))
