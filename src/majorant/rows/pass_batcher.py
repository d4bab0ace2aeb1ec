"""One pass over the rows for the questions of several problems.

Classes that are trained against the rest ask different questions of the same X. Where a pass is expensive,
each problem runs in a thread of its own. A question waits until all threads have asked one, or until no
question has come for `PATIENCE` seconds. (A thread may be busy, or wait for another one: before Python 3.12 a
`cached_property` holds a lock for all objects of its class.) Then one pass answers all questions, block by
block. The thread that started the problems runs the pass, so Ctrl-C and callbacks are handled in that thread.
Each problem adds up its answers in block order: sharing a pass changes no result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple

from majorant.interrupts import check
from majorant.rows.block import Block
from majorant.rows.pass_hooks import between_blocks
from majorant.rows.threads import in_context

Question = Callable[[Block], Any]

_END = object()

PATIENCE = 0.05
"""Seconds without a new question after which a pass begins, although some threads have not asked."""


@dataclass(frozen=True, eq=False)
class AskAll:
    """Several questions as one question, which can be pickled and sent to a worker."""

    questions: Sequence[Question]

    def __call__(self, block: Block) -> list[Any]:
        return [question(block) for question in self.questions]


class _Failure(NamedTuple):
    error: BaseException


class _Request(NamedTuple):
    question: Question
    replies: SimpleQueue[Any]
    """The answers of the blocks, then `_END` or a `_Failure`."""
    needed: Callable[[], bool]
    """Whether the thread still needs the answer. After Ctrl-C, only threads that certify their result do."""


class PassBatcher:
    """Collects the questions of several threads, and answers them in one pass.

    `one_pass` maps a question over all blocks, and yields the answers in block order.
    """

    def __init__(self, one_pass: Callable[[Question], Iterable[Any]]) -> None:
        self._one_pass, self._size = one_pass, 0
        self._waiting: list[_Request] = []
        self._changed = threading.Condition()
        self.error: BaseException | None = None
        """The first error in one of the threads. It ends the other threads at their next question."""

    def map_blocks(self, question: Question) -> Generator[Any, None, None]:
        """The answers of all blocks, in block order, from a pass that the other threads' questions share.

        Waits until every other thread has asked a question, or for `PATIENCE` seconds without a new one. The
        first error in any of the threads is raised in all of them.
        """
        check()
        request = _Request(question, SimpleQueue(), in_context(_is_not_interrupted))
        with self._changed:
            if self.error is not None:
                raise self.error
            self._waiting.append(request)
            self._changed.notify_all()
        while (answer := request.replies.get()) is not _END:
            if isinstance(answer, _Failure):
                raise answer.error
            yield answer

    def resize(self, change: int) -> None:
        """Change the number of threads whose questions a pass waits for."""
        with self._changed:
            self._size += change
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Raise an error in all threads, where they wait for an answer or ask the next question."""
        with self._changed:
            if self.error is None:
                self.error = error
            for request in self._waiting:
                request.replies.put(_Failure(self.error))
            self._waiting = []
            self._changed.notify_all()

    def run(self) -> None:
        """Make passes until all threads have ended. An error in a pass is raised in the waiting threads."""
        try:
            while requests := self._wait_for_requests():
                self._answer(requests)
        except BaseException as error:  # fail the questions that still wait for an answer
            self.fail(error)
            raise

    def _wait_for_requests(self) -> list[_Request]:
        """The questions for the next pass; an empty list if all threads have ended."""
        with self._changed:
            while len(self._waiting) < self._size:
                in_time = self._changed.wait(PATIENCE if self._waiting else None)
                if not in_time and self._waiting:
                    break
            requests, self._waiting = self._waiting, []
            return requests

    def _answer(self, requests: list[_Request]) -> None:
        # Equal questions, such as that for the Gram matrix, are answered once.
        questions = list(dict.fromkeys(request.question for request in requests))
        end: Any = _END
        try:
            self._check(requests)
            with between_blocks(lambda _: self._check(requests)):
                for answers in self._one_pass(AskAll(questions)):
                    found = dict(zip(questions, answers, strict=True))
                    for request in requests:
                        request.replies.put(found[request.question])
        except BaseException as error:
            end = _Failure(error)
        for request in requests:
            request.replies.put(end)

    def _check(self, requests: list[_Request]) -> None:
        """End the pass after an error in a thread, or after Ctrl-C if no thread needs the answers."""
        if self.error is not None:
            raise self.error
        if not any(request.needed() for request in requests):
            raise KeyboardInterrupt


def _is_not_interrupted() -> bool:
    try:
        check()
    except KeyboardInterrupt:
        return False
    return True
