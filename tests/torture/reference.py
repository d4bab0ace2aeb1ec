"""The minimum of a problem, found without majorant: Clarabel or L-BFGS, then Newton steps.

Everything is solved in scaled coordinates: rows are weighted, columns are centred (if there is an intercept)
and have unit weighted length. Every point found is mapped back and evaluated in `np.longdouble`, so that its
value is an upper bound of the minimum, however good or bad the optimiser was.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import clarabel
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from .problems import Problem

Long = np.longdouble
Array = NDArray[Any]
Point = tuple[Array, Array]
"""Coefficients, a row per class, and intercepts."""

WIDEST_DENSE = 600
"""With more coefficients than this, a Newton step eliminates those that the penalty holds."""
SMALL = 1e-4
"""Where the minimum is so much smaller than the total weight, Clarabel is asked again, in smaller units."""
REPEATS = 4


# The objective, in extended precision -----------------------------------------------------------------------


class _Exact:
    def __init__(self, problem: Problem) -> None:
        self.X = problem.dense.astype(Long)
        self.s = problem.weights.astype(Long)
        self.signs = problem.signs
        self.factor = problem.factor.astype(Long)
        self.settings = problem.settings
        self.joint = problem.joint

    def margins(self, coef: Array, intercept: Array) -> Array:
        coef, intercept = np.atleast_2d(coef).astype(Long), np.atleast_1d(intercept).astype(Long)
        used = np.flatnonzero(coef.any(axis=0))
        scores = coef[:, used] @ self.X[:, used].T + intercept[:, None]
        return np.asarray(self.signs * scores)

    def losses(self, coef: Array, intercept: Array) -> Array:
        slack = np.maximum(Long(1) - self.margins(coef, intercept), Long(0))
        return np.asarray((slack * slack) @ self.s)

    def potential(self, t: Array) -> Array:
        name, lam = self.settings["penalty"], Long(self.settings["lam"])
        delta = Long(self.settings.get("delta", 1e-4))
        if name == "l1":
            return np.asarray(lam * np.abs(t))
        if name == "l2":
            return np.asarray(lam / 2 * t * t)
        if name == "hyperbolic":
            return np.asarray(lam * np.hypot(t, delta))
        if name == "welsch":
            return np.asarray(-lam * np.expm1(-((t / delta) ** 2) / 2))
        return np.zeros_like(t)

    def penalties(self, coef: Array) -> Array:
        """Of every class; of a joint problem, of all in the first."""
        W = np.atleast_2d(coef).astype(Long)
        eta = Long(self.settings.get("eta", 0.0))
        ridge = eta / 2 * np.sum(W * W, axis=1)
        if not self.joint:
            return np.asarray(self.potential(W) @ self.factor + ridge)
        rest = np.zeros(len(W), dtype=Long)
        rest[0] = self.potential(np.sqrt(np.sum(W * W, axis=0))) @ self.factor
        return np.asarray(rest + ridge)

    def values(self, coef: Array, intercept: Array) -> Array:
        return np.asarray(self.losses(coef, intercept) + self.penalties(coef))


@lru_cache(maxsize=1)
def _exact(problem: Problem) -> _Exact:
    return _Exact(problem)


def objective_values(problem: Problem, coef: Array, intercept: Array) -> Array:
    """Φ of every class; of a joint problem, Φ is their sum."""
    return _exact(problem).values(coef, intercept)


def objective_value(problem: Problem, coef: Array, intercept: Array) -> np.longdouble:
    """Φ, evaluated in extended precision."""
    return Long(objective_values(problem, coef, intercept).sum())


def penalty_at_zero(problem: Problem) -> np.longdouble:
    """Σ c_i φ(0): what no coefficients can avoid."""
    count = 1 if problem.joint else len(problem.signs)
    exact = _exact(problem)
    return Long(count * (exact.potential(np.zeros(len(exact.factor), dtype=Long)) @ exact.factor))


def rounding(problem: Problem, coef: Array, intercept: Array) -> float:
    """How much of Φ may be due to margins evaluated in double precision, to first and second order."""
    exact = _exact(problem)
    W, beta = np.abs(np.atleast_2d(coef)).astype(float), np.abs(np.atleast_1d(intercept)).astype(float)
    sizes = W @ np.abs(exact.X).astype(float).T + beta[:, None] + 1.0
    slack = np.maximum(1.0 - exact.margins(coef, intercept).astype(float), 0.0)
    error = np.finfo(float).eps * sizes
    s = exact.s.astype(float)
    return float(np.sum((2.0 * slack * error + error * error) @ s))


# The minimum ------------------------------------------------------------------------------------------------


def best_known_value(problem: Problem, starts: list[Point]) -> np.longdouble:
    """The lowest Φ found; of a penalty that is not convex, the lowest on the way down from the starts."""
    if problem.joint:
        return _best_of(problem, list(range(len(problem.signs))), starts)
    return Long(sum(_best_of(problem, [c], starts) for c in range(len(problem.signs))))


def _best_of(problem: Problem, classes: list[int], starts: list[Point]) -> np.longdouble:
    scaled = _Scaled(problem, classes)
    starts = [(np.atleast_2d(coef)[classes], np.atleast_1d(beta)[classes]) for coef, beta in starts]
    if problem.settings["penalty"] == "welsch":
        points = starts + [scaled.raw(*scaled.descend(*scaled.of_raw(*start))) for start in starts]
        return min(scaled.exact_value(*point) for point in points)
    points = [*starts, scaled.raw(*scaled.nothing())]
    if scaled.intercept:
        points.append(scaled.raw(*scaled.intercept_only()))
    best = min(scaled.exact_value(*point) for point in points)
    found = [scaled.interior_point() or scaled.descend(*scaled.nothing())]
    low = float(scaled.value(*found[0]))
    if low < SMALL:
        found.append(scaled.descend(*scaled.nothing()))
    for _ in range(REPEATS):
        again = scaled.interior_point(max(low, 1e-20)) if low < SMALL else None
        if again is None:
            break
        found.append(again)
        before, low = low, min(low, float(scaled.value(*again)))
        if low > (1.0 - 1e-6) * before:
            break
    for start in [*found, *(scaled.of_raw(*start) for start in starts)]:
        for point in (start, scaled.polish(*start)):
            best = min(best, scaled.exact_value(*scaled.raw(*point)))
    return best


class _Scaled:
    """One problem, or a joint one, in scaled coordinates v, b: w = v/length, β = b - mean·w."""

    def __init__(self, problem: Problem, classes: list[int]) -> None:
        self.problem, self.classes = problem, classes
        self.exact = _exact(problem)
        settings = problem.settings
        self.intercept = settings.get("fit_intercept", True)
        self.penalty = settings["penalty"]
        kept = self.exact.s > 0
        s = self.exact.s[kept]
        self.total = s.sum()
        X = self.exact.X[kept]
        share = s / self.total
        self.mean = share @ X if self.intercept else np.zeros(X.shape[1], dtype=Long)
        X = X - self.mean
        lengths = np.sqrt(share @ (X * X))
        rough = np.max(np.abs(self.exact.X[kept]), axis=0) * Long(1e-17)
        self.used = lengths > rough
        self.length = np.where(self.used, lengths, Long(1))[self.used]
        self.A = (X[:, self.used] / self.length).astype(np.float64)
        self.A_long = self.A.astype(Long)
        self.root = np.sqrt(share).astype(np.float64)
        self.share = share
        self.signs = problem.signs[classes][:, kept]
        self.C, (self.n, self.p) = len(classes), self.A.shape
        # The penalty in units of v and of the total weight: Σ strength φ(v) with φ of strength 1.
        lam, c = Long(settings["lam"]), self.exact.factor[self.used]
        if self.penalty == "none":
            lam = Long(0)
        power = {"l1": 1, "hyperbolic": 1, "l2": 2}.get(self.penalty, 0)
        self.strength = (lam * c / (self.length**power * self.total)).astype(np.float64)
        self.width = (Long(settings.get("delta", 1e-4)) * self.length).astype(np.float64)
        self.ridge = (Long(settings.get("eta", 0.0)) / (self.length**2 * self.total)).astype(np.float64)

    # Coordinates

    def raw(self, v: Array, b: Array) -> Point:
        W = np.zeros((self.C, len(self.used)), dtype=Long)
        W[:, self.used] = v.astype(Long) / self.length
        return W, b.astype(Long) - W @ self.mean

    def of_raw(self, coef: Array, intercept: Array) -> Point:
        W = coef.astype(Long)
        b = intercept.astype(Long) + W @ self.mean if self.intercept else np.zeros(self.C, dtype=Long)
        return W[:, self.used] * self.length, b

    def exact_value(self, coef: Array, intercept: Array) -> np.longdouble:
        W = np.zeros((len(self.problem.signs), coef.shape[1]), dtype=Long)
        beta = np.zeros(len(W), dtype=Long)
        W[self.classes], beta[self.classes] = coef, intercept
        value = self.exact.values(W, beta)[self.classes].sum()
        return Long(value) if np.isfinite(value) else Long(np.inf)

    def nothing(self) -> Point:
        return np.zeros((self.C, self.p), dtype=Long), np.zeros(self.C, dtype=Long)

    def intercept_only(self) -> Point:
        return np.zeros((self.C, self.p), dtype=Long), self.signs @ self.share

    # Values and slopes, of Φ over the total weight

    def value(self, v: Array, b: Array) -> np.longdouble:
        slack = np.maximum(1 - self.signs * (v @ self.A_long.T + b[:, None]), 0)
        loss = np.sum((slack * slack) @ self.share)
        return Long(loss + self.penalty_value(v))

    def penalty_value(self, v: Array) -> Any:
        t = np.sqrt(np.sum(v * v, axis=0)) if self.C > 1 else np.abs(v[0])
        rest = np.sum(self.ridge * t * t) / 2
        if self.penalty == "l1":
            return rest + self.strength @ t
        if self.penalty == "l2":
            return rest + self.strength @ (t * t) / 2
        if self.penalty == "hyperbolic":
            return rest + self.strength @ (t * (t / (np.hypot(t, self.width) + self.width)))  # less φ(0)
        if self.penalty == "welsch":
            return rest - self.strength @ np.expm1(-((t / self.width) ** 2) / 2)
        return rest

    def weights(self, t: Array) -> Array:
        """φ'(t)/t + η, where t > 0 for ℓ1."""
        if self.penalty == "l1":
            return self.ridge + self.strength / np.where(t > 0, t, np.inf)
        if self.penalty == "l2":
            return self.ridge + self.strength
        if self.penalty == "hyperbolic":
            return self.ridge + self.strength / np.hypot(t, self.width)
        if self.penalty == "welsch":
            return self.ridge + self.strength / self.width**2 * np.exp(-((t / self.width) ** 2) / 2)
        return self.ridge + 0.0 * t

    def bends(self, t: Array) -> Array:
        """φ''(t) + η."""
        if self.penalty == "l2":
            return self.ridge + self.strength
        if self.penalty == "hyperbolic":
            h = np.hypot(t, self.width)
            return self.ridge + self.strength / h * (self.width / h) ** 2
        return self.ridge + 0.0 * t

    # Clarabel

    def interior_point(self, unit: float = 1.0) -> Point | None:
        """The solution by Clarabel, as a quadratic program with second-order cones, in units of Φ."""
        C, n, p = self.C, self.n, self.p
        if p == 0:
            return self.intercept_only() if self.intercept else self.nothing()
        # No column can pull harder than 2, the length of the loss's gradient.
        kinked = self.penalty in ("l1", "hyperbolic")
        out = soft = np.zeros(p, dtype=bool)
        if self.penalty == "l1":
            out = self.strength > 2.0
        if self.penalty == "hyperbolic":  # nearly quadratic, or nearly zero: Newton steps do the rest
            soft = (self.strength > 200.0) | (self.width > 1e3)
            out = soft & (self.strength > 1e8 * self.width)
            soft = soft & ~out
        coned = np.flatnonzero((self.strength > 0.0) & ~out & ~soft) if kinked else np.zeros(0, dtype=int)
        keep = np.flatnonzero(~out)
        place = np.full(p, -1)
        place[keep] = np.arange(len(keep))
        m, k = len(keep), len(coned)
        curvature = self.ridge.copy()
        if self.penalty == "l2":
            curvature += self.strength
        curvature[soft] += self.strength[soft] / self.width[soft]
        curvature, strength, root = curvature / unit, self.strength / unit, self.root / np.sqrt(unit)
        # Variables: v (class by class), b, r, t.
        n_b = C if self.intercept else 0
        at_b, at_r = C * m, C * m + n_b
        at_t = at_r + C * n
        size = at_t + k
        P = sp.diags(
            np.concatenate([np.tile(curvature[keep], C), np.zeros(n_b), np.full(C * n, 2.0), np.zeros(k)])
        )
        q = np.zeros(size)
        q[at_t:] = strength[coned]
        blocks, right, cones = [], [], []
        for c in range(C):
            signed = (root * self.signs[c])[:, None]
            parts = [
                sp.csr_matrix((n, c * m)),
                -sp.csr_matrix(signed * self.A[:, keep]),
                sp.csr_matrix((n, (C - 1 - c) * m)),
            ]
            if n_b:
                column = np.zeros((n, C))
                column[:, c] = -signed[:, 0]
                parts.append(sp.csr_matrix(column))
            parts += [sp.csr_matrix((n, c * n)), -sp.eye(n), sp.csr_matrix((n, (C - 1 - c) * n + k))]
            blocks.append(sp.hstack(parts))
            right.append(-root)
        blocks.append(
            -sp.csr_matrix((np.ones(C * n), (np.arange(C * n), at_r + np.arange(C * n))), (C * n, size))
        )
        right.append(np.zeros(C * n))
        cones.append(clarabel.NonnegativeConeT(2 * C * n))
        if k and C == 1 and self.penalty == "l1":
            rows = np.arange(k)
            V = sp.csr_matrix((np.ones(k), (rows, place[coned])), (k, size))
            T = sp.csr_matrix((np.ones(k), (rows, at_t + rows)), (k, size))
            blocks += [V - T, -V - T]
            right.append(np.zeros(2 * k))
            cones.append(clarabel.NonnegativeConeT(2 * k))
        elif k:
            smooth = self.penalty == "hyperbolic"
            height = 1 + C + smooth
            rows = np.concatenate([height * np.arange(k) + j for j in range(1 + C)])
            columns = np.concatenate([at_t + np.arange(k), *(c * m + place[coned] for c in range(C))])
            blocks.append(sp.csr_matrix((-np.ones(len(rows)), (rows, columns)), (height * k, size)))
            bottom = np.zeros(height * k)
            if smooth:
                bottom[height - 1 :: height] = self.width[coned]
            right.append(bottom)
            cones += [clarabel.SecondOrderConeT(height)] * k
        options = clarabel.DefaultSettings()
        options.verbose = False
        options.max_threads = 1
        options.max_iter = 80
        options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
        try:
            A = sp.csc_matrix(sp.vstack(blocks))
            solution = clarabel.DefaultSolver(
                sp.csc_matrix(P), q, A, np.concatenate(right), cones, options
            ).solve()
        except BaseException as error:  # Clarabel panics with an exception that is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            return None
        x = np.array(solution.x)
        if not np.all(np.isfinite(x)):
            return None
        v = np.zeros((C, p), dtype=Long)
        v[:, keep] = x[: C * m].reshape(C, m)
        b = x[at_b:at_r].astype(Long) if n_b else np.zeros(C, dtype=Long)
        point = v, b
        return point if self.value(*point) <= self.value(*self.nothing()) else None

    # L-BFGS

    def descend(self, v: Array, b: Array) -> Point:
        """Where L-BFGS ends from here; for ℓ1, in the positive and negative parts."""
        C, p = self.C, self.p
        split = self.penalty == "l1" and C == 1

        def smooth(x: Array) -> tuple[float, Array]:
            w, beta = x[: C * p].reshape(C, p), x[C * p :]
            slack = np.maximum(1 - self.signs * (w @ self.A.T + beta[:, None]), 0.0)
            share = np.asarray(self.share, dtype=np.float64)
            pull = -2.0 * slack * self.signs * share
            value, slope = float(np.sum((slack * slack) @ share)), pull @ self.A
            if not split:
                t = np.sqrt(np.sum(w * w, axis=0))
                value += float(self.penalty_value(w))
                slope = slope + self.weights(t) * w
            else:
                value += 0.5 * float(np.sum(self.ridge * w * w))
                slope = slope + self.ridge * w
            bias = pull.sum(axis=1) if self.intercept else np.zeros(C)
            return value, np.concatenate([slope.ravel(), bias])

        start = np.concatenate([np.asarray(v, dtype=np.float64).ravel(), np.asarray(b, dtype=np.float64)])
        unit = np.ones_like(start)
        if self.penalty == "welsch":
            # The first step has length 1, so that a unit must be small: it changes Φ by 1e-8 of it at most.
            t = np.sqrt(np.sum(start[: C * p].reshape(C, p) ** 2, axis=0))
            curvature = np.append(np.tile(2.0 + self.weights(t), C), np.full(C, 2.0))
            unit = 1e-4 * np.sqrt(max(float(self.value(v, b)), 1e-300) / curvature)
        options = {"maxiter": 300, "maxfun": 400, "ftol": 1e-15, "gtol": 1e-12, "maxcor": 20}
        if not split:

            def in_units(z: Array) -> tuple[float, Array]:
                value, slope = smooth(start + unit * z)
                return value, unit * slope

            z = minimize(in_units, np.zeros_like(start), jac=True, method="L-BFGS-B", options=options).x
            x = start + unit * z
            return x[: C * p].reshape(C, p).astype(Long), x[C * p :].astype(Long)

        def parts(z: Array) -> tuple[float, Array]:
            value, slope = smooth(np.append(z[:p] - z[p : 2 * p], z[2 * p :]))
            s = self.strength
            value += float(s @ (z[:p] + z[p : 2 * p]))
            return value, np.concatenate([slope[:p] + s, -slope[:p] + s, slope[p:]])

        z = np.concatenate([np.maximum(start[:p], 0.0), np.maximum(-start[:p], 0.0), start[p:]])
        bounds = [(0.0, None)] * (2 * p) + [(None, None)] * C
        z = minimize(parts, z, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        return (z[:p] - z[p : 2 * p])[None, :].astype(Long), z[2 * p :].astype(Long)

    # Newton

    def polish(self, v: Array, b: Array, steps: int = 40) -> Point:
        """Newton steps on the coefficients in use and the rows inside the margin, as long as Φ falls."""
        if self.penalty == "welsch" or (self.C * self.p > WIDEST_DENSE and self.C > 1):
            return v, b
        v, b = v.astype(Long), b.astype(Long)
        value = self.value(v, b)
        if not np.isfinite(value):
            return v, b
        lasso = self.penalty == "l1"
        for _ in range(steps):
            slack = np.maximum(1 - self.signs * (v @ self.A_long.T + b[:, None]), 0)
            pull = -2 * slack * self.signs * self.share
            slope = pull @ self.A_long
            t = np.sqrt(np.sum(v * v, axis=0))
            gradient = slope + self.weights(t) * v
            inside = np.ones(self.p, dtype=bool)
            if lasso:
                size = np.sqrt(np.sum(slope * slope, axis=0))
                held = size < self.strength * (1 - 1e-6)
                faint = t <= 1e-6 * np.max(t, initial=0)
                inside = ((t > 0) & ~(held & faint)) | (size > self.strength)
                fresh = inside & (t == 0)
                gradient = (
                    gradient
                    - np.where(fresh & (size > 0), self.strength / np.where(size > 0, size, 1), 0) * slope
                )
                v = np.where(inside, v, 0)
                if np.any((t > 0) & ~inside):
                    value = self.value(v, b)
                    continue
            bias = pull.sum(axis=1) if self.intercept else np.zeros(self.C, dtype=Long)
            step = self._newton_step(np.flatnonzero(inside), slack > 0, t, v, gradient, bias)
            if step is None:
                break
            dv, db = step
            new = value
            for power in range(24):
                next_v, next_b = v + dv * Long(0.5) ** power, b + db * Long(0.5) ** power
                if lasso and self.C == 1:
                    next_v = np.where(v * next_v < 0, 0, next_v)
                found = self.value(next_v, next_b)
                if found >= new and new < value:
                    break
                if found < new:
                    new, new_v, new_b = found, next_v, next_b
            if not new < value:
                break
            small = value - new <= 1e-15 * value
            v, b, value = new_v, new_b, new
            if small:
                break
        return v, b

    def _newton_step(
        self, inside: Array, active: Array, t: Array, v: Array, gradient: Array, bias: Array
    ) -> Point | None:
        C, p, f = self.C, self.p, len(inside)
        t64, v64 = t.astype(np.float64), v.astype(np.float64)
        g = gradient[:, inside].astype(np.float64)
        psi, bend = self.weights(t64)[inside], self.bends(t64)[inside]
        n_b = C if self.intercept else 0
        if C == 1 and f > WIDEST_DENSE:
            return self._eliminated_step(inside, active[0], bend, g[0], bias)
        size = C * f + n_b
        if size == 0:
            return None
        H = np.zeros((size, size))
        for c in range(C):
            B = self.A[active[c]][:, inside] * (np.sqrt(2.0) * self.root[active[c]])[:, None]
            block = slice(c * f, (c + 1) * f)
            H[block, block] = B.T @ B
            if n_b:
                ones = np.sqrt(2.0) * self.root[active[c]]
                H[block, C * f + c] = H[C * f + c, block] = B.T @ ones
                H[C * f + c, C * f + c] = ones @ ones
        index = np.arange(f)
        unit = v64[:, inside] / np.where(t64[inside] > 0, t64[inside], 1.0)
        for c in range(C):
            for d in range(C):
                weight = (bend - psi) * unit[c] * unit[d] + (psi if c == d else 0.0)
                H[c * f + index, d * f + index] += weight if C > 1 else bend
        right = -np.concatenate([g.ravel(), bias.astype(np.float64)[:n_b]])
        x = _solve(H, right)
        if x is None:
            return None
        dv = np.zeros((C, p), dtype=Long)
        dv[:, inside] = x[: C * f].reshape(C, f)
        db = np.zeros(C, dtype=Long)
        db[:n_b] = x[C * f :]
        return dv, db

    def _eliminated_step(
        self, inside: Array, active: Array, bend: Array, g: Array, bias: Array
    ) -> Point | None:
        """The step for very many columns: those with a strong penalty are eliminated first."""
        held = bend > 1e-3
        if np.count_nonzero(~held) > 2 * WIDEST_DENSE or not held.any():
            return None
        rows = self.root[active][:, None]
        B = self.A[active][:, inside] * rows
        free = B[:, ~held]
        if self.intercept:
            free = np.column_stack([free, rows])
        G, D = B[:, held], bend[held]
        g_free = np.append(g[~held], np.asarray(bias, dtype=np.float64)[: 1 if self.intercept else 0])
        D_free = np.append(bend[~held], np.zeros(1 if self.intercept else 0))
        M = 0.5 * np.eye(len(B)) + (G / D) @ G.T
        solved = np.linalg.solve(M, np.column_stack([free, (G / D) @ g[held]]))
        d_free = _solve(np.diag(D_free) + free.T @ solved[:, :-1], -(g_free - free.T @ solved[:, -1]))
        if d_free is None:
            return None
        u = np.linalg.solve(2.0 * M, free @ d_free - (G / D) @ g[held])
        d = np.zeros(len(inside))
        d[held] = -(g[held] + 2.0 * G.T @ u) / D
        d[~held] = d_free[: np.count_nonzero(~held)]
        dv = np.zeros((1, self.p), dtype=Long)
        dv[0, inside] = d
        db = np.zeros(1, dtype=Long)
        if self.intercept:
            db[0] = d_free[-1]
        return dv, db


def _solve(H: Array, right: Array) -> Array | None:
    """H⁻¹ right, with as small an addition to H's diagonal as it takes."""
    diagonal = np.diag(H)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = H * scale[:, None] * scale
    for extra in (0.0, 1e-15, 1e-12, 1e-9):
        try:
            factor = scipy.linalg.cho_factor(scaled + extra * np.eye(len(H)), check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        x = scipy.linalg.cho_solve(factor, right * scale, check_finite=False)
        if np.all(np.isfinite(x)):
            return np.asarray(x * scale)
    return None
