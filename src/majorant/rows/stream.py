"""Rows that are read block by block, because they do not fit into memory.

A question is one pass: its answers are those of the blocks, added in their order, so that they are bit for
bit those of `MemoryRows` with the same cuts. Several threads take one block after the other, and each works
on the block that it has read, while it is in the cache of its core; so one reads while another computes. (A
thread that only reads for others that compute took 1.5 times as much processor time.) What fits into the
budget stays: the blocks that were read first. (To keep those that were used last would drop each block just
before its turn, since passes go round and round.) A quarter of the budget is left to the solver, for
copies of some rows and for what it makes of them.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from itertools import islice

from majorant.blas import one_thread
from majorant.errors import MajorantError
from majorant.rows.base import Answer, State
from majorant.rows.block import Block
from majorant.rows.partitioned import SHARE, BlockStore
from majorant.rows.pass_hooks import Pass, call_watchers
from majorant.rows.sources import RawBlock, Source
from majorant.rows.threads import in_context, work_alone

Prepare = Callable[[int, RawBlock], Block]

# The part of the memory that blocks may take.
BLOCKS = 3 / 4

# The least number of threads, each of which has a block; more, if the blocks then take no more than a SHARE
# of the memory.
THREADS = 2


def read_ahead(load: Callable[[int], Answer], order: Sequence[int]) -> Generator[Answer, None, None]:
    """load(i) for every i in this order, each while the caller is busy with the one before."""
    with ThreadPoolExecutor(1) as pool:
        yield from _in_order(pool, load, order, ahead=1)


def read_blocks(source: Source) -> Generator[RawBlock, None, None]:
    """The blocks of a source, each read while the caller is busy with the one before."""
    return read_ahead(source.load, range(source.n_blocks))


def _in_order(
    pool: ThreadPoolExecutor, task: Callable[[int], Answer], order: Sequence[int], *, ahead: int
) -> Generator[Answer, None, None]:
    """task(i) for every i in order, by a pool of threads that work at most `ahead` tasks in advance.

    An error in a thread is raised here, when its turn has come. Nothing is left running, however it ends.
    """
    tasks = (in_context(partial(task, i)) for i in order)
    waiting = deque(pool.submit(each) for each in islice(tasks, ahead))
    try:
        while waiting:
            answer = waiting.popleft().result()
            waiting.extend(pool.submit(each) for each in islice(tasks, 1))
            yield answer
            del answer  # if it is a block, it goes before the one after the next comes
    finally:
        wait([future for future in waiting if not future.cancel()])


class Reader(BlockStore):
    """The blocks of a source, read as often as they are asked for, but for those that are kept.

    Parameters
    ----------
    source : Source
    prepare : function
        Makes a `Block` of what was loaded; works in the thread that reads.
    memory : int
        The bytes that the fit may take: blocks, those that are worked on included, and what a solver copies.
    """

    def __init__(self, source: Source, prepare: Prepare, memory: int) -> None:
        super().__init__(source.n_blocks, memory)
        self.source, self.prepare = source, prepare
        self._kept: dict[int, Block] = {}
        self._kept_bytes = 0
        self._largest = source.size(0) or 0
        self._lock = threading.Lock()
        # The size of a block is known before it is loaded, or else two of them are few enough.
        room = memory // (SHARE * self._largest) if self._largest else THREADS
        self.threads = max(THREADS, min(os.cpu_count() or 1, room))
        # They wait for the next pass, and end with this object.
        self._pool = ThreadPoolExecutor(self.threads, initializer=work_alone)

    def one_pass(self, question: Callable[[Block], Answer]) -> Generator[Answer, None, None]:
        """The answers of all blocks, in their order."""
        # Some answers may wait; every thread has one block in its hands.
        ahead = 2 * self.threads
        return self._watched(lambda i: question(self._block(i)), range(self.n_blocks), ahead)

    def fold_blocks(
        self, state: State, through: Callable[[State, Block], State], order: Sequence[int]
    ) -> State:
        with closing(self._watched(self._block, order, ahead=1)) as blocks:
            for block in blocks:
                state = through(state, block)
                del block
        return state

    def _watched(
        self, task: Callable[[int], Answer], order: Sequence[int], ahead: int
    ) -> Generator[Answer, None, None]:
        """task(i) for every i in order: one pass, which the watchers follow."""
        self.passes += 1
        number, start = self.passes, time.perf_counter()
        # Each of our threads has work enough: with threads of BLAS beside them a pass took 18 times as long.
        with one_thread(), closing(_in_order(self._pool, task, order, ahead=ahead)) as answers:
            for done, answer in enumerate(answers, start=1):
                yield answer
                del answer
                call_watchers(Pass(number, done, self.n_blocks, time.perf_counter() - start))

    def _block(self, i: int) -> Block:
        if (kept := self._kept.get(i)) is not None:
            return kept
        raw = self.source.load(i)
        size = raw.nbytes
        block = self.prepare(i, raw)
        with self._lock:
            self._largest = max(self._largest, size)
            if THREADS * size > self.memory:
                raise MajorantError(
                    f"{self.source.name}, block {i} takes {size / 1e6:,.3g} MB, and {THREADS} such blocks "
                    f"do not fit into memory={self.memory / 1e6:,.3g} MB: allow more, or make smaller blocks"
                )
            room = BLOCKS * self.memory - self.threads * self._largest - self._kept_bytes
            if size <= room and i not in self._kept:
                self._kept[i] = block
                self._kept_bytes += size
        return block
