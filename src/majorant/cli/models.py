"""Fitted models as commands see them: what they are called, what they say, and of what."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

from majorant.cli.choices import refuse_missing
from majorant.cli.columns import TrainedColumns
from majorant.errors import MajorantError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from majorant.cli.data import CommandData
    from majorant.cli.output import Output
    from majorant.datasets import Preprocessing
    from majorant.estimators import SparseSVC, SparseSVCCV
    from majorant.estimators.calibration import Calibration
    from majorant.persistence import Provenance

    Estimator: TypeAlias = SparseSVC | SparseSVCCV


class Model:
    """A fitted estimator and the names of its features.

    The names are kept here until the model is written: scikit-learn would warn that the arrays which it is
    asked about have none, though `columns_of` has put their columns in order.

    Parameters
    ----------
    estimator : SparseSVC or SparseSVCCV
    origin : Provenance, optional
        Where it comes from, as far as its file says.
    """

    def __init__(self, estimator: Estimator, origin: Provenance | None = None) -> None:
        self.named, self.origin = estimator, origin
        self.deviations = _deviations(estimator, origin)
        self.estimator = copy(estimator)
        names = self.estimator.__dict__.pop("feature_names_in_", None)
        self.feature_names: tuple[str, ...] | None = None if names is None else tuple(map(str, names))

    @classmethod
    def trained(cls, estimator: Estimator, data: CommandData) -> Model:
        """A model that was trained on these data."""
        if data.feature_names is not None:
            import numpy as np

            estimator.feature_names_in_ = np.array(data.feature_names, dtype=object)
        if data.preprocessing is not None:
            estimator.preprocessing_ = data.preprocessing
        return cls(estimator)

    @classmethod
    def read(cls, path: Path, *sources: str | None) -> Model:
        """A model from a file: ours, LIBLINEAR's, or ONNX that we made; "-" is standard input.

        `sources` are the data that are read after the model.
        """
        if str(path) == "-" and "-" in sources:
            raise typer.BadParameter("model and data cannot both be read from standard input")
        refuse_missing(path)
        from majorant.persistence.store import load_described

        return cls(*load_described(path))

    @property
    def preprocessing(self) -> Preprocessing | None:
        """How the columns of a table become features, if the model remembers that."""
        return getattr(self.estimator, "preprocessing_", None)

    @property
    def told(self) -> dict[str, str]:
        """Where the model comes from and what it does with the columns of a table, as far as is known."""
        facts = {} if self.origin is None else self.origin.facts()
        return facts if self.preprocessing is None else facts | self.preprocessing.facts()

    @property
    def columns(self) -> TrainedColumns | None:
        """The columns that the model was trained with, if they have names."""
        if self.feature_names is None:
            return None
        origin = (
            (None, None) if self.origin is None else (self.origin.label_column, self.origin.unnamed_columns)
        )
        return TrainedColumns(self.feature_names, origin[0], self.preprocessing, origin[1])

    def narrowed(self) -> Model:
        """The model with the features alone that it uses: it predicts the same from their columns."""
        import numpy as np

        support = self.estimator.support_
        narrow = copy(self.named)
        narrow.coef_ = narrow.coef_[:, support]
        narrow.support_, narrow.n_features_in_ = np.arange(len(support)), len(support)
        narrow.feature_names_in_ = narrow.feature_names_in_[support]
        narrow.__dict__.pop("scale_", None)
        return Model(narrow, self.origin)

    @property
    def n_features(self) -> int:
        """How many features the model was trained with."""
        return int(self.estimator.n_features_in_)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the features are called: without names of their own x1, x2, …, as LIBSVM text counts them.

        Made once for all features, of which there may be a million, and not once for each that is in use.
        """
        if self.feature_names is None:
            return tuple(map(counted_name, range(self.n_features)))
        return self.feature_names

    def predict(self, X: Any) -> NDArray[Any]:
        """The labels of these rows."""
        return self.decide(self.scores(X))

    def decide(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The labels that follow from values of the decision function."""
        return self.estimator._decide(scores)

    def scores(self, X: Any) -> NDArray[Any]:
        """The values of the decision function."""
        if not self.n_features:  # narrowed, and without a feature
            return self.estimator._scores(X)
        return self.estimator.decision_function(X)

    def right(self, X: Any, y: NDArray[Any]) -> int:
        """How many of these rows are predicted as they are labelled."""
        import numpy as np

        return int(np.count_nonzero(same(self.predict(X), y)))

    def as_labels(self, y: NDArray[Any] | None, source: str) -> NDArray[Any]:
        """The labels of the data in the type that the model has them: a text 1 is the number 1."""
        import numpy as np

        classes = self.estimator.classes_
        by_text = {str(label): label for label in classes.tolist()}
        try:
            found = [by_text[str(label)] for label in np.asarray(y).tolist()]
        except KeyError as error:
            raise MajorantError(
                f"{source} has the label {error.args[0]}, which the model does not know"
            ) from None
        return np.array(found, dtype=classes.dtype)

    def check_labels(self, data: CommandData, output: Output) -> None:
        """Warn where no row could be predicted right."""
        known = set(map(str, self.estimator.classes_.tolist()))
        asked = list(map(str, data.labels))
        if not known.intersection(asked):
            output.warn(
                f"no label of {data.source} ({', '.join(asked[:3])}, …) is a class of the model "
                f"({', '.join(sorted(known)[:3])}, …)"
            )

    def trained_on(self, data: CommandData) -> bool | None:
        """Whether the model was trained on these data, as far as its file tells; None if it does not."""
        if self.origin is None:
            return None
        if self.origin.n_rows is not None and self.origin.n_rows != data.n_rows:
            return False
        if self.origin.sha256 is None or data.sha256 is None:
            return None
        return self.origin.sha256 == data.sha256

    @property
    def calibration(self) -> Calibration | None:
        """How probabilities follow from decision values, if the model is calibrated."""
        return getattr(self.estimator, "calibration_", None)

    def warn_if_interrupted(self, output: Output) -> None:
        """Warn of a model whose training ended with Ctrl-C."""
        from majorant.estimators.advice import interruption

        if text := interruption(self.estimator):
            output.warn(text)

    @property
    def selected(self) -> str:
        """How many features the model uses, in words."""
        return f"{len(self.estimator.support_):,} of {self.n_features:,} features"

    @property
    def summary(self) -> dict[str, Any]:
        """The facts for programs, as far as they are known (not how an imported model was trained)."""
        from majorant.estimators.fitted import FITTED

        names = self.names
        facts = {
            "penalty": penalty_name(self.estimator),
            "lam": self.estimator.lam_,
            "classes": self.estimator.classes_,
            "n_features": self.n_features,
            "selected": [names[j] for j in self.estimator.support_.tolist()],
            "intercept": self.estimator.intercept_,
        }
        known = vars(self.estimator)
        told = [name for name, attribute in FITTED.items() if attribute.summary and name in known]
        facts |= {name.removesuffix("_"): known[name] for name in told}
        return facts | ({"status": known["status_"].value} if "status_" in known else {})


def penalty_name(estimator: Any) -> str:
    """The penalty of a model: with a number of features, the ridge that shrinks them."""
    if estimator.n_features is not None and estimator.penalty == "hyperbolic":
        return "l2"
    return str(estimator.penalty)


def counted_name(j: int) -> str:
    """What a feature without a name is called."""
    return f"x{j + 1}"


def _deviations(estimator: Estimator, origin: Provenance | None) -> NDArray[Any] | None:
    """The standard deviations of the features, if the model was standardised.

    Files of version 1 have those of the features in use; the others are 0 here.
    """
    scale: NDArray[Any] | None = getattr(estimator, "scale_", None)
    if scale is not None:
        return scale
    if origin is None or origin.deviations is None or len(origin.deviations) != len(estimator.support_):
        return None
    import numpy as np

    deviations = np.zeros(int(estimator.n_features_in_))
    deviations[estimator.support_] = origin.deviations
    return deviations


def same(predicted: NDArray[Any], true: NDArray[Any]) -> NDArray[Any]:
    """Where the labels agree; a text 1 is the number 1, since files do not always say which is meant."""
    import numpy as np

    if predicted.dtype.kind in "OUST" or true.dtype.kind in "OUST":
        predicted, true = predicted.astype(str), true.astype(str)
    return np.asarray(predicted == true)
