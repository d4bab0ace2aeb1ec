"""Executes the runs of a study whose records are missing: the search first, then the other runs, in parallel.

Each worker is a process on a core of its own, so that a run's time is that of one core. Timed runs come last,
one at a time: two cores that share a cache, or two hardware threads of a core, slow each other down by half.
Only the parent process writes results. The workers end with the parent, however it ends.
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
from itertools import cycle, islice
from typing import Any, TextIO

from majorant.callbacks.progress import ProgressDisplay
from majorant.errors import DataFileError, MajorantError
from majorant.experiments.execution import execute
from majorant.experiments.plan import Plan, RateSearch
from majorant.experiments.results import Results
from majorant.experiments.study import STAND_IN, Run, Study
from majorant.experiments.study_results import StudyResults

# A second BLAS thread on the same core spins while it waits: small factorisations took ten times as long.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def available_part(study: Study, *, download: bool = True) -> tuple[Study, dict[str, str]]:
    """The study on the available data sets, and for every other data set the file that it needs.

    Without any data set, a quick study uses generated rows.
    """
    from majorant.datasets import find

    missing = {}
    for source in dict.fromkeys(data.source for data in study.data if data.source != STAND_IN.source):
        try:
            find(source, download=download)
        except DataFileError as error:
            missing[source] = str(error)
    left = replace(study, data=tuple(data for data in study.data if data.source not in missing))
    if not left.data and study.name == "quick":
        left = replace(left, data=(STAND_IN,), labels=())
    return left, missing


def run_study(
    study: Study, results: Results, *, jobs: int = 1, progress: StudyProgress | None = None
) -> StudyResults:
    """Execute all runs of a study that are not in the results.

    Parameters
    ----------
    study : Study
        On data sets that are available.
    results : Results
        The records so far; every record is added as soon as its run is done.
    jobs : int
        The number of runs at the same time.
    progress : StudyProgress, optional

    Returns
    -------
    StudyResults
    """
    with pool(jobs) as workers:
        for number in ("first", "second"):
            trials = RateSearch(study, results).runs()
            run_missing(trials, results, workers, progress, f"learning rates, {number} round")
        plan = Plan(study, RateSearch(study, results).best())
        runs = plan.runs()
        run_missing([run for run in runs if not run.timed], results, workers, progress, "cells")
        timed = [run for run in runs if run.timed]
        run_missing(timed, results, workers, progress, "cells and their times", parallel=False)
    return StudyResults(plan, results)


def run_missing(
    runs: Sequence[Run],
    results: Results,
    workers: ProcessPoolExecutor | None = None,
    progress: StudyProgress | None = None,
    title: str = "cells",
    *,
    parallel: bool = True,
) -> None:
    """Execute the runs that are not in the results; without workers, in this process."""
    progress = progress or StudyProgress(shown=False)
    pending = [run for run in runs if run not in results]
    progress.begin(title, len(pending), sum(run.weight for run in pending))
    try:
        for run, record in _records(pending, workers, parallel=parallel):
            results.add(record)
            progress.advance(run.label, run.weight)
    except BrokenProcessPool:
        raise MajorantError(
            "a worker process was killed, perhaps for lack of memory; finished runs are kept: run the "
            "command again, with --jobs 1 if memory is short"
        ) from None
    finally:
        progress.end()


def _records(
    runs: Iterable[Run], workers: ProcessPoolExecutor | None, *, parallel: bool
) -> Iterator[tuple[Run, dict[str, Any]]]:
    if workers is None:
        yield from ((run, execute(run)) for run in runs)
        return
    if not parallel:
        yield from ((run, workers.submit(execute, run).result()) for run in runs)
        return
    futures = {workers.submit(execute, run): run for run in runs}
    for future in as_completed(futures):
        yield futures[future], future.result()


@contextmanager
def pool(jobs: int) -> Iterator[ProcessPoolExecutor | None]:
    """Worker processes, each on a core of its own if the system supports affinity; None for a single job."""
    if jobs <= 1:
        yield None
        return
    from multiprocessing import get_context

    context = get_context("spawn")
    cores: Any = context.SimpleQueue()
    known = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]
    for core in islice(cycle(known), jobs):
        cores.put(core)
    lifeline, held = context.Pipe(duplex=False)
    workers = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_start_worker, initargs=(cores, lifeline)
    )
    before = {name: os.environ[name] for name in ONE_THREAD if name in os.environ}
    os.environ.update(ONE_THREAD)  # for the processes started inside
    try:
        yield workers
    finally:
        workers.shutdown(wait=False, cancel_futures=True)
        held.close()
        for name in ONE_THREAD:
            os.environ.pop(name, None)
        os.environ.update(before)


def _start_worker(cores: Any, lifeline: Any) -> None:
    """Choose the core of a worker, and let the worker end with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches all processes; workers print no traceback
    core = cores.get()
    if core is not None:
        os.sched_setaffinity(0, {core})
    threading.Thread(target=_exit_with_parent, args=(lifeline,), daemon=True).start()


def _exit_with_parent(lifeline: Any) -> None:
    """End this process as soon as the parent closes its end of a pipe, or ends.

    Without this, workers whose parent was killed would wait for work forever, and workers whose parent was
    interrupted would finish their runs first.
    """
    with suppress(EOFError, OSError):
        lifeline.recv()
    os._exit(1)


class StudyProgress:
    """Counts finished runs and estimates the time left: a bar on a terminal, else a line every few seconds.

    Parameters
    ----------
    stream : text stream, optional
        Default stderr.
    every : float
        Seconds between two lines.
    shown : bool
        False: no output.
    """

    def __init__(self, stream: TextIO | None = None, every: float = 10.0, *, shown: bool = True) -> None:
        self.shown = shown
        self._display = ProgressDisplay(every, stream)

    def begin(self, title: str, count: int, weight: float) -> None:
        """Start a phase of `count` runs whose weights add up to `weight`."""
        self.title, self.count, self.weight = title, count, max(weight, 1e-9)
        self.done, self.weight_done = 0, 0.0
        self._display.begin(f"{title}: {count} cells" if self.shown and count else "")

    def advance(self, label: str, weight: float) -> None:
        """Count a finished run."""
        self.done += 1
        self.weight_done += weight
        if self.shown:
            state = f"{self.done} of {self.count} cells  {label}"
            self._display.show(self.weight_done / self.weight, state, f"{self.title}: ")

    def end(self) -> None:
        """End the phase, finished or not."""
        self._display.end("", all_runs=True)
