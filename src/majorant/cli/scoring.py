"""Scores of predictions: those that every command shows, and those that `--scoring` names.

The scores are scikit-learn's, of the true classes and decision values of all rows, which are collected block
by block: one number for each row, or one for each row and class.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.help import MODEL
from majorant.text import did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from majorant.cli.data import CommandData
    from majorant.cli.models import Model
    from majorant.cli.output import Output

BY_AVERAGE = tuple(
    name + average
    for name in ("f1", "jaccard", "precision", "recall")
    for average in ("", "_macro", "_micro", "_weighted")
)
SCORES = (
    "accuracy", "average_precision", "balanced_accuracy", *BY_AVERAGE, "matthews_corrcoef", "roc_auc",
    "top_k_accuracy",
)  # fmt: skip
"""The scores of scikit-learn that suit labels and decision values."""
OF_CLASS_1 = {
    "f1": "f1_macro",
    "jaccard": "jaccard_macro",
    "precision": "precision_macro",
    "recall": "recall_macro",
}
"""Scores of one class out of two, which scikit-learn takes to be the class 1, and what is for all classes."""
# At most as many cells of the confusion matrix are in the table.
CONFUSIONS = 10
# At most as many labels that are no classes of the model have a row of the confusion matrix.
UNKNOWN = 20


def known_score(name: str) -> str:
    """The callback of `--scoring`."""
    if name in SCORES:
        return name
    from sklearn.metrics import get_scorer, get_scorer_names

    if name not in get_scorer_names():
        hint = did_you_mean(name, SCORES) or f": choose one of {', '.join(SCORES)}"
        raise typer.BadParameter(f"there is no score {name!r}{hint}")
    if "predict_proba" in str(getattr(get_scorer(name), "_response_method", "")):
        raise typer.BadParameter(
            f"{name!r} needs probabilities, which margins are not; roc_auc and balanced_accuracy do without"
        )
    return name


Scoring = Annotated[
    str,
    typer.Option(
        metavar="SCORE",
        callback=known_score,
        help="The score of a cross-validation, as scikit-learn names it, e.g. roc_auc, f1_macro.",
        rich_help_panel=MODEL,
    ),
]


def check_score(name: str, labels: Sequence[Any]) -> None:
    """Refuse a score that is not defined for data with these labels."""
    hint = "--scoring"
    if len(labels) > 2 and name in (*OF_CLASS_1, "roc_auc"):
        raise typer.BadParameter(
            f"{name!r} is for two classes, and the data have {len(labels)}: use "
            f"{OF_CLASS_1.get(name, 'balanced_accuracy')}", param_hint=hint,
        )  # fmt: skip
    if len(labels) == 2 and name in (*OF_CLASS_1, "average_precision") and 1 not in labels:
        raise typer.BadParameter(
            f"{name!r} is the score of the class 1, which the data do not have: use "
            f"{OF_CLASS_1.get(name, 'roc_auc')}", param_hint=hint,
        )  # fmt: skip


class Evaluation:
    """True classes and decision values of rows, collected block by block.

    Parameters
    ----------
    labels : sequence
        The classes of the model, in order. Rows with other labels count as wrong.
    """

    def __init__(self, labels: Sequence[Any]) -> None:
        self.classes, self._unknown = list(labels), list[Any]()
        # A text 1 is the number 1, since files do not always say which is meant.
        self._codes: dict[Any, int] = {str(label): code for code, label in enumerate(labels)}
        self._codes |= {label: code for code, label in enumerate(labels)}
        self._parts: list[tuple[NDArray[Any], NDArray[Any]]] = []

    @classmethod
    def of(cls, model: Model, data: CommandData) -> Evaluation:
        """The predictions of a model for data with labels: one pass."""
        evaluation = cls(model.estimator.classes_.tolist())
        for X, y, _ in data:
            assert y is not None
            evaluation.add(y, model.scores(X))
        return evaluation

    def add(self, y: NDArray[Any], decision: NDArray[Any]) -> None:
        """Collect a block."""
        import numpy as np

        found, places = np.unique(y, return_inverse=True)
        self._parts.append((np.array([self._code(label) for label in found.tolist()])[places], decision))

    def _code(self, label: Any) -> int:
        code = self._codes.get(label, self._codes.get(str(label)))
        if code is None:
            code = self._codes[label] = len(self.classes) + len(self._unknown)
            self._unknown.append(label)
        return code

    def _labels(self) -> tuple[list[Any], NDArray[np.intp]]:
        """The classes and the other labels, in order, and the place of each code among them.

        If there are many other labels, most of them share a place: they may be as many as rows.
        """
        import numpy as np

        order = sorted(range(len(self._unknown)), key=lambda code: str(self._unknown[code]))
        places = np.arange(len(self.classes) + len(order))
        for rank, code in enumerate(order):
            places[len(self.classes) + code] = len(self.classes) + min(rank, UNKNOWN)
        others = [self._unknown[code] for code in order[:UNKNOWN]]
        return [*self.classes, *others, *(["other labels"] if len(order) > UNKNOWN else [])], places

    def metrics(self) -> dict[str, Any]:
        """All scores, by name. Precision, recall and F1 are those of the second of two classes, or means.

        The area under the ROC curve of more than two classes is the mean of those of each class against the
        rest. A score that is not defined is nan.
        """
        import numpy as np
        from sklearn import metrics

        codes, decisions = zip(*self._parts, strict=True)
        labels, places = self._labels()
        true, decision = places[np.concatenate(codes)], np.concatenate(decisions)
        two = decision.ndim == 1
        predicted = (decision > 0).astype(int) if two else decision.argmax(axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes without rows, whose scores are 0
            rates = metrics.precision_recall_fscore_support(
                true, predicted, labels=[1] if two else None, average="macro", zero_division=0.0
            )
            balanced = metrics.balanced_accuracy_score(true, predicted)
        area = float("nan")
        n_classes = len(self.classes)
        if np.array_equal(np.unique(true), np.arange(n_classes)):
            area = metrics.roc_auc_score(true == 1 if two else np.eye(n_classes)[true], decision)
        confusion = metrics.confusion_matrix(true, predicted, labels=range(len(labels)))
        right = int(np.trace(confusion))
        return {
            "rows": len(true),
            "right": right,
            "accuracy": right / len(true),
            "balanced_accuracy": float(balanced),
            "roc_auc": float(area),
            **{name: float(rate) for name, rate in zip(("precision", "recall", "f1"), rates, strict=False)},
            "positive_class": self.classes[1] if two else None,
            "labels": labels,
            "confusion_matrix": confusion.tolist(),
        }


def show_metrics(output: Output, metrics_of: dict[str, dict[str, Any]]) -> None:
    """One table of the scores of some rows, and of others beside them."""
    columns = list(metrics_of.values())
    labels = max((column["labels"] for column in columns), key=len)
    positive = columns[0]["positive_class"]
    two = positive is not None
    of_class = f" of {positive}" if two else ", mean of the classes"
    names = {
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced accuracy",
        "roc_auc": "area under the ROC curve" + ("" if two else ", each class against the rest"),
        "precision": f"precision{of_class}",
        "recall": f"recall{of_class}",
        "f1": f"F1{of_class}",
    }
    rows = [[text, *(f"{column[name]:.4f}" for column in columns)] for name, text in names.items()]
    rows += _confusions(columns, labels)
    output.table(["", *metrics_of], rows, right=range(1, len(columns) + 1), prose=True)


def _confusions(columns: list[dict[str, Any]], labels: Sequence[Any]) -> list[list[str]]:
    """All cells of the confusion matrix of two classes; of more, the largest ones that are mistakes."""
    cells = [(i, j) for i in range(len(labels)) for j in range(len(labels))]
    matrix = columns[-1]["confusion_matrix"]
    if len(labels) > 2:
        wrong = [(i, j) for i, j in cells if i != j and matrix[i][j]]
        cells = sorted(wrong, key=lambda cell: -matrix[cell[0]][cell[1]])[:CONFUSIONS]
    return [
        [f"{labels[i]} predicted as {labels[j]}", *(f"{_cell(column, i, j):,}" for column in columns)]
        for i, j in cells
    ]


def _cell(column: dict[str, Any], i: int, j: int) -> int:
    matrix = column["confusion_matrix"]
    return int(matrix[i][j]) if max(i, j) < len(matrix) else 0
