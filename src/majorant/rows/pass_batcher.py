"""Several problems on the same rows, with one pass over them for the questions of all.

Classes that are trained against the rest ask different questions of the same X. Where a pass is expensive,
each problem runs in a thread of its own. A thread waits with its question until all other threads have one
too, or until no question has come for `PATIENCE` seconds. (A thread may be busy, or wait for another one:
before Python 3.12 a `cached_property` holds a lock for all objects of its class.) Then one pass answers all
questions, block by block. The thread that started the problems runs the pass, so Ctrl-C and callbacks are
handled in that thread. Each problem adds up its answers in block order: sharing a pass changes no result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from majorant.interrupts import check

if TYPE_CHECKING:
    from majorant.rows.block import Block

__all__ = ["Convoy", "Together"]

Question = Callable[["Block"], Any]

_END = object()

PATIENCE = 0.05
"""Seconds without a new question after which a pass begins without the missing ones."""


class Together:
    """Several questions as one, which can be sent to where the blocks are."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions

    def __call__(self, block: Block) -> list[Any]:
        return [question(block) for question in self.questions]


class Convoy:
    """Collects questions, and answers them together.

    Parameters
    ----------
    ask : function
        One pass: a question ↦ the answers of all blocks, in their order.
    size : int
        How many there are to wait for.
    interrupted : function
        Whether Ctrl-C was pressed. What was asked before is not answered then; what is asked afterwards
        measures what is to be kept, and is.
    """

    def __init__(
        self,
        ask: Callable[[Question], Iterable[Any]],
        size: int,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ask, self._size, self._interrupted = ask, size, interrupted
        self._waiting: list[_Traveller] = []
        self._changed = threading.Condition()
        self.broken: BaseException | None = None
        """The error that has ended it, if one has."""
        self.after_interrupt = False
        """Whether the questions that are being answered were asked after Ctrl-C."""

    def ask(self, question: Question) -> Generator[Any, None, None]:
        """The answers of all blocks, when the others have a question too; for the threads of the problems."""
        check()
        traveller = _Traveller(question, SimpleQueue(), self._interrupted())
        seat = traveller.seat
        with self._changed:
            if self.broken is not None:
                raise self.broken
            self._waiting.append(traveller)
            self._changed.notify_all()
        while (answer := seat.get()) is not _END:
            if isinstance(answer, _Failure):
                raise answer.error
            yield answer

    def join(self, newcomers: int) -> None:
        """So many more to wait for."""
        with self._changed:
            self._size += newcomers

    def leave(self) -> None:
        """One less to wait for: its problem is solved."""
        with self._changed:
            self._size -= 1
            self._changed.notify_all()

    def break_up(self, error: BaseException) -> None:
        """Raise an error, if it is the first, wherever a question waits for its answer or will be asked."""
        with self._changed:
            if self.broken is None:
                self.broken = error
            for traveller in self._waiting:
                traveller.seat.put(_Failure(self.broken))
            self._waiting = []
            self._changed.notify_all()

    def drive(self) -> None:
        """Make passes until all have left. What goes wrong in one is raised where the questions came from."""
        try:
            while True:
                with self._changed:
                    while len(self._waiting) < self._size:
                        in_time = self._changed.wait(PATIENCE if self._waiting else None)
                        if not in_time and self._waiting:
                            break
                    if not self._size:
                        return
                    travellers, self._waiting = self._waiting, []
                self.after_interrupt = self._interrupted()
                self._go([each for each in travellers if not self._turned_away(each)])
        except BaseException as error:  # fail the questions that still wait for an answer
            self.break_up(error)
            raise

    def _turned_away(self, traveller: _Traveller) -> bool:
        late = self.after_interrupt and not traveller.after_interrupt
        if late:
            traveller.seat.put(_Failure(KeyboardInterrupt()))
        return late

    def _go(self, travellers: list[_Traveller]) -> None:
        if not travellers:
            return
        # What several ask alike, such as the matrix of all pairs of features, is answered once.
        questions = list(dict.fromkeys(traveller.question for traveller in travellers))
        end: Any = _END
        try:
            for answers in self._ask(Together(questions)):
                found = dict(zip(questions, answers, strict=True))
                for traveller in travellers:
                    traveller.seat.put(found[traveller.question])
        except BaseException as error:
            end = _Failure(error)
        for traveller in travellers:
            traveller.seat.put(end)


class _Traveller(NamedTuple):
    """Somebody who waits for an answer."""

    question: Question
    seat: SimpleQueue[Any]
    after_interrupt: bool
    """Whether the question was asked after Ctrl-C."""


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
