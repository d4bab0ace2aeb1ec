"""The scores, gaps and minima of a study, from which tables, claims and figures are made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from majorant.experiments.paper import MEASURES, corrected_scores
from majorant.experiments.plan import Plan, RateSearch
from majorant.experiments.results import Results, RunRecord
from majorant.experiments.study import DataSet, Regulariser, Run, Study


@dataclass(frozen=True)
class MeanOverSplits:
    """A number's mean and sample standard deviation over the splits."""

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, values: Any) -> MeanOverSplits:
        """Mean and standard deviation of some values."""
        numbers = np.asarray(values, dtype=np.float64)
        deviation = float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0
        return cls(float(numbers.mean()), deviation, len(numbers))

    @classmethod
    def of_score(cls, records: Iterable[RunRecord], name: str) -> MeanOverSplits:
        """A score, the final number of zeros, or the seconds of the splits that were timed (else of all)."""
        if name == "seconds":
            timed = [record for record in records if record["task"]["repeats"]]
            return cls.of([record["seconds"] for record in timed or records])
        if name == "zeros":
            return cls.of([record["zeros"][-1] for record in records])
        return cls.of([scores_of(record)[name] for record in records])

    def text(self, digits: int = 4) -> str:
        """The mean, with the deviation if there are several splits."""
        mean = f"{self.mean:.{digits}f}"
        return mean if self.count == 1 else f"{mean} ± {self.deviation:.{digits}f}"


def scores_of(record: RunRecord) -> dict[str, float]:
    """Accuracy, precision, recall and F1 on the test rows; 0 where nothing was predicted positive."""
    tp, fp, fn, tn = record["confusion"]
    ratios = ((tp + tn, tp + fp + fn + tn), (tp, tp + fp), (tp, tp + fn), (2 * tp, 2 * tp + fp + fn))
    return {name: a / b if b else 0.0 for name, (a, b) in zip(MEASURES, ratios, strict=True)}


@dataclass(frozen=True, eq=False)
class Problem:
    """A regulariser on a data set, with the records of its runs."""

    data: DataSet
    regulariser: Regulariser
    runs: dict[str, list[RunRecord]]
    """By method, one record per split; without methods that lack a split."""
    reference: list[RunRecord]
    """The runs to the minimum, one per split; empty if one is missing."""
    complete: bool
    """Whether `runs` has all methods."""

    @property
    def name(self) -> str:
        """The names of the data set and the regulariser, to be used in a sentence."""
        return f"{self.data.name}/{self.regulariser.name}"

    def mean(self, score: str, method: str) -> float:
        """A score of a method, or its seconds, mean over the splits."""
        return MeanOverSplits.of_score(self.runs[method], score).mean


def matching_iterations(problem: Problem, method: str) -> list[int]:
    """The iterations at which the first run of a method has all four scores of the paper, to four digits."""
    record = problem.runs[method][0]
    printed = corrected_scores(problem.data.name, problem.regulariser.name, method)
    n_test, positives = record["n_test"], record["test_positives"]
    found = []
    for n, (tp, fp) in enumerate(record["positives"]):
        scores = scores_of({"confusion": [tp, fp, positives - tp, n_test - positives - fp]})
        if all(abs(scores[measure] - figure) < 1e-4 for measure, figure in printed.items()):
            found.append(n)
    return found


@dataclass(frozen=True, eq=False)
class StudyResults:
    """The records of a plan, as far as its runs are done."""

    plan: Plan
    records: Results

    @property
    def study(self) -> Study:
        """The study that was run."""
        return self.plan.study

    @property
    def search(self) -> RateSearch:
        """The search for the learning rates, with its trials."""
        return RateSearch(self.study, self.records)

    @cached_property
    def all_runs(self) -> list[Run]:
        """All runs of the plan."""
        return self.plan.runs()

    @cached_property
    def problems(self) -> list[Problem]:
        """Every regulariser on every data set."""
        return [self._problem(data, one) for data in self.study.data for one in self.study.regularisers]

    def complete(self, *, standardised: bool = True) -> list[Problem]:
        """The problems whose runs are all done; optionally without those on standardised features."""
        return [one for one in self.problems if one.complete and (standardised or not one.data.standardised)]

    def on(self, name: str) -> list[Problem]:
        """The problems on the data set of this name."""
        return [problem for problem in self.problems if problem.data.name == name]

    def by_strength(self, data: DataSet) -> dict[float, Problem]:
        """The problems of a table sparsity:* by λ."""
        return {lam: self._problem(data, self.plan.at_strength(lam)) for lam in self.study.lambdas}

    def _problem(self, data: DataSet, regulariser: Regulariser) -> Problem:
        def done(runs: list[Run]) -> list[RunRecord]:
            found = [record for _, record in self.records.select(runs)]
            return found if len(found) == len(runs) else []

        plan, splits = self.plan, range(data.splits)
        records = {
            method.name: done([plan.run(data, k, regulariser, method) for k in splits])
            for method in self.study.methods
        }
        reference = done([plan.reference(data, k, regulariser) for k in splits])
        found = {name: runs for name, runs in records.items() if runs}
        return Problem(data, regulariser, found, reference, len(found) == len(records))

    def minimum(self, problem: Problem, split: int = 0) -> float:
        """Φ*: the lowest Φ of all runs on this problem and split; nan without any.

        Where φ is convex this is the reference's Φ, up to its duality gap. Elsewhere another run may end in
        a better local minimum.
        """
        return self._minima.get((problem.data, problem.regulariser, split), np.nan)

    @cached_property
    def _minima(self) -> dict[tuple[DataSet, Regulariser, int], float]:
        minima: dict[tuple[DataSet, Regulariser, int], float] = {}
        for run, record in self.records.select(self.all_runs):
            problem = (run.data, run.regulariser, run.split)
            if record["objective"] is not None:
                minima[problem] = min(record["objective"], minima.get(problem, np.inf))
        return minima

    def gap(self, problem: Problem, method: str) -> float:
        """(Φ - Φ*)/Φ* at the end of the run, mean over the splits."""
        records = problem.runs[method]
        minima = np.array([self.minimum(problem, split) for split in range(len(records))])
        last = np.array([np.inf if one["objective"] is None else one["objective"] for one in records])
        return float(np.mean(np.maximum(last - minima, 0.0) / minima))
