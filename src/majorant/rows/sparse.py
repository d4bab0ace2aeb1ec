"""What a sparse matrix must be before compiled loops follow its indices.

scipy's own `check_format` lets index pointers like (0, 2, 0) pass, which its conversions then follow out of
the arrays (found by fuzzing): here they are looked at in any case.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def is_sound_csr(X: Any) -> bool:
    """Whether X is a CSR matrix without corruption, canonical, and without entries beyond its rows.

    One compiled pass. The other functions here say what is wrong.
    """
    if X.format != "csr" or len(X.indptr) != X.shape[0] + 1 or len(X.indices) != len(X.data):
        return False
    from majorant.rows.kernels import sound_indices  # imports numba, which dense data need not wait for

    return bool(sound_indices(X.indptr, X.indices, X.shape[1]))


def corruption(X: Any) -> str | None:
    """What is wrong with the indices of a sparse matrix, if anything is."""
    if X.format == "coo":
        for indices, size in zip(X.coords, X.shape, strict=True):
            if indices.size and (indices.min() < 0 or indices.max() >= size):
                return "an index lies outside of it"
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
    """Whether the indices of every row of a CSR matrix increase strictly: sorted, and none twice."""
    rising = X.indices[1:] > X.indices[:-1]
    # Where a new row begins the index may fall.
    begins = X.indptr[1:-1]
    begins = begins[(begins > 0) & (begins < len(X.indices))]
    rising[begins - 1] = True
    return bool(np.all(rising))
