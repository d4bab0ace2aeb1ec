"""Rows on a Dask cluster.

Each block is an *anchor*: a future whose task loads the block on some worker, from where it can be loaded
again. A question is a task for each anchor, so it runs where the block is. Where there are many, some that
are on the same worker share a task, which costs as much for one as for all. X never comes to the client. When
a worker dies, the scheduler runs the tasks of the anchors that it held again, on another worker; blocks are
added in their order, wherever they are, so the answer is the same, bit for bit.

(Not actors, which die with their worker.) What the scheduler does not mend by itself is mended here:

- a task that has seen several workers die is given up by the scheduler (`KilledWorker`): it is asked for
  anew, and so is its anchor, under another name;
- a worker that hangs, its heart does not beat: after a while its anchors are loaded by others. (One that is
  only slow is waited for);
- if the scheduler itself is gone, hangs, or was started again, nothing helps: `ClusterLostError`, to which
  the driver adds the last θ.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from itertools import chain, compress
from typing import Any, TypeAlias
from uuid import uuid4

from distributed import CancelledError, Client, KilledWorker, get_client, wait
from distributed.comm.core import CommClosedError
from distributed.protocol.pickle import dumps, loads

from majorant.blas import one_thread
from majorant.errors import ClusterLostError
from majorant.rows.between import Pass, call_watchers
from majorant.rows.block import Block
from majorant.rows.elsewhere import Place, ViewedRows
from majorant.rows.protocol import Answer, State
from majorant.rows.sources import DEFAULT_MEMORY
from majorant.rows.threads import alone

__all__ = ["Cluster", "DaskRows", "current_client"]

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
Task: TypeAlias = Callable[[list[Block], Any], list[Any]]
"""A function of some blocks, and of something that was packed: what it makes of each of them."""


def current_client() -> Client:
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


class Cluster(Place):
    """The blocks of a data set on the workers of a cluster, and questions to them.

    Parameters
    ----------
    loads : sequence of functions
        Each makes the task that loads a block.
    client : Client, optional
        The current one by default.
    """

    memory = DEFAULT_MEMORY

    def __init__(self, loads: Sequence[Load], client: Client | None = None) -> None:
        super().__init__()
        self.client = current_client() if client is None else client
        self.trips = 0
        self._threads: dict[str, int] = {}
        self._loads = list(loads)
        self._anchors = [self._anchor(i, {}, anew=False) for i in range(len(loads))]

    @property
    def n_blocks(self) -> int:
        return len(self._loads)

    def one_pass(self, question: Callable[[Any], Answer]) -> list[Answer]:
        """The answers of all blocks, in their order: one round trip."""
        return self._results(_answer, question, range(self.n_blocks))

    def carry(self, state: State, through: Callable[[State, Block], State], order: Sequence[int]) -> State:
        """Take a state through blocks, one after the other: a round trip for each."""
        for i in order:
            (state,) = self._results(_carried, (through, state), [i])
        return state

    def _results(self, task: Task, other: Any, which: Sequence[int]) -> list[Any]:
        """What a task makes of some blocks, or the error that says that there is no cluster any more."""
        self.trips += 1
        try:
            return self._insist(task, dumps(other), which)
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

    def _insist(self, task: Task, packed: bytes, which: Sequence[int]) -> list[Any]:
        """What the task makes of some blocks, however often it has to be submitted."""
        groups = self._grouped(which)
        futures = self._submit(task, packed, groups, {})
        heard, finished, again = time.monotonic(), 0, 0
        manned = began = heard
        while True:
            self._wait(futures)
            failed = [k for k, future in enumerate(futures) if self._has_failed(future)]
            answered = [future.status == "finished" for future in futures]
            done = sum(map(len, compress(groups, answered)))
            call_watchers(Pass(self.trips, done, len(which), time.monotonic() - began))
            if done == len(which):
                answers = self._fetched(futures)
                if answers is not None:
                    by_block = dict(zip(chain(*groups), chain(*answers), strict=True))
                    return [by_block[i] for i in which]
                failed = list(range(len(futures)))
            if done > finished:
                heard, finished = time.monotonic(), done
            if time.monotonic() - heard > SILENT:
                manned = self._last_manned(manned)
            if not failed and time.monotonic() - heard > PATIENCE:
                heard = time.monotonic()
                if alive := self._responsive():  # else all workers are, and only slow
                    failed = [
                        k for k, group in enumerate(groups) if not (answered[k] or self._held(group, **alive))
                    ]
            if failed:
                heard, finished, again = time.monotonic(), 0, again + 1
                if again > TRIES:
                    raise ClusterLostError(f"blocks were loaded {again} times in vain: workers die or hang")
                where = self._responsive()
                lost = [[i] for k in failed for i in groups[k]]
                for (i,) in lost:
                    self._anchors[i] = self._anchor(i, where)
                for k in reversed(failed):
                    del groups[k], futures[k]
                groups += lost
                futures += self._submit(task, packed, lost, where)

    def _fetched(self, futures: list[Any]) -> list[Any] | None:
        """What the tasks have answered; None if workers die or hang while it is fetched."""
        answers: list[Any] = []

        def fetch() -> None:
            try:
                answers.append(list(self.client.gather(futures)))
            except Exception as error:
                answers.append(error)

        # dask waits for ever for a worker that holds a result and hangs; so somebody else waits.
        thread = threading.Thread(target=fetch, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        while thread.is_alive() and not self._responsive():
            thread.join(PATIENCE)
        if not answers or isinstance(answers[0], KilledWorker):
            return None
        if isinstance(answers[0], Exception):
            raise answers[0]
        fetched: list[Any] = answers[0]
        return fetched

    @property
    def _scheduler(self) -> Any:
        return self.client.scheduler

    def _told(self, call: Any, **arguments: Any) -> dict[str, Any]:
        """What the scheduler says, if it answers: it may hang as workers do."""
        try:
            told: dict[str, Any] = self.client.sync(call, callback_timeout=LOST, **arguments)
        except OSError as error:  # which a time that is over is as well
            raise _lost("its scheduler does not answer") from error
        return told

    def _workers(self) -> dict[str, Any]:
        """What the scheduler knows of its workers."""
        workers: dict[str, Any] = self._told(self._scheduler.identity, n_workers=-1)["workers"]
        return workers

    def _last_manned(self, before: float) -> float:
        """When there was a worker: now, or before; an error if that was long ago."""
        if self._workers():
            return time.monotonic()
        if time.monotonic() - before > ALONE:
            raise _lost(f"it has had no worker for {ALONE:.0f} seconds")
        return before

    def _responsive(self) -> dict[str, Any]:
        """Where to run what has to be run again: not on workers whose heart has not beaten for a while."""
        workers = self._workers()
        alive = [name for name, worker in workers.items() if time.time() - worker["last_seen"] < SILENT]
        return {"workers": alive} if alive and len(alive) < len(workers) else {}

    def _held(self, group: list[int], workers: list[str]) -> bool:
        """Whether these workers have all blocks of the group."""
        holders = self._told(self._scheduler.who_has, keys=[self._anchors[i].key for i in group])
        return all(set(held) & set(workers) for held in holders.values())

    def _anchor(self, i: int, where: dict[str, Any], *, anew: bool = True) -> Any:
        """A new future of block i."""
        # A name of its own each time: what the scheduler has given up under a name stays given up.
        return self.client.compute(self._loads[i](_name("block"), anew), **where)

    def _grouped(self, which: Sequence[int]) -> list[list[int]]:
        """Some blocks, in groups of those that are on the same worker now; others are alone."""
        if len(which) <= TASKS:
            return [[i] for i in which]
        names = [self._anchors[i].key for i in which]
        holders = self._told(self._scheduler.who_has, keys=names)
        together: dict[str, list[int]] = {}
        for i, name in zip(which, names, strict=True):
            # (One that is nowhere yet is loaded by the task that asks it.)
            together.setdefault(next(iter(holders[name]), name), []).append(i)
        if not together.keys() <= self._threads.keys() | set(names):
            self._threads = self._told(self._scheduler.ncores)
        groups = []
        for worker, blocks in together.items():
            size = math.ceil(len(blocks) / (TASKS * self._threads.get(worker, 1)))
            groups += [blocks[k : k + size] for k in range(0, len(blocks), size)]
        return groups

    def _submit(self, task: Task, packed: bytes, groups: list[list[int]], where: dict[str, Any]) -> list[Any]:
        """The futures of the task on groups of blocks: one message to the scheduler for all of them."""
        other: Any = packed
        if len(packed) > SMALL:  # once for all blocks, by a task of its own
            other = self.client.submit(_same, packed, key=_name("question"), **where)
        anchors = [[self._anchors[i] for i in group] for group in groups]
        names = [_name("answer") for _ in groups]
        return list(self.client.map(task, anchors, key=names, packed=other, **where))

    def _wait(self, futures: list[Any]) -> None:
        """Wait for all of them, but not for long."""
        try:
            wait(futures, timeout=LOOK)
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


class DaskRows(ViewedRows):
    """Rows on a cluster, or another view of them: other labels, other weights, fewer columns."""


def _name(kind: str) -> str:
    return f"majorant-{kind}-{uuid4().hex}"


def _same(value: Any) -> Any:
    return value


# A thread of a worker has one core, and others beside it that are as busy.


def _answer(blocks: list[Block], packed: bytes) -> list[Any]:
    question = loads(packed)
    with one_thread(), alone():
        return [question(block) for block in blocks]


def _carried(blocks: list[Block], packed: bytes) -> list[Any]:
    through, state = loads(packed)
    with one_thread(), alone():
        return [through(state, block) for block in blocks]


def _lost(reason: str) -> ClusterLostError:
    # How to go on, and whether that is possible, is known where the fit is.
    return ClusterLostError(f"the Dask cluster is gone ({reason}): connect to a new one and fit again")
