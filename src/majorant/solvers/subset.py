r"""The best k features: a search for the support of size k on which Φ is smallest.

For a quadratic penalty (a ridge, or none), the problem is

    minimise Φ(W, β)   over all W with at most k features, besides those whose penalty factor is 0.

F(S) is the minimum of Φ over the coefficients of the features S and the intercept; `refit.py` finds it.

*Rank.* At the minimiser for S, feature j would lower Φ by about

    g_j²/2h_j,    g_j = ∂_jΦ,    h_j = H_jj - H_jS H_SS⁻¹ H_Sj,                                     (gain)

H the Hessian over the rows that are active there. One pass over the rows gives g; the curvature h is computed
of those features that are best by g_j² relative to their spread. Gains have no units.

*Grow.* The feature of the largest gain joins S.

*Swap.* The weakest features of S are removed, each for itself: those whose removal raises Φ least by the
quadratic model, by w_j²/2(H⁻¹)_jj. The rest is refitted, all features are ranked at that point, and the best
few are tried in the place of the one removed. The best of all these swaps is made if it lowers Φ. The search
ends at a support on which no such swap does.

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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from majorant.blas import one_thread
from majorant.callbacks import Callback
from majorant.errors import UnsuitableSolverError
from majorant.interrupts import CtrlC, check, ending_on, undisturbed
from majorant.objective import Objective
from majorant.solvers.auto import choose_solver
from majorant.solvers.column_cache import ColumnCache
from majorant.solvers.driver import solve
from majorant.solvers.narrowing import Narrowing
from majorant.solvers.refit import (
    Added,
    Indices,
    Refit,
    Variants,
    refit_variants,
    solve_curvature,
)
from majorant.solvers.ties import largest, ordered
from majorant.status import Evaluated, History, Matrix, Record, Result, Status, Vector

# How many of the weakest features a swap may remove, and how many of the best others are tried in the place
# of each. (`Status.NO_SWAP` names both.)
REMOVED = 8
TRIED = 3
# How many features are ranked by their curvature too, after all are by their gradient.
SHORTLIST = 32
# A relative difference of Φ that counts as rounding.
SAME_VALUE = 1e-10
# The share of its curvature that a feature keeps, whatever the support explains of it: less is rounding.
LEAST_CURVATURE = 1e-8
# Entries of the slacks, or of the curvature, of the variants that are refitted at the same time.
ENTRIES = 2**20

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A feature that may join a support; fields as in `Added`, for one variant."""

    feature: int
    column: Vector
    ridge: float
    border: Matrix
    diagonal: Vector
    start: Matrix
    """The coefficients with it that the quadratic model promises, a row per class."""


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
                "n_features needs rows that are in memory, since a search for features reads them hundreds "
                "of times. Use max_features, which takes sources and dask collections."
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

    def rank(
        self, at: Refit, removed: Indices, coef: Array, slack: Array, count: int
    ) -> list[list[Candidate]]:
        """For each variant of a support without a feature, the best features to join, (gain).

        Parameters
        ----------
        at : Refit
        removed : array of int (n_variants,)
            The coefficient that each variant does without; 0 for none.
        coef, slack : arrays (n_classes, n_variants, ·)
            The minimisers of the variants.
        count : int
            The most features to list.
        """
        columns = self.columns
        left = np.append(-1, at.support)[removed]
        slopes = -2.0 * np.maximum(slack, 0.0) * np.stack(columns.labels)[:, np.newaxis]
        pulls = self._pulls(columns.root * slopes)
        pulls[:, at.support] = 0.0
        listed = []
        for squares, feature in zip(pulls, left.tolist(), strict=True):
            if feature >= 0:
                squares[feature] = 0.0
            listed.append(largest(squares, max(count, min(SHORTLIST, columns.capacity // (2 * REMOVED)))))
        union = np.unique(np.concatenate(listed))
        if not len(union):
            return [[] for _ in listed]
        D, ridge = columns.of(union), columns.ridge[union]
        gains = np.zeros((len(listed), len(union)))
        gradients, stiffness, solutions, borders, diagonals = [], [], [], [], []
        for c, active in enumerate(at.slack > 0.0):
            active_columns = D[:, active]
            border = 2.0 * (at.columns[:, active] @ active_columns.T)
            diagonal = 2.0 * np.einsum("ji,ji->j", active_columns, active_columns)
            gradient = slopes[c] @ D.T
            for b, without in enumerate(removed.tolist()):
                solution = solve_curvature(at.curvature[c], at.ridge, border, without)
                explained = np.einsum("ij,ij->j", border, solution)
                h = np.maximum(diagonal - explained, LEAST_CURVATURE * diagonal) + ridge
                h[h <= 0.0] = np.inf
                gains[b] += 0.5 * gradient[b] ** 2 / h
                solutions.append(solution)
                stiffness.append(h)
            gradients.append(gradient)
            borders.append(border)
            diagonals.append(diagonal)
        found: list[list[Candidate]] = []
        for b, own in enumerate(listed):
            mine = np.searchsorted(union, own)
            best = mine[ordered(gains[b, mine])[:count]]
            candidates = []
            for j in best[gains[b, best] > SAME_VALUE * at.value].tolist():
                start = np.empty((len(coef), coef.shape[2] + 1))
                for c in range(len(coef)):
                    k = c * len(listed) + b
                    step = -gradients[c][b, j] / stiffness[k][j]
                    start[c] = np.append(coef[c, b] - step * solutions[k][:, j], step)
                border = np.stack([each[:, j] for each in borders])
                diagonal = np.array([each[j] for each in diagonals])
                candidates.append(Candidate(int(union[j]), D[j], float(ridge[j]), border, diagonal, start))
            found.append(candidates)
        return found

    def _pulls(self, slopes: Array) -> Matrix:
        """g_j² relative to the spread, summed over the classes, for each variant: a pass over the rows."""
        squares = np.zeros((slopes.shape[1], len(self._measure)))
        for mine in slopes:
            gradient = self.columns.rows.transposed_products(mine)
            gradient -= mine.sum(axis=1, keepdims=True) * self.columns.means
            squares += (gradient * self._measure) ** 2
        squares[:, ~self.columns.usable] = 0.0
        return squares

    def weakest(self, at: Refit) -> tuple[Indices, Array]:
        """The coefficients, those first whose removal raises Φ least by the quadratic model; and where to."""
        costs, starts = np.zeros(len(at.support)), []
        for coef, curvature in zip(at.coef, at.curvature, strict=True):
            inverse = solve_curvature(curvature, at.ridge, np.eye(len(at.ridge)))
            share = coef[1:] / np.diag(inverse)[1:]
            costs += 0.5 * coef[1:] * share
            starts.append(coef - share[:, np.newaxis] * inverse[1:])
        removable = np.flatnonzero(~np.isin(at.support, self.always))
        order = removable[ordered(-costs[removable], at.support[removable])]
        start = np.stack(starts)[:, order]
        start[:, np.arange(len(order)), order + 1] = 0.0
        return order + 1, start

    def grown(self, at: Refit) -> Refit | None:
        """The support with the feature of the largest gain; None if no feature lowers Φ."""
        whole = np.zeros(1, dtype=np.intp)
        for best in self.rank(at, whole, at.coef[:, np.newaxis], at.slack[:, np.newaxis], 1)[0]:
            return self.columns.refit(np.append(at.support, best.feature), best.start)
        return None

    def shrunk(self, at: Refit) -> Refit:
        """The support without its weakest feature."""
        order, start = self.weakest(at)
        return self._without(at, int(order[0]), start[:, 0])

    def _without(self, at: Refit, removed: int, coef: Matrix) -> Refit:
        return self.columns.refit(np.delete(at.support, removed - 1), np.delete(coef, removed, axis=1))

    def swapped(self, at: Refit) -> Refit | None:
        """The support after the best swap, if that lowers Φ; else None."""
        columns = self.columns
        order, start = self.weakest(at)
        removed, start = order[:REMOVED], start[:, :REMOVED]
        if not len(removed):
            return None
        at_once = max(1, ENTRIES // max(len(columns.root), len(at.ridge) ** 2))
        best, best_value = None, (1.0 - SAME_VALUE) * at.value
        for some in _parts(len(removed), at_once):
            check()
            rest = refit_variants(at, columns.root, columns.labels, removed[some], start[:, some])
            ranked = self.rank(at, removed[some], rest.coef, rest.slack, TRIED)
            pairs = [(b, one) for b, mine in zip(removed[some].tolist(), ranked, strict=True) for one in mine]
            for few in _parts(len(pairs), at_once):
                trials = self._tried(at, pairs[few], best_value)
                for (without, joined), value, coef in zip(
                    pairs[few], trials.values.tolist(), trials.coef.swapaxes(0, 1), strict=True
                ):
                    if value < best_value:
                        best_value = (1.0 - SAME_VALUE) * value
                        best = np.append(np.delete(at.support, without - 1), joined.feature), without, coef
        if best is None:
            return None
        support, without, coef = best
        swapped = columns.refit(support, np.delete(coef, without, axis=1))
        return swapped if swapped.value < at.value else None

    def _tried(self, at: Refit, pairs: Sequence[tuple[int, Candidate]], limit: float) -> Variants:
        """The minima of Φ after swaps: the coefficient that leaves, and the feature that joins."""
        removed = np.array([without for without, _ in pairs], dtype=np.intp)
        joined = [candidate for _, candidate in pairs]
        added = Added(
            np.stack([one.column for one in joined]), np.array([one.ridge for one in joined]),
            np.stack([one.border for one in joined], axis=1),
            np.stack([one.diagonal for one in joined], axis=1),
        )  # fmt: skip
        starts = np.stack([one.start for one in joined], axis=1)
        return refit_variants(at, self.columns.root, self.columns.labels, removed, starts, added, limit)

    def steps(self, size: int, theta: Vector) -> Iterator[Refit]:
        """The supports that the search comes to, from that of θ; no swap lowers Φ from the last one."""
        classes = self.objective.matrix(theta)
        start = np.union1d(np.flatnonzero(classes[:, :-1].any(axis=0)), self.always)
        support = start.astype(np.intp)
        at: Refit | None = self.columns.refit(support, self.columns.coefficients(support, classes))
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

        The result is about the problem with the features of its support alone, as `on_support` gives it: so
        are the certificate, the lower bound and the gradient.

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
                status = Status.INTERRUPTED
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


def _parts(count: int, size: int) -> list[slice]:
    return [slice(first, first + size) for first in range(0, count, size)]
