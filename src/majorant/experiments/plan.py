"""The runs of a study: the search for learning rates, then the runs that use the rates found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from majorant.experiments.paper import LABELS
from majorant.experiments.results import Results
from majorant.experiments.study import STOCHASTIC, DataSet, Method, Regulariser, Run, Study

Case = tuple[DataSet, Regulariser, str]
"""A data set, a regulariser and a stochastic solver, which have a learning rate of their own."""

REFERENCE = Method("auto", "newton")
LIBLINEAR = Method("LIBLINEAR", "liblinear")


def needs_runs(study: Study, kind: str, data: DataSet) -> bool:
    """Whether the study needs the runs of a kind ("scores", "sparsity" or "stochastic") on a data set."""
    if kind != "scores" and (data.standardised or (kind == "stochastic" and data.shuffled)):
        return False
    chosen = [LABELS[label] for label in study.labels]
    return not chosen or [kind] in chosen or [kind, data.source] in chosen


class Plan:
    """The runs of a study whose learning rates are known.

    Parameters
    ----------
    study : Study
    rates : mapping
        From (data set, regulariser, stochastic solver) to the learning rate.
    """

    def __init__(self, study: Study, rates: Mapping[Case, float]) -> None:
        self.study, self.rates = study, rates
        self.convex = next(one for one in study.regularisers if one.potential == "hyperbolic")

    def run(self, data: DataSet, split: int, regulariser: Regulariser, method: Method) -> Run:
        """A method of the paper, for the paper's number of iterations."""
        # The paper prints times for unscaled data and the study's own strengths; one split is enough.
        timed = split == 0 and not data.standardised and regulariser in self.study.regularisers
        return self._run(data, split, regulariser, method, repeats=self.study.repeats if timed else 0)

    def reference(self, data: DataSet, split: int, regulariser: Regulariser) -> Run:
        """The run to the minimum: the fastest solver, until rounding ends all progress."""
        # A figure shows its time on the first split only, and some of these runs are long.
        limit = self.study.reference_iterations
        return self._run(data, split, regulariser, REFERENCE, limit, int(split == 0))

    def stochastic(self, data: DataSet, regulariser: Regulariser, solver: str) -> Run:
        """A stochastic solver alone, with as many epochs as the other methods have iterations."""
        return self._run(data, 0, regulariser, Method(solver, solver))

    def liblinear(self, data: DataSet, regulariser: Regulariser) -> Run:
        """LIBLINEAR at decreasing tolerances; it has the same objective with ℓ2 only."""
        return self._run(data, 0, regulariser, LIBLINEAR, 0)

    def at_strength(self, lam: float) -> Regulariser:
        """The hyperbolic regulariser of the tables sparsity:* with strength λ."""
        return replace(self.convex, lam=lam)

    def runs(self) -> list[Run]:
        """All runs, without repetitions; the runs on one data set stand together, so it is loaded once."""
        return list(dict.fromkeys(run for data in self.study.data for run in self._runs_on(data)))

    def _runs_on(self, data: DataSet) -> Iterator[Run]:
        study = self.study
        methods = dict.fromkeys(study.regularisers, study.methods)
        strengths = [self.at_strength(lam) for lam in study.lambdas]
        sparsity = tuple(method for method in study.methods if method.name == study.sparsity_of)
        for split in range(data.splits):
            problems = list(methods.items()) if needs_runs(study, "scores", data) else []
            problems += [(one, sparsity) for one in strengths] if needs_runs(study, "sparsity", data) else []
            for regulariser, chosen in problems:
                yield from (self.run(data, split, regulariser, method) for method in chosen)
                yield self.reference(data, split, regulariser)
        if needs_runs(study, "stochastic", data):
            yield from (self.stochastic(data, self.convex, solver) for solver in STOCHASTIC)
            yield self.reference(data, 0, self.convex)
        if needs_runs(study, "scores", data):
            ridge = [one for one in study.regularisers if one.potential == "none" and one.eta > 0.0]
            yield from (self.liblinear(data, regulariser) for regulariser in ridge)

    def _run(
        self,
        data: DataSet,
        split: int,
        regulariser: Regulariser,
        method: Method,
        iterations: int | None = None,
        repeats: int = 0,
    ) -> Run:
        study = self.study
        if method.stochastic is not None:
            # The search uses the study's own strengths: λ hardly changes the first epochs.
            known = next(one for one in study.regularisers if one.name == regulariser.name)
            warmup = study.warmup if method.warmup else 0
            method = replace(method, rate=self.rates[data, known, method.stochastic], warmup=warmup)
        limit = study.iterations if iterations is None else iterations
        return Run(data, split, regulariser, method, limit, study.zero_below, repeats=repeats)


class RateSearch:
    """The search for the learning rates: a coarse grid first, then a finer one around its best rate.

    Parameters
    ----------
    study : Study
    results : Results
        The records of the trials; the second round follows from those of the first.
    """

    def __init__(self, study: Study, results: Results) -> None:
        self.study, self.results = study, results

    def runs(self) -> list[Run]:
        """The trials of the first round and, when all of them are done, of the second round."""
        kinds = ("scores", "sparsity", "stochastic")
        needed = [data for data in self.study.data if any(needs_runs(self.study, k, data) for k in kinds)]
        cases = product(needed, self.study.regularisers, STOCHASTIC)
        return [run for case in cases for rate in self._rates(case) for run in self._trials(case, rate)]

    def best(self) -> dict[Case, float]:
        """The learning rates with the lowest Φ after ι epochs."""
        cases = product(self.study.data, self.study.regularisers, STOCHASTIC)
        return {case: self._best_of(sorted(self._rates(case)), case) for case in cases}

    def mean_phi(self, data: DataSet, regulariser: Regulariser, solver: str, rate: float) -> float:
        """Φ after ι epochs, mean over the seeds; ∞ if a run diverged or is missing."""
        values = []
        for run in self._trials((data, regulariser, solver), rate):
            phi = self.results[run]["phi"] if run in self.results else []
            values.append(phi[-1] if len(phi) == self.study.warmup + 1 else math.inf)
        return sum(values) / len(values)

    def _rates(self, case: Case) -> list[float]:
        first = [_rounded(rate) for rate in self.study.rates]
        if not all(run in self.results for rate in first for run in self._trials(case, rate)):
            return first
        best = self._best_of(list(self.study.rates), case)
        return first + [_rounded(factor * best) for factor in self.study.refinements]

    def _best_of(self, rates: list[float], case: Case) -> float:
        return min(rates, key=lambda rate: self.mean_phi(*case, rate))

    def _trials(self, case: Case, rate: float) -> list[Run]:
        """The runs at one learning rate, one per seed."""
        data, regulariser, solver = case
        study, method = self.study, Method(solver, solver, rate=_rounded(rate))
        return [
            Run(data, 0, regulariser, method, study.warmup, study.zero_below, seed, keep_theta=False)
            for seed in study.search_seeds
        ]


def _rounded(rate: float) -> float:
    return float(f"{rate:.6g}")
