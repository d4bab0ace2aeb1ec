"""What a fit claims, compared with what is true."""

from __future__ import annotations

import math
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from majorant import SparseSVC, sparse_svc_path
from majorant.rows.sources import from_arrays

from .problems import Problem
from .reference import best_known_value, objective_value, penalty_at_zero, rounding

EPS = float(np.finfo(float).eps)
LIMITS = ("limit", "Rounding", "range of floating-point", "zero_tol")
"""One of these is in the message of every fit that does not converge."""


@dataclass
class Outcome:
    """What came of one problem."""

    seed: int
    traits: list[str]
    route: str
    shape: tuple[int, int]
    penalty: str
    status: str = ""
    converged: bool = False
    gap: float = math.nan
    excess: float = math.nan
    """(Φ - best known Φ) relative to Φ without what no coefficients can avoid."""
    seconds: float = 0.0
    reference_seconds: float = 0.0
    false_claims: list[str] = field(default_factory=list)
    message: str = ""

    def __str__(self) -> str:
        rows, columns = self.shape
        return (
            f"seed {self.seed}: {self.route}, {self.penalty}, {rows} x {columns}, "
            f"{', '.join(self.traits)}; {self.status}, gap {self.gap:.1e}, excess {self.excess:.1e}, "
            f"{self.seconds:.2f} s"
        )


def check_claims(problem: Problem, fitted: Callable[[], None] = lambda: None) -> Outcome:
    """Fit, and list the claims of the fit that are false, each beginning with its kind and a colon.

    `fitted` is called between the fit and the reference.
    """
    warm_up()
    outcome = Outcome(
        problem.seed, problem.traits, problem.route, problem.X.shape, problem.settings["penalty"]
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        try:
            model = fit(problem)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
            outcome.false_claims.append(f"exception: {type(error).__name__} at {where}: {error}")
            outcome.status = "exception"
            return outcome
        finally:
            outcome.seconds = time.process_time() - start
    fitted()
    told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    others = [w for w in caught if not issubclass(w.category, ConvergenceWarning)]
    # Advice about δ, which problems are drawn with at random: of the coefficients, and true.
    others = [w for w in others if "inside the rounded bottom" not in str(w.message)]
    outcome.message = told[-1] if told else ""
    outcome.status, outcome.converged = model.status_.name, bool(model.converged_)
    outcome.gap = float(model.gap_)
    start = time.process_time()
    _check(problem, model, outcome)
    outcome.reference_seconds = time.process_time() - start
    outcome.false_claims += [f"warning: {w.category.__name__}: {w.message}" for w in others]
    return outcome


def fit(problem: Problem) -> Any:
    """The model of the problem, fitted the way its route says."""
    settings, X, y, s = dict(problem.settings), problem.X, problem.y, problem.sample_weight
    if problem.route == "source":
        return SparseSVC(**settings).fit(from_arrays(X, y, s, rows_per_block=problem.rows_per_block))
    if problem.route == "warm":
        model = SparseSVC(**{**settings, "lam": problem.first_lam, "warm_start": True})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, s)
        return model.set_params(lam=settings["lam"]).fit(X, y, s)
    if problem.route == "path" and settings["lam"] > 0.0:
        lam, penalty = settings.pop("lam"), settings.pop("penalty")
        lambdas = np.geomspace(problem.first_lam, lam, 4)
        lambdas[-1] = lam
        return sparse_svc_path(X, y, penalty, lambdas=lambdas, sample_weight=s, **settings).models[-1]
    return SparseSVC(**settings).fit(X, y, s)


