"""Rows that are read block by block, because they do not fit into memory.

A question is one pass: its answers are those of the blocks, added in their order, so that they are bit for
bit those of `MemoryRows` with the same cuts. While one block is worked on, a thread reads the next. What fits
into the budget stays: the blocks that were read first. (To keep those that were used last would drop each
block just before its turn, since passes go round and round.)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial

import numpy as np
from numpy.typing import NDArray

from majorant.errors import MajorantError
from majorant.rows.between import Pass, call_watchers
from majorant.rows.block import Block
from majorant.rows.protocol import Answer, Rows, State
from majorant.rows.sources import RawBlock, Source
from majorant.status import Vector

__all__ = ["Reader", "StreamRows", "against_the_rest", "columns_of", "read_ahead"]

Prepare = Callable[[int, RawBlock], Block]
View = Callable[[Block], Block]

# Blocks in memory besides those that are kept: one that is worked on, one that is being read.
IN_FLIGHT = 2


def read_ahead(load: Callable[[int], Answer], order: Sequence[int]) -> Generator[Answer, None, None]:
    """load(i) for every i in this order, each while the caller is busy with the one before.

    An error in the thread that loads is raised here, when its turn has come.
    """
    if not len(order):
        return
    with ThreadPoolExecutor(1, thread_name_prefix="majorant reader") as pool:
        ahead: Future[Answer] | None = pool.submit(load, order[0])
        try:
            for following in [*order[1:], None]:
                assert ahead is not None
                answer = ahead.result()
                ahead = None if following is None else pool.submit(load, following)
                yield answer
                del answer  # the block that was worked on goes before the one after the next comes
        finally:
            if ahead is not None:
                ahead.cancel()


class Reader:
    """The blocks of a source, read as often as they are asked for, but for those that are kept.

    Parameters
    ----------
    source : Source
    prepare : function
        Makes a `Block` of what was loaded; works in the thread that reads.
    memory : int
        The bytes that blocks may take, those on their way included.
    """

    def __init__(self, source: Source, prepare: Prepare, memory: int) -> None:
        self.source, self.prepare, self.memory = source, prepare, memory
        self.passes = 0
        self._kept: dict[int, Block] = {}
        self._kept_bytes = self._largest = 0
        self._lock = threading.Lock()  # several classes may be trained at the same time

    def blocks(self, order: Sequence[int] | None = None) -> Generator[Block, None, None]:
        """All blocks: one pass, in this order, or in their own."""
        order = range(self.source.n_blocks) if order is None else order
        with self._lock:
            self.passes += 1
            number, kept = self.passes, dict(self._kept)
        start = time.perf_counter()
        with closing(read_ahead(self._load, [i for i in order if i not in kept])) as loaded:
            for done, i in enumerate(order, start=1):
                yield kept[i] if i in kept else next(loaded)
                call_watchers(Pass(number, done, len(order), time.perf_counter() - start))

    def _load(self, i: int) -> Block:
        raw = self.source.load(i)
        size = raw.nbytes
        block = self.prepare(i, raw)
        with self._lock:
            self._largest = max(self._largest, size)
            if IN_FLIGHT * size > self.memory:
                raise MajorantError(
                    f"{self.source.name}, block {i} takes {size / 1e6:,.0f} MB, and {IN_FLIGHT} such blocks "
                    f"do not fit into memory={self.memory / 1e6:,.0f} MB: allow more, or make smaller blocks"
                )
            room = self.memory - IN_FLIGHT * self._largest - self._kept_bytes
            if size <= room and i not in self._kept:
                self._kept[i] = block
                self._kept_bytes += size
        return block


class StreamRows(Rows):
    """Rows that come from a reader, or another view of them: other labels, fewer columns."""

    def __init__(self, reader: Reader, n_samples: int, n_features: int, view: View | None = None) -> None:
        self.reader, self.n_samples, self.n_features = reader, n_samples, n_features
        self._view = view

    def ask(self, question: Callable[[Block], Answer]) -> Generator[Answer, None, None]:
        with closing(self._blocks()) as blocks:
            for block in blocks:
                answer = question(block)
                del block  # its memory is for the one after the next
                yield answer

    @property
    def n_parts(self) -> int:
        return self.reader.source.n_blocks

    def carry(self, state: State, through: Callable[[State, Block], State], order: Sequence[int]) -> State:
        with closing(self._blocks(order)) as blocks:
            for block in blocks:
                state = through(state, block)
                del block
        return state

    def columns(self, chosen: NDArray[np.intp]) -> StreamRows:
        """The same rows with some of the features only, chosen anew in every pass."""
        view = partial(columns_of, self._view, chosen)
        return StreamRows(self.reader, self.n_samples, len(chosen), view)

    def against_the_rest(self, code: int) -> StreamRows:
        """The same rows, where y numbers their classes: this one is 1, all others are -1."""
        return StreamRows(self.reader, self.n_samples, self.n_features, partial(against_the_rest, code))

    def _blocks(self, order: Sequence[int] | None = None) -> Generator[Block, None, None]:
        with closing(self.reader.blocks(order)) as blocks:
            for block in blocks:
                yield block if self._view is None else self._view(block)
                del block


def columns_of(view: View | None, chosen: NDArray[np.intp], block: Block) -> Block:
    """What a view makes of a block, with some of its columns."""
    return (block if view is None else view(block)).columns(chosen)


def against_the_rest(code: int, block: Block) -> Block:
    """The block, where y numbers classes: this one is 1, all others are -1."""
    y: Vector = np.where(block.y == code, 1.0, -1.0)
    return block.relabelled(y, block.s)
