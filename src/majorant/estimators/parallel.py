"""Fits that do not depend on each other, in threads that share X; Ctrl-C ends all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from joblib import Parallel, delayed

from majorant.interrupts import CtrlC, check, ending_on
from majorant.rows.threads import in_context

Answer = TypeVar("Answer")


def run_in_threads(tasks: Iterable[Callable[[], Answer]], n_jobs: int | None) -> list[Answer]:
    """The answers, in the order of the tasks; `KeyboardInterrupt` after Ctrl-C.

    Parameters
    ----------
    tasks : iterable of callables
    n_jobs : int, optional
        How many to run at the same time; -1 for all cores.
    """

    def answer(task: Callable[[], Answer]) -> list[Answer]:
        try:
            check()
            return [task()]
        except KeyboardInterrupt:  # not to be raised in a thread, whose pool may wait for ever
            return []

    with CtrlC() as ctrl_c, ending_on(lambda: ctrl_c.pressed):
        answers = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(in_context(partial(answer, task)))() for task in tasks
        )
    if ctrl_c.pressed or not all(answers):
        raise KeyboardInterrupt
    return [found for (found,) in answers]
