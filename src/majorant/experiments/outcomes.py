"""Questions to the results: scores, gaps and times of a method on a problem, over all splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from majorant.experiments.plan import Plan
from majorant.experiments.printed import MEASURES
from majorant.experiments.protocol import DataSet, Method, Regulariser, Study, Task
from majorant.experiments.results import Results
from majorant.status import Vector

__all__ = ["Outcomes", "Spread", "passages", "scores_of"]


@dataclass(frozen=True)
class Spread:
    """A figure over the splits."""

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, values: Any) -> Spread:
        """Mean and standard deviation (of a sample) of some values."""
        numbers = np.asarray(values, dtype=np.float64)
        deviation = float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0
        return cls(float(numbers.mean()), deviation, len(numbers))

    def text(self, digits: int = 4) -> str:
        """With the deviation, where there are several."""
        mean = f"{self.mean:.{digits}f}"
        return mean if self.count == 1 else f"{mean} ± {self.deviation:.{digits}f}"


def scores_of(record: dict[str, Any]) -> dict[str, float]:
    """Accuracy, precision, recall and F1 on the test rows; 0 where nothing was called positive."""
    tp, fp, fn, tn = record["confusion"]
    ratios = ((tp + tn, tp + fp + fn + tn), (tp, tp + fp), (tp, tp + fn), (2 * tp, 2 * tp + fp + fn))
    return {name: a / b if b else 0.0 for name, (a, b) in zip(MEASURES, ratios, strict=True)}


def passages(record: dict[str, Any], figures: dict[str, float]) -> list[int]:
    """The iterations at which a run has all four of these scores, to four digits."""
    n_test, positives = record["n_test"], record["test_positives"]
    found = []
    for n, (tp, fp) in enumerate(record["positives"]):
        confusion = [tp, fp, positives - tp, n_test - positives - fp]
        scores = scores_of({"confusion": confusion})
        if all(abs(scores[measure] - figure) < 1e-4 for measure, figure in figures.items()):
            found.append(n)
    return found


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The records of a plan, as far as they are there."""

    plan: Plan
    results: Results

    @property
    def study(self) -> Study:
        """What was run."""
        return self.plan.study

    @cached_property
    def tasks(self) -> list[Task]:
        """All cells of the plan."""
        return self.plan.tasks()

    def data_set(self, name: str) -> DataSet | None:
        """The data set that the tables call so, if it was available."""
        return next((data for data in self.study.data if data.name == name), None)

    def method(self, name: str) -> Method | None:
        """The method that the tables call so."""
        return next((method for method in self.study.methods if method.name == name), None)

    def problems(self) -> Iterator[tuple[DataSet, Regulariser]]:
        """Data sets × regularisers whose cells are all there."""
        for data in self.study.data:
            for regulariser in self.study.regularisers:
                if all(self.cells(data, regulariser, method) for method in self.study.methods):
                    yield data, regulariser

    def cells(self, data: DataSet, regulariser: Regulariser, method: Method) -> list[dict[str, Any]]:
        """The records of a method, one a split; none unless all splits are done."""
        return self._complete([self.plan.cell(data, k, regulariser, method) for k in range(data.splits)])

    def references(self, data: DataSet, regulariser: Regulariser) -> list[dict[str, Any]]:
        """The records of the runs to the minimum, one a split; none unless all are done."""
        return self._complete([self.plan.reference(data, k, regulariser) for k in range(data.splits)])

    def _complete(self, tasks: list[Task]) -> list[dict[str, Any]]:
        found = [record for _, record in self.results.of(tasks)]
        return found if len(found) == len(tasks) else []

    def minimum(self, data: DataSet, regulariser: Regulariser, split: int = 0) -> float:
        """Φ*: the lowest Φ that any run on this problem has found.

        Where φ is convex it is that of the reference, which proves how low Φ can be; where it is not, a run
        may end in a better minimum than the reference.
        """
        return self._minima.get((data, regulariser, split), np.nan)

    @cached_property
    def _minima(self) -> dict[tuple[DataSet, Regulariser, int], float]:
        minima: dict[tuple[DataSet, Regulariser, int], float] = {}
        for task, record in self.results.of(self.tasks):
            problem = (task.data, task.regulariser, task.split)
            if record["objective"] is not None:
                minima[problem] = min(record["objective"], minima.get(problem, np.inf))
        return minima

    def gaps(self, data: DataSet, regulariser: Regulariser, method: Method) -> Vector:
        """(Φ - Φ*)/Φ* at the end of the run, one a split."""
        found = self.cells(data, regulariser, method)
        minima = np.array([self.minimum(data, regulariser, split) for split in range(len(found))])
        last = np.array([np.inf if record["objective"] is None else record["objective"] for record in found])
        return np.asarray(np.maximum(last - minima, 0.0) / minima)

    def spread(self, records: list[dict[str, Any]], measure: str) -> Spread:
        """A score, or the seconds, over the splits."""
        if measure == "seconds":
            timed = [record for record in records if record["task"]["repeats"]]
            return Spread.of([record["seconds"] for record in timed or records])
        return Spread.of([scores_of(record)[measure] for record in records])
