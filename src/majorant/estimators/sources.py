"""From the blocks of a source to the rows of every problem: labels to signs, class weights to weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from majorant.errors import MajorantError
from majorant.estimators.splitter import stratified_folds
from majorant.estimators.validation import class_factors, encode_labels
from majorant.rows.block import Block
from majorant.rows.folds import Folds
from majorant.rows.memory import make_block
from majorant.rows.partitioned import BlockStore, PartitionedRows, compute_stats_at_zero
from majorant.rows.sources import RawBlock, Source, Tally, checked
from majorant.rows.stream import Reader, read_ahead
from majorant.status import Vector

if TYPE_CHECKING:
    from majorant.estimators.svc import SparseSVC


def stream_by_problem(
    estimator: SparseSVC, source: Source, y: Any, sample_weight: Any, cut: FoldSpec | None = None
) -> tuple[NDArray[Any], list[PartitionedRows]]:
    """The classes, by a scan of all labels, and the rows as every problem labels them.

    All problems read through one reader, so that a block that is kept is kept once.
    """
    if y is not None or sample_weight is not None:
        raise TypeError("A source has its own labels and weights: call fit(source), without y.")
    tallies = list(read_ahead(source.tally, range(source.n_blocks)))
    return rows_by_problem(
        estimator, source, tallies, cut, lambda prepare: Reader(source, prepare, source.memory)
    )


def rows_by_problem(
    estimator: SparseSVC,
    source: Any,
    tallies: Sequence[Tally],
    cut: FoldSpec | None,
    make_store: Callable[[BlockEncoder], BlockStore],
) -> tuple[NDArray[Any], list[PartitionedRows]]:
    """The classes, and the rows as every problem labels them, with their loss at zero."""
    classes, rows, weights = counted(tallies, source.name)
    factors = factors_by_class(estimator, classes, weights)
    folds = None if cut is None else cut.made(tallies, classes, factors)
    like = SimpleNamespace(name=source.name, n_features=source.n_features)  # which is sent with every block
    prepare = BlockEncoder(like, classes, factors, intercept=estimator.fit_intercept, folds=folds)
    remember_features(estimator, source)
    whole = PartitionedRows(make_store(prepare), int(rows.sum()), source.n_features)
    parts = whole.by_problem(len(classes))
    compute_stats_at_zero(parts)
    return classes, parts


def rows_by_block_and_class(tallies: Sequence[Tally], classes: NDArray[Any]) -> NDArray[np.int64]:
    """How many rows of each class there are in each block."""
    counts = np.zeros((len(tallies), len(classes)), dtype=np.int64)
    for i, tally in enumerate(tallies):
        counts[i, np.searchsorted(classes, tally.labels)] = tally.rows
    return counts


class FoldSpec:
    """Into how many folds to cut rows that are not in memory; filled in when their labels are counted.

    Parameters
    ----------
    number : int
        Of folds.
    seed : int
        Draws who is in which.
    """

    counts: NDArray[np.int64]
    """The rows of each class."""
    folds: Folds
    factors: Vector | None
    """What `class_weight` multiplies the weights of all rows by, class by class."""

    def __init__(self, number: int, seed: int) -> None:
        self.number, self.seed = number, seed

    def made(self, tallies: Sequence[Tally], classes: NDArray[Any], factors: Vector | None) -> Folds:
        """The folds, from the labels of all blocks."""
        counts = rows_by_block_and_class(tallies, classes)
        self.counts, self.factors = counts.sum(axis=0), factors
        self.folds = stratified_folds(self.number, self.seed, counts)
        return self.folds


def remember_features(estimator: SparseSVC, source: Any) -> None:
    """What scikit-learn's estimators know of the columns of X."""
    estimator.n_features_in_ = source.n_features
    if source.feature_names is not None:
        estimator.feature_names_in_ = np.array(source.feature_names, dtype=object)
    else:
        estimator.__dict__.pop("feature_names_in_", None)


