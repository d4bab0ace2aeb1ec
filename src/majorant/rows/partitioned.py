"""Rows that live elsewhere, on a disk or on a cluster, and are seen through a view.

A place puts a question to all of its blocks, at the price of a pass over a disk, or of a round trip to a
cluster. Rows are a view of a place: a function of a block, such as "this class against the rest", "without
the rows of that fold", "some columns only". What is asked of several views of one place is asked at once:
`ask_each` takes a list of questions, a `Convoy` collects those of problems that are solved in threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from threading import Lock
from typing import Any, Self, TypeAlias
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from majorant.rows.block import Block
from majorant.rows.convoy import Convoy, Together
from majorant.rows.memory import joined
from majorant.rows.protocol import Answer, Audit, Every, Rows, Some, State, totals
from majorant.rows.sources import DEFAULT_MEMORY
from majorant.status import Matrix, Vector

__all__ = ["Place", "View", "ViewedRows", "against_the_rest", "columns_of", "survey_together"]

View: TypeAlias = Callable[[Block], Block]

# The part of the memory that a solver's copies of rows may take.
COPIES = 1 / 16

# A matrix that is kept for all classes and strengths takes no more than this share of the memory.
SHARE = 4


class Place(ABC):
    """Where blocks are, all of which are asked together."""

    memory: int
    """The bytes that may be kept here."""

    def __init__(self) -> None:
        self.convoy: Convoy | None = None
        self.grams: dict[View | None, Matrix] = {}
        self._copied: tuple[Any, list[Block]] | None = None
        self._copying = Lock()

    @property
    @abstractmethod
    def n_blocks(self) -> int:
        """How many blocks there are."""

    @abstractmethod
    def one_pass(self, question: Callable[[Block], Answer]) -> Iterable[Answer]:
        """The answers of all blocks, in their order."""

    @abstractmethod
    def carry(self, state: State, through: Callable[[State, Block], State], order: Sequence[int]) -> State:
        """Take a state through blocks, one after the other."""

    def ask(self, question: Callable[[Block], Answer]) -> Iterable[Answer]:
        """The answers of all blocks, in their order: one pass, together with others if there is a convoy."""
        return self.one_pass(question) if self.convoy is None else self.convoy.ask(question)

    def sampled(self, sample: Every | Some) -> list[Block]:
        """Some rows, in one block, since a solver has a matrix for each: one pass.

        In a convoy all get the very same.
        """
        blocks = list(self.ask(sample))
        with self._copying:
            if self._copied is None or self._copied[0]() is not blocks[0]:
                self._copied = ref(blocks[0]), joined(blocks)
            return self._copied[1]


class ViewedRows(Rows):
    """The rows of a place, or a view of them.

    Parameters
    ----------
    place : Place
    n_samples, n_features : int
        Of the view.
    view : function, optional
        Makes a block of one of the place's.
    weighed : function, optional
        The part of the view that changes weights, if there is one: what depends on X and on the weights
        alone is the same for all views that have this in common.
    """

    def __init__(
        self,
        place: Place,
        n_samples: int,
        n_features: int,
        view: View | None = None,
        *,
        weighed: View | None = None,
    ) -> None:
        self.place, self.n_samples, self.n_features = place, n_samples, n_features
        self._view, self._weighed = view, weighed
        self._all_columns = True

    def ask(self, question: Callable[[Block], Answer]) -> Iterable[Answer]:
        return self.place.ask(_seen(self._view, question))

    def ask_each(
        self, parts: Sequence[Rows], questions: Sequence[Callable[[Block], Any]]
    ) -> Iterable[Sequence[Any]]:
        views = [part._view for part in parts if isinstance(part, ViewedRows) and part.place is self.place]
        if len(views) < len(parts):
            return super().ask_each(parts, questions)
        return self.place.ask(Together(list(map(_seen, views, questions))))

    def thinned(self, parts: Sequence[Rows], sample: Every | Some) -> list[list[Block]]:
        views = [part._view for part in parts if isinstance(part, ViewedRows) and part.place is self.place]
        if len(views) < len(parts):
            return super().thinned(parts, sample)
        blocks = self.place.sampled(sample)
        return [[block if view is None else view(block) for block in blocks] for view in views]

    @property
    def n_parts(self) -> int:
        return self.place.n_blocks

    @property
    def room(self) -> int:
        # Not more with more memory: it would change the last digits of what a fit finds.
        return int(COPIES * min(self.place.memory, DEFAULT_MEMORY))

    def carry(self, state: State, through: Callable[[State, Block], State], order: Sequence[int]) -> State:
        seen = through if self._view is None else partial(_carried, self._view, through)
        return self.place.carry(state, seen, order)

    def gram(self) -> Matrix:
        # It does not depend on the labels, so one pass serves all classes, and every strength of a path.
        if not self._all_columns:
            return super().gram()
        grams = self.place.grams
        if self._weighed not in grams:
            gram: Matrix = reduce(add, self.place.ask(_seen(self._weighed, _gram)))
            if SHARE * (len(grams) + 1) * gram.nbytes > self.place.memory:
                return gram
            gram.flags.writeable = False
            grams[self._weighed] = gram
        return grams[self._weighed]

    def columns(self, chosen: NDArray[np.intp]) -> Self:
        """The same rows with some of the features only, chosen anew in every pass."""
        some = type(self)(self.place, self.n_samples, len(chosen), partial(columns_of, self._view, chosen))
        some._all_columns = False
        return some

    def weighed(self, view: View, n_samples: int) -> Self:
        """All rows of this place with other weights, of which `n_samples` are not zero."""
        return type(self)(self.place, n_samples, self.n_features, view, weighed=view)

    def against_the_rest(self, code: int) -> Self:
        """The same rows, where y numbers their classes: this one is 1, all others are -1."""
        view = partial(against_the_rest, self._weighed, code)
        return type(self)(self.place, self.n_samples, self.n_features, view, weighed=self._weighed)


@dataclass(frozen=True)
class Viewed:
    """A question to what a view makes of a block; equal if both are, so that it is answered once."""

    view: View
    question: Callable[[Block], Any]

    def __call__(self, block: Block) -> Any:
        return self.question(self.view(block))


def _seen(view: View | None, question: Callable[[Block], Any]) -> Callable[[Block], Any]:
    return question if view is None else Viewed(view, question)


def survey_together(parts: Sequence[Rows]) -> None:
    """The audit at θ = 0 of several views of the same rows, in one pass."""
    theta = np.zeros(parts[0].n_features + 1)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by Objective.check_scale
        surveys = totals(parts, [partial(_survey, theta)] * len(parts))
    for part, survey in zip(parts, surveys, strict=True):
        part.__dict__["survey"] = survey  # where the cached property looks for it


def _survey(theta: Vector, block: Block) -> Audit:
    return block.audit(theta, lengths=True)


def _gram(block: Block) -> Matrix:
    return block.gram()


def _carried(view: View, through: Callable[[Any, Block], Any], state: Any, block: Block) -> Any:
    return through(state, view(block))


def columns_of(view: View | None, chosen: NDArray[np.intp], block: Block) -> Block:
    """What a view makes of a block, with some of its columns."""
    return (block if view is None else view(block)).columns(chosen)


def against_the_rest(view: View | None, code: int, block: Block) -> Block:
    """What a view makes of a block whose y numbers classes: this one is 1, all others are -1."""
    y: Vector = np.where(block.y == code, 1.0, -1.0)
    return block.relabelled(y, (block if view is None else view(block)).s)
