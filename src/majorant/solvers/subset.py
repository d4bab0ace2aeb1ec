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

*Look back.* A support that no swap improves grows by a feature, is improved by swaps, and loses its weakest
feature again. If swaps from there end at a lower Φ, the search goes on from the new support; else the larger
one is the next size. (On 15 simulated problems of 500 × 1000 to 2000 × 1000, with 5 to 20 true features and
sizes 1 to 30, Φ was lower at 47 of 450 sizes, by 0.01 to 22 %, and higher at 2, for 1.45 times the time. A
path up to 30 features and back down to 1 found as much, for 1.8 times the time. To try three features when
growing found nothing more.)

The search begins at a given support, and grows to k features, or shrinks to k by removing the weakest, with
swaps and looks back at every size. Along a path of sizes each search begins where the last one ended, so Φ
never rises with the size.

*Ties.* Gains that differ by no more than rounding may explain count as equal, and the feature of the lower
index comes first; a swap has to lower Φ by more than rounding may. So the order of the rows, weights instead
of repeated rows, the units of the columns and the kind of processor do not decide which features are found.

With several classes at once (a joint problem), Φ and all gains are sums over the classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.duality import VANISHING
from majorant.errors import UnsuitableSolverError
from majorant.interrupts import check
from majorant.objective import Objective
from majorant.solvers.column_cache import ColumnCache
from majorant.solvers.refit import (
    Added,
    Indices,
    Refit,
    Variants,
    refit_variants,
    solve_curvature,
)
from majorant.solvers.ties import largest, ordered
from majorant.status import Matrix, Vector

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
        self._nothing = VANISHING * objective.loss_at_zero
        # The last support that was searched to the end, and the one that is larger by a feature: there the
        # next search of a path goes on.
        self._explored: Refit | None = None
        self._larger: Refit | None = None
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
            for j in best[gains[b, best] > max(SAME_VALUE * at.value, self._nothing)].tolist():
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
        if not len(removed) or at.value <= self._nothing:
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

    def _settled(self, at: Refit) -> Refit:
        """The support that swaps end at."""
        while (better := self.swapped(at)) is not None:
            at = better
        return at

    def steps(self, size: int, theta: Vector) -> Iterator[Refit]:
        """The supports that the search comes to, from that of θ; no swap lowers Φ from the last one."""
        classes = self.objective.matrix(theta)
        used = np.flatnonzero(classes[:, :-1].any(axis=0))
        support = np.union1d(used, self.always).astype(np.intp)
        at = self.columns.refit(support, self.columns.coefficients(support, classes))
        wanted = size + len(self.always)
        yield at
        while len(at.support) > wanted:
            at = self.shrunk(at)
            yield at
        settled = False
        while True:
            if not settled and not _same_support(at, self._explored):
                while (better := self.swapped(at)) is not None:
                    at = better
                    yield at
            if not _same_support(at, self._explored):
                for at in self._looked_back(at):  # noqa: B020
                    yield at
            if len(at.support) >= wanted or self._larger is None:
                return
            at, settled = self._larger, True
            yield at

    def _looked_back(self, at: Refit) -> Iterator[Refit]:
        """Better supports of the same size, each by way of one that is larger by a feature."""
        while True:
            larger = self.grown(at)
            larger = None if larger is None else self._settled(larger)
            self._explored, self._larger = at, larger
            if larger is None or _same_support(back := self.shrunk(larger), at):
                return
            back = self._settled(back)
            if not back.value < (1.0 - SAME_VALUE) * at.value:
                return
            at = back
            yield at


def _same_support(one: Refit, other: Refit | None) -> bool:
    return other is not None and np.array_equal(np.sort(one.support), np.sort(other.support))


def _parts(count: int, size: int) -> list[slice]:
    return [slice(first, first + size) for first in range(0, count, size)]
