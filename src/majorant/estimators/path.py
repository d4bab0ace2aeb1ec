"""Paths: a model for every strength of the penalty, or for every number of features, each from the last."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from majorant.callbacks import ModelsProgress
from majorant.estimators.fit_problem import FitProblem
from majorant.estimators.lambda_grid import default_strengths, lambda_max_of, most_features
from majorant.estimators.sizes import place_of, sizes_for
from majorant.estimators.svc import SparseSVC
from majorant.potentials import Potential
from majorant.status import Result, Status, Vector

# Of this many strengths of a non-convex penalty at most, and of those within this ratio, one has a run from
# zero. (Where the strengths of a group fell by a factor of .5, a fit was 14 % above a single one, and with
# three decades in one group, 70 %.)
GROUP = 8
GROUP_FALL = 0.75
# The share of the loss at zero that is left where the classes are separated.
SEPARATED = 1e-3

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def lambda_max(
    X: Any,
    y: Any = None,
    penalty: str | Potential = "hyperbolic",
    *,
    sample_weight: ArrayLike | None = None,
    **params: Any,
) -> float:
    """The smallest strength `lam` at which no feature is selected.

    Parameters
    ----------
    X, y, penalty, sample_weight
        As for `sparse_svc_path`.
    **params
        Other parameters of `SparseSVC` that define the problem: delta, penalty_factor, class_weight, ….

    Returns
    -------
    float
        Infinity for penalties that make no coefficient zero, such as "l2".
    """
    return lambda_max_of(_fit_problem(penalty, params, X, y, sample_weight))


def _fit_problem(
    penalty: str | Potential, params: Mapping[str, Any], X: Any, y: Any, sample_weight: ArrayLike | None
) -> FitProblem:
    by_size = params.get("n_features") is not None
    unused = {"lam", "warm_start", "verbose"} & params.keys() - ({"lam"} if by_size else set())
    if unused:
        raise TypeError(f"A path has no use for {', '.join(sorted(unused))}: leave it out.")
    estimator = SparseSVC(penalty, **params)
    estimator._validate_params()
    return FitProblem(estimator, X, y, sample_weight)


@dataclass(frozen=True, eq=False)
class Path:
    """Fitted models: the strongest penalty first, or the fewest features."""

    models: Sequence[SparseSVC]

    @property
    def by_size(self) -> bool:
        """Whether the models differ in `n_features`, not in the strength of the penalty."""
        return self.models[0].n_features is not None

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The numbers of features: rising along a path of sizes, where it is `n_features` of each model."""
        if self.by_size:
            return np.array([model.n_features for model in self.models], dtype=np.intp)
        return np.array([len(model.support_) for model in self.models], dtype=np.intp)

    @property
    def lambdas(self) -> Vector:
        """The strengths λ, falling."""
        return np.array([model.lam_ for model in self.models])

    @property
    def coefs(self) -> NDArray[Any]:
        """The coefficients, (n_lambdas, n_features), or (n_lambdas, n_classes, n_features) for several."""
        coefs = np.stack([copy(model).densify().coef_ for model in self.models])
        return coefs[:, 0] if coefs.shape[1] == 1 else coefs

    @property
    def intercepts(self) -> NDArray[Any]:
        """The intercepts, (n_lambdas,), or (n_lambdas, n_classes) for several."""
        intercepts = np.stack([model.intercept_ for model in self.models])
        return intercepts[:, 0] if intercepts.shape[1] == 1 else intercepts

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        first, last = self.models[0], self.models[-1]
        if self.by_size:
            return f"Path({len(self)} models, n_features {first.n_features} to {last.n_features})"
        return (
            f"Path({len(self)} models, lam {first.lam_:.3g} to {last.lam_:.3g}, "
            f"{len(first.support_)} to {len(last.support_)} features)"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per model: strength, number of features, objective, certificate, iterations."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        return pd.DataFrame(
            {
                "lam": self.lambdas,
                "n_features": self.sizes,
                "objective": [model.objective_ for model in self.models],
                "gap": [model.gap_ for model in self.models],
                "stationarity": [model.stationarity_ for model in self.models],
                "n_iter": [model.n_iter_ for model in self.models],
                "converged": [model.converged_ for model in self.models],
            }
        ).set_index("n_features" if self.by_size else "lam")

    def plot(self, names: Sequence[str] | None = None, top: int = 10, ax: Axes | None = None) -> Axes:
        """Draw the coefficients against λ, or the number of features; needs matplotlib.

        Parameters
        ----------
        names : sequence of str, optional
            The names of all features; by default those of the data frame that was fitted, else x0, x1, ….
        top : int, default=10
            How many features to label.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from majorant.estimators.plots import plot_path

        return plot_path(self, names, top, ax)


def sparse_svc_path(
    X: Any,
    y: Any = None,
    penalty: str | Potential = "hyperbolic",
    *,
    lambdas: int | ArrayLike = 100,
    ratio: float = 1e-3,
    n_features: int | ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    verbose: int = 0,
    **params: Any,
) -> Path:
    """Fit a `SparseSVC` for every strength, or every number of features, each from where the last one ended.

    Where the penalty is not convex, one of up to eight models is fitted from zero, over wider potentials, and
    the others begin with the best model known for a strength nearby.

    Parameters
    ----------
    X : array or sparse matrix (n_samples, n_features), or Source
    y : array (n_samples,)
        A source has its own.
    penalty : str or Potential, default="hyperbolic"
        As in `SparseSVC`.
    lambdas : int or array, default=100
        How many strengths, from `lambda_max` down to `ratio` times that in equal factors; or which. For
        potentials that are bounded, such as "welsch", a number of strengths is the most: the path ends before
        the first model with more than n / (log N log log n) features, for n rows and N features.
    ratio : float, default=1e-3
        The last strength, relative to the first.
    n_features : int or array of int, optional
        Numbers of features instead of strengths: the largest (from 1 on), or which. Each model has the best
        features of that number that a search finds; see `SparseSVC`. Φ never rises with the number.
    sample_weight : array (n_samples,), optional
    verbose : int, default=0
        1 shows a progress bar (a line every few seconds where there is no terminal).
    **params
        Other parameters of `SparseSVC`, but `lam` (unless there is `n_features`) and `warm_start`. With
        `max_features`, the path ends before the first model that has more of them.

    Returns
    -------
    Path
        ``path.models`` are fitted estimators (with sparse coefficients), ``path.lambdas``, ``path.sizes`` and
        ``path.coefs`` arrays, ``path.to_frame()`` an overview.
    """
    models = []
    with ModelsProgress(shown=bool(verbose)) as progress:
        if n_features is not None:
            params["n_features"] = 0  # until the sizes are known
        fit_problem = _fit_problem(penalty, params, X, y, sample_weight)
        limit = fit_problem.estimator.max_features
        grid = grid_for(fit_problem, n_features, lambdas, ratio)
        progress.total = len(grid)
        largest = most_features(fit_problem) if np.ndim(lambdas) == 0 else None
        for model in fit_path(fit_problem, grid, limit, largest):
            models.append(model)
            progress.advance(f"{place_of(model)}  {len(model.support_)} features")
    warn_of_failures([model for model in models if not model.converged_], len(models))
    return Path(tuple(models))


def warn_of_failures(failed: Sequence[SparseSVC], count: int) -> None:
    """One warning for all models, out of `count`, that did not converge."""
    if failed:
        warnings.warn(
            f"{len(failed)} of {count} models along the path did not converge, the first at "
            f"{place_of(failed[0])} (gap {failed[0].gap_:.1e}, stationarity "
            f"{failed[0].stationarity_:.1e}). {failed[0].status_.value} Increase max_iter, or end the path "
            f"earlier{'' if failed[0].n_features is not None else ' (ratio)'}.",
            ConvergenceWarning,
            stacklevel=3,
        )


def grid_for(
    fit_problem: FitProblem, n_features: int | ArrayLike | None, lambdas: int | ArrayLike, ratio: float
) -> NDArray[Any]:
    """The numbers of features asked for, rising; without any, the strengths, falling."""
    if n_features is None:
        return strengths_for(fit_problem, lambdas, ratio)
    return sizes_for(n_features, fit_problem.n_features)


def strengths_for(fit_problem: FitProblem, lambdas: int | ArrayLike, ratio: float) -> Vector:
    """The strengths asked for, strongest first."""
    count: Any = lambdas
    if isinstance(count, str) or not np.ndim(count):
        if not isinstance(count, Integral) or int(count) < 1:
            raise ValueError(f"lambdas={count!r} must be a whole number of strengths, at least 1.")
        if not 0.0 < ratio < 1.0:
            raise ValueError(f"ratio={ratio!r}, the last strength relative to the first, must be in ]0, 1[.")
        return default_strengths(fit_problem, int(count), ratio)
    values = np.asarray(lambdas, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)) or np.any(values < 0.0):
        raise ValueError("lambdas must be a number of strengths, or a list of finite, non-negative ones.")
    return np.unique(values)[::-1]


Run = tuple[float, Potential, list[Result]]


def _size_runs(fit_problem: FitProblem, sizes: Sequence[float]) -> Iterator[Run]:
    """A search for every number of features, each from where the last one ended."""
    for size in sizes:
        fit_problem.size = int(size)
        yield size, fit_problem.potential, fit_problem.run(fit_problem.potential)


def _convex_runs(fit_problem: FitProblem, strengths: Sequence[float]) -> Iterator[Run]:
    """A run for every strength, each from where the last one ended."""
    for lam in strengths:
        potential = fit_problem.potential.at_strength(lam)
        yield lam, potential, fit_problem.run(potential)


def _groups(strengths: Sequence[float]) -> Iterator[Sequence[float]]:
    """The strengths in groups of neighbours: not too many, and not too far from each other."""
    first = 0
    for end in range(1, len(strengths) + 1):
        full = end - first == GROUP
        if full or end == len(strengths) or strengths[end] < GROUP_FALL * strengths[first]:
            yield strengths[first:end]
            first = end


def _non_convex_runs(fit_problem: FitProblem, strengths: Sequence[float]) -> Iterator[Run]:
    """A run for every strength, from the lowest point known.

    The last strength of every group has a run from zero, over surrogates. The others begin with the lowest
    of what the runs for the strength before and for that last one have found.
    """

    def run(lam: float, known: Sequence[list[Result]], *, anew: bool) -> Run:
        potential = fit_problem.potential.at_strength(lam)
        return lam, potential, fit_problem.run_from_best(potential, known, anew=anew)

    # Without wider potentials, as few features as there may be.
    fit_problem.start(None)
    known = [fit_problem.run(fit_problem.potential.at_strength(strengths[0]), continuation=False)]
    for group in _groups(strengths):
        anchor = run(group[-1], known, anew=True)
        for lam in group[:-1]:
            here = run(lam, [*known, anchor[2]], anew=False)
            known = [here[2]]
            yield here
        last = run(group[-1], [*known, anchor[2]], anew=False)
        known = [last[2]]
        yield last


def _separated(fit_problem: FitProblem, potential: Potential, results: Sequence[Result]) -> bool:
    """Whether next to nothing is left of the loss: weaker penalties only fit the noise more closely."""
    objectives = fit_problem.objectives(potential)
    pairs = list(zip(objectives, results, strict=True))
    loss = sum(result.iterate.value - objective.penalty(result.iterate.theta) for objective, result in pairs)
    return loss <= SEPARATED * sum(objective.loss_at_zero for objective in objectives)


def fit_path(
    fit_problem: FitProblem,
    grid: NDArray[Any],
    max_features: int | None = None,
    largest: int | None = None,
) -> Iterator[SparseSVC]:
    """A fitted model for every strength, in the order given, before the first with more features than that.

    For an estimator with `n_features`, the grid has numbers of features instead of strengths. With `largest`,
    the path ends before the second or a later model with more features than that, and after the first that
    separates the classes.

    Ctrl-C during a fit raises `KeyboardInterrupt`.
    """
    template = fit_problem.estimator
    by_strength = _convex_runs if fit_problem.potential.convex else _non_convex_runs
    runs = (by_strength if template.n_features is None else _size_runs)(fit_problem, grid.tolist())
    for number, (value, potential, results) in enumerate(runs):
        model = copy(template)
        if template.n_features is not None:
            model.n_features = int(value)
        elif isinstance(template.penalty, Potential):
            model.penalty = potential
        else:
            model.lam = value
        model._store(fit_problem, potential, fit_problem.refitted(potential, results))
        if model.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if max_features is not None and len(model.support_) > max_features:
            if number == 0:
                raise ValueError(
                    f"The first model of the path, at lam={value:.4g}, has {len(model.support_)} features, "
                    f"and max_features is {max_features}: begin the path at a larger lam."
                )
            return
        if largest is not None and number > 0 and len(model.support_) > largest:
            return
        yield model.sparsify()
        if largest is not None and _separated(fit_problem, potential, results):
            return
