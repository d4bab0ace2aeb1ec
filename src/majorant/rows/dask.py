"""Rows on a Dask cluster.

Each block is an *anchor*: a future whose task loads the block on some worker, from where it can be loaded
again. A question is a task for each anchor, so it runs where the block is. Where there are many, some that
are on the same worker share a task, which costs as much for one as for all. X never comes to the client. When
a worker dies, the scheduler runs the tasks of the anchors that it held again, on another worker; blocks are
added in their order, wherever they are, so the answer is the same, bit for bit.

(Not actors, which die with their worker.) What the scheduler does not mend by itself is mended here:

- a task that has seen several workers die is given up by the scheduler (`KilledWorker`): it is asked for
  anew, and so is its anchor, under another name;
- a worker that hangs has no heartbeat: after a while other workers load its anchors. (A worker that is only
  slow is waited for);
- if the scheduler itself is gone, hangs, or was started again, nothing helps: `ClusterLostError`, to which
  the driver adds the last θ.
"""

from __future__ import annotations

import math
import time
from asyncio import run_coroutine_threadsafe
from collections.abc import Callable, Sequence
from concurrent import futures as concurrent
from functools import partial
from itertools import chain
from typing import Any, TypeAlias
from uuid import uuid4

from distributed import CancelledError, Client, KilledWorker, get_client, wait
from distributed.comm.core import CommClosedError
from distributed.protocol.pickle import dumps, loads

from majorant.blas import one_thread
from majorant.errors import ClusterLostError
from majorant.rows.base import Answer, State
from majorant.rows.block import Block
from majorant.rows.partitioned import BlockStore, identity
from majorant.rows.pass_hooks import Pass, call_watchers
from majorant.rows.sources import DEFAULT_MEMORY
from majorant.rows.threads import alone

# Seconds between two looks at the tasks that have no answer yet.
LOOK = 1.0
# Seconds without an answer after which the blocks of a task are loaded by other workers.
PATIENCE = 60.0
# Seconds since its last heartbeat after which a worker counts as silent and gets no such blocks; and seconds
# without an answer after which the cluster is asked whether it has any worker.
SILENT = 5.0
# Seconds after which a scheduler that cannot be reached counts as lost.
LOST = 15.0
# Seconds after which a scheduler without any worker counts as lost.
ALONE = 120.0
# How many times blocks are loaded before the fit gives up.
TRIES = 50

# Up to how many bytes a question goes along with the task of each block.
SMALL = 2**15

# How many tasks each thread of a worker has in a round trip, if it has more blocks than that.
TASKS = 4

Load: TypeAlias = Callable[[str, bool], Any]
"""(name, anew) ↦ a dask Delayed of that name, which makes a block wherever it is run; `anew`: of tasks that
the cluster has not heard of before."""


def _current_client() -> Client:
    """The client that is current."""
    try:
        client = get_client()
    except ValueError:
        raise ClusterLostError(
            "there is no Dask cluster to work on: make a client first, e.g. distributed.Client()"
        ) from None
    if client.status == "closed":  # dask itself passes over such, but not inside of its `with`
        raise ClusterLostError(
            "the Dask client that is current is closed: leave its `with` block, or work inside of another, "
            "e.g. `with distributed.Client():`"
        )
    return client


