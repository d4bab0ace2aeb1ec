"""Checks of the indices of a sparse matrix, before compiled loops follow them.

scipy's `check_format` accepts index pointers such as (0, 2, 0), and its conversions then read beyond the ends
of the arrays (found by fuzzing).
"""

from __future__ import annotations

from typing import Any

import numpy as np


def is_sound_csr(X: Any) -> bool:
    """Whether X is an uncorrupted, canonical CSR matrix whose pointers cover all its entries.

    One compiled pass. The other functions of this module say what is wrong.
    """
    if X.format != "csr" or len(X.indptr) != X.shape[0] + 1 or len(X.indices) != len(X.data):
        return False
    from majorant.rows.kernels import sound_indices  # imported late, since it imports numba

    return bool(sound_indices(X.indptr, X.indices, X.shape[1]))


def corruption(X: Any) -> str | None:
    """The defect of the indices of a sparse matrix, in words; None if they are sound."""
    if X.format == "coo":
        for indices, size in zip(X.coords, X.shape, strict=True):
            if indices.size and (indices.min() < 0 or indices.max() >= size):
                return "an index lies outside of the matrix"
    if X.format not in ("csr", "csc", "bsr"):
        return None
    major, minor = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        major, minor = major // X.blocksize[0], minor // X.blocksize[1]
    pointers, indices = X.indptr, X.indices
    # Compared, not subtracted: differences of unsigned integers are never negative.
    if len(pointers) != major + 1 or pointers[0] != 0 or np.any(pointers[1:] < pointers[:-1]):
        return "its index pointers are not in order"
    if pointers[-1] > min(len(indices), len(X.data)):
        return "its index pointers exceed its entries"
    used = indices[: pointers[-1]]
    if used.size and (used.min() < 0 or used.max() >= minor):
        return f"an index lies outside 0…{minor - 1} (found {used.min()}…{used.max()})"
    return None


def is_canonical(X: Any) -> bool:
    """Whether the indices of every row of a CSR matrix are sorted, without duplicates."""
    rising = X.indices[1:] > X.indices[:-1]
    # The index may fall where a new row begins.
    begins = X.indptr[1:-1]
    begins = begins[(begins > 0) & (begins < len(X.indices))]
    rising[begins - 1] = True
    return bool(np.all(rising))
