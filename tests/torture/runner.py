"""Check many problems in worker processes, and kill those that take too long."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait

from .problems import make_problem

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
STARTING = 300.0
"""Seconds that a new process may take to import and compile, which is no problem's fault."""


def run(
    seeds: Sequence[int],
    *,
    jobs: int = 2,
    limit: float = 60.0,
    route: str | None = None,
    penalty: str | None = None,
) -> list:
    """The outcomes of these seeds, in their order; a route or a penalty leaves out the others."""
    from .claims import Outcome

    if route or penalty:
        problems = map(make_problem, seeds)
        seeds = [
            q.seed for q in problems if route in (None, q.route) and penalty in (None, q.settings["penalty"])
        ]
    waiting, found = list(reversed(seeds)), {}
    workers = [_Worker() for _ in range(min(jobs, len(seeds)))]
    try:
        for worker in workers:
            worker.give(waiting.pop())
        while any(worker.seed is not None for worker in workers):
            busy = [worker for worker in workers if worker.seed is not None]
            ready = wait([worker.pipe for worker in busy], timeout=1.0)
            for i, worker in enumerate(workers):
                if worker.seed is None:
                    continue
                seed, died = worker.seed, ""
                if worker.pipe in ready:
                    try:
                        answer = worker.pipe.recv()
                        if isinstance(answer, str):  # what it does now; the clock starts with the fit
                            worker.stage = answer
                            if answer == "fit":
                                worker.since = time.monotonic()
                            continue
                        found[seed] = answer
                    except EOFError:
                        died = "exception: the worker process died"
                elif time.monotonic() - worker.since > (limit if worker.stage != "start" else STARTING):
                    died = f"time: {worker.stage} killed after {limit:.0f} s"
                else:
                    continue
                if died:
                    worker.end()
                    q = make_problem(seed)
                    found[seed] = Outcome(
                        seed, q.traits, q.route, q.X.shape, q.settings["penalty"], "killed",
                        seconds=time.monotonic() - worker.since, false_claims=[died],
                    )  # fmt: skip
                    worker = workers[i] = _Worker()
                worker.seed = None
                if waiting:
                    worker.give(waiting.pop())
    finally:
        for worker in workers:
            worker.end()
    return [found[seed] for seed in seeds]


class _Worker:
    """A process that checks one problem after the other."""

    def __init__(self) -> None:
        for name in THREADS:
            os.environ.setdefault(name, "1")
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.seed: int | None = None
        self.since, self.stage = 0.0, "start"

    def give(self, seed: int) -> None:
        self.seed, self.since, self.stage = seed, time.monotonic(), "start"
        self.pipe.send(seed)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Connection) -> None:
    from .claims import check_claims, warm_up

    warm_up()
    while True:
        try:
            seed = pipe.recv()
        except EOFError:
            return
        problem = make_problem(seed)
        pipe.send("fit")
        pipe.send(check_claims(problem, lambda: pipe.send("reference")))
