"""The laws of potentials and solvers, as checks for your own classes.

    from majorant.testing import check_potential, check_solver

Each raises an `AssertionError` that names the broken law. The project's tests run them on all registered
classes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from majorant.errors import MajorantError, UnsuitableSolverError
from majorant.objective import Objective
from majorant.potentials import Hyperbolic, Potential
from majorant.potentials.base import FAR
from majorant.rows import MemoryRows
from majorant.solvers import Solver, solve
from majorant.status import Matrix, Vector


def small_problem(seed: int = 0, n: int = 60, p: int = 4) -> tuple[Matrix, Vector, Vector]:
    """X, y and weights of a small problem with overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(X @ np.linspace(1.0, 0.0, p) + rng.standard_normal(n) > 0.2, 1.0, -1.0)
    return X, y, rng.uniform(0.5, 1.5, n)


def check_potential(potential: Potential) -> None:
    """Assert the laws of a potential: φ is even, ψ is its half-quadratic weight, and all its attributes."""
    w = _points(potential)
    _law_even(potential, w)
    _law_derivative(potential, w)
    _law_weight(potential, w)
    _law_half_quadratic_majorant(potential, w)
    _law_lipschitz(potential, w)
    _law_slope_at_zero(potential, w)
    _law_convexity(potential, w)
    _law_prox(potential)
    _law_zeros(potential, w)
    _law_newton(potential, w)
    _law_conjugate(potential, w)
    _law_excess(potential, w)


def check_solver(solver: Solver, potential: Potential | None = None) -> None:
    """Assert that the solver minimises Φ with that potential, or raises an error before it starts."""
    X, y, s = small_problem()
    potential = Hyperbolic(lam=0.5, delta=0.1) if potential is None else potential
    objective = Objective(MemoryRows(X, y, s), potential, eta=0.1, penalty_factor=np.array([1.0, 0.5, 2, 0]))
    if solver.objection(objective) is not None:
        _law_objection(solver, objective)
        return
    start = np.array([0.5, -0.5, 0.25, 0.0, 0.1])
    tol, max_iter = (1e-5, 20_000) if not solver.stochastic else (0.0, 200)
    runs = [solve(solver, objective, start, tol=tol, max_iter=max_iter, seed=7) for _ in range(2)]
    result = runs[0]
    values = result.history.column("objective")
    first = objective.evaluate(start).value + objective.constant
    assert np.isclose(values[0], first), "the first iterate is not the start"
    if solver.monotone:
        assert np.all(np.diff(values) <= 1e-12 * np.abs(values[:-1])), "Φ increased"
    if not solver.stochastic:
        assert result.status.converged, f"not converged: {result.certificate}"
    else:
        # The progress of 200 epochs depends on the step; other tests check the limit of each solver.
        assert values[-1] < values[0], "a stochastic solver made no progress"
    assert np.array_equal(runs[0].iterate.theta, runs[1].iterate.theta), "two runs with one seed differ"


def _law_objection(solver: Solver, objective: Objective) -> None:
    message = ""
    try:
        solve(solver, objective)
    except UnsuitableSolverError as error:
        message = str(error)
    assert message, "a solver with an objection ran nevertheless"
    assert solver.name in message, "the objection does not name the solver"
    assert "Solvers that accept this problem: '" in message, "the objection names no alternative"


# The laws of a potential -----------------------------------------------------------------------


def _points(potential: Potential) -> Vector:
    """Positive points around the scale of the potential, where it is curved, and far outside."""
    scale = potential.zero_width or 1.0
    return np.unique(np.concatenate([scale * np.geomspace(1e-3, 1e3, 61), np.geomspace(1e-2, 10.0, 25)]))


def _law_even(potential: Potential, w: Vector) -> None:
    assert np.array_equal(potential.value(w), potential.value(-w)), "φ is not even"
    assert np.array_equal(potential.derivative(w), -potential.derivative(-w)), "φ' is not odd"


def _law_derivative(potential: Potential, w: Vector) -> None:
    h = 1e-4 * np.minimum(w, potential.zero_width or 1.0)
    value = potential.value
    stencil = (value(w - 2 * h) - 8 * value(w - h) + 8 * value(w + h) - value(w + 2 * h)) / (12 * h)
    noise = 1e-14 * np.max(np.abs(value(w))) / h
    error = np.abs(stencil - potential.derivative(w))
    assert np.all(error <= 1e-6 * np.abs(stencil) + noise), "φ' is not the derivative of φ"


def _law_weight(potential: Potential, w: Vector) -> None:
    assert np.allclose(potential.weight(w) * w, potential.derivative(w), rtol=1e-12), "ψ(w)w ≠ φ'(w)"
    assert np.all(potential.weight(w) >= 0), "ψ is negative"
    increases = [b > a * (1 + 1e-12) for a, b in pairwise(potential.weight(w))]
    assert not any(increases), "ψ increases: φ(√·) is not concave"


def _law_half_quadratic_majorant(potential: Potential, w: Vector) -> None:
    w = w[:, np.newaxis]
    v = np.concatenate([w, -w, [[0.0]]]).T
    majorant = potential.value(w) + potential.derivative(w) * (v - w) + potential.weight(w) / 2 * (v - w) ** 2
    slack = 1e-10 * np.maximum(np.abs(majorant), np.max(np.abs(potential.value(w))))
    assert np.all(majorant >= potential.value(v) - slack), "the half-quadratic majorant is crossed"


