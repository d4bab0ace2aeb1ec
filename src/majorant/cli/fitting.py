"""The options of a fit, and the estimator that they mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from majorant.cli.choices import not_zero, one_of, strictly_between
from majorant.cli.help import CLASSES, DATA, LARGE_DATA, LIBLINEAR, MODEL
from majorant.cli.liblinear import OTHERS, PENALTIES
from majorant.text import did_you_mean

SOLVERS = (
    "auto", "newton", "gradient", "mm", "mm-inversion", "mm-subspace", "mm-gradient",
    "sgd", "momentum", "adam",
)  # fmt: skip
"""The names of `majorant.solvers`, which takes too long to import for a usage error."""


def _potentials() -> Iterable[str]:
    from majorant.potentials import Potential

    return Potential.registry


@dataclass(frozen=True)
class PenaltyOptions:
    """What is minimised, and how."""

    penalty: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="hyperbolic (smooth l1), welsch, geman-mcclure, cauchy, lp, log-sum, mcp, scad, l1, l2, "
            "none.  [default: hyperbolic]",
            callback=one_of(_potentials),
            rich_help_panel=MODEL,
        ),
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(
            callback=strictly_between(0.0),
            help="Width of the potential: 1e-9 for hyperbolic, 1e-6 for welsch, 0.1 for mcp, if not given.",
            rich_help_panel=MODEL,
        ),
    ] = None
    eta: Annotated[
        float, typer.Option(min=0.0, help="Strength of an additional ridge penalty.", rich_help_panel=MODEL)
    ] = 0.0
    intercept: Annotated[
        bool | None,
        typer.Option(
            "--intercept/--no-intercept", help="Whether there is one.  [default: yes]", rich_help_panel=MODEL
        ),
    ] = None
    class_weight: Annotated[
        list[str],
        typer.Option(
            metavar="LABEL=WEIGHT",
            help="The weight of a class (LIBLINEAR: -wLABEL WEIGHT), or `balanced`; can be given again.",
            rich_help_panel=CLASSES,
        ),
    ] = field(default_factory=list)
    multi_class: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="ovr: each class against the rest; joint: all at once.",
            callback=one_of(("ovr", "joint")),
            rich_help_panel=CLASSES,
        ),
    ] = "ovr"
    refit: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="l2: the penalty selects, a light ridge on the features selected sets the coefficients.",
            callback=one_of(("l2",)),
            rich_help_panel=MODEL,
        ),
    ] = None
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize",
            help="Penalise every feature in units of its standard deviation.",
            rich_help_panel=DATA,
        ),
    ] = False
    solver: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="newton, or an algorithm of the paper.",
            callback=one_of(SOLVERS),
            rich_help_panel=MODEL,
        ),
    ] = "auto"
    tol: Annotated[
        float,
        typer.Option(
            "-e", "--tol", min=0.0, help="Stop at this relative duality gap.", rich_help_panel=MODEL
        ),
    ] = 1e-6
    max_iter: Annotated[
        int, typer.Option(min=1, help="The largest number of iterations.", rich_help_panel=MODEL)
    ] = 1000
    seed: Annotated[
        int,
        typer.Option(help="Seed of the random numbers: folds, stochastic solvers.", rich_help_panel=MODEL),
    ] = 0
    jobs: Annotated[
        int | None,
        typer.Option(
            callback=not_zero,
            help="How many classes or folds to train at the same time; -1: as many as cores.",
            rich_help_panel=LARGE_DATA,
        ),
    ] = None
    liblinear_type: Annotated[
        int | None,
        typer.Option("-s", metavar="TYPE", help="1 or 2 is l2, 5 is l1.", rich_help_panel=LIBLINEAR),
    ] = None
    bias: Annotated[
        float | None,
        typer.Option(
            "-B",
            metavar="BIAS",
            help="An intercept, if not negative; never penalised.",
            rich_help_panel=LIBLINEAR,
        ),
    ] = None

    def check(self) -> None:
        """Refuse combinations of options that no data could make right; imports nothing."""
        for word in self.class_weight:
            if word != "balanced":
                weight_of(word)
        self.parameters(None)

    def check_parameters(self, estimator: Callable[..., Any], others: Mapping[str, Any]) -> None:
        """Refuse parameters of an estimator that no data could make right."""
        from majorant.estimators import check_parameters

        check_parameters(estimator(**others, **self.parameters(None)))

    def parameters(self, labels: Sequence[Any] | None) -> dict[str, Any]:
        """The parameters of an estimator, for data with these class labels, or with unknown ones."""
        return {
            "penalty": self.penalty_name,
            "delta": self.delta,
            "eta": self.eta,
            "refit": self.refit,
            "standardize": self.standardize,
            "fit_intercept": self._fit_intercept,
            "class_weight": None if labels is None else weights_by_class(self.class_weight, labels),
            "multi_class": self.multi_class,
            "solver": self.solver,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }

    @property
    def penalty_name(self) -> str:
        """The potential, by our name or LIBLINEAR's number."""
        if self.liblinear_type is None:
            return self.penalty or "hyperbolic"
        if self.penalty is not None:
            raise typer.BadParameter("say --penalty or LIBLINEAR's -s, not both", param_hint="-s")
        if self.liblinear_type not in PENALTIES:
            other = OTHERS.get(self.liblinear_type, "nothing that it knows")
            raise typer.BadParameter(
                f"LIBLINEAR's type {self.liblinear_type} is {other}; here there are 1 and 2 (l2) and 5 (l1)",
                param_hint="-s",
            )
        return PENALTIES[self.liblinear_type]

    @property
    def _fit_intercept(self) -> bool:
        if self.bias is not None and self.intercept is not None:
            raise typer.BadParameter("say --intercept or LIBLINEAR's -B, not both", param_hint="-B")
        if self.bias is not None:
            if math.isnan(self.bias):
                raise typer.BadParameter("nan is no bias", param_hint="-B")
            return self.bias >= 0.0
        return self.intercept is not False


