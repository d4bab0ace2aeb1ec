r"""Which strengths λ of the penalty to look at, and which to take.

`lambda_max` is the smallest λ that selects no feature: there the potential can hold every coefficient at what
means zero, against the pull of the loss,

    |∂_i loss| ≤ c_i h,     h = φ'(0+), or the largest |φ'| inside the rounded bottom of a smooth potential,

at the best point without them: its intercept, and the features that go unpenalised (c_i = 0), are at
their optimum. h is λ for ℓ1, and 0.995 λ for the hyperbolic potential, whose bottom ends at 10 δ (its
coefficients, though, are not quite zero there, so that the answer is as exact as δ is small). Where φ is not
convex, that is where zero becomes a local minimum, and a fit may find a lower one elsewhere: then the answer
is found by fitting, to a thousandth. Potentials that never mean zero (ℓ2) never select, and it is infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from majorant.callbacks import Callback
from majorant.duality import column_norms
from majorant.estimators.fit_problem import FitProblem
from majorant.objective import Objective
from majorant.potentials import L2, Potential
from majorant.rows import Rows
from majorant.rows.base import losses
from majorant.solvers import choose_solver, solve
from majorant.solvers.reweighted import spread
from majorant.solvers.support_search import bounded
from majorant.status import Evaluated, Result, Status, Vector

# Strengths per factor of ten on the way to `max_features`, and how exactly the last one is found.
PER_DECADE = 15
EXACTNESS = 1e-3
# Fits on the way to the smallest λ that selects no feature at most. (Up to 8 were needed, mostly 3.)
TIES = 30


def lambda_max_of(fit_problem: FitProblem) -> float:
    """The smallest λ that selects no feature."""
    bound = _holding_strength(fit_problem)
    if fit_problem.potential.convex or not 0.0 < bound < math.inf:
        return bound
    if fit_problem.potential.smooth:
        return max(bound, _strength_that_ties(fit_problem, bound))
    high, _ = _strong_enough(partial(_fit_at, fit_problem, limit=_n_free(fit_problem)), bound)
    low = 0.5 * high
    if high == bound:
        return bound
    while high > (1.0 + EXACTNESS) * low:
        middle = math.sqrt(high * low)
        few = _fit_at(fit_problem, middle, limit=_n_free(fit_problem))[2]
        low, high = (low, middle) if few else (middle, high)
    return high


def _strength_that_ties(fit_problem: FitProblem, least: float) -> float:
    """The smallest λ found at which no model that was found has a lower Φ than the one without features.

    A model with the loss ℓ and the penalty λ f ties with the empty one, of the loss ℓ₀, where λ = (ℓ₀ - ℓ)/f.
    A fit a little above finds no feature, or a model that ties at a larger λ (Dinkelbach's method).
    """
    points = [_null_point(fit_problem, rows) for rows in fit_problem.rows]
    problems = fit_problem.objectives(fit_problem.potential.at_strength(1.0))
    thetas = [np.concatenate(points)] if fit_problem.joint else points
    empty = [objective.evaluate(theta) for objective, theta in zip(problems, thetas, strict=True)]
    lam = least
    if bounded(problems[0]):
        lam = max(least, *(_single_feature_strength(*pair) for pair in zip(problems, empty, strict=True)))
    for _ in range(TIES):
        lam *= 1.0 + EXACTNESS
        potential = fit_problem.potential.at_strength(lam)
        results = fit_problem.run(potential)
        if count_features(fit_problem, potential, results) <= _n_free(fit_problem):
            break
        ties = []
        for objective, result, null in zip(fit_problem.objectives(potential), results, empty, strict=True):
            theta = result.iterate.theta
            f = float(objective.factor @ potential.excess(objective.lengths(theta)))
            if f > 0.0:
                ties.append(lam * (null.value - (result.iterate.value - f)) / f)
        lam = max(lam, *ties)
    return lam


def _single_feature_strength(objective: Objective, empty: Evaluated) -> float:
    """A λ up to which some single feature is better than none: the bound of `support_search.py`."""
    spreads = spread(objective.classes[0]) + objective.eta
    able = (spreads > 0.0) & (objective.factor > 0.0)
    pulls = objective.lengths(empty.loss_gradient)[able]
    falls = 0.5 * pulls**2 / (spreads * objective.factor)[able]
    return float(np.max(falls, initial=0.0)) / objective.potential.limit


def most_features(fit_problem: FitProblem) -> int | None:
    """The size at which a path of a bounded potential ends, n / (log N log log n) for n rows, N features.

    This is the bound of the ℓ0 literature (Zhu et al., PNAS 2020). None for other potentials.
    """
    if not bounded(fit_problem.objectives(fit_problem.potential)[0]):
        return None
    n, N = fit_problem.rows[0].n_samples, fit_problem.n_features
    return max(1, round(n / (max(1.0, math.log(N)) * max(1.0, math.log(max(1.0, math.log(n)))))))


def _n_free(fit_problem: FitProblem) -> int:
    """How many features go unpenalised, and are always in."""
    return int(np.count_nonzero(fit_problem.objectives(fit_problem.potential)[0].factor == 0.0))


def _fit_at(
    fit_problem: FitProblem, lam: float, callbacks: Sequence[Callback] = (), *, limit: int
) -> tuple[Potential, list[Result], bool]:
    """The potential of that strength, a run with it, and whether it selects few enough features."""
    potential = fit_problem.potential.at_strength(lam)
    results = fit_problem.run(potential, callbacks)
    return potential, results, count_features(fit_problem, potential, results) <= limit


def _holding_strength(fit_problem: FitProblem) -> float:
    """The smallest λ whose potential holds all penalised features at zero against the pull there."""
    unit = _holding_slope(fit_problem.potential.at_strength(1.0))
    if unit == 0.0:
        return math.inf
    factor = fit_problem.objectives(fit_problem.potential)[0].factor
    penalised = factor > 0.0
    points = [_null_point(fit_problem, rows) for rows in fit_problem.rows]
    gradients = np.stack([loss.gradient[:-1] for loss in losses(fit_problem.rows, points)])
    pulls = column_norms(gradients) if fit_problem.joint else np.abs(gradients).max(axis=0)
    # A little more, which a fit to the default tolerance can tell.
    return (1.0 + 1e-6) * float(np.max(pulls[penalised] / factor[penalised], initial=0.0)) / unit


def _holding_slope(potential: Potential) -> float:
    """The strongest pull that leaves a coefficient meaning zero."""
    if not potential.smooth:
        return potential.slope_at_zero
    bottom = np.linspace(0.0, potential.zero_width, 1001)
    return float(np.max(np.abs(potential.derivative(bottom))))


def _null_point(fit_problem: FitProblem, rows: Rows) -> Vector:
    """The best point of one class without penalised features."""
    objective = Objective(rows, fit_problem.potential, fit_problem.estimator.eta, fit_problem.factor)
    theta = objective.start()
    free = np.flatnonzero(objective.factor == 0.0)
    # From θ = 0 all rows are active, and stay so for |β| ≤ 1: the weighted mean of the labels is the best β.
    if fit_problem.estimator.fit_intercept:
        at_zero = rows.loss_at_zero
        theta[-1] = -0.5 * at_zero.gradient[-1] / at_zero.value
    if len(free):
        where = np.append(free, rows.n_features)
        part = replace(objective, rows=rows.columns(free), potential=L2(0.0), penalty_factor=None)
        theta[where] = solve(choose_solver(part), part, theta[where], tol=1e-12).iterate.theta
    return theta


def default_strengths(fit_problem: FitProblem, count: int, ratio: float) -> Vector:
    """A number of strengths, falling geometrically by the ratio in all.

    The first is `lambda_max`; for potentials without, the curvature of the loss along its longest feature.
    """
    largest = lambda_max_of(fit_problem)
    if math.isinf(largest):
        longest = max(float(np.max(rows.gram_diagonal[:-1], initial=0.0)) for rows in fit_problem.rows)
        largest = 2.0 * longest
    return np.asarray((largest or 1.0) * np.geomspace(1.0, ratio, count))


def count_features(fit_problem: FitProblem, potential: Potential, results: Sequence[Result]) -> int:
    """How many features the results select."""
    selected = [
        objective.lengths(result.iterate.theta) > 0.0
        for objective, result in zip(fit_problem.objectives(potential), results, strict=True)
    ]
    return int(np.count_nonzero(np.any(selected, axis=0)))


def limit_features(
    fit_problem: FitProblem, limit: int, callbacks: Sequence[Callback]
) -> tuple[Potential, list[Result]]:
    """A fit with the smallest strength ≥ `lam` such that no model on the path to it has more features.

    Along a path from the strength that selects none; the last part of the way is found by bisection.
    """
    strength = float(getattr(fit_problem.potential, "lam", math.nan))
    largest = _holding_strength(fit_problem)
    if not math.isfinite(largest):
        raise ValueError(
            f"max_features={limit} needs a penalty that makes coefficients zero, and "
            f"{fit_problem.potential.name!r} makes none: use e.g. penalty='l1'."
        )
    free = _n_free(fit_problem)
    if free > limit:
        raise ValueError(
            f"max_features={limit} is less than the {free} features that penalty_factor leaves unpenalised."
        )

    run = partial(_fit_at, fit_problem, callbacks=callbacks, limit=limit)

    def ended(results: list[Result]) -> bool:
        """Whether somebody wants no more runs."""
        return any(
            result.status in (Status.INTERRUPTED, Status.STOPPED, Status.TIME_LIMIT) for result in results
        )

    good, best = _strong_enough(run, max(strength, largest))
    low = good
    try:
        if good > strength:
            floor = max(strength, 1e-6 * good)
            count = 1 + math.ceil(PER_DECADE * math.log10(good / floor))
            way = np.geomspace(good, floor, max(count, 2))[1:].tolist()
            for low in way if floor == strength else [*way, strength]:
                if ended(best[1]):
                    return best[:2]
                here = run(low)
                if not here[2]:
                    break
                good, best = low, here
        while good > (1.0 + EXACTNESS) * low:
            middle = math.sqrt(good * low) if low > 0.0 else 0.5 * good
            here = run(middle)
            if ended(here[1]):
                break
            if here[2]:
                good, best = middle, here
            else:
                low = middle
    except KeyboardInterrupt:  # in a run that had not begun; the best of the others is kept
        return best[0], [replace(result, status=Status.INTERRUPTED) for result in best[1]]
    return best[:2]


def _strong_enough(
    run: Callable[[float], tuple[Potential, list[Result], bool]], start: float
) -> tuple[float, tuple[Potential, list[Result], bool]]:
    """The start, or twice as much as often as it takes to select few enough features."""
    for strength in start * 2.0 ** np.arange(60):
        answer = run(float(strength))
        if answer[2]:
            return float(strength), answer
    raise ValueError(
        "However strong the penalty, too many features are selected: standardise the features, or use a "
        "convex penalty, e.g. 'l1'."
    )
