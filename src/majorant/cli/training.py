"""What `train` and `cv` do after their options are known: fit, score, write, report."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from majorant.cli.arguments import DataOptions, ModelOptions, PreprocessingOptions
from majorant.cli.calibration import calibrate, check_counts
from majorant.cli.data import CommandData, open_data
from majorant.cli.models import Model
from majorant.cli.output import Output
from majorant.cli.scoring import Evaluation, show_metrics
from majorant.cli.writing import write_model, write_report
from majorant.errors import MajorantError

if TYPE_CHECKING:
    from majorant.callbacks import Checkpoint
    from majorant.cli.models import Estimator
    from majorant.estimators.path import Path as StrengthPath
    from majorant.rows.pass_hooks import Pass

# Where one fit takes no longer than QUICK seconds, a report shows a path of PICTURED models, to PICTURED_TOL.
PICTURED = 30
PICTURED_TOL = 1e-3
QUICK = 2.0
# From this share of a fit's time on, or of a second, it is told that compiling took it.
NOTICEABLE = 0.1


@dataclass(frozen=True)
class Job:
    """Data to train on, data to test on, and where the model goes. What cannot be is said before the fit."""

    data: CommandData
    test: CommandData | None
    target: Path
    options: ModelOptions

    @classmethod
    def prepare(
        cls,
        source: str,
        target: Path,
        options: ModelOptions,
        reading: DataOptions,
        preparing: PreprocessingOptions,
        output: Output,
        *,
        memory: str | None,
    ) -> Job:
        """Open the data; `target` is what `checked_outputs` has returned."""
        preprocessing = preparing.preprocessing(reading)
        data = open_data(source, reading, output, memory=memory, preprocessing=preprocessing)
        if options.calibrate is not None:
            check_counts(data)
        test = None
        if options.test is not None:
            columns = data.columns
            if columns is not None and columns.are_in(options.test, reading):
                reading = replace(reading, drop=[])
            test = open_data(options.test, reading, output, memory=memory, what="test_data", trained=columns)
            _check_labels(data, test)
        return cls(data, test, target, options)

    def fit(self, estimator: Estimator, output: Output, saving: Checkpoint | None = None) -> bool:
        """Train; whether Ctrl-C ended it with a model to keep."""
        with timed_passes(self.data, output):
            interrupted = fit(estimator, self.data, output, saving)
        if self.options.calibrate is not None and not interrupted:
            interrupted = not calibrate(estimator, self.data, self.options.calibrate, output)
        return interrupted

    def finish(self, estimator: Estimator, output: Output, *, interrupted: bool) -> None:
        """Write the model, then score it and write its report; after Ctrl-C the model alone.

        The model comes first, so that an error in what follows does not lose it.
        """
        model = Model.trained(estimator, self.data)
        write_model(model, self.data, self.target, output, force=self.options.force)
        if not interrupted:
            test = None if self.test is None else self.test.columns_of(model, output)
            self._score(model, test, output)
            if self.options.report is not None:
                self._report(model, test, output)
        output.finish(**model.summary)
        if interrupted:
            raise typer.Exit(130)

    def _score(self, model: Model, test: CommandData | None, output: Output) -> None:
        """The scores on the training and the test rows."""
        scored = {"training rows": Evaluation.of(model, self.data).metrics()}
        said = f"Accuracy {scored['training rows']['accuracy']:.2%} on the training rows"
        if test is not None:
            scored["test rows"] = Evaluation.of(model, test).metrics()
            said += f", {scored['test rows']['accuracy']:.2%} on the test rows"
        for name, metrics in zip(("train", "test"), scored.values(), strict=False):
            output.facts |= {f"{name}_accuracy": metrics["accuracy"], f"{name}_metrics": metrics}
        output.say(said)
        show_metrics(output, scored)

    def _report(self, model: Model, test: CommandData | None, output: Output) -> None:
        assert self.options.report is not None
        quick = output.facts["seconds"] - output.facts["compile_seconds"] < QUICK
        write_report(
            model, self.data, self.options.report, output, force=self.options.force, test=test,
            path_result=pictured_path(model.estimator, self.data) if quick else None,
        )  # fmt: skip


@dataclass
class PassTimes:
    """How long the passes over the rows took."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, state: Pass) -> None:
        """Notice when one is over."""
        if state.done == state.blocks:
            self.seconds.append(state.seconds)


