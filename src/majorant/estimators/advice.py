"""What to tell a user of a fit: of several problems together, and what to do if something went wrong.

That a fit did not converge, or that the best strength of a cross-validation stands at an end of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from majorant.objective import Objective
from majorant.rows.block import Block
from majorant.solvers import Solver
from majorant.solvers.reweighted import spread
from majorant.status import Certificate, Result, Status

if TYPE_CHECKING:
    from majorant.estimators.cv import SparseSVCCV
    from majorant.estimators.fit_problem import FitProblem

# The ratio of the largest to the smallest of some numbers beyond which they are told as what limits a fit.
WIDE = 1e6
# How many times its spread a column may lie from zero, and the share of rounding in a penalty that is faint.
FAR = 1e4
FAINT = 1e-8
# The ratio of the standard deviations of two features from which on standardising is worth a try.
SCALES = 100.0
# The share of the coefficients inside the rounded bottom of a potential from which on δ is too wide.
INSIDE = 0.5


def convergence_advice(result: Result, solver: Solver, tol: float, objective: Objective) -> str:
    """The text of the ConvergenceWarning: one sentence on what was reached, one on what to do."""
    plural = "" if result.n_iter == 1 else "s"
    reached = (
        f"{result.status.value} Reached: {result.certificate} after {result.n_iter} "
        f"iteration{plural} of {solver.name!r}, tol is {tol:.1e}. "
    )
    return reached + _what_to_do(result.status, solver, objective)


def search_advice(result: Result, size: int) -> str:
    """The text of the ConvergenceWarning of a search for features that has not come to its end."""
    found = result.history[-1].nonzeros
    return (
        f"{result.status.value} The search for {size} features has come to {found} after {result.n_iter} "
        "steps. Increase max_iter."
    )


def _what_to_do(status: Status, solver: Solver, objective: Objective) -> str:
    if status is Status.NOT_FINITE:
        return "Use a smaller step, or scale the features."
    if status is Status.STALLED:
        return f"{what_limits(objective)} Standardise the features, or take a tol above what was reached."
    if status is Status.ZERO_TOL:
        return "Take a smaller zero_tol, or zero_tol='auto'."
    if status is Status.TIME_LIMIT:
        return "Give it more time, or accept what was reached."
    if solver.name == "newton":
        return "Increase max_iter, or the strength of the penalty."
    return "Increase max_iter, or use solver='auto'."


def grid_advice(model: SparseSVCCV, fit_problem: FitProblem) -> str:
    """What to do if the best strength of a cross-validation stands at an end of the grid; else nothing."""
    if model.n_features is not None:
        return _size_advice(model, fit_problem)
    lambdas = model.lambdas_
    if len(lambdas) == 1 or model.lam_best_ not in lambdas[[0, -1]]:
        return ""
    best = f"The best mean score is at the {{}} strength of the grid, lam={model.lam_best_:.4g}: "
    if model.lam_best_ == lambdas[-1]:
        if model.max_features is not None:
            return ""  # which ends the grid where the user wants
        advice = best.format("smallest") + "a smaller one may score better. Take a smaller ratio."
    elif len(model.support_) and not isinstance(model.lambdas, Integral):  # else they begin at `lambda_max`
        advice = best.format("largest") + "a larger one may score better. Add larger strengths to lambdas."
    else:
        advice = best.format("largest") + "no model that uses features scores better than one without."
    spreads = np.sqrt(spread(fit_problem.unscaled_rows[0]))
    spreads = spreads[spreads > 0.0]
    if not model.standardize and np.max(spreads, initial=0.0) > SCALES * np.min(spreads, initial=np.inf):
        ratio = float(np.max(spreads) / np.min(spreads))
        advice += f" The standard deviations of the features differ by a factor of {ratio:.0f}, so that the "
        advice += "penalty weighs on some more than on others: try standardize=True."
    return advice


def _size_advice(model: SparseSVCCV, fit_problem: FitProblem) -> str:
    """What to do if the largest number of features has the best score; else nothing."""
    sizes, best = model.sizes_, model.n_features_best_
    if len(sizes) == 1 or best != sizes[-1] or best == fit_problem.n_features:
        return ""
    return (
        f"The best mean score is at the largest number of features, n_features={best}: a larger one may "
        "score better. Add larger numbers to n_features."
    )


def width_advice(objectives: Sequence[Objective], results: Sequence[Result], zero_tol: float | str) -> str:
    """What to do if most coefficients lie inside the bottom of a non-convex potential; else nothing."""
    potential = objectives[0].potential
    if potential.convex or potential.zero_width == 0.0 or not isinstance(zero_tol, str):
        return ""
    pairs = zip(objectives, results, strict=True)
    sizes = np.concatenate([objective.lengths(result.iterate.theta) for objective, result in pairs])
    sizes = sizes[sizes > 0.0]
    inside = int(np.count_nonzero(sizes <= potential.zero_width))
    if inside <= INSIDE * len(sizes):
        return ""
    return (
        f"{inside} of the {len(sizes)} coefficients that are not zero lie inside the rounded bottom of "
        f"{potential.name!r}, |w| <= {potential.zero_width:.3g}: there the penalty is a ridge, which selects "
        "no features, and zeros would cost more than tol. Take a smaller delta."
    )


def what_limits(objective: Objective) -> str:
    """What makes rounding matter in a problem: a sentence."""
    rows, factor = objective.rows, objective.factor
    found = []
    ranges = list(rows.map_blocks(_weight_range))
    found += _wide("sample weights", [low for low, _ in ranges], [high for _, high in ranges])
    found += _wide("penalty factors", factor[factor > 0.0])
    with np.errstate(over="ignore", invalid="ignore"):
        squares, around = rows.gram_diagonal[:-1], 0.5 * spread(rows)
    lengths = np.sqrt(around[around > 0.0])
    found += _wide("lengths of the features", lengths)
    if np.any(around < squares / FAR**2) and rows.gram_diagonal[-1] > 0.0:
        found.append("features far from zero compared to their spread")
    if len(objective.free):
        found.append("features without any penalty")
    pull = float(np.max(objective.gradient_norms_at_zero, initial=0.0))
    if 0.0 < objective.potential.max_slope * float(np.max(factor, initial=0.0)) < FAINT * pull:
        found.append("a penalty that is faint beside the loss")
    if not objective.potential.convex:
        found.append("a penalty that is not convex")
    if not found:
        return "Rounding limits it: features that nearly depend on each other."
    return f"Rounding limits it: {', '.join(found)}."


def _wide(what: str, low: ArrayLike, high: ArrayLike | None = None) -> list[str]:
    """These numbers, if they span many orders of magnitude."""
    smallest = float(np.min(low, initial=np.inf))
    largest = float(np.max(low if high is None else high, initial=0.0))
    return [f"{what} from {smallest:.1e} to {largest:.1e}"] if largest > WIDE * smallest else []


def _weight_range(block: Block) -> tuple[float, float]:
    """The smallest weight that is not zero, and the largest."""
    return float(np.min(block.s[block.s > 0.0], initial=np.inf)), float(np.max(block.s, initial=0.0))


def interruption(model: Any) -> str | None:
    """What Ctrl-C has left of a fitted model, as a sentence; None if the fit was not interrupted."""
    if getattr(model, "status_", None) is not Status.INTERRUPTED:
        return None
    histories = getattr(model, "history_", None)
    if isinstance(histories, list):
        begun = sum(bool(len(history)) for history in histories)
        return (
            f"The fit was interrupted: {begun} of {len(histories)} classes were begun, the others are not "
            "trained."
        )
    return "The fit was interrupted: the last iterate is kept, which is not the minimum."


def severity(result: Result) -> int:
    """How bad the reason is for which a run has stopped: the worst of several is what a user is told."""
    return severity_of(result.status)


def severity_of(status: Status) -> int:
    """The place of a reason to stop among all, the worst last."""
    order = [Status.CONVERGED, Status.NO_SWAP, Status.ZERO_TOL, Status.STOPPED, Status.STALLED]
    order += [Status.MAX_ITER, Status.TIME_LIMIT, Status.NOT_FINITE, Status.INTERRUPTED]
    return order.index(status)


def overall(results: Sequence[Result]) -> Certificate:
    """What is certain of several problems together: the gap of the sum of their Φ, the worst stationarity."""
    values = np.array([result.iterate.value for result in results])
    gaps = np.array([result.certificate.gap for result in results])
    total = values.sum()
    gap = float(gaps @ values / total) if total > 0.0 else float(gaps.max())
    return Certificate(float(np.max([result.certificate.stationarity for result in results])), gap)
