r"""The best k features: a search for the support of size k on which Φ is smallest.

For a quadratic penalty (a ridge, or none), the problem is

    minimise Φ(W, β)   over all W with at most k features, besides those whose penalty factor is 0.   (subset)

F(S) is the minimum of Φ over the coefficients of the features S and the intercept; `refit.py` finds it.

*Rank.* At the minimiser for S, feature j would lower Φ by about

    g_j²/2h_j,    g_j = ∂_jΦ,    h_j = H_jj - H_jS H_SS⁻¹ H_Sj,                                     (gain)

H the Hessian over the rows that are active there. One pass over the rows gives g; the curvature h is computed
of those features that are best by g_j² relative to their spread. Gains have no units.

*Grow.* The feature of the largest gain joins S.

*Swap.* The weakest features of S are removed, each for itself, those first whose removal raises Φ least by the
quadratic model, by w_j²/2(H⁻¹)_jj. The rest is refitted, all features are ranked at that point, and the best
few are tried in the place of the one removed. The best of these is taken if Φ is lower with it. The search
ends at a support on which no such swap lowers Φ.

The search begins at a given support, and grows to k features, or shrinks to k by removing the weakest, with
swaps at every size. Along a path of sizes each search begins where the last one ended, so that Φ never rises
with the size.

*Ties.* Gains that differ by no more than rounding may explain count as equal, and the feature of the lower
index comes first; a swap has to lower Φ by more than rounding may. So the order of the rows, weights instead
of repeated rows, the units of the columns and the kind of processor do not decide which features are found.

With several classes at once (a joint problem), Φ and all gains are sums over the classes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from majorant.blas import one_thread
from majorant.callbacks import Callback
from majorant.errors import UnsuitableSolverError
from majorant.interrupts import CtrlC, check, ending_on, undisturbed
from majorant.objective import Objective
from majorant.solvers.auto import choose_solver
from majorant.solvers.driver import solve
from majorant.solvers.narrowing import Narrowing
from majorant.solvers.refit import Candidate, ColumnCache, Indices, Refit, refit, solve_curvature
from majorant.status import Certificate, Evaluated, History, Record, Result, Status, Vector

# How many of the weakest features a swap may remove, and how many of the best others are tried in the place of
# each. (`Status.NO_SWAP` names both.)
REMOVED = 8
TRIED = 3
# How many features are ranked by their curvature too, after all are by their gradient.
SHORTLIST = 32
# Relative differences of gains, and of Φ, that count as rounding.
SAME_GAIN = 1e-7
SAME_VALUE = 1e-10
# The share of its curvature that a feature has at least, whatever the support explains of it: less is rounding.
LEAST_CURVATURE = 1e-8


class SubsetSearch:
    """Searches for supports of one problem; what it has copied of the rows serves the next search.

    Parameters
    ----------
    objective : Objective
        With rows in memory and a quadratic penalty.
    """

    def __init__(self, objective: Objective) -> None:
        if objective.in_memory is None:
            raise UnsuitableSolverError(
                "n_features needs rows that are in memory: a search for the best features reads them hundreds of "
                "times. Use max_features, which takes sources and dask collections."
            )
        if not objective.potential.quadratic:
            raise UnsuitableSolverError(f"a search for features has no use for {objective.potential.name!r}")
        self.objective = objective
        self.columns = ColumnCache(objective)
        self.always = np.flatnonzero(objective.factor == 0.0)
        """The features without penalty, which are on every support and are not counted."""
        self._settled: frozenset[int] | None = None
        """The last support that no swap lowers Φ from: where the next search of a path begins."""
        self._measure = (self.columns.lengths * np.sqrt(2.0 + self.columns.ridge)) ** -1.0

    # Steps -------------------------------------------------------------------------------------

    def rank(self, at: Refit, count: int, without: int | None = None) -> list[Candidate]:
        """The features of the largest gains that are not on the support, Eq. (gain), the best first."""
        columns = self.columns
        squares = np.zeros(len(self._measure))
        for rows, theta in zip(self.objective.classes, columns.theta(at), strict=True):
            gradient = rows.loss(theta).gradient
            squares += ((gradient[:-1] - columns.means * gradient[-1]) * self._measure) ** 2
        squares[~columns.usable] = 0.0
        squares[at.support] = 0.0
        if without is not None:
            squares[without] = 0.0
        listed = _largest(squares, max(count, min(SHORTLIST, columns.capacity // 2)))
        if not len(listed):
            return []
        added = columns.of(listed)
        ridge = columns.ridge[listed]
        gains, borders, diagonals = np.zeros(len(listed)), [], []
        for y, slack, curvature in zip(columns.labels, at.slack, at.curvature, strict=True):
            active = slack > 0.0
            gradient = 2.0 * (added @ (y * np.maximum(slack, 0.0)))
            part = added[:, active]
            border = 2.0 * (at.columns[:, active] @ part.T)
            diagonal = 2.0 * np.einsum("ji,ji->j", part, part)
            explained = np.einsum("ij,ij->j", border, solve_curvature(curvature, at.ridge, border))
            left = np.maximum(diagonal - explained, LEAST_CURVATURE * diagonal) + ridge
            gains += 0.5 * gradient**2 / np.where(left > 0.0, left, np.inf)
            borders.append(border)
            diagonals.append(diagonal)
        best = [j for j in ordered(gains)[:count] if gains[j] > SAME_VALUE * at.value]
        return [
            Candidate(
                int(listed[j]), added[j], float(ridge[j]), np.stack([border[:, j] for border in borders]),
                np.array([diagonal[j] for diagonal in diagonals]),
            )
            for j in best
        ]  # fmt: skip

    def weakest(self, at: Refit) -> Indices:
        """The positions on the support, those first whose removal raises Φ least by the quadratic model."""
        costs = np.zeros(len(at.support))
        for coef, curvature in zip(at.coef, at.curvature, strict=True):
            inverse = solve_curvature(curvature, at.ridge, np.eye(len(at.ridge)))
            costs += 0.5 * coef[1:] ** 2 / np.diag(inverse)[1:]
        removable = np.flatnonzero(~np.isin(at.support, self.always))
        order = ordered(-costs[removable], at.support[removable])
        return removable[order]

    def grown(self, at: Refit) -> Refit | None:
        """The support with the feature of the largest gain; None if no feature lowers Φ."""
        for candidate in self.rank(at, 1):
            return self._refit(candidate.joined_to(at))
        return None

    def shrunk(self, at: Refit) -> Refit | None:
        """The support without its weakest feature."""
        return self._refit(at.without(int(self.weakest(at)[0])))

    def swapped(self, at: Refit) -> Refit | None:
        """The support after the first swap that lowers Φ; None if there is none."""
        for position in self.weakest(at)[:REMOVED].tolist():
            check()
            rest = self._refit(at.without(position))
            assert rest is not None
            best, limit = None, (1.0 - SAME_VALUE) * at.value
            for candidate in self.rank(rest, TRIED, without=int(at.support[position])):
                trial = self._refit(candidate.joined_to(rest), limit)
                if trial is not None:
                    best, limit = trial, (1.0 - SAME_VALUE) * trial.value
            if best is not None:
                return best
        return None

    def _refit(self, start: Refit, limit: float = math.inf) -> Refit | None:
        return refit(start, self.columns.root, self.columns.labels, limit)

    def steps(self, size: int, theta: Vector) -> Iterator[Refit]:
        """The supports that the search comes to, from that of θ; the end is one that no swap lowers Φ from."""
        classes = self.objective.matrix(theta)
        start = np.union1d(np.flatnonzero(classes[:, :-1].any(axis=0)), self.always)
        at: Refit | None = self.columns.at(start.astype(np.intp), classes)
        wanted = size + len(self.always)
        while at is not None:
            yield at
            here, features = at, frozenset(at.support.tolist())
            if len(features) > wanted:
                at = self.shrunk(here)
                continue
            at = None if features == self._settled else self.swapped(here)
            if at is None:
                self._settled = features
                if len(features) < wanted:
                    at = self.grown(here)

    # A run -------------------------------------------------------------------------------------

    def run(
        self, size: int, theta: Vector | None = None, *, tol: float, max_iter: int,
        callbacks: Sequence[Callback] = (),
    ) -> Result:  # fmt: skip
        """Search for the best support of a size, from that of θ.

        The result is one of the problem with the features of its support: the certificate, the lower bound and
        the gradient are about these alone, as `on_support` gives it.

        Parameters
        ----------
        size : int
            The most features of the support, besides those without penalty.
        theta : array (objective.size,), optional
            By default zero.
        tol : float
            The certificate of the coefficients on the support.
        max_iter : int
            The most steps: features that are added, removed or swapped.
        callbacks : sequence of Callback
            Called after every step, with a certificate of nan.
        """
        objective, history, began = self.objective, History(), time.perf_counter()
        for callback in callbacks:
            callback.on_begin(objective, tol)
        resumed = next((c.start_theta for c in callbacks if c.start_theta is not None), theta)
        last = objective.start() if resumed is None else resumed
        status, paused = Status.NO_SWAP, 0.0
        with CtrlC() as ctrl_c, ending_on(lambda: ctrl_c.pressed), one_thread():
            try:
                for n, at in enumerate(self.steps(size, last)):
                    last = self.columns.theta(at).ravel()
                    seconds = time.perf_counter() - began - paused
                    record = Record(n, seconds, at.value, math.nan, math.nan, len(at.support))
                    history.append(record)
                    reason = _answer(callbacks, objective, last, record) if callbacks else None
                    paused = time.perf_counter() - began - seconds
                    if reason is None and n == max_iter:
                        reason = Status.MAX_ITER
                    if reason is not None:
                        status = reason
                        break
                    check()
            except KeyboardInterrupt:
                if not history:
                    raise
            if ctrl_c.pressed:
                status = Status.INTERRUPTED
            with undisturbed():
                chosen = next((c.best_theta for c in callbacks if c.best_theta is not None), None)
                result = self._certified(last if chosen is None else chosen, status, history, tol)
        for callback in callbacks:
            callback.on_end(result)
        return result

    def _certified(self, theta: Vector, status: Status, history: History, tol: float) -> Result:
        """What is true of θ among all coefficients with its support."""
        part = on_support(self.objective, theta)
        at, certificate = part.objective.certify(part.narrow(theta))
        if status is Status.NO_SWAP and not certificate.error <= tol:
            better = solve(choose_solver(part.objective), part.objective, at.theta, tol=tol)
            at, certificate = better.iterate, better.certificate
            status = status if better.status.converged else better.status
        final = replace(
            history[-1], objective=at.value, gap=certificate.gap, stationarity=certificate.stationarity,
            nonzeros=part.objective.nonzeros(at.theta),
        )  # fmt: skip
        history = History([*history[:-1], final])
        return Result(part.widen_point(at), status, final.iteration, certificate, history)


def on_support(objective: Objective, theta: Vector) -> Narrowing:
    """The problem with the features of θ, and those without penalty, alone."""
    support = np.flatnonzero((objective.lengths(theta) > 0.0) | (objective.factor == 0.0))
    return Narrowing(objective.columns(support), objective.width, np.append(support, objective.width - 1))


def _answer(
    callbacks: Sequence[Callback], objective: Objective, theta: Vector, record: Record
) -> Status | None:
    """Show all callbacks a step; the first of their reasons to stop."""
    at: Evaluated = objective.evaluate(theta)
    answers = [callback.on_iterate(at, record) for callback in callbacks]
    return next((answer for answer in answers if answer is not None), None)


def ordered(values: Vector, features: Indices | None = None) -> Indices:
    """The positions of the values, the largest first; of values that are as good as equal, by their features."""
    falling = np.argsort(-values, kind="stable")
    sizes = values[falling].tolist()
    # A group of equal values begins where one is smaller than the first of the group before.
    groups, leader = [], math.inf
    for size in sizes:
        if not groups or size < leader - SAME_GAIN * abs(leader):
            leader = size
            groups.append(len(groups))
        else:
            groups.append(groups[-1])
    return falling[np.lexsort((falling if features is None else features[falling], groups))]


def _largest(values: Vector, count: int) -> Indices:
    """Where the largest positive values are, in order; of equal ones on the border, the first."""
    if len(values) > count:
        border = float(np.partition(values, len(values) - count)[len(values) - count])
        above = np.flatnonzero(values > (1.0 + SAME_GAIN) * border)
        tied = np.flatnonzero(np.abs(values - border) <= SAME_GAIN * border)
        chosen = np.sort(np.concatenate([above, tied[: count - len(above)]]))
    else:
        chosen = np.arange(len(values))
    return chosen[values[chosen] > 0.0]


__all__ = ["Certificate", "SubsetSearch", "on_support"]