def counted(tallies: Sequence[Tally], name: str) -> tuple[NDArray[Any], NDArray[np.int64], Vector]:
    """The classes, and the rows and the weight of each, over all blocks."""
    kinds = {"text" if tally.labels.dtype.kind in "OUS" else "numbers" for tally in tallies}
    if len(kinds) > 1:
        raise MajorantError(f"{name}: the labels are text in some blocks and numbers in others")
    labels = np.concatenate([tally.labels for tally in tallies])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there are many classes for so few rows
        classes, codes = encode_labels(labels)
    rows = np.bincount(codes, np.concatenate([tally.rows for tally in tallies]), len(classes))
    weights = np.bincount(codes, np.concatenate([tally.weights for tally in tallies]), len(classes))
    if not np.all(weights > 0.0):
        (label,) = classes[weights <= 0.0][:1].tolist()
        raise ValueError(
            f"This solver needs samples of {len(classes)} classes, but class {label!r} has no sample with a "
            "positive weight."
        )
    return classes, rows.astype(np.int64), weights.astype(np.float64)


def factors_by_class(estimator: SparseSVC, classes: NDArray[Any], weights: Vector) -> Vector | None:
    """What `class_weight` multiplies the weights of each class by, which weighs so much in all."""
    if estimator.class_weight is None:
        return None
    if isinstance(estimator.class_weight, str):  # "balanced": every class weighs the same in the end
        return np.asarray(weights.sum() / (len(classes) * weights))
    factors = class_factors(estimator.class_weight, classes, np.arange(len(classes)), weights)
    if np.any(factors <= 0.0):
        (label,) = classes[factors <= 0.0][:1].tolist()
        raise ValueError(
            f"This solver needs samples of {len(classes)} classes, but class {label!r} has no sample with a "
            "positive product of sample_weight and class_weight."
        )
    return factors


class OnDask:
    """Blocks that the workers of a Dask cluster load: the tasks that do, and what is known of the columns."""

    def __init__(self, raws: Sequence[Any], tallies: Sequence[Any], like: Any) -> None:
        self.raws, self.tallies = list(raws), list(tallies)
        self.name, self.n_features = str(like.name), int(like.n_features)
        self.dtype, self.feature_names = like.dtype, like.feature_names


def is_on_dask(X: Any) -> bool:
    """Whether X lives on a cluster, or would if there were one; asked without importing dask."""
    return isinstance(X, OnDask) or hasattr(X, "__dask_graph__")


class BlockEncoder:
    """Makes blocks of what was loaded: y is -1 or 1, or with several classes the number of a class."""

    def __init__(
        self,
        source: Any,
        classes: NDArray[Any],
        factors: Vector | None,
        *,
        intercept: bool,
        folds: Folds | None = None,
    ) -> None:
        self.source, self.classes, self.factors, self.intercept = source, classes, factors, intercept
        self.folds = folds
        self._known: set[int] = set()

    def only(self, i: int) -> BlockEncoder:
        """What makes block i, and no other: as small, however many blocks there are."""
        folds = None if self.folds is None else self.folds.only(i)
        return BlockEncoder(self.source, self.classes, self.factors, intercept=self.intercept, folds=folds)

    def __call__(self, i: int, raw: RawBlock) -> Block:
        known = i in self._known
        X, y, weight = checked(self.source, i, raw, known=known)
        assert y is not None
        s = np.ones(len(y)) if weight is None else weight
        signs: Vector
        if len(self.classes) == 2:
            codes: NDArray[Any] = (y == self.classes[1]).view(np.int8)
            signs = codes.astype(np.float64)
            signs *= 2.0
            signs -= 1.0
        else:
            codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
            signs = codes.astype(np.float64)
        if not known and not np.array_equal(self.classes[codes], y):
            raise MajorantError(
                f"{self.source.name}, block {i} has labels that it did not have in the first pass: its rows "
                "must stay the same"
            )
        if self.factors is not None:
            with np.errstate(over="ignore"):  # what overflows is refused, with advice, by check_scale
                s = s * self.factors[codes]
        if X is raw.X:
            self._known.add(i)
        block = make_block(X, signs, s, intercept=self.intercept)
        if self.folds is not None:
            block.fold = self.folds.of_block(i, codes)
        return block
