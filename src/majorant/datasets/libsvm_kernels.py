"""The compiled loop over LIBSVM text. Imports numba, so it is imported late.

Nothing is read or written outside of the arrays, by construction: the text ends with a line end, at which
every loop over characters stops, and a label takes at least two bytes of it, an entry four and a hard number
twenty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.decimals import HARD, NO_NUMBER, TOO_LARGE, Bytes, Powers, read_number
from majorant.jit import compiled

FINE, LABEL, LABEL_SIZE, INDEX, INDEX_ORDER, INDEX_SIZE, PAIR, VALUE, VALUE_SIZE, BLANK, RETURN, NUL = range(
    12
)
"""What is wrong with a text, if anything."""

LARGEST_LABEL = 2.0**53 - 1.0  # beyond, whole numbers are rounded to others


@compiled
def parse(
    text: Bytes,
    labelled: bool,
    base: int,
    features: int,
    powers: Powers,
    labels: NDArray[np.float64],
    stops: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    hard: NDArray[np.int64],
) -> tuple[int, int, int, int, int, int, np.int64]:
    """Read the lines of a text up to its end or its first error.

    Indices count from `base` and columns must be below `features`. Row r has the entries up to stops[r]. A
    hard number is (entry, start, stop), the entry being -1 - r if it is the label of row r.

    Returns the error and its place, the numbers of rows, entries, hard numbers and lines, and one more than
    the largest column.
    """
    i = rows = entries = hards = lines = 0
    widest = np.int64(0)
    error = FINE
    size = text.size
    while i < size:
        while text[i] == 32 or text[i] == 9:
            i += 1
        c = text[i]
        if c == 10 or c == 13 or c == 35:
            if not labelled and c != 35:
                error = BLANK
                break
        else:
            place = i
            if labelled:
                kind, value, i = read_number(text, i, powers)
                c = text[i]
                if kind == NO_NUMBER or not (c == 32 or c == 9 or c == 10 or c == 13 or c == 35):
                    error, i = LABEL, place
                    break
                if kind == HARD:
                    hard[hards, 0], hard[hards, 1], hard[hards, 2] = -1 - rows, place, i
                    hards += 1
                if abs(value) > LARGEST_LABEL:
                    error, i = LABEL_SIZE, place
                    break
                labels[rows] = value
            last = np.int64(-1)
            while True:
                while text[i] == 32 or text[i] == 9:
                    i += 1
                c = text[i]
                if c == 10 or c == 13 or c == 35:
                    break
                place = i
                column = np.int64(0)
                while 48 <= text[i] <= 57:
                    if column < 10**15:
                        column = 10 * column + np.int64(text[i]) - 48
                    i += 1
                if i == place:
                    error = INDEX
                    break
                if text[i] != 58:
                    error = PAIR
                    break
                column -= base
                if column <= last:
                    error = INDEX_ORDER
                    break
                if column >= features:
                    error = INDEX_SIZE
                    break
                place = i = i + 1
                kind, value, i = read_number(text, i, powers)
                c = text[i]
                if kind == NO_NUMBER or not (c == 32 or c == 9 or c == 10 or c == 13 or c == 35):
                    error = VALUE
                    break
                if kind == TOO_LARGE:
                    error = VALUE_SIZE
                    break
                if kind == HARD:
                    hard[hards, 0], hard[hards, 1], hard[hards, 2] = entries, place, i
                    hards += 1
                columns[entries] = column
                values[entries] = value
                entries += 1
                last = column
            if error != FINE:
                i = place
                break
            if last >= widest:
                widest = last + 1
            stops[rows] = entries
            rows += 1
        if text[i] == 35:
            while text[i] != 10 and text[i] != 0:
                i += 1
            if text[i] == 0:
                error = NUL
                break
        if text[i] == 13:
            if text[i + 1] != 10:
                error = RETURN
                break
            i += 1
        i += 1
        lines += 1
    return error, i, rows, entries, hards, lines, widest
