"""The command line: one file a command, and each imports what it needs only when it runs.

Exit codes: 0, done; 1, an error in the data, a file or the fit, said in one sentence on stderr; 2, a wrong
word on the command line; 130, Ctrl-C. With MAJORANT_DEBUG set, errors come with their traceback.

This file is where a process enters, and imports next to nothing: from here on Ctrl-C has an answer, also
while all the rest is being imported (`app.py`).
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from majorant import interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
# Seconds after which an interrupt that Python has lost comes again.
AGAIN = 0.05


def main() -> None:
    """Run the command that the process was called with."""
    try:
        try:
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, interrupts.raise_and_remember)
                sys.unraisablehook = _bring_back
            code = run(sys.argv[1:])
        finally:
            # What was to be done is done: Ctrl-C while Python tidies up must not make a failure of it.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # where `run` had just begun or ended
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = _interrupted()
    raise SystemExit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command; the exit code. What goes wrong is one sentence on stderr, without a traceback."""
    interrupts.forget()
    try:
        from majorant.cli.app import execute

        return execute(arguments)
    except KeyboardInterrupt:
        return _interrupted()
    except Exception:
        # Not all that is interrupted says so: imports and compiled functions may fail in other ways.
        if interrupts.was_pressed() and not os.environ.get("MAJORANT_DEBUG"):
            return _interrupted()
        raise


def _interrupted() -> int:
    if sys.stderr is not None:
        print("Interrupted.", file=sys.stderr, flush=True)
    return INTERRUPTED


def _bring_back(lost: sys.UnraisableHookArgs) -> None:
    """An interrupt that came where nothing can be raised (Python's imports have such places) comes again."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    import _thread
    import threading

    # A little later: at once would be in here.
    timer = threading.Timer(AGAIN, _thread.interrupt_main)
    timer.daemon = True
    timer.start()
