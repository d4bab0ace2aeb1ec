"""Copies of the columns that a search for features refits on: see `refit.py` for what they are."""

from __future__ import annotations

import math

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.scaled import deviations_from_mean
from majorant.solvers.refit import Indices, Refit, refit_variants
from majorant.status import Matrix, Vector


class ColumnCache:
    """Columns z_j of the rows, centred and of unit length, copied out of X when they are first asked for.

    Parameters
    ----------
    objective : Objective
        With rows in memory and a quadratic penalty.
    """

    def __init__(self, objective: Objective) -> None:
        classes = objective.in_memory
        assert classes is not None
        self.rows: MemoryRows = classes[0]
        self.labels, (_, weights) = (
            [part.labels_and_weights[0] for part in classes],
            self.rows.labels_and_weights,
        )
        self.root: Vector = np.sqrt(weights)
        self._intercept = self.rows.blocks[0].b > 0.0
        stats = self.rows.stats_at_zero
        lengths = np.sqrt(stats.squares[:-1])
        if self._intercept:
            lengths = np.sqrt(weights.sum()) * deviations_from_mean(self.rows)
        self.usable = lengths > 0.0
        """Which features are not constant, or without an intercept not zero."""
        self.lengths: Vector = np.where(self.usable, lengths, 1.0)
        self.ridge: Vector = objective.half_quadratic_weights(objective.start()) / self.lengths**2
        self.capacity = max(64, self.rows.copy_budget // (8 * len(self.root)))
        """How many columns are kept beside those in use."""
        sums = 0.5 * (stats.negative.gradient - stats.positive.gradient)[:-1]
        self.means: Vector = sums / float(weights.sum()) if self._intercept else np.zeros_like(sums)
        self._place = np.full(self.rows.n_features, -1, dtype=np.intp)
        self._buffer = np.empty((64, len(self.root)))
        self._count = 0

    def of(self, features: Indices) -> Matrix:
        """The columns of these features, a row each."""
        missing = features[self._place[features] < 0]
        if len(missing):
            if self._count + len(missing) > self.capacity:
                self._place.fill(-1)
                self._count, missing = 0, features
            self._add(missing)
        return self._buffer[self._place[features]]

    def _add(self, features: Indices) -> None:
        part = self.rows.columns(features)
        columns = np.concatenate([block.design()[:, :-1].T for block in part.blocks], axis=1) * self.labels[0]
        if self._intercept:
            # From the entries themselves, which leave more digits where a feature is far from zero.
            self.means[features] = columns @ self.root / float(self.root @ self.root)
            columns -= self.means[features, np.newaxis] * self.root
        columns /= self.lengths[features, np.newaxis]
        end = self._count + len(features)
        if end > len(self._buffer):
            grown = np.empty((max(end, 2 * len(self._buffer)), len(self.root)))
            grown[: self._count] = self._buffer[: self._count]
            self._buffer = grown
        self._buffer[self._count : end] = columns
        self._place[features] = np.arange(self._count, end)
        self._count = end

    def refit(self, support: Indices, coef: Matrix) -> Refit:
        """The minimiser on a support, from coefficients a, a row per class."""
        Z = np.empty((len(support) + 1, len(self.root)))
        Z[0] = self.root if self._intercept else 0.0
        Z[1:] = self.of(support)
        ridge, shape = np.append(0.0, self.ridge[support]), (len(coef), len(self.root))
        nowhere = np.zeros((len(coef), len(Z), len(Z)))
        start = Refit(support, Z, ridge, coef, math.inf, np.zeros(shape), nowhere)
        found = refit_variants(start, self.root, self.labels, np.zeros(1, dtype=np.intp), coef[:, np.newaxis])
        slack = found.slack[:, 0]
        curvature = np.stack([2.0 * (Z[:, u > 0.0] @ Z[:, u > 0.0].T) for u in slack])
        return Refit(support, Z, ridge, found.coef[:, 0], float(found.values[0]), slack, curvature)

    def coefficients(self, support: Indices, theta: Matrix) -> Matrix:
        """The coefficients a of θ, a row per class."""
        self.of(support)
        w = theta[:, support]
        return np.column_stack([theta[:, -1] + w @ self.means[support], w * self.lengths[support]])

    def theta(self, point: Refit) -> Matrix:
        """θ of a point, a row per class, in the units of the rows."""
        theta = np.zeros((len(point.coef), self.rows.n_features + 1))
        w = point.coef[:, 1:] / self.lengths[point.support]
        theta[:, point.support] = w
        if self._intercept:
            theta[:, -1] = point.coef[:, 0] - w @ self.means[point.support]
        return theta
