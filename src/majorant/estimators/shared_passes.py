"""Problems on the blocks of one store, solved at the same time: in threads whose questions share passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np

from majorant.interrupts import CtrlC, ending_on, undisturbed
from majorant.rows.partitioned import BlockStore
from majorant.rows.pass_batcher import PassBatcher
from majorant.rows.threads import in_context

Outcome = TypeVar("Outcome")


def run_sharing_passes(store: BlockStore, tasks: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
    """The outcomes of the tasks, each of which asks this store from a thread of its own.

    A task may call this again, and waits for its own tasks then. An error in one of them ends the others, at
    their next question.
    """
    if store.batcher is not None:
        with ThreadPoolExecutor(len(tasks)) as pool:
            # The caller has no question meanwhile: the batcher waits for the last of the tasks in its place.
            return [future.result() for future in _started(pool, store.batcher, tasks, len(tasks) - 1)]
    batcher = store.batcher = PassBatcher(store.one_pass)
    try:
        with ThreadPoolExecutor(len(tasks)) as pool, CtrlC() as ctrl_c:
            with ending_on(lambda: ctrl_c.pressed):
                futures = _started(pool, batcher, tasks, len(tasks))
            # Overflow ends in values that are not finite, which are looked for. The batcher decides which
            # passes end with Ctrl-C.
            with np.errstate(over="ignore", invalid="ignore"), undisturbed():
                batcher.run()
            if batcher.error is not None:
                raise batcher.error
            return [future.result() for future in futures]
    finally:
        store.batcher = None


def _started(
    pool: ThreadPoolExecutor, batcher: PassBatcher, tasks: Sequence[Callable[[], Outcome]], leaving: int
) -> list[Future[Outcome]]:
    """The futures of the tasks. The batcher waits for `leaving` more threads, until as many have ended."""
    to_leave = iter(range(leaving))

    def run(task: Callable[[], Outcome]) -> Outcome:
        try:
            return task()
        except BaseException as error:
            batcher.fail(error)
            raise
        finally:
            if next(to_leave, None) is not None:
                batcher.resize(-1)

    batcher.resize(leaving)
    return [pool.submit(in_context(partial(run, task))) for task in tasks]
