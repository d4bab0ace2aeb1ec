"""Compiled loops over CSR rows; imported with the first sparse block.

Written by hand because each loop does in one pass over the matrix what library products do in two or three: a
row is still in the cache when its contribution to the gradient is added. `jit.py` says how they are compiled.
The caller allocates the arrays that they write to, since numba takes long to compile an allocation
(`loss_by_class` took 1.5 s with, 0.9 s without). The product of a row with θ, and the updates for a row that
changes sides, are repeated in several loops: as functions they made fits on w8a 1.2 to 1.5 times as long.

The entries of row k are data[e], in the columns indices[e], for starts[k] ≤ e < stops[k]: so a selection of
rows is a matrix in this form, without a copy of the entries. If all entries are 1, as those of indicators
are, `data` may be None: the loops, which then do not read them, are 1.1 to 1.5 times as fast.
"""

from __future__ import annotations

import numpy as np

from majorant.jit import compiled, compiled_part
from majorant.losses import SquaredHinge


@compiled_part
def _times(factor, data, e):
    """Factor × data[e]."""
    return factor if data is None else factor * data[e]


_value = compiled_part(SquaredHinge.value)
_derivative = compiled_part(SquaredHinge.derivative)


@compiled
def loss_by_class(data, indices, starts, stops, y, s, b, theta, totals, gradients, squares):
    """Add Σ s ρ²(v) by class to `totals` and its gradients to `gradients`.

    Unless `squares` is empty, add the squared lengths of the columns over the active rows to it. If `totals`
    has one entry, it is the sum over both classes.
    """
    intercept = b * theta[-1]
    both = totals.size == 1
    is_zero = True
    for x in theta:
        if x != 0.0:
            is_zero = False
            break
    for k in range(y.size):
        score = intercept
        if not is_zero:
            for e in range(starts[k], stops[k]):
                score += _times(theta[indices[e]], data, e)
        margin = y[k] * score
        if margin < 1.0:
            slope = s[k] * y[k] * _derivative(margin)
            side = 0 if both or y[k] < 0.0 else 1
            totals[side] += s[k] * _value(margin)
            gradient = gradients[side]
            gradient[-1] += b * slope
            for e in range(starts[k], stops[k]):
                gradient[indices[e]] += _times(slope, data, e)
            if squares.size:
                squares[-1] += b * b * s[k]
                for e in range(starts[k], stops[k]):
                    squares[indices[e]] += _times(_times(s[k], data, e), data, e)


@compiled
def transposed_product(data, indices, starts, stops, u, result):
    """Add uX to the result."""
    for k in range(u.size):
        if u[k] != 0.0:
            for e in range(starts[k], stops[k]):
                result[indices[e]] += _times(u[k], data, e)


@compiled
def squared_norms(data, indices, starts, stops, units, norms):
    """Add ‖units ∘ x_k‖² for every row."""
    for k in range(norms.size):
        for e in range(starts[k], stops[k]):
            x = units[indices[e]] * data[e]
            norms[k] += x * x


@compiled
def matvec(data, indices, starts, stops, y, b, theta, result):
    """Lθ, the margins at θ."""
    intercept = b * theta[-1]
    for k in range(y.size):
        score = intercept
        for e in range(starts[k], stops[k]):
            score += _times(theta[indices[e]], data, e)
        result[k] = y[k] * score


@compiled
def advance(data, indices, starts, stops, y, s, b, d, dv, v, active, H, c):
    """Write L d to dv and take the whole step, as `Block.update_active` does; return the loss after it.

    If H is empty, write the gradient of the loss after the step to c, while the rows are in the cache.
    """
    total = 0.0
    slope_sum = 0.0
    intercept = b * d[-1]
    if not H.size:
        for i in range(c.size):
            c[i] = 0.0
    for k in range(y.size):
        score = intercept
        for e in range(starts[k], stops[k]):
            score += _times(d[indices[e]], data, e)
        dv[k] = y[k] * score
        v[k] += dv[k]
        total += s[k] * _value(v[k])
        now = v[k] < 1.0
        if H.size:
            if now != active[k]:
                weight = 2.0 * s[k] if now else -2.0 * s[k]
                _rank_one_update(data, indices, starts[k], stops[k], weight, weight * y[k], b, H, c)
        elif now:
            slope = s[k] * y[k] * _derivative(v[k])
            slope_sum += slope
            for e in range(starts[k], stops[k]):
                c[indices[e]] += _times(slope, data, e)
        active[k] = now
    if not H.size:
        c[c.size - 1] = b * slope_sum
    return total


@compiled
def rank_update(data, indices, starts, stops, y, s, b, rows, sign, H, c):
    """Add 2 sign Σ s_k L_k L_kᵀ over some rows to the lower triangle of H, and 2 sign Σ s_k L_k to c."""
    for position in range(rows.size):
        k = rows[position]
        weight = 2.0 * sign * s[k]
        _rank_one_update(data, indices, starts[k], stops[k], weight, weight * y[k], b, H, c)


