"""Problems on rows that live elsewhere, solved at the same time: in threads whose questions share passes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from majorant.callbacks import Callback
from majorant.rows.between import Pass, between_blocks
from majorant.rows.convoy import Convoy
from majorant.rows.elsewhere import Place
from majorant.solvers.driver import CtrlC
from majorant.status import Evaluated, Record, Status

Outcome = TypeVar("Outcome")


class StopOn(Callback):
    """Ends a run in another thread when Ctrl-C was pressed in the main one."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        return Status.INTERRUPTED if self.event.is_set() else None


def in_convoy(place: Place, tasks: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
    """The outcomes of the tasks, each of which asks this place from a thread of its own.

    A task may call this again: then its own tasks take its seat. Runs inside of a task should end on
    `place.convoy.stopped`. An error in one of them ends the others, at their next question.
    """
    if place.convoy is not None:
        return _in_one_seat(place.convoy, tasks)
    convoy = place.convoy = Convoy(place.one_pass, len(tasks))

    def run(task: Callable[[], Outcome]) -> Outcome:
        try:
            return _run(task, convoy)
        finally:
            convoy.leave()

    def end(state: Pass) -> None:
        """End the first pass after Ctrl-C; those that measure what is kept are made. None after an error."""
        if convoy.broken is not None:
            raise convoy.broken
        if ctrl_c.pressed and not convoy.stopped.is_set():
            convoy.stopped.set()
            raise KeyboardInterrupt

    try:
        with ThreadPoolExecutor(len(tasks)) as pool, CtrlC() as ctrl_c, between_blocks(end):
            futures = [pool.submit(run, task) for task in tasks]
            # Overflow ends in values that are not finite, which are looked for.
            with np.errstate(over="ignore", invalid="ignore"):
                convoy.drive()
            if convoy.broken is not None:
                raise convoy.broken
            return [future.result() for future in futures]
    finally:
        place.convoy = None


def _run(task: Callable[[], Outcome], convoy: Convoy) -> Outcome:
    """The outcome of a task; without one, nobody needs those of the others."""
    try:
        return task()
    except BaseException as error:
        convoy.break_up(error)
        raise


def _in_one_seat(convoy: Convoy, tasks: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
    """The same for one who is in the convoy and waits for the tasks: the last of them gives the seat back."""
    convoy.join(len(tasks) - 1)
    lock, left = threading.Lock(), len(tasks)

    def run(task: Callable[[], Outcome]) -> Outcome:
        nonlocal left
        try:
            return _run(task, convoy)
        finally:
            with lock:
                left -= 1
                others = left > 0
            if others:
                convoy.leave()

    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(run, task) for task in tasks]
        return [future.result() for future in futures]
