"""Which cells a study has, by what they are for.

Learning rates are needed before the cells that use them can be named, so those come from the search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from majorant.experiments.protocol import STOCHASTIC, DataSet, Method, Regulariser, Study, Task
from majorant.experiments.results import Results

__all__ = ["LABELS", "Plan", "best_rates", "search_tasks", "wanted"]

Rates = Mapping[tuple[DataSet, Regulariser, str], float]

REFERENCE = Method("auto", "newton")
LIBLINEAR = Method("LIBLINEAR", "liblinear")


class Plan:
    """The cells of a study whose learning rates are known.

    Parameters
    ----------
    study : Study
    rates : mapping
        (data set, regulariser, stochastic solver) to its learning rate.
    """

    def __init__(self, study: Study, rates: Rates) -> None:
        self.study, self.rates = study, rates

    def cell(self, data: DataSet, split: int, regulariser: Regulariser, method: Method) -> Task:
        """One of the paper's methods, as long as the paper runs it."""
        method = self._with_rate(method, data, regulariser)
        # Its time is printed for the data as they are, and the study's own strengths; one split is enough.
        timed = split == 0 and not data.standardised and regulariser in self.study.regularisers
        repeats = self.study.repeats if timed else 0
        return self._task(data, split, regulariser, method, self.study.iterations, repeats)

    def reference(self, data: DataSet, split: int, regulariser: Regulariser) -> Task:
        """The fastest solver, until floating-point numbers allow no more."""
        iterations = self.study.reference_iterations
        # Its time is drawn for the first split only, and some are long.
        return self._task(data, split, regulariser, REFERENCE, iterations, int(split == 0))

    def stochastic(self, data: DataSet, regulariser: Regulariser, solver: str) -> Task:
        """A stochastic method alone, for as many epochs as the others have iterations."""
        method = self._with_rate(Method(solver, solver), data, regulariser)
        return self._task(data, 0, regulariser, method, self.study.iterations, 0)

    def liblinear(self, data: DataSet, regulariser: Regulariser) -> Task:
        """LIBLINEAR at falling tolerances, where it has the same problem: ℓ2."""
        return self._task(data, 0, regulariser, LIBLINEAR, 0, 0)

    def stronger(self, lam: float) -> Regulariser:
        """The hyperbolic regulariser of the tables sparsity:*."""
        return replace(self.convex, lam=lam)

    @property
    def convex(self) -> Regulariser:
        """The first hyperbolic regulariser of the study."""
        return next(one for one in self.study.regularisers if one.potential == "hyperbolic")

    def sparsity_method(self) -> Method:
        """The method of the tables sparsity:*."""
        return next(one for one in self.study.methods if one.name == self.study.sparsity_of)

    def tasks(self) -> list[Task]:
        """All that is wanted, each once; those that take longest to load stand together."""
        study = self.study
        tasks: list[Task] = []
        for data in study.data:
            everything = wanted(study, "cells", data)
            for split in range(data.splits):
                for regulariser in study.regularisers:
                    if everything:
                        tasks += [self.cell(data, split, regulariser, method) for method in study.methods]
                        tasks.append(self.reference(data, split, regulariser))
                if wanted(study, "sparsity", data):
                    for lam in study.lambdas:
                        regulariser = self.stronger(lam)
                        tasks.append(self.cell(data, split, regulariser, self.sparsity_method()))
                        tasks.append(self.reference(data, split, regulariser))
            if wanted(study, "stochastic", data):
                tasks += [self.stochastic(data, self.convex, solver) for solver in STOCHASTIC]
                tasks.append(self.reference(data, 0, self.convex))
            if everything:
                plain = [one for one in study.regularisers if one.potential == "none" and one.eta > 0.0]
                tasks += [self.liblinear(data, regulariser) for regulariser in plain]
        return list(dict.fromkeys(tasks))

    def _with_rate(self, method: Method, data: DataSet, regulariser: Regulariser) -> Method:
        solver = method.stochastic
        if solver is None:
            return method
        # The search is for the study's own strengths: λ does not move the first epochs much.
        known = next(one for one in self.study.regularisers if one.name == regulariser.name)
        warmup = self.study.warmup if method.warmup else 0
        return replace(method, rate=self.rates[data, known, solver], warmup=warmup)

    def _task(
        self,
        data: DataSet,
        split: int,
        regulariser: Regulariser,
        method: Method,
        iterations: int,
        repeats: int,
    ) -> Task:
        below = self.study.zero_below
        return Task(data, split, regulariser, method, iterations, below, repeats=repeats)