@compiled_part
def _rank_one_update(data, indices, start, stop, weight, labelled, b, H, c):
    last = H[c.size - 1]
    for e in range(start, stop):
        weighted = _times(weight, data, e)
        row = H[indices[e]]
        for f in range(start, e + 1):
            row[indices[f]] += _times(weighted, data, f)
        last[indices[e]] += b * weighted
        c[indices[e]] += _times(labelled, data, e)
    last[c.size - 1] += b * b * weight
    c[c.size - 1] += b * labelled


@compiled
def symmetrize(H):
    """Copy the lower triangle of H to the upper one, one cache line at a time."""
    line = 8
    for top in range(0, H.shape[0], line):
        bottom = min(top + line, H.shape[0])
        for j in range(bottom):
            for i in range(max(top, j + 1), bottom):
                H[j, i] = H[i, j]


@compiled
def active_product(data, indices, starts, stops, s, b, active, v, product):
    """Add 2LᵀSL v over the active rows."""
    image_sum = 0.0
    for k in range(s.size):
        if active[k]:
            score = b * v[-1]
            for e in range(starts[k], stops[k]):
                score += _times(v[indices[e]], data, e)
            score *= 2.0 * s[k]
            image_sum += score
            for e in range(starts[k], stops[k]):
                product[indices[e]] += _times(score, data, e)
    product[-1] += b * image_sum


@compiled
def dual_epoch(data, indices, starts, stops, y, s, b, order, inverse, theta):
    """One step for each row's dual variable, from zero and in this order; θ is updated with each step.

    `inverse` has 1/D_i for the penalty Σ D_i θ_i²/2, which includes the intercept. The step of row k
    minimises α²/4s - α + ½ Σ_i D_i θ_i² over α ≥ 0, where θ = D⁻¹Lᵀα: α = (1 - v)₊ / (1/2s + L_kD⁻¹L_kᵀ).
    """
    last = theta.size - 1
    for k in order:
        if s[k] > 0.0:
            score = b * theta[last]
            square = b * b * inverse[last]
            for e in range(starts[k], stops[k]):
                i = indices[e]
                score += _times(theta[i], data, e)
                square += _times(_times(inverse[i], data, e), data, e)
            alpha = max(1.0 - y[k] * score, 0.0) / (0.5 / s[k] + square)
            if alpha > 0.0:
                step = y[k] * alpha
                theta[last] += b * step * inverse[last]
                for e in range(starts[k], stops[k]):
                    theta[indices[e]] += _times(step * inverse[indices[e]], data, e)


@compiled
def largest_whole(values):
    """The largest absolute value if all values are whole numbers, else infinity."""
    largest = 0.0
    for x in values:
        if x != np.floor(x):
            return np.inf
        largest = max(largest, abs(np.float64(x)))
    return largest


@compiled
def sound_indices(pointers, indices, n_columns):
    """Whether a CSR matrix is sound and canonical: its pointers in order, its indices rising and in range.

    To avoid a branch per entry, the places where the index does not rise are counted over all entries and
    over the first entries of rows; the counts are equal if the indices rise inside of every row.
    """
    if pointers[0] != 0 or pointers[pointers.size - 1] != indices.size:
        return False
    rising = True
    for k in range(pointers.size - 1):
        rising &= pointers[k] <= pointers[k + 1]
    if not rising:
        return False
    falls = 0
    inside = True
    for e in range(indices.size):
        inside &= (indices[e] >= 0) & (indices[e] < n_columns)
    for e in range(1, indices.size):
        falls += indices[e] <= indices[e - 1]
    for k in range(1, pointers.size - 1):
        start = pointers[k]
        if pointers[k - 1] < start < indices.size:  # not after an empty row, whose start was counted already
            falls -= indices[start] <= indices[start - 1]
    return inside and falls == 0


@compiled
def column_counts(data, indices, starts, stops, counts):
    """Add the number of entries of each column to `counts`."""
    for k in range(starts.size):
        for e in range(starts[k], stops[k]):
            counts[indices[e]] += 1


@compiled
def renumber(indices, position, target):
    """Write position[indices] to target; an index beyond the table counts as the last."""
    last = position.size - 1
    for e in range(indices.size):
        target[e] = position[min(indices[e], last)]


@compiled
def csr_to_csc(data, indices, starts, stops, root, nexts, offset, target, numbers):
    """Copy every entry, times its row's root, to the next place of its column, and its row number + offset.

    `nexts` holds the next place of each column, and is updated.
    """
    for k in range(starts.size):
        number = np.uint32(k + offset)
        for e in range(starts[k], stops[k]):
            place = nexts[indices[e]]
            nexts[indices[e]] = place + 1
            target[place] = root[k] * data[e]
            numbers[place] = number


@compiled
def take_columns(data, indices, starts, stops, position, taken, where, ends):
    """Copy the entries of the columns whose position is not negative; the position is the new column number.

    To avoid a branch per entry, every entry is written, and the next one overwrites it unless it counts. The
    arrays therefore need one entry more than the copy.
    """
    count = 0
    for k in range(starts.size):
        for e in range(starts[k], stops[k]):
            new = position[indices[e]]
            taken[count] = data[e]
            where[count] = np.uint32(new)
            count += new >= 0
        ends[k + 1] = count
