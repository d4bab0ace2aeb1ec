"""Rows that are in memory, in one block or in several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.rows.block import Block, make_block
from majorant.rows.protocol import Answer, Batch, Rows
from majorant.status import Vector


class MemoryRows(Rows):
    """The rows of X, cut into blocks at the given row numbers; uncut by default."""

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        sample_weight: Vector | None = None,
        *,
        intercept: bool = True,
        cuts: Sequence[int] = (),
    ) -> None:
        y = np.asarray(y, dtype=np.float64)
        s = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        # Uncut, X is taken as it is: slicing a CSR matrix would copy it.
        cut = [(X[a:b], y[a:b], s[a:b]) for a, b in pairwise([0, *cuts, len(y)])] if cuts else [(X, y, s)]
        self.blocks = [make_block(*piece, intercept=intercept) for piece in cut]
        self.n_samples, self.n_features = X.shape

    def columns(self, chosen: NDArray[np.intp]) -> MemoryRows:
        """The same rows with some of the features only."""
        part = object.__new__(MemoryRows)
        part.blocks = [block.columns(chosen) for block in self.blocks]
        part.n_samples, part.n_features = self.n_samples, len(chosen)
        return part

    def every(self, step: int) -> MemoryRows:
        """Every so-manieth row, weighed as many times: a rough picture of all."""
        part = object.__new__(MemoryRows)
        part.blocks = [block.every(step) for block in self.blocks]
        part.n_samples = sum(block.n_samples for block in part.blocks)
        part.n_features = self.n_features
        return part

    def ask(self, question: Callable[[Block], Answer]) -> list[Answer]:
        return [question(block) for block in self.blocks]

    def batches(self, rng: np.random.Generator, size: int) -> Iterator[Batch]:
        # Batches stay within a block, as they must where a block is on another machine.
        for i in rng.permutation(len(self.blocks)):
            block = self.blocks[i]
            order = rng.permutation(block.n_samples)
            for start in range(0, len(order), size):
                yield Batch(block, order[start : start + size])