class Cluster(BlockStore):
    """The blocks of a data set on the workers of a cluster, and questions to them.

    Parameters
    ----------
    loads : sequence of functions
        Each makes the task that loads a block, for the current client.
    """

    def __init__(self, loads: Sequence[Load]) -> None:
        super().__init__(len(loads), DEFAULT_MEMORY)
        self.client = _current_client()
        self._threads: dict[str, int] = {}
        self._loads = list(loads)
        self._anchors = [self._anchor(i, {}, anew=False) for i in range(len(loads))]

    def one_pass(self, question: Callable[[Any], Answer]) -> list[Answer]:
        """The answers of all blocks, in their order: one round trip."""
        return self._ask_some(question, range(self.n_blocks))

    def fold_blocks(
        self, state: State, through: Callable[[State, Block], State], order: Sequence[int]
    ) -> State:
        """Take a state through blocks, one after the other: a round trip for each."""
        for i in order:
            (state,) = self._ask_some(partial(through, state), [i])
        return state

    def _ask_some(self, question: Callable[[Any], Answer], which: Sequence[int]) -> list[Answer]:
        """The answers of some blocks, or the error that says that there is no cluster any more."""
        self.passes += 1
        try:
            return self._insist(dumps(question), which)
        except ClusterLostError:
            raise
        except (CancelledError, CommClosedError) as error:
            # What a scheduler that was started again does not know is cancelled, blocks and questions alike.
            forgotten = self.client.status == "running"
            raise _lost(
                "its scheduler has forgotten the work" if forgotten else "its scheduler does not answer"
            ) from error
        except Exception as error:
            # dask has many ways to say that a client was closed under a task.
            if self.client.status == "closed":
                raise _lost("its client is closed") from error
            raise

    def _insist(self, packed: bytes, which: Sequence[int]) -> list[Any]:
        """The answers of some blocks, however often the question has to be submitted."""
        tasks = self._submit(packed, self._grouped(which), {})
        heard, finished, again = time.monotonic(), 0, 0
        manned = began = heard
        while True:
            self._wait(tasks)
            failed = [future for future in tasks if self._has_failed(future)]
            running = [future for future in tasks if future.status != "finished"]
            done = len(which) - sum(len(tasks[future]) for future in running)
            call_watchers(Pass(self.passes, done, len(which), time.monotonic() - began))
            if not running:
                answers = self._fetched(list(tasks))
                if answers is not None:
                    by_block = dict(zip(chain(*tasks.values()), chain(*answers), strict=True))
                    return [by_block[i] for i in which]
                failed = list(tasks)
            if done > finished:
                heard, finished = time.monotonic(), done
            if time.monotonic() - heard > SILENT:
                if self._workers():
                    manned = time.monotonic()
                elif time.monotonic() - manned > ALONE:
                    raise _lost(f"it has had no worker for {ALONE:.0f} seconds")
            if not failed and time.monotonic() - heard > PATIENCE:
                heard = time.monotonic()
                if alive := self._responsive():  # else all workers are, and only slow
                    failed = [future for future in running if not self._held(tasks[future], **alive)]
            if failed:
                heard, finished, again = time.monotonic(), 0, again + 1
                if again > TRIES:
                    raise ClusterLostError(f"blocks were loaded {again} times in vain: workers die or hang")
                where = self._responsive()
                lost = [[i] for future in failed for i in tasks.pop(future)]
                for (i,) in lost:
                    self._anchors[i] = self._anchor(i, where)
                tasks |= self._submit(packed, lost, where)

    def _fetched(self, futures: list[Any]) -> list[Any] | None:
        """What the tasks have answered; None if workers die or hang while it is fetched."""
        # dask waits for ever for a worker that holds a result and hangs, so the waiting is done here.
        loop: Any = self.client.loop
        fetching = self.client.gather(futures, asynchronous=True)
        pending = run_coroutine_threadsafe(fetching, loop.asyncio_loop)
        while not concurrent.wait([pending], timeout=PATIENCE).done:
            if self._responsive():
                return None
        try:
            return list(pending.result())
        except KilledWorker:
            return None

    def _told(self, what: str, **arguments: Any) -> dict[str, Any]:
        """What the scheduler says, if it answers: it may hang as workers do."""
        try:
            call = getattr(self.client.scheduler, what)
            return dict(self.client.sync(call, callback_timeout=LOST, **arguments))
        except OSError as error:  # which a time that is over is as well
            raise _lost("its scheduler does not answer") from error

    def _workers(self) -> dict[str, Any]:
        """What the scheduler knows of its workers."""
        return dict(self._told("identity", n_workers=-1)["workers"])

    def _responsive(self) -> dict[str, Any]:
        """Where to run what has to be run again: not on workers without a heartbeat for a while."""
        workers = self._workers()
        alive = [name for name, worker in workers.items() if time.time() - worker["last_seen"] < SILENT]
        return {"workers": alive} if alive and len(alive) < len(workers) else {}

    def _holders(self, which: Sequence[int]) -> list[list[str]]:
        """For each of these blocks, the workers that have it."""
        names = [self._anchors[i].key for i in which]
        holders = self._told("who_has", keys=names)
        return [list(holders[name]) for name in names]

    def _held(self, which: Sequence[int], workers: list[str]) -> bool:
        """Whether these workers have all of these blocks."""
        return all(set(holders) & set(workers) for holders in self._holders(which))

    def _anchor(self, i: int, where: dict[str, Any], *, anew: bool = True) -> Any:
        """A new future of block i."""
        # A name of its own each time: what the scheduler has given up under a name stays given up.
        return self.client.compute(self._loads[i](_name("block"), anew), **where)

    def _grouped(self, which: Sequence[int]) -> list[list[int]]:
        """Some blocks, in groups of those that are on the same worker now; others are alone."""
        if len(which) <= TASKS:
            return [[i] for i in which]
        groups: list[list[int]] = []
        by_worker: dict[str, list[int]] = {}
        for i, holders in zip(which, self._holders(which), strict=True):
            if holders:
                by_worker.setdefault(holders[0], []).append(i)
            else:  # the task that asks the block loads it
                groups.append([i])
        if not by_worker.keys() <= self._threads.keys():
            self._threads = self._told("ncores")
        for worker, blocks in by_worker.items():
            size = math.ceil(len(blocks) / (TASKS * self._threads.get(worker, 1)))
            groups += [blocks[k : k + size] for k in range(0, len(blocks), size)]
        return groups

    def _submit(self, packed: bytes, groups: list[list[int]], where: dict[str, Any]) -> dict[Any, list[int]]:
        """The future of each group of blocks: one message to the scheduler for all of them."""
        question: Any = packed
        if len(packed) > SMALL:  # once for all blocks, by a task of its own
            question = self.client.submit(identity, packed, key=_name("question"), **where)
        anchors = [[self._anchors[i] for i in group] for group in groups]
        names = [_name("answer") for _ in groups]
        futures = self.client.map(_answer, anchors, key=names, packed=question, **where)
        return dict(zip(futures, groups, strict=True))

    def _wait(self, tasks: dict[Any, list[int]]) -> None:
        """Wait for all of them, but not for long."""
        try:
            wait(list(tasks), timeout=LOOK)
        except TimeoutError as error:
            # dask keeps this error in a frame that its traceback leads to, and so all frames up to here: the
            # blocks would stay on the workers, after the fit, until some day's garbage collection.
            error.__traceback__ = None
            since = time.monotonic()
            while self.client.status != "running":
                if self.client.status == "closed" or time.monotonic() - since > LOST:
                    raise _lost("its scheduler does not answer") from None
                time.sleep(0.1)

    @staticmethod
    def _has_failed(future: Any) -> bool:
        """Whether a task was given up because of its workers. What went wrong inside of a task is raised."""
        if future.status == "cancelled":  # "lost" is only for a while: it is being computed again
            raise _lost("its scheduler has forgotten the work")
        if future.status != "error":
            return False
        error = future.exception()
        if isinstance(error, KilledWorker):
            return True
        raise error


def _name(kind: str) -> str:
    return f"majorant-{kind}-{uuid4().hex}"


def _answer(blocks: list[Block], packed: bytes) -> list[Any]:
    question = loads(packed)
    with one_thread(), alone():  # a thread of a worker has one core, and others beside it that are as busy
        return [question(block) for block in blocks]


def _lost(reason: str) -> ClusterLostError:
    # How to go on, and whether that is possible, is known where the fit is.
    return ClusterLostError(f"the Dask cluster is gone ({reason}): connect to a new one and fit again")