# The learning rates -----------------------------------------------------------------------------


def search_tasks(study: Study, results: Results) -> list[Task]:
    """The runs of the search: the first round, and when that is done, the second."""
    tasks = []
    for data in study.data:
        if any(wanted(study, kind, data) for kind in ("cells", "sparsity", "stochastic")):
            for regulariser in study.regularisers:
                for solver in STOCHASTIC:
                    tasks += _rounds(study, data, regulariser, solver, results)
    return tasks


def _rounds(
    study: Study, data: DataSet, regulariser: Regulariser, solver: str, results: Results
) -> list[Task]:
    first = [task for rate in study.rates for task in _trials(study, data, regulariser, solver, rate)]
    if not all(task in results for task in first):
        return first
    best = min(study.rates, key=lambda rate: mean_phi(study, data, regulariser, solver, rate, results))
    return first + [
        task
        for factor in study.refinements
        for task in _trials(study, data, regulariser, solver, factor * best)
    ]


def _trials(study: Study, data: DataSet, regulariser: Regulariser, solver: str, rate: float) -> list[Task]:
    """The same learning rate with every seed."""
    method = Method(solver, solver, rate=float(f"{rate:.6g}"))
    return [
        Task(data, 0, regulariser, method, study.warmup, study.zero_below, seed, keep_theta=False)
        for seed in study.search_seeds
    ]


def mean_phi(
    study: Study, data: DataSet, regulariser: Regulariser, solver: str, rate: float, results: Results
) -> float:
    """Φ after ι epochs, mean over the seeds; infinite where a run left the numbers, or was not done."""
    values = []
    for task in _trials(study, data, regulariser, solver, rate):
        phi = results[task]["phi"] if task in results else []
        values.append(phi[-1] if len(phi) == study.warmup + 1 else math.inf)
    return sum(values) / len(values)


def best_rates(study: Study, results: Results) -> dict[tuple[DataSet, Regulariser, str], float]:
    """The learning rates with the lowest Φ after ι epochs."""
    rates = {}
    for data in study.data:
        for regulariser in study.regularisers:
            for solver in STOCHASTIC:
                tasks = _rounds(study, data, regulariser, solver, results)
                tried = sorted({task.method.rate for task in tasks if task.method.rate is not None})
                score = {r: mean_phi(study, data, regulariser, solver, r, results) for r in tried}
                rates[data, regulariser, solver] = min(tried, key=lambda rate: score[rate])
    return rates


# What `--only` chooses --------------------------------------------------------------------------


@dataclass(frozen=True)
class Needs:
    """Which runs a table or figure is made of."""

    kind: Literal["cells", "sparsity", "stochastic"]
    source: str | None = None
    """The data set; None: all."""

    def met_by(self, kind: str, data: DataSet) -> bool:
        """Whether runs of that kind on these data are among them."""
        return kind == self.kind and self.source in (None, data.source) and _has(kind, data)


LABELS: dict[str, Needs | None] = {
    "tab:data": None,
    "tab:a1a": Needs("cells", "a1a"),
    "tab:w8a": Needs("cells", "w8a"),
    "tab:cina0": Needs("cells", "cina0"),
    "tab:time": Needs("cells"),
    "sparsity:a1a": Needs("sparsity", "a1a"),
    "sparsity:cina0": Needs("sparsity", "cina0"),
    "sparsity:w8a": Needs("sparsity", "w8a"),
    "fig:stochastic": Needs("stochastic"),
    "fig:optimality": Needs("cells"),
}
"""The paper's labels, and what each needs."""


def _has(kind: str, data: DataSet) -> bool:
    """Whether a full study runs this kind on these data."""
    if kind == "sparsity":
        return not data.standardised
    return kind == "cells" or not (data.standardised or data.shuffled)


def wanted(study: Study, kind: str, data: DataSet) -> bool:
    """Whether the study needs the runs of a kind on these data."""
    if not study.labels:
        return _has(kind, data)
    needs = [LABELS[label] for label in study.labels]
    return any(need is not None and need.met_by(kind, data) for need in needs)