def strength(lam: float | None, cost: float | None) -> float:
    """λ, from --lam or from LIBLINEAR's C = 1/λ."""
    if cost is None:
        return 1.0 if lam is None else lam
    if lam is not None:
        raise typer.BadParameter("say --lam or LIBLINEAR's -c, not both", param_hint="-c")
    if not cost > 0.0:
        raise typer.BadParameter(f"C must be positive, got {cost:g}", param_hint="-c")
    return 1.0 / cost


def weights_by_class(words: Sequence[str], labels: Sequence[Any]) -> Any:
    """{label: weight}, or "balanced", or None, from what was typed."""
    if not words:
        return None
    if list(words) == ["balanced"]:
        return "balanced"
    weights: dict[Any, float] = {}
    for word in words:
        name, weight = weight_of(word)
        # As it is written, before what it is worth: large integers are not told apart as floats.
        exact = [label for label in labels if name == str(label)]
        label = next(iter(exact or [label for label in labels if _means(name, label)]), None)
        if label is None:
            known = list(map(str, labels))
            raise typer.BadParameter(
                f"{word!r} is of no class of the data ({', '.join(known[:20])}){did_you_mean(name, known)}",
                param_hint="--class-weight",
            )
        weights[label] = weight
    return weights


def weight_of(word: str) -> tuple[str, float]:
    """The label and the weight of LABEL=WEIGHT."""
    name, _, number = word.rpartition("=")
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not name or not 0.0 <= weight < math.inf:
        raise typer.BadParameter(
            f"{word!r} is no LABEL=WEIGHT with a weight of 0 or more", param_hint="--class-weight"
        )
    return name, weight


def _means(text: str, label: Any) -> bool:
    """Whether a number is typed so: `+1` means 1, and 1.0."""
    try:
        return not isinstance(label, str) and float(text) == float(label)
    except ValueError:
        return False