@cache
def warm_up() -> None:
    """Compile what the fits need, so that no fit is charged for it."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((40, 5))
    y = np.where(dense[:, 0] > 0, 1, -1)
    several = np.arange(40) % 3
    s = np.ones(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in (np.float64, np.float32):
            for make in (np.ascontiguousarray, np.asfortranarray, sp.csr_matrix):
                X = make(dense.astype(dtype))
                for penalty in ("l1", "hyperbolic", "l2", "welsch"):
                    SparseSVC(penalty).fit(X, y, s)
                    SparseSVC(penalty, multi_class="joint").fit(X, several, s)
                    SparseSVC(penalty).fit(from_arrays(X, y, s, rows_per_block=15))


def _holds_without_zeros(problem: Problem, best: np.longdouble, allowed: float) -> bool:
    """Whether the same fit is as good as it claims to be before small coefficients are set to zero."""
    if problem.settings.get("zero_tol") == 0.0:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(replace(problem, settings={**problem.settings, "zero_tol": 0.0}))
    value = objective_value(problem, _dense(model.coef_), np.asarray(model.intercept_))
    return float(value - best) <= allowed


def _dense(coef: Any) -> NDArray[Any]:
    return np.asarray(coef.toarray() if sp.issparse(coef) else coef)


def _check(problem: Problem, model: Any, outcome: Outcome) -> None:
    claims = outcome.false_claims
    coef, intercept = _dense(model.coef_), np.asarray(model.intercept_)
    tol = problem.settings.get("tol", 1e-6)
    if not (np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept))):
        claims.append("finite: the coefficients are not finite")
        return
    value = objective_value(problem, coef, intercept)
    at_zero = objective_value(problem, np.zeros_like(coef), np.zeros_like(intercept))
    best = best_known_value(problem, [(coef, intercept)])
    unavoidable = penalty_at_zero(problem)
    slack = 4.0 * rounding(problem, coef, intercept) + 8.0 * EPS * float(value)
    excess = float(value - best)
    base = float(value - unavoidable)
    outcome.excess = excess / base if base > 0.0 else 0.0
    convex = outcome.penalty != "welsch"
    bounded = not math.isnan(model.lower_bound_)

    if bounded and convex:
        over = float(np.longdouble(model.lower_bound_) - best)
        if over > 1e-9 * float(best) + 1e-14 * float(at_zero) + slack:
            claims.append(
                f"lower_bound_: {model.lower_bound_!r} is above {best!s}, by {over / float(best):.1e}"
            )
    if model.converged_:
        if convex:
            allowed = tol * base * (1.0 + 1e-3) + slack + (1e-15 if bounded else 1e-9) * float(at_zero)
        else:
            allowed = 1e-4 * base + slack + 1e-9 * float(at_zero)
        if excess > allowed:
            kind = "converged_"
            if _holds_without_zeros(problem, best, allowed):
                kind = "converged_ (by setting coefficients to zero)"
            claims.append(
                f"{kind}: Φ {float(value):.10g} is {excess:.3e} ({outcome.excess:.1e} of Φ without "
                f"Σcφ(0)) above {float(best):.10g}; rounding {slack:.1e}, gap_ {outcome.gap:.1e}, "
                f"stationarity_ {model.stationarity_:.1e}, coef_ {coef.dtype}"
            )
    wrong = abs(float(np.longdouble(model.objective_) - value))
    if not wrong <= 1e-9 * float(value) + slack + 1e-14 * float(at_zero):
        claims.append(f"objective_: {model.objective_!r} where Φ is {float(value)!r}, coef_ {coef.dtype}")
    if bounded:
        apart = model.objective_ - model.lower_bound_
        # A Φ of 1e-20 of that at zero counts as zero (`majorant.duality.VANISHING`).
        allowed = 8.0 * EPS * abs(model.objective_) + 1e-20 * float(at_zero)
        if apart > model.gap_ * model.objective_ * (1.0 + 1e-9) + allowed:
            claims.append(
                f"gap_: {model.gap_:.3e}, but objective_ - lower_bound_ is "
                f"{apart / model.objective_:.3e} of objective_"
            )
    if bool(model.converged_) != (model.status_.name == "CONVERGED"):
        claims.append(f"status_: {model.status_.name}, and converged_ is {model.converged_}")
    certificate = model.stationarity_ if math.isnan(model.gap_) else model.gap_
    if model.converged_ and not certificate <= tol:
        claims.append(f"certificate: converged_, but it is {certificate:.1e}")
    if not model.converged_:
        if not outcome.message:
            claims.append("silence: not converged, and no ConvergenceWarning")
        elif not any(words in outcome.message for words in LIMITS):
            claims.append(f"message: names no limit: {outcome.message}")
