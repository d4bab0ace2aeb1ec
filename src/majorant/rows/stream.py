"""Rows that are read block by block, because they do not fit into memory.

A question takes one pass. The answers of the blocks are added in block order, so the sum is bit for bit that
of `MemoryRows` with the same cuts. Each of several threads reads a block and answers the question for it,
while the block is in the cache of its core; so one thread reads while another computes. (With a thread that
only reads, a pass took 1.5 times as much processor time.) The first blocks stay in memory, as many as fit
into the budget. (Keeping the blocks used last would drop each block just before the next pass needs it.) A
quarter of the budget is left to the solver, for copies of some rows and its own matrices.
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
from majorant.rows.partitioned import BlockStore
from majorant.rows.pass_hooks import Pass, call_watchers
from majorant.rows.sources import RawBlock, Source
from majorant.rows.threads import in_context, use_one_thread

Prepare = Callable[[int, RawBlock], Block]

# The share of the memory that all blocks may take, and that of the blocks that threads are working on.
BLOCKS_SHARE = 3 / 4
BUSY_SHARE = 1 / 4

# The smallest number of threads, whatever the size of the blocks.
THREADS = 2


def read_ahead(load: Callable[[int], Answer], order: Sequence[int]) -> Generator[Answer, None, None]:
    """load(i) for every i in this order, each while the caller works on the one before."""
    with ThreadPoolExecutor(1) as pool:
        yield from _in_order(pool, load, order, ahead=1)


def read_blocks(source: Source) -> Generator[RawBlock, None, None]:
    """The blocks of a source, each read while the caller works on the one before."""
    return read_ahead(source.load, range(source.n_blocks))


def _in_order(
    pool: ThreadPoolExecutor, task: Callable[[int], Answer], order: Sequence[int], *, ahead: int
) -> Generator[Answer, None, None]:
    """task(i) for every i in order, by a pool of threads that run at most `ahead` tasks in advance.

    An error in task i is raised where its answer would be yielded. No task is left running at the end.
    """
    tasks = (in_context(partial(task, i)) for i in order)
    waiting = deque(pool.submit(each) for each in islice(tasks, ahead))
    try:
        while waiting:
            answer = waiting.popleft().result()
            waiting.extend(pool.submit(each) for each in islice(tasks, 1))
            yield answer
            del answer  # free a block before the next one is loaded
    finally:
        wait([future for future in waiting if not future.cancel()])


class Reader(BlockStore):
    """The blocks of a source, which are read again in every pass unless they stay in memory.

    Parameters
    ----------
    source : Source
    prepare : function
        Makes a `Block` of block number i and its `RawBlock`, in the thread that has read it.
    memory : int
        The bytes that the fit may take for blocks and for the copies and matrices of a solver.
    """

    def __init__(self, source: Source, prepare: Prepare, memory: int) -> None:
        super().__init__(source.n_blocks, memory)
        self.source, self.prepare = source, prepare
        self._cached: dict[int, Block] = {}
        self._cached_bytes = 0
        self._largest = source.size(0) or 0
        self._lock = threading.Lock()
        # If the size of a block is not known before it is loaded, the smallest number of threads is safe.
        affordable = int(BUSY_SHARE * memory) // self._largest if self._largest else THREADS
        self.threads = max(THREADS, min(os.cpu_count() or 1, affordable))
        # The threads wait for the next pass, and end with this object.
        self._pool = ThreadPoolExecutor(self.threads, initializer=use_one_thread)

    def one_pass(self, question: Callable[[Block], Answer]) -> Generator[Answer, None, None]:
        """The answers of all blocks, in block order."""
        ahead = 2 * self.threads  # a thread may go on while its answer waits for its turn
        return self._one_pass_over(lambda i: question(self._block(i)), range(self.n_blocks), ahead)

    def fold_blocks(
        self, state: State, through: Callable[[State, Block], State], order: Sequence[int]
    ) -> State:
        with closing(self._one_pass_over(self._block, order, ahead=1)) as blocks:
            for block in blocks:
                state = through(state, block)
                del block
        return state

    def _one_pass_over(
        self, task: Callable[[int], Answer], order: Sequence[int], ahead: int
    ) -> Generator[Answer, None, None]:
        """task(i) for every i in order: one pass, of which the watchers are told."""
        self.passes += 1
        number, start = self.passes, time.perf_counter()
        # Our threads keep all cores busy: with threads of BLAS beside them a pass took 18 times as long.
        with one_thread(), closing(_in_order(self._pool, task, order, ahead=ahead)) as answers:
            for done, answer in enumerate(answers, start=1):
                yield answer
                del answer
                call_watchers(Pass(number, done, self.n_blocks, time.perf_counter() - start))

    def _block(self, i: int) -> Block:
        if (cached := self._cached.get(i)) is not None:
            return cached
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
            free = BLOCKS_SHARE * self.memory - self.threads * self._largest - self._cached_bytes
            if size <= free and i not in self._cached:
                self._cached[i] = block
                self._cached_bytes += size
        return block
