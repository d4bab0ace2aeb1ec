"""`--calibrate`: probabilities of a trained model, fitted to decision values of held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from majorant.errors import MajorantError

if TYPE_CHECKING:
    from majorant.cli.data import CommandData
    from majorant.cli.models import Estimator
    from majorant.cli.output import Output

FOLDS = 5
"""As scikit-learn's `CalibratedClassifierCV`."""


def check_counts(data: CommandData) -> None:
    """Refuse data of which some class has one row only: without this row, a fold has no such class."""
    single = [label for label, count in data.counts.items() if count < 2]
    if single:
        raise typer.BadParameter(
            f"needs two rows of each class, and {data.source} has one of class {single[0]}",
            param_hint="--calibrate",
        )


def calibrate(estimator: Estimator, data: CommandData, method: str, output: Output) -> bool:
    """Give a fitted estimator `calibration_`; False if Ctrl-C has ended that."""
    import numpy as np

    from majorant.cli.cross_validation import predict_held_out
    from majorant.estimators.calibration import Calibration

    folds = min(FOLDS, max(data.counts.values(), default=0))
    if folds < 2:
        raise MajorantError(f"{data.source} has too few rows for --calibrate")
    classes = np.array(data.labels)
    try:
        with output.relayed_warnings(), output.waiting(f"calibration, {folds} folds"):
            held_out = predict_held_out(_with_fixed_strength(estimator), data, folds)
    except KeyboardInterrupt:
        output.warn("the calibration was interrupted: the model has no probabilities")
        return False
    estimator.calibration_ = Calibration.fit(method, folds, held_out.decision, held_out.y, classes)
    output.facts["calibration"] = {"method": method, "folds": folds}
    output.say(f"Probabilities by {method}, from the held-out rows of {folds} folds")
    return True


def _with_fixed_strength(estimator: Estimator) -> Any:
    """The estimator to clone for each fold: this `SparseSVC`, or one with the λ that a CV has chosen."""
    from majorant import SparseSVC, SparseSVCCV
    from majorant.estimators.parameters import declared

    if not isinstance(estimator, SparseSVCCV):
        return estimator
    shared = declared(SparseSVC).keys() & declared(SparseSVCCV).keys()
    parameters = {name: getattr(estimator, name) for name in shared} | {"verbose": 0, "max_features": None}
    if estimator.n_features is not None:
        return SparseSVC(**(parameters | {"n_features": estimator.n_features_}))
    return SparseSVC(**parameters, lam=estimator.lam_)
