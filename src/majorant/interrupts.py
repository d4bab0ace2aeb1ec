"""Ctrl-C: a flag that long computations check between two steps.

An exception raised by a signal handler becomes a SystemError inside a compiled function, and loses the
iterate inside an iteration. So during a fit the first Ctrl-C only sets a flag. Long computations call
`check` between two steps; `check` raises `KeyboardInterrupt` if the condition of an enclosing `ending_on` is
true.

The command line imports this module first, so its own imports are few.
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

_CONDITIONS: ContextVar[tuple[Callable[[], bool], ...]] = ContextVar("_CONDITIONS", default=())

_was_pressed = False


@contextmanager
def ending_on(condition: Callable[[], bool]) -> Iterator[None]:
    """Let `check` raise as soon as `condition()` is true, in this thread and in threads with its context."""
    token = _CONDITIONS.set((*_CONDITIONS.get(), condition))
    try:
        yield
    finally:
        _CONDITIONS.reset(token)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Disable `check` inside: the computation evaluates the iterate that is kept."""
    token = _CONDITIONS.set(())
    try:
        yield
    finally:
        _CONDITIONS.reset(token)


def check() -> None:
    """Raise `KeyboardInterrupt` if the condition of an enclosing `ending_on` is true. Cheap otherwise."""
    for condition in _CONDITIONS.get():
        if condition():
            raise KeyboardInterrupt


class CtrlC:
    """Turns the first Ctrl-C into a flag; the second Ctrl-C raises.

    Nested contexts share the flag. The signal handler is not changed if the caller has set one, or outside
    the main thread.
    """

    _outermost: CtrlC | None = None

    def __init__(self) -> None:
        self._presses = 0
        self._shared = self
        self._before: Callable[[int, FrameType | None], object] | None = None

    @property
    def pressed(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._shared._presses > 0

    @property
    def pressed_again(self) -> bool:
        """Whether Ctrl-C was pressed twice: then nothing is kept."""
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
    """The handler of a command: an error after this handler has raised is a consequence of Ctrl-C."""
    global _was_pressed
    _was_pressed = True
    signal.default_int_handler(number, frame)


def was_pressed() -> bool:
    """Whether one of the handlers here was called since `forget`."""
    return _was_pressed


def forget() -> None:
    """Reset `was_pressed` for another command."""
    global _was_pressed
    _was_pressed = False
