"""A fit on the command line: with progress, warnings and Ctrl-C for people."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from majorant.cli.fitting import Scales
from majorant.cli.output import Output
from majorant.cli.reading import keep_names

if TYPE_CHECKING:
    from majorant.callbacks import Checkpoint
    from majorant.datasets import Data


def fit(estimator: Any, data: Data, scales: Scales, output: Output, saving: Checkpoint | None = None) -> bool:
    """Train, with progress and warnings for people; whether Ctrl-C ended it with a model to keep."""
    X = scales.scaled(data.X)
    options = {} if saving is None else {"checkpoint": saving}

    def finish() -> None:
        scales.unscale(estimator)
        keep_names(estimator, data)

    return run(estimator, lambda: estimator.fit(X, data.y, **options), finish, output)


def run(estimator: Any, task: Callable[[], Any], finish: Callable[[], None], output: Output) -> bool:
    """Fit an estimator, and say how that went; whether Ctrl-C ended it."""
    from majorant.callbacks import LiveProgress
    from majorant.rows.between import between_blocks

    live = LiveProgress() if output.options.talkative else None
    if live and hasattr(estimator, "set_callbacks"):
        estimator.set_callbacks(live.open())
    start, interrupted = time.perf_counter(), False
    watch = between_blocks(live.on_pass) if live else nullcontext()
    with watch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            task()
        except KeyboardInterrupt:
            if not hasattr(estimator, "coef_"):
                raise
            interrupted = True
        finally:
            if live:
                live.close()
    finish()
    seconds = output.facts["seconds"] = time.perf_counter() - start
    output.say(
        f"{'Interrupted: the last iterate is kept.' if interrupted else estimator.status_.value} "
        f"({_certainty(estimator)}, {estimator.n_iter_} iterations, {seconds:.2f} s)"
    )
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            output.warn(str(warning.message))
    return interrupted


def _certainty(estimator: Any) -> str:
    from majorant.status import Certificate

    return str(Certificate(estimator.stationarity_, estimator.gap_))
