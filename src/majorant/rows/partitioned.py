"""Rows whose blocks are on a disk or on a cluster.

A `BlockStore` maps a question over its blocks, which takes a pass over a disk or a round trip to a cluster.
`PartitionedRows` apply a `BlockTransform` to each block of a store: one class against the rest, without the
rows of a fold, or some columns only. Questions to several transforms of one store share a pass:
`map_blocks_each` takes a list of questions, and a `PassBatcher` collects the questions of problems that are
solved in threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.rows.base import Answer, EveryKth, Rows, State, losses_by_class
from majorant.rows.block import Block
from majorant.rows.memory import joined
from majorant.rows.pass_batcher import AskAll, PassBatcher
from majorant.rows.sources import DEFAULT_MEMORY
from majorant.status import Matrix

# The share of the memory that a solver's copies of rows may take.
COPIES_SHARE = 1 / 16

# The share of the memory that Gram matrices may take which are kept for all classes and strengths.
GRAMS_SHARE = 1 / 4


class BlockStore(ABC):
    """Blocks on a disk or on a cluster; this process may keep `memory` bytes of them."""

    def __init__(self, n_blocks: int, memory: int) -> None:
        self.n_blocks, self.memory = n_blocks, memory
        self.batcher: PassBatcher | None = None
        self.passes = 0
        """The number of passes that have begun."""
        self.grams: dict[Callable[[Block], Block], Matrix] = {}
        self._sample: dict[EveryKth, list[Block]] = {}
        self._sampling = Lock()

    @abstractmethod
    def one_pass(self, question: Callable[[Block], Answer]) -> Iterable[Answer]:
        """The answers of all blocks, in block order."""

    @abstractmethod
    def fold_blocks(
        self, state: State, through: Callable[[State, Block], State], order: Sequence[int]
    ) -> State:
        """As `Rows.fold_blocks`."""

    def map_blocks(self, question: Callable[[Block], Answer]) -> Iterable[Answer]:
        """The answers of all blocks, in block order: one pass, shared with other threads by a batcher."""
        return self.one_pass(question) if self.batcher is None else self.batcher.map_blocks(question)

    def sampled(self, sample: EveryKth) -> list[Block]:
        """Some rows, in one pass, copied into one block, since a solver allocates a matrix for each block.

        Threads that ask for the same sample get the same copy.
        """
        blocks = list(self.map_blocks(sample))
        with self._sampling:
            if sample not in self._sample:
                self._sample = {sample: joined(blocks)}
            return self._sample[sample]


def identity(value: Answer) -> Answer:
    """The transform that changes nothing; unlike a lambda, it can be pickled."""
    return value


@dataclass(frozen=True, eq=False)
class BlockTransform:
    """A function of a block: other weights, the labels of one class against the rest, some columns."""

    reweight: Callable[[Block], Block] = identity
    """Changes the weights. Sums that depend only on X and the weights are the same for all classes."""
    positive: int | None = None
    """The class whose rows get the label 1, all others -1, if y numbers the classes; None: y as it is."""
    features: NDArray[np.intp] | None = None
    """The columns to keep; None: all."""

    def __call__(self, block: Block) -> Block:
        found = self.reweight(block)
        if self.positive is not None:
            found = found.relabelled(np.where(block.y == self.positive, 1.0, -1.0), found.s)
        return found if self.features is None else found.columns(self.features)


@dataclass(frozen=True)
class TransformedQuestion:
    """question(transform(block)). Equal questions are answered once per pass."""

    transform: Callable[[Block], Block]
    question: Callable[..., Any]

    def __call__(self, *state_and_block: Any) -> Any:
        *state, block = state_and_block
        return self.question(*state, self.transform(block))


@dataclass(eq=False)
class PartitionedRows(Rows):
    """The rows of a store, transformed; `n_samples` and `n_features` are those after the transform."""

    store: BlockStore
    n_samples: int
    n_features: int
    transform: BlockTransform = BlockTransform()

    def map_blocks(self, question: Callable[[Block], Answer]) -> Iterable[Answer]:
        return self.store.map_blocks(TransformedQuestion(self.transform, question))

    def map_blocks_each(
        self, parts: Sequence[Rows], questions: Sequence[Callable[[Block], Any]]
    ) -> Iterable[Sequence[Any]]:
        pairs = zip(self._transforms(parts), questions, strict=True)
        return self.store.map_blocks(AskAll([TransformedQuestion(*pair) for pair in pairs]))

    def subsample(self, parts: Sequence[Rows], sample: EveryKth) -> list[list[Block]]:
        blocks = self.store.sampled(sample)
        return [[transform(block) for block in blocks] for transform in self._transforms(parts)]

    def _transforms(self, parts: Sequence[Rows]) -> list[BlockTransform]:
        same = [part for part in parts if isinstance(part, PartitionedRows) and part.store is self.store]
        assert len(same) == len(parts), "rows of several stores cannot share a pass"
        return [part.transform for part in same]

    @property
    def n_batch_blocks(self) -> int:
        return self.store.n_blocks

    @property
    def copy_budget(self) -> int:
        # With more memory than the default no more copies, which would change the last digits of the result.
        return int(COPIES_SHARE * min(self.store.memory, DEFAULT_MEMORY))

    def fold_blocks(
        self, state: State, through: Callable[[State, Block], State], order: Sequence[int]
    ) -> State:
        return self.store.fold_blocks(state, TransformedQuestion(self.transform, through), order)

    def gram(self) -> Matrix:
        # The matrix does not depend on the labels: one pass serves all classes and all strengths of a path.
        if self.transform.features is not None:
            return super().gram()
        grams, reweight = self.store.grams, self.transform.reweight
        if reweight not in grams:
            gram: Matrix = reduce(add, self.store.map_blocks(TransformedQuestion(reweight, Block.gram)))
            if (len(grams) + 1) * gram.nbytes > GRAMS_SHARE * self.store.memory:
                return gram
            gram.flags.writeable = False
            grams[reweight] = gram
        return grams[reweight]

    def columns(self, chosen: NDArray[np.intp]) -> PartitionedRows:
        """The same rows with some of the features only, which every pass selects again."""
        features = chosen if self.transform.features is None else self.transform.features[chosen]
        return replace(self, n_features=len(chosen), transform=replace(self.transform, features=features))

    def reweighted(self, reweight: Callable[[Block], Block], n_samples: int) -> PartitionedRows:
        """The same rows with other weights; `n_samples` of them are not zero."""
        return replace(self, n_samples=n_samples, transform=replace(self.transform, reweight=reweight))

    def by_problem(self, n_classes: int) -> list[PartitionedRows]:
        """The rows of every problem: as they are for two classes, else for each class against the rest."""
        positives = [None] if n_classes == 2 else range(n_classes)
        return [replace(self, transform=replace(self.transform, positive=code)) for code in positives]


def compute_stats_at_zero(parts: Sequence[Rows]) -> None:
    """Compute `stats_at_zero` of several transforms of the same blocks, in one pass."""
    with np.errstate(over="ignore", invalid="ignore"):  # Objective.check_scale refuses what overflows
        found = losses_by_class(parts, np.zeros((len(parts), parts[0].n_features + 1)), lengths=True)
    for part, stats in zip(parts, found, strict=True):
        part.__dict__["stats_at_zero"] = stats  # the value of the cached property
