"""Rows that are in memory, in one block or in several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import add
from typing import Any
from weakref import ref

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.rows.base import Answer, Rows, State
from majorant.rows.block import Block
from majorant.rows.dense import DenseBlock
from majorant.rows.threads import blocks_for, parallel_map
from majorant.status import Matrix, Vector

# The number of entries from which sparse rows are cut into blocks. (Dense rows are one block: numpy's many
# short calls would compete for the GIL. A dense block runs only its long calls on all cores.) With two blocks
# instead of one, fits on two cores took 1.13 times as long on a9a (450,000 entries), as long on w8a
# (580,000), and 0.89 times as long on ijcnn1 (650,000).
LEAST_ENTRIES = 500_000
# The same per feature, since every block allocates vectors of all features.
LEAST_ENTRIES_PER_FEATURE = 16


class MemoryRows(Rows):
    """The rows of X, in blocks that are processed in parallel.

    `cuts` are the row numbers where blocks begin. By default `blocks` are cut for speed, in a way that
    depends on X but not on the number of cores. `batch_blocks` are the blocks from which stochastic methods
    draw batches: those of `cuts`, not those for speed. `warm_cache` holds what a run leaves for the next run
    on these rows, which often starts where the last one ended, as along a path of strengths.
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
        self.warm_cache: dict[type, Any] = {}
        y = np.asarray(y, dtype=np.float64)
        s = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        whole = make_block(X, y, s, intercept=intercept)
        self.n_samples, self.n_features = X.shape
        self._cut_by_user = cuts is not None
        self.batch_blocks = _cut(whole, cuts or ())
        self.blocks = self.partition()

    def relabelled(self, y: Vector, sample_weight: Vector) -> MemoryRows:
        """The same X with other labels and weights, as for another class; X is not copied."""
        stops = np.cumsum([block.n_samples for block in self.batch_blocks])[:-1]
        parts = zip(self.batch_blocks, np.split(y, stops), np.split(sample_weight, stops), strict=True)
        twin = self.of([block.relabelled(labels, weights) for block, labels, weights in parts])
        twin._cut_by_user = self._cut_by_user
        if len(twin.batch_blocks) == 1:  # the same blocks as here, which need not be those of `partition`
            twin.blocks = _cut(
                twin.batch_blocks[0], np.cumsum([b.n_samples for b in self.blocks])[:-1].tolist()
            )
        return twin

    def columns(self, chosen: NDArray[np.intp]) -> MemoryRows:
        """The same rows with some of the features only."""
        blocks = self.partition(2 * (len(chosen) + 1) ** 2)
        part = self.of(parallel_map([partial(block.columns, chosen) for block in blocks]))
        part._take_stats_at_zero_of(self, chosen)
        return part

    def without_empty_columns(self, chosen: NDArray[np.intp]) -> MemoryRows:
        """The same sparse rows without the features outside of `chosen`, which have no entries.

        The entries are not copied.
        """
        cached: MemoryRows | None = self.warm_cache.get(MemoryRows)
        if cached is not None:  # `chosen` is always the same: the features that have entries
            return cached
        part = self.transformed(lambda block: block.renumbered(chosen))
        part._take_stats_at_zero_of(self, chosen)
        self.warm_cache[MemoryRows] = part
        return part

    @property
    def loss_by_class_is_cheap(self) -> bool:  # type: ignore[override]
        """Whether X is sparse: the kernel of sparse rows sums by class in any case."""
        return not self.dense

    @property
    def dense(self) -> bool:
        """Whether X is an ndarray."""
        return self.blocks[0].dense

    @property
    def labels_and_weights(self) -> tuple[Vector, Vector]:
        """The labels and the weights of all rows."""
        y, s = (np.concatenate([getattr(block, name) for block in self.blocks]) for name in "ys")
        return y, s

    def every(self, step: int) -> MemoryRows:
        """Every `step`-th row, with `step` times its weight."""
        return self.transformed(lambda block: block.every(step))

    def transformed(self, transform: Callable[[Block], Block]) -> MemoryRows:
        """The rows with each batch block replaced by transform(block), and cut for speed anew."""
        part = self.of([transform(block) for block in self.batch_blocks])
        part._cut_by_user = self._cut_by_user
        part.blocks = part.partition()
        return part

    @classmethod
    def of(cls, blocks: list[Block]) -> MemoryRows:
        """The rows of these blocks."""
        part = object.__new__(MemoryRows)
        part.warm_cache, part._cut_by_user = {}, False
        part.batch_blocks = part.blocks = blocks
        part.n_samples = sum(block.n_samples for block in part.blocks)
        part.n_features = part.blocks[0].n_features
        return part

    def partition(self, least_entries: int = 0) -> list[Block]:
        """The user's blocks, or equal blocks of at least `least_entries` entries.

        Callers that allocate a matrix for every block choose `least_entries` so that it is small beside the
        block.
        """
        if len(self.batch_blocks) > 1 or self._cut_by_user:
            return self.batch_blocks
        (whole,) = self.batch_blocks
        by_features = LEAST_ENTRIES_PER_FEATURE * whole.n_features
        count = blocks_for(whole.sparse_entries, max(LEAST_ENTRIES, by_features, least_entries))
        return _cut(whole, [whole.n_samples * k // count for k in range(1, count)])

    def map_blocks(self, question: Callable[[Block], Answer]) -> list[Answer]:
        return parallel_map([partial(question, block) for block in self.blocks])

    def transposed_products(self, u: Matrix) -> Matrix:
        """UX, for the rows of U, which have a number for every row of X."""
        stops = np.cumsum([block.n_samples for block in self.blocks])[:-1]
        parts = np.split(u, stops, axis=1)
        answers = parallel_map(
            [partial(block.transposed_products, part) for block, part in zip(self.blocks, parts, strict=True)]
        )
        return reduce(add, answers)

    @cached_property
    def column_counts(self) -> NDArray[np.intp]:
        """How many entries each column of X has."""
        return np.asarray(self.sum_blocks(lambda block: block.column_counts))

    @property
    def n_batch_blocks(self) -> int:
        # A batch is part of one block, as on a cluster, where another block may be on another machine.
        return len(self.batch_blocks)

    def fold_blocks(
        self, state: State, through: Callable[[State, Block], State], order: Sequence[int]
    ) -> State:
        for i in order:
            state = through(state, self.batch_blocks[i])
        return state


def same_rows(references: Sequence[ref[MemoryRows]], classes: Sequence[Rows]) -> bool:
    """Whether the references are to these rows, class by class."""
    return [reference() for reference in references] == list(classes)


def make_block(X: Any, y: Vector, s: Vector, *, intercept: bool) -> Block:
    """The block for this type of X."""
    if sp.issparse(X):
        # Imported late: dense data need not wait for numba, whose import takes a third of a second.
        from majorant.rows.csr import CsrBlock

        return CsrBlock.of(X, y, s, intercept=intercept)
    return DenseBlock(X, y, s, intercept=intercept)


def joined(blocks: Sequence[Block]) -> list[Block]:
    """The rows of all blocks, copied into one block, or into two if some are dense and some are sparse."""
    found: list[Block] = []
    kinds: list[type[Block]] = list(dict.fromkeys(type(block) for block in blocks))
    for kind in kinds:
        alike = [block for block in blocks if type(block) is kind]
        if len(alike) == 1:
            found += alike
            continue
        found.append(kind.joined(alike))
        folds = [block.fold for block in alike if block.fold is not None]
        found[-1].fold = np.concatenate(folds) if folds else None
    return found


def _cut(block: Block, cuts: Sequence[int]) -> list[Block]:
    if not cuts:
        return [block]
    return [block.rows(slice(a, b)) for a, b in pairwise([0, *cuts, block.n_samples])]
