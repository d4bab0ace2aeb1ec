"""Rows that are in memory, in one block or in several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.rows.block import Block
from majorant.rows.dense import DenseBlock
from majorant.rows.protocol import Answer, Rows, State
from majorant.rows.together import together
from majorant.status import Vector

# Sparse rows with so many entries are cut into two blocks. (Dense ones are not: numpy's many short calls
# would spend their time handing the GIL to and fro. A dense block divides the long calls only.)
HALVES_PAY = 150_000


class MemoryRows(Rows):
    """The rows of X, in blocks that are worked on at the same time.

    `cuts` are the row numbers where a block begins. By default there are two blocks if that pays: it depends
    on X alone, not on the number of cores. `drawn` are the blocks that batches are drawn
    from: what the user has cut, not what was halved for speed. `kept` is what a run leaves for the next one
    on these rows, which often begins where it ended: along a path of strengths, say.
    """

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        sample_weight: Vector | None = None,
        *,
        intercept: bool = True,
        cuts: Sequence[int] | None = None,
    ) -> None:
        self.kept: dict[type, Any] = {}
        y = np.asarray(y, dtype=np.float64)
        s = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        whole = make_block(X, y, s, intercept=intercept)
        self.n_samples, self.n_features = X.shape
        self.blocks = halves_of(whole) if cuts is None else _cut(whole, cuts)
        self.drawn = [whole] if cuts is None else self.blocks

    def relabelled(self, y: Vector, sample_weight: Vector) -> MemoryRows:
        """The same X with other labels and weights, as for another class; nothing of X is copied."""

        def relabel(blocks: list[Block]) -> list[Block]:
            stops = np.cumsum([block.n_samples for block in blocks])[:-1]
            parts = zip(blocks, np.split(y, stops), np.split(sample_weight, stops), strict=True)
            return [block.relabelled(labels, weights) for block, labels, weights in parts]

        twin = self.of(relabel(self.blocks))
        twin.drawn = relabel(self.drawn)
        return twin

    def columns(self, chosen: NDArray[np.intp]) -> MemoryRows:
        """The same rows with some of the features only."""
        return self.of(together([partial(block.columns, chosen) for block in self.blocks]))

    @property
    def dense(self) -> bool:
        """Whether X is an ndarray."""
        return self.blocks[0].dense

    def every(self, step: int) -> MemoryRows:
        """Every so-manieth row, weighed as many times: a rough picture of all."""
        samples = [_sample(block, step) for block in self.drawn]
        return self.of(samples if len(samples) > 1 else halves_of(samples[0]))

    @classmethod
    def of(cls, blocks: list[Block]) -> MemoryRows:
        """The rows of these blocks."""
        part = object.__new__(MemoryRows)
        part.kept = {}
        part.drawn = part.blocks = blocks
        part.n_samples = sum(block.n_samples for block in part.blocks)
        part.n_features = part.blocks[0].n_features
        return part

    def ask(self, question: Callable[[Block], Answer]) -> list[Answer]:
        return together([partial(question, block) for block in self.blocks])

    @property
    def n_parts(self) -> int:
        # Batches stay within a block that the user has cut, as they must where it is on another machine.
        return len(self.drawn)

    def carry(self, state: State, through: Callable[[State, Block], State], order: Sequence[int]) -> State:
        for i in order:
            state = through(state, self.drawn[i])
        return state


def make_block(X: Any, y: Vector, s: Vector, *, intercept: bool) -> Block:
    """The block that fits the kind of X."""
    if sp.issparse(X):
        # Imported late: numba takes a third of a second, which dense data need not wait for.
        from majorant.rows.csr import CsrBlock

        return CsrBlock.of(X, y, s, intercept=intercept)
    return DenseBlock(X, y, s, intercept=intercept)


def joined(blocks: Sequence[Block]) -> list[Block]:
    """The rows of all blocks, copied into one, or into two if some blocks are dense and some are sparse."""
    found: list[Block] = []
    kinds: list[type[Block]] = list(dict.fromkeys(type(block) for block in blocks))
    for kind in kinds:
        mine = [block for block in blocks if type(block) is kind]
        if len(mine) == 1:
            found += mine
            continue
        found.append(kind.joined(mine))
        folds = [block.fold for block in mine if block.fold is not None]
        found[-1].fold = np.concatenate(folds) if folds else None
    return found


def halves_of(block: Block) -> list[Block]:
    """The block, in two halves if that pays."""
    return _cut(block, (block.n_samples // 2,) if block.sparse_entries >= HALVES_PAY else ())


def _cut(block: Block, cuts: Sequence[int]) -> list[Block]:
    if not cuts:
        return [block]
    return [block.rows(slice(a, b)) for a, b in pairwise([0, *cuts, block.n_samples])]


def _sample(block: Block, step: int) -> Block:
    part = block.rows(slice(None, None, step))
    part.s = step * part.s
    return part
