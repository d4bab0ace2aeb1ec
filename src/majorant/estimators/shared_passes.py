"""Problems on rows that live elsewhere, solved at the same time: in threads whose questions share passes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np

from majorant.interrupts import CtrlC, ending_on, undisturbed
from majorant.rows.between import Pass, between_blocks
from majorant.rows.convoy import Convoy
from majorant.rows.elsewhere import Place
from majorant.rows.threads import in_context

Outcome = TypeVar("Outcome")


def in_convoy(place: Place, tasks: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
    """The outcomes of the tasks, each of which asks this place from a thread of its own.

    A task may call this again: then its own tasks take its seat. An error in one of them ends the others, at
    their next question.
    """
    if place.convoy is not None:
        return _in_one_seat(place.convoy, tasks)
    ctrl_c = CtrlC()
    convoy = place.convoy = Convoy(place.one_pass, len(tasks), lambda: ctrl_c.pressed)

    def run(task: Callable[[], Outcome]) -> Outcome:
        try:
            return _run(task, convoy)
        finally:
            convoy.leave()

    def end(state: Pass) -> None:
        """End the pass that Ctrl-C finds on its way; those that measure what is kept are made."""
        if convoy.broken is not None:
            raise convoy.broken
        if ctrl_c.pressed and not convoy.after_interrupt:
            raise KeyboardInterrupt

    try:
        with ThreadPoolExecutor(len(tasks)) as pool, ctrl_c:
            with ending_on(lambda: ctrl_c.pressed):
                futures = [pool.submit(in_context(partial(run, task))) for task in tasks]
            # Overflow ends in values that are not finite, which are looked for.
            with np.errstate(over="ignore", invalid="ignore"), undisturbed(), between_blocks(end):
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
        futures = [pool.submit(in_context(partial(run, task))) for task in tasks]
        return [future.result() for future in futures]
