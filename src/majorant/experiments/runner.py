"""Runs what is not in the results yet: the search first, then the cells, several at the same time.

Each worker is a process that keeps to one core, so that a cell's time is that of one core. Cells whose time
is printed come last, one after the other: two cores that share a cache, or are two halves of one, slow each
other down by half. Only the process that was called writes results. Workers end with it, however it ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from majorant.errors import MajorantError
from majorant.experiments.cells import run
from majorant.experiments.plan import Plan, best_rates, search_tasks
from majorant.experiments.progress import Progress, Silent
from majorant.experiments.protocol import STAND_IN, Study, Task
from majorant.experiments.results import Results
from majorant.experiments.splits import missing_data

__all__ = ["available_part", "run_study", "run_tasks"]

# A second thread of BLAS on the same core waits by spinning: small factorisations took ten times as long.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def available_part(study: Study, *, download: bool = True) -> tuple[Study, dict[str, str]]:
    """The study on the data that are there, and for each that is not, what to put where.

    Without any, a quick study goes on with data that are made up.
    """
    missing = missing_data(study.data, download=download)
    left = study.without(set(missing))
    if not left.data and study.name == "quick":
        left = replace(left, data=(STAND_IN,), labels=())
    return left, missing


def run_study(
    study: Study, results: Results, *, jobs: int = 1, progress: Progress | None = None
) -> tuple[Plan, Results]:
    """Do all cells of a study that are not in the results.

    Parameters
    ----------
    study : Study
        On data that are available.
    results : Results
        What is done already; every cell is added as soon as it is done.
    jobs : int
        How many cells to run at the same time.
    progress : Progress, optional
        Whom to tell.

    Returns
    -------
    tuple of Plan and Results
        The cells, and their records.
    """
    with pool(jobs) as workers:
        for number in ("first", "second"):
            title = f"learning rates, {number} round"
            run_tasks(search_tasks(study, results), results, workers, progress, title)
        plan = Plan(study, best_rates(study, results))
        tasks = plan.tasks()
        run_tasks([task for task in tasks if not task.timed], results, workers, progress, "cells")
        timed = [task for task in tasks if task.timed]
        run_tasks(timed, results, workers, progress, "cells and their times", at_once=False)
    return plan, results


def run_tasks(
    tasks: Sequence[Task],
    results: Results,
    workers: ProcessPoolExecutor | None = None,
    progress: Progress | None = None,
    title: str = "cells",
    *,
    at_once: bool = True,
) -> None:
    """Do those tasks that are not in the results; without workers, here and one after the other."""
    progress = progress or Silent()
    pending = [task for task in tasks if task not in results]
    progress.begin(title, len(pending), sum(task.weight for task in pending))
    try:
        for task, record in _records(pending, workers, at_once=at_once):
            results.add(record)
            progress.advance(task.label, task.weight)
    except BrokenProcessPool:
        raise MajorantError(
            "a worker process was killed, perhaps for want of memory; what is done is kept: run the command "
            "again, with --jobs 1 if that was it"
        ) from None
    finally:
        progress.end()


def _records(
    tasks: Iterable[Task], workers: ProcessPoolExecutor | None, *, at_once: bool
) -> Iterator[tuple[Task, dict[str, Any]]]:
    if workers is None:
        yield from ((task, run(task)) for task in tasks)
        return
    if not at_once:
        yield from ((task, workers.submit(run, task).result()) for task in tasks)
        return
    futures = {workers.submit(run, task): task for task in tasks}
    for future in as_completed(futures):
        yield futures[future], future.result()


@contextmanager
def pool(jobs: int) -> Iterator[ProcessPoolExecutor | None]:
    """Worker processes, each on a core of its own where the system lets it choose; None for a single job."""
    if jobs <= 1:
        yield None
        return
    from multiprocessing import get_context

    context = get_context("spawn")
    cores: Any = context.SimpleQueue()
    for core in _cores(jobs):
        cores.put(core)
    lifeline, held = context.Pipe(duplex=False)
    workers = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(cores, lifeline))
    with _environment(ONE_THREAD):
        try:
            yield workers
        finally:
            workers.shutdown(wait=False, cancel_futures=True)
            held.close()


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Variables that processes find which begin in the meantime."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _cores(jobs: int) -> list[int | None]:
    if not hasattr(os, "sched_getaffinity"):
        return [None] * jobs
    cores = sorted(os.sched_getaffinity(0))
    return [cores[k % len(cores)] for k in range(jobs)]


def _begin(cores: Any, lifeline: Any) -> None:
    """In every worker, before its first cell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C on the terminal reaches all: no traceback from each
    core = cores.get()
    if core is not None:
        os.sched_setaffinity(0, {core})
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Any) -> None:
    """End as soon as the other end of a pipe is gone: let go of, or with the process that held it.

    Without this, the workers of a process that was killed would wait for work for ever, and those of one that
    was interrupted would finish their cells first.
    """
    with suppress(EOFError, OSError):
        lifeline.recv()
    os._exit(1)