def _law_lipschitz(potential: Potential, w: Vector) -> None:
    if not potential.smooth:
        assert not np.isfinite(potential.lipschitz), "a kink has no Lipschitz constant"
        return
    w = np.sort(np.concatenate([-w, [0.0], w]))
    slopes = np.abs(np.diff(potential.derivative(w)) / np.diff(w))
    assert np.all(slopes <= potential.lipschitz * (1 + 1e-6) + 1e-12), "φ' is not a-Lipschitz"
    assert np.max(slopes) >= 0.5 * potential.lipschitz, "the Lipschitz constant a is far too large"


def _law_slope_at_zero(potential: Potential, w: Vector) -> None:
    h = 1e-9
    slope = float((potential.value(np.array([h])) - potential.value(np.zeros(1)))[0]) / h
    limit = potential.slope_at_zero
    tolerance = 1e-5 * (limit + float(np.max(np.abs(potential.derivative(w)))))
    assert abs(slope - limit) <= tolerance, "φ'(0+) is not slope_at_zero"


def _law_convexity(potential: Potential, w: Vector) -> None:
    falls = np.diff(potential.derivative(w)) < -1e-12 * np.max(np.abs(potential.derivative(w)))
    assert potential.convex != bool(np.any(falls)), "`convex` is not what φ' shows"


def _law_prox(potential: Potential) -> None:
    w = np.linspace(-3.0, 3.0, 41)
    if not potential.proximable:
        try:
            potential.prox(w, np.ones_like(w))
        except MajorantError:
            return
        raise AssertionError("a potential that is not proximable has a prox")
    v = np.linspace(-4.0, 4.0, 2001)[:, np.newaxis]
    for step in (0.1, 1.0, 10.0):
        near = potential.prox(w, np.full_like(w, step))
        best = np.min(0.5 * (v - w) ** 2 + step * potential.value(v), axis=0)
        reached = 0.5 * (near - w) ** 2 + step * potential.value(near)
        assert np.all(reached <= best + 1e-12), "the prox is not the minimiser"


def _law_newton(potential: Potential, w: Vector) -> None:
    assert potential.derivative(np.zeros(1))[0] == 0.0, "φ'(0) is not taken to be zero"
    if potential.smooth:
        curvature, weight = potential.curvature(w), potential.weight(w)
        assert np.all((curvature >= 0) & (curvature <= weight * (1 + 1e-12))), (
            "0 ≤ curvature ≤ ψ does not hold"
        )
        if potential.convex:
            h = 1e-5 * w
            second = (potential.derivative(w + h) - potential.derivative(w - h)) / (2 * h)
            slack = 1e-6 * second + 1e-9 * float(np.max(weight))
            assert np.all(curvature >= second - slack), "the curvature of a convex φ is below φ''"
    if potential.quadratic:
        assert np.ptp(potential.curvature(w)) == 0.0, "φ is not quadratic"
    if potential.concave:
        falls = np.diff(potential.derivative(w)) <= 1e-12 * np.max(np.abs(potential.derivative(w)))
        assert np.all(falls), "φ is not concave on [0, ∞["
    surrogates = potential.surrogates(1.0)
    if potential.smooth and surrogates and not surrogates[-1].smooth:
        slopes = np.linspace(-0.99, 0.99, 34) * potential.max_slope
        again = potential.derivative(potential.inverse_derivative(slopes))
        assert np.allclose(again, slopes, rtol=1e-9), "φ'(inverse_derivative(s)) ≠ s"


def _law_conjugate(potential: Potential, w: Vector) -> None:
    slopes = potential.derivative(w)
    assert np.all(slopes <= potential.max_slope * (1 + 1e-12)), "φ' exceeds `max_slope`"
    if not potential.convex:
        return
    value, conjugate = potential.value(w), potential.conjugate(slopes)
    slack = 1e-9 * (np.abs(value) + np.abs(slopes * w))
    assert np.all(np.abs(conjugate + value - slopes * w) <= slack), "φ*(φ'(w)) ≠ φ'(w) w - φ(w)"
    products = slopes[:, np.newaxis] * w
    assert np.all(conjugate[:, np.newaxis] + value >= products - slack), "φ*(u) + φ(w) < uw"


def _law_excess(potential: Potential, w: Vector) -> None:
    value, at_zero = potential.value(w), potential.value(np.zeros(1))
    excess = potential.excess(w)
    assert potential.excess(np.zeros(1))[0] == 0.0, "`excess` is not zero at zero"
    assert np.all(excess <= potential.limit * (1 + 1e-12)), "φ - φ(0) exceeds `limit`"
    if np.isfinite(potential.limit):
        assert potential.excess(np.array([FAR]))[0] >= potential.limit * (1 - 1e-9), "φ stays below `limit`"
    assert np.all(np.abs(excess - (value - at_zero)) <= 1e-12 * np.abs(value)), "`excess` ≠ φ(w) - φ(0)"
    if potential.convex:
        slopes = potential.derivative(w)
        conjugate = potential.excess_conjugate(slopes)
        slack = 1e-9 * (np.abs(value) + np.abs(slopes * w))
        assert np.all(conjugate >= 0.0), "`excess_conjugate` < 0"
        assert np.all(np.abs(conjugate + excess - slopes * w) <= slack), "`excess_conjugate` ≠ φ* + φ(0)"
    if potential.kink_width is not None:
        root = np.hypot(w, potential.kink_width)
        assert np.allclose(value, potential.max_slope * root), "φ is no kink rounded to `kink_width`"


def _law_zeros(potential: Potential, w: Vector) -> None:
    if potential.zero_width > 0:
        largest = float(np.max(np.abs(potential.derivative(w))))
        assert 0.5 * potential.max_slope <= largest <= potential.max_slope * (1 + 1e-12), "`max_slope` is not"
