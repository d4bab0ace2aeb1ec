"""Rows on a Dask cluster.

Each block is an *anchor*: a future whose task loads the block on some worker, and can load it again. A
question becomes a task for each anchor, so it runs on the worker that holds the block. If there are many
blocks, several blocks of one worker share a task, since every task has the same overhead. X never comes to
the client. When a worker dies, the scheduler loads its anchors again on another worker. The answers are added
in block order, whichever workers hold the blocks, so the sum is the same, bit for bit.

(Dask actors would die with their worker.) This module repairs what the scheduler does not repair itself:

- The scheduler gives up a task that has seen several workers die (`KilledWorker`): the task and its anchor
  are submitted again under other names.
- A worker that hangs sends no heartbeat: after `RESPONSE_SECONDS` other workers load its anchors. (A worker
  that is slow but sends heartbeats keeps its anchors.)
- If the scheduler is gone, hangs, or was restarted, the fit ends with a `ClusterLostError`, to which the
  driver adds the last θ.
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
from majorant.rows.threads import one_core

# Time-outs. None of them is tuned: they are far above what a healthy cluster needs.
# Seconds between two checks of the tasks that have no answer yet.
POLL_SECONDS = 1.0
# Seconds without any answer after which other workers load the blocks of silent workers.
RESPONSE_SECONDS = 60.0
# Seconds since its last heartbeat after which a worker counts as silent; and seconds without any answer after
# which the scheduler is asked whether it has any worker.
HEARTBEAT_SECONDS = 5.0
# Seconds after which a scheduler that does not answer counts as lost.
SCHEDULER_SECONDS = 15.0
# Seconds after which a cluster without any worker counts as lost.
NO_WORKER_SECONDS = 120.0
# How many times blocks are loaded again before the fit gives up.
MAX_RELOADS = 50

# The largest question, in bytes, that is sent with every task. A larger one is sent once, as a task.
SMALL_QUESTION_BYTES = 2**15

# The most tasks per thread of a worker in one round trip; a worker with more blocks groups them.
TASKS_PER_THREAD = 4

Load: TypeAlias = Callable[[str, bool], Any]
"""(name, anew) ↦ a dask Delayed of that name that loads a block. With `anew`, its tasks have names that the
cluster does not know."""


def _current_client() -> Client:
    """The current client, if it is open."""
    try:
        client = get_client()
    except ValueError:
        raise ClusterLostError(
            "there is no Dask cluster to work on: make a client first, e.g. distributed.Client()"
        ) from None
    if client.status == "closed":  # `get_client` skips closed clients, except inside their own `with`
        raise ClusterLostError(
            "the current Dask client is closed: leave its `with` block, or fit inside of another, e.g. "
            "`with distributed.Client():`"
        )
    return client


class Cluster(BlockStore):
    """The blocks of a data set, held by the workers of a cluster, which answer questions about their blocks.

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
        self._anchors = [self._new_anchor(i, {}, anew=False) for i in range(len(loads))]

    def one_pass(self, question: Callable[[Any], Answer]) -> list[Answer]:
        """The answers of all blocks, in block order: a round trip, and one more when workers are lost."""
        return self._ask_blocks(question, range(self.n_blocks))

    def fold_blocks(
        self, state: State, through: Callable[[State, Block], State], order: Sequence[int]
    ) -> State:
        """Pass a state through the blocks one after the other, with a round trip for each block."""
        for i in order:
            (state,) = self._ask_blocks(partial(through, state), [i])
        return state

    def _ask_blocks(self, question: Callable[[Any], Answer], which: Sequence[int]) -> list[Answer]:
        """The answers of some blocks; a `ClusterLostError` if the cluster is gone."""
        self.passes += 1
        try:
            return self._ask_until_answered(dumps(question), which)
        except ClusterLostError:
            raise
        except (CancelledError, CommClosedError) as error:
            # A restarted scheduler does not know the blocks and questions, and cancels them.
            forgotten = self.client.status == "running"
            raise _lost(
                "its scheduler has forgotten the work" if forgotten else "its scheduler does not answer"
            ) from error
        except Exception as error:
            # dask raises many types of errors when a client is closed while its tasks run.
            if self.client.status == "closed":
                raise _lost("its client is closed") from error
            raise

    def _ask_until_answered(self, packed: bytes, which: Sequence[int]) -> list[Any]:
        """The answers of some blocks; tasks and blocks of lost workers are submitted again."""
        tasks = self._submit(packed, self._group_by_worker(which), {})
        last_answer, finished, reloads = time.monotonic(), 0, 0
        had_workers = began = last_answer
        while True:
            self._wait(tasks)
            failed = [future for future in tasks if self._lost_its_workers(future)]
            running = [future for future in tasks if future.status != "finished"]
            done = len(which) - sum(len(tasks[future]) for future in running)
            call_watchers(Pass(self.passes, done, len(which), time.monotonic() - began))
            if not running:
                answers = self._fetch(list(tasks))
                if answers is not None:
                    by_block = dict(zip(chain(*tasks.values()), chain(*answers), strict=True))
                    return [by_block[i] for i in which]
                failed = list(tasks)
            if done > finished:
                last_answer, finished = time.monotonic(), done
            if time.monotonic() - last_answer > HEARTBEAT_SECONDS:
                if self._workers():
                    had_workers = time.monotonic()
                elif time.monotonic() - had_workers > NO_WORKER_SECONDS:
                    raise _lost(f"it has had no worker for {NO_WORKER_SECONDS:.0f} seconds")
            if not failed and time.monotonic() - last_answer > RESPONSE_SECONDS:
                last_answer = time.monotonic()
                if alive := self._where_to_rerun():  # empty: all workers send heartbeats, and are slow
                    failed = [future for future in running if not self._are_held_by(tasks[future], **alive)]
            if failed:
                last_answer, finished, reloads = time.monotonic(), 0, reloads + 1
                if reloads > MAX_RELOADS:
                    raise ClusterLostError(f"blocks were loaded {reloads} times in vain: workers die or hang")
                where = self._where_to_rerun()
                lost = [[i] for future in failed for i in tasks.pop(future)]
                for (i,) in lost:
                    self._anchors[i] = self._new_anchor(i, where)
                tasks |= self._submit(packed, lost, where)

    def _fetch(self, futures: list[Any]) -> list[Any] | None:
        """The answers of finished tasks; None if a worker dies or hangs before it has sent its answers."""
        # dask would wait forever for a worker that holds a result and hangs.
        loop: Any = self.client.loop
        fetching = self.client.gather(futures, asynchronous=True)
        pending = run_coroutine_threadsafe(fetching, loop.asyncio_loop)
        while not concurrent.wait([pending], timeout=RESPONSE_SECONDS).done:
            if self._where_to_rerun():
                return None
        try:
            return list(pending.result())
        except KilledWorker:
            return None

    def _ask_scheduler(self, method: str, **arguments: Any) -> dict[str, Any]:
        """The scheduler's answer; a `ClusterLostError` if it hangs."""
        try:
            call = getattr(self.client.scheduler, method)
            return dict(self.client.sync(call, callback_timeout=SCHEDULER_SECONDS, **arguments))
        except OSError as error:  # of which TimeoutError is a subclass
            raise _lost("its scheduler does not answer") from error

    def _workers(self) -> dict[str, Any]:
        """The scheduler's records of its workers, by address."""
        return dict(self._ask_scheduler("identity", n_workers=-1)["workers"])

    def _where_to_rerun(self) -> dict[str, Any]:
        """Arguments of a task that is submitted again: only workers with a heartbeat may run it."""
        workers = self._workers()
        since = time.time() - HEARTBEAT_SECONDS
        alive = [name for name, worker in workers.items() if worker["last_seen"] > since]
        return {"workers": alive} if alive and len(alive) < len(workers) else {}

    def _workers_with(self, which: Sequence[int]) -> list[list[str]]:
        """For each of these blocks, the workers that hold it."""
        names = [self._anchors[i].key for i in which]
        holders = self._ask_scheduler("who_has", keys=names)
        return [list(holders[name]) for name in names]

    def _are_held_by(self, which: Sequence[int], workers: list[str]) -> bool:
        """Whether each of these blocks is held by one of these workers."""
        return all(set(holders) & set(workers) for holders in self._workers_with(which))

    def _new_anchor(self, i: int, where: dict[str, Any], *, anew: bool = True) -> Any:
        """A new future of block i."""
        # A new name: the scheduler never runs a task again that it has given up under the old name.
        return self.client.compute(self._loads[i](_name("block"), anew), **where)

    def _group_by_worker(self, which: Sequence[int]) -> list[list[int]]:
        """Some blocks in groups, each held by one worker; a block that no worker holds is a group."""
        if len(which) <= TASKS_PER_THREAD:
            return [[i] for i in which]
        groups: list[list[int]] = []
        by_worker: dict[str, list[int]] = {}
        for i, holders in zip(which, self._workers_with(which), strict=True):
            if holders:
                by_worker.setdefault(holders[0], []).append(i)
            else:  # the task that asks the question loads the block
                groups.append([i])
        if not by_worker.keys() <= self._threads.keys():
            self._threads = self._ask_scheduler("ncores")
        for worker, blocks in by_worker.items():
            size = math.ceil(len(blocks) / (TASKS_PER_THREAD * self._threads.get(worker, 1)))
            groups += [blocks[k : k + size] for k in range(0, len(blocks), size)]
        return groups

    def _submit(self, packed: bytes, groups: list[list[int]], where: dict[str, Any]) -> dict[Any, list[int]]:
        """Submit a task for each group of blocks, in one message; the futures, with their groups."""
        question: Any = packed
        if len(packed) > SMALL_QUESTION_BYTES:
            question = self.client.submit(identity, packed, key=_name("question"), **where)
        anchors = [[self._anchors[i] for i in group] for group in groups]
        names = [_name("answer") for _ in groups]
        futures = self.client.map(_answer, anchors, key=names, packed=question, **where)
        return dict(zip(futures, groups, strict=True))

    def _wait(self, tasks: dict[Any, list[int]]) -> None:
        """Wait until all tasks are done, or until it is time to check them."""
        try:
            wait(list(tasks), timeout=POLL_SECONDS)
        except TimeoutError as error:
            # dask keeps this error, whose traceback refers to the frames up to this one: the blocks would
            # stay on the workers after the fit, until the next garbage collection.
            error.__traceback__ = None
            since = time.monotonic()
            while self.client.status != "running":
                if self.client.status == "closed" or time.monotonic() - since > SCHEDULER_SECONDS:
                    raise _lost("its scheduler does not answer") from None
                time.sleep(0.1)

    @staticmethod
    def _lost_its_workers(future: Any) -> bool:
        """Whether the scheduler gave a task up because workers died. An error of the task is raised."""
        if future.status == "cancelled":  # a task with the status "lost" is being computed again
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
    with one_thread(), one_core():  # the other threads of the worker use the other cores
        return [question(block) for block in blocks]


def _lost(reason: str) -> ClusterLostError:
    # Whether and how the fit can be resumed is known, and said, where the fit runs.
    return ClusterLostError(f"the Dask cluster is gone ({reason}): connect to a new one and fit again")
