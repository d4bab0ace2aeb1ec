"""What `train` and `cv` do after their options are known: fit, score, write, report."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from majorant.cli.arguments import DataOptions, ModelOptions
from majorant.cli.models import Model
from majorant.cli.output import Output
from majorant.cli.reading import labels_of, matching, read_data
from majorant.cli.writing import check_output, default_model, write_model, write_report
from majorant.errors import MajorantError

if TYPE_CHECKING:
    from majorant.callbacks import Checkpoint
    from majorant.cli.models import Estimator
    from majorant.datasets import Data
    from majorant.estimators.path import Path as StrengthPath

# Where one fit takes no longer than QUICK seconds, a report shows a path of PICTURED models, to PICTURED_TOL.
PICTURED = 30
PICTURED_TOL = 1e-3
QUICK = 2.0
# From this share of a fit's time on, or of a second, it is told that compiling took it.
NOTICEABLE = 0.1


class Scales:
    """Features in units of their standard deviation, and the way back.

    Only scaled, not shifted: since the intercept is free, shifting would change nothing but that, and sparse
    data stay sparse.
    """

    def __init__(self, X: Any, *, wanted: bool) -> None:
        self.wanted, self._scaler = wanted, None
        if wanted:
            import numpy as np
            from sklearn.preprocessing import StandardScaler

            self._scaler = StandardScaler(with_mean=False).fit(X)
            if not np.all(np.isfinite(self._scaler.scale_)):
                worst = int(np.flatnonzero(~np.isfinite(self._scaler.scale_))[0])
                raise MajorantError(
                    f"the values of feature {worst + 1} are so large that they have no standard deviation: "
                    "rescale them first"
                )

    def scaled(self, X: Any) -> Any:
        """X in the units that the penalty is to see."""
        return X if self._scaler is None else self._scaler.transform(X)

    @property
    def deviations(self) -> Any:
        """What the features are divided by; None if they are not."""
        return None if self._scaler is None else self._scaler.scale_

    def unscale(self, estimator: Estimator) -> None:
        """Let a model that was trained on scaled features take the unscaled ones."""
        if self._scaler is None:
            return
        import scipy.sparse as sp

        sparse = sp.issparse(estimator.coef_)
        estimator.densify()
        estimator.coef_ = estimator.coef_ / self._scaler.scale_
        if sparse:
            estimator.sparsify()


@dataclass(frozen=True)
class Job:
    """Data to train on, data to test on, and where the model goes. What cannot be is said before the fit."""

    data: Data
    test: Data | None
    target: Path
    options: ModelOptions
    scales: Scales

    @classmethod
    def prepare(
        cls,
        source: str,
        target: Path | None,
        options: ModelOptions,
        reading: DataOptions,
        output: Output,
        *,
        standardize: bool,
    ) -> Job:
        """Check the outputs, then read the data."""
        target = default_model(source) if target is None else target
        sources = [source] if options.test is None else [source, options.test]
        check_output(target, *sources, force=options.force)
        if options.report is not None:
            check_output(options.report, *sources, target, force=options.force)
        data = read_data(source, reading, output)
        test = None
        if options.test is not None:
            test = read_data(options.test, reading, output, what="test_data")
            _check_labels(data, test)
        return cls(data, test, target, options, Scales(data.X, wanted=standardize))

    @property
    def labels(self) -> list[Any]:
        """The class labels of the data, each once."""
        return labels_of(self.data)

    def fit(self, estimator: Estimator, output: Output, saving: Checkpoint | None = None) -> bool:
        """Train; whether Ctrl-C ended it with a model to keep."""
        interrupted = fit(estimator, self.scales.scaled(self.data.X), self.data.y, output, saving)
        self.scales.unscale(estimator)
        return interrupted

    def finish(self, estimator: Estimator, output: Output, *, interrupted: bool) -> None:
        """Score, write the model and its report; after Ctrl-C the model alone."""
        model = Model.trained(estimator, self.data, self.scales.deviations)
        held_out = None if interrupted else self._score(model, output)
        write_model(
            model, self.data, self.target, output,
            standardized=self.scales.wanted, force=self.options.force,
        )  # fmt: skip
        if self.options.report is not None and not interrupted:
            self._report(model, held_out, output)
        output.finish(**model.summary)
        if interrupted:
            raise typer.Exit(130)

    def _score(self, model: Model, output: Output) -> Any:
        """Accuracy on the training and the test rows; X of the latter as the model takes it."""
        assert self.data.y is not None
        right = model.right(self.data.X, self.data.y)
        output.facts["train_accuracy"] = right / len(self.data.y)
        said = f"Accuracy {right / len(self.data.y):.2%} on the training rows"
        X_test = None
        if self.test is not None:
            assert self.test.y is not None
            X_test = matching(self.test, model, output)
            right = model.right(X_test, self.test.y)
            output.facts["test_accuracy"] = right / len(self.test.y)
            said += f", {right / len(self.test.y):.2%} on the test rows"
        output.say(said)
        return X_test

    def _report(self, model: Model, X_test: Any, output: Output) -> None:
        assert self.options.report is not None
        quick = output.facts["seconds"] - output.facts["compile_seconds"] < QUICK
        write_report(
            model, self.data.X, self.data.y, self.options.report, output, force=self.options.force,
            X_test=X_test, y_test=None if self.test is None else model.as_labels(self.test),
            path_result=pictured_path(model.estimator, self.data, self.scales) if quick else None,
        )  # fmt: skip


def _check_labels(data: Data, test: Data) -> None:
    known = set(map(str, labels_of(data)))
    strange = [label for label in labels_of(test) if str(label) not in known]
    if strange:
        raise MajorantError(f"{test.source} has the label {strange[0]}, which {data.source} does not have")


def fit(estimator: Estimator, X: Any, y: Any, output: Output, saving: Checkpoint | None = None) -> bool:
    """Train, with progress and warnings for people; whether Ctrl-C ended it with a model to keep."""
    from majorant import SparseSVC
    from majorant.callbacks import LiveProgress
    from majorant.rows.pass_hooks import between_blocks
    from majorant.status import Certificate

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
            estimator.fit(X, y, **options)
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
        f"{_kept(estimator) if interrupted else estimator.status_.value} "
        f"({certificate}, {estimator.n_iter_} iteration{plural}, {spent})"
    )
    if not len(estimator.support_) and not interrupted:
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


def _kept(estimator: Estimator) -> str:
    """What Ctrl-C has left."""
    if isinstance(estimator.history_, list):
        begun = sum(bool(len(history)) for history in estimator.history_)
        return f"Interrupted: {begun} of {len(estimator.history_)} classes were begun, the others are zero."
    return "Interrupted: the last iterate is kept."


def pictured_path(estimator: Estimator, data: Data, scales: Scales) -> StrengthPath | None:
    """Models of the same kind for other strengths, down to that of the model at least; for the report."""
    import numpy as np

    from majorant import lambda_max, sparse_svc_path

    if estimator.penalty == "none" or not estimator.lam_ > 0.0:
        return None
    shared = ("penalty", "delta", "eta", "solver", "fit_intercept", "class_weight", "multi_class", "max_iter")
    parameters = {name: getattr(estimator, name) for name in shared} | {"tol": PICTURED_TOL}
    X = scales.scaled(data.X)
    strongest = lambda_max(X, data.y, **parameters)
    if not (np.isfinite(strongest) and strongest > 0.0):
        return None  # a ridge has no strength that makes all coefficients zero
    strengths = np.geomspace(strongest, min(estimator.lam_, 1e-2 * strongest), PICTURED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = sparse_svc_path(X, data.y, lambdas=strengths, **parameters)
    for model in path.models:
        scales.unscale(model)
    return path
