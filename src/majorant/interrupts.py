"""Ctrl-C: a flag that is looked at where work can be left off.

An exception out of the handler in the middle of a compiled function becomes a SystemError, and in the middle
of an iteration leaves nothing to keep. So while a fit is going on the first Ctrl-C only sets a flag. Long
work calls `check` between two steps: it raises `KeyboardInterrupt` there, if somebody further up
has said by `ending_on` that the work may be left off, and wants it to be.

The command line imports this before anything else: it imports little itself.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["CtrlC", "check", "ending_on", "forget", "raise_and_remember", "undisturbed", "was_pressed"]

_WANTED: ContextVar[tuple[Callable[[], bool], ...]] = ContextVar("_WANTED", default=())

_was_pressed = False


@contextmanager
def ending_on(wanted: Callable[[], bool]) -> Iterator[None]:
    """Let `check` raise, in this thread and in those that get its context, from when this is true."""
    token = _WANTED.set((*_WANTED.get(), wanted))
    try:
        yield
    finally:
        _WANTED.reset(token)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let nothing here be left off: it measures what is to be kept."""
    token = _WANTED.set(())
    try:
        yield
    finally:
        _WANTED.reset(token)


def check() -> None:
    """Leave off here, by a `KeyboardInterrupt`, if that is wanted. Costs next to nothing if it is not."""
    for wanted in _WANTED.get():
        if wanted():
            raise KeyboardInterrupt


class CtrlC:
    """Turns the first Ctrl-C into a flag; the second one raises.

    One inside of another shares its flag. A handler of the caller's own, or another thread than the main one,
    is left alone.
    """

    _outermost: CtrlC | None = None

    def __init__(self) -> None:
        self._presses = 0
        self._shared = self
        self._before: Callable[[int, FrameType | None], object] | None = None

    @property
    def pressed(self) -> bool:
        """Whether it was."""
        return self._shared._presses > 0

    @property
    def pressed_again(self) -> bool:
        """Whether it was pressed twice: then even what could be kept is not waited for."""
        return self._shared._presses > 1

    def __enter__(self) -> CtrlC:
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if CtrlC._outermost is not None and handler == CtrlC._outermost._press:
                self._shared = CtrlC._outermost
            elif handler is signal.default_int_handler or handler is raise_and_remember:
                self._before, CtrlC._outermost = handler, self
                signal.signal(signal.SIGINT, self._press)
        return self

    def _press(self, number: int, frame: FrameType | None) -> None:
        global _was_pressed
        _was_pressed = True
        self._presses += 1
        if self._presses > 1:
            signal.default_int_handler(number, frame)

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = CtrlC._outermost = None


def raise_and_remember(number: int, frame: FrameType | None) -> None:
    """The handler of a command: what goes wrong after it has raised is Ctrl-C's doing."""
    global _was_pressed
    _was_pressed = True
    signal.default_int_handler(number, frame)


def was_pressed() -> bool:
    """Whether one of the handlers here was called since `forget`."""
    return _was_pressed


def forget() -> None:
    """Another command begins."""
    global _was_pressed
    _was_pressed = False