@contextmanager
def timed_passes(data: CommandData, output: Output) -> Iterator[None]:
    """Count the passes over rows that are not in memory, and say in the end how long a pass took."""
    from majorant.rows.pass_hooks import between_blocks

    times = PassTimes()
    with between_blocks(times):
        yield
    if data.in_memory:
        return
    passes = len(times.seconds)
    output.facts |= {"passes": passes, "rows": data.n_rows}
    if passes:
        typical = output.facts["seconds_per_pass"] = sorted(times.seconds)[passes // 2]
        blocks = f"{data.blocks.n_blocks:,} block{'' if data.blocks.n_blocks == 1 else 's'}"
        output.say(f"{passes} passes over {blocks} of rows, {typical:.2g} s each")


def _check_labels(data: CommandData, test: CommandData) -> None:
    known = set(map(str, data.labels))
    strange = [label for label in test.labels if str(label) not in known]
    if strange:
        raise MajorantError(f"{test.source} has the label {strange[0]}, which {data.source} does not have")


def fit(estimator: Estimator, data: CommandData, output: Output, saving: Checkpoint | None = None) -> bool:
    """Train, with progress and warnings for people; whether Ctrl-C ended it with a model to keep."""
    from majorant import SparseSVC
    from majorant.callbacks import LiveProgress
    from majorant.estimators.advice import interruption
    from majorant.rows.pass_hooks import between_blocks
    from majorant.status import Certificate

    X, y, weight = data.training_rows
    live = LiveProgress() if output.options.talkative and isinstance(estimator, SparseSVC) else None
    if live:
        estimator.set_callbacks(live.open())
    start, interrupted = time.perf_counter(), False
    options = {} if saving is None else {"checkpoint": saving}
    with (
        output.relayed_warnings(),
        between_blocks(live.on_pass) if live else nullcontext(),
        compiling(X) as compiled,
    ):
        try:
            estimator.fit(X, y, weight, **options)
        except KeyboardInterrupt:
            if "coef_" not in vars(estimator):
                output.warn("there is no model yet to be written")
                raise
            interrupted = True
        finally:
            if live:
                live.close()
                estimator.set_callbacks()
    seconds = output.facts["seconds"] = time.perf_counter() - start
    output.facts["compile_seconds"] = compiled.seconds
    spent = f"{seconds:.2f} s"
    if compiled.seconds > NOTICEABLE * max(seconds, 1.0):
        spent += f", {compiled.seconds:.2f} s of it for compiling"
    certificate = Certificate(estimator.stationarity_, estimator.gap_)
    plural = "" if estimator.n_iter_ == 1 else "s"
    output.say(
        f"{interruption(estimator) or estimator.status_.value} "
        f"({certificate}, {estimator.n_iter_} iteration{plural}, {spent})"
    )
    if not len(estimator.support_) and not interrupted and estimator.n_features is None:
        output.say(f"No feature is used at lam {estimator.lam_:.4g}: a smaller one lets some in")
    elif isinstance(estimator, SparseSVC) and estimator.max_features is not None:
        output.say(f"At most {estimator.max_features} features: lam {estimator.lam_:.6g}")
    return interrupted


@dataclass
class Compiled:
    """How long numba was busy: the first time with compiling, later with loading what it has compiled."""

    seconds: float = 0.0


@contextmanager
def compiling(X: Any) -> Iterator[Compiled]:
    """Measure how much of a fit is compiling, which dense rows do without."""
    measured = Compiled()
    if not hasattr(X, "indptr") and "numba" not in sys.modules:
        yield measured  # to import it takes longer than many a fit
        return
    from numba.core import event

    timer: Any = event.TimingListener()  # type: ignore[no-untyped-call]
    with event.install_listener("numba:compiler_lock", timer):
        yield measured
    if timer.done:
        measured.seconds = float(timer.duration)


def pictured_path(estimator: Estimator, data: CommandData) -> StrengthPath | None:
    """Models of the same kind for other strengths, or numbers of features; for the report."""
    import numpy as np

    from majorant import lambda_max, sparse_svc_path

    by_size = estimator.n_features is not None
    if not by_size and (estimator.penalty == "none" or not estimator.lam_ > 0.0):
        return None
    shared = (
        "penalty", "delta", "eta", "refit", "standardize", "solver", "fit_intercept", "class_weight",
        "multi_class", "max_iter",
    )  # fmt: skip
    parameters = {name: getattr(estimator, name) for name in shared} | {"tol": PICTURED_TOL}
    if not by_size and estimator.penalty == "hyperbolic" and estimator.delta is None:
        # With the default δ this is ℓ1 up to the tolerance, and ℓ1 is faster from one strength to the next:
        # for 12,533 features and 181 rows, 30 models took 20 s of CPU time, and take 0.5 s.
        parameters["penalty"] = "l1"
    X, y, _ = data.training_rows
    if by_size:
        if not estimator.converged_ or len(estimator.support_) > PICTURED:
            return None
        most = min(PICTURED, X.shape[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if estimator.penalty == "l2":
                parameters["lam"] = estimator.lam_
            return sparse_svc_path(X, y, n_features=most, **parameters)
    strongest = lambda_max(X, y, **parameters)
    if not (np.isfinite(strongest) and strongest > 0.0):
        return None  # a ridge has no strength that makes all coefficients zero
    strengths = np.geomspace(strongest, min(estimator.lam_, 1e-2 * strongest), PICTURED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sparse_svc_path(X, y, lambdas=strengths, **parameters)
