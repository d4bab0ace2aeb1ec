"""The paper's experiments as data: data sets, regularisers, methods, and the study that combines them.

Settings that the paper does not state are inferred from its figures (the splits follow from the fractions in
its tables) or chosen here, and marked as such. Every run starts at θ = 0.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from majorant import __version__

# Increased when the content of a record changes: records of another format are not reused.
FORMAT = 3
STOCHASTIC = ("sgd", "momentum", "adam")


@dataclass(frozen=True)
class DataSet:
    """A data set, and how its rows are split into training and test rows."""

    name: str
    """The name in the tables."""
    source: str
    """The name in `majorant.datasets`, or "stand-in" for generated rows."""
    features: int | None = None
    """The number of columns kept; None: all."""
    shuffled: bool = False
    """False: the first rows train, the last rows test. True: stratified random splits."""
    splits: int = 1
    """The number of random splits; split k has the seed k."""
    standardised: bool = False
    """Whether columns are scaled to mean 0 and standard deviation 1 on the training rows."""
    train_share: float = 0.8


@dataclass(frozen=True)
class Regulariser:
    """f(w) = Σ φ(w_i) + η/2 ‖w‖², Eq. (eq:fReg)."""

    name: str
    potential: Literal["hyperbolic", "welsch", "none"]
    lam: float = 0.0
    delta: float = 0.0
    eta: float = 0.0


@dataclass(frozen=True)
class Method:
    """A solver, or `warmup` epochs of a stochastic solver followed by a solver (the paper's hybrids)."""

    name: str
    """The column header in the paper's tables."""
    solver: str
    """A registered solver, or "liblinear"."""
    warmup: int = 0
    warmup_solver: str = "adam"
    rate: float | None = None
    """The learning rate of the stochastic part; None before the search."""
    batch_size: int = 128
    """The paper does not say."""
    weighting: Literal["paper", "unbiased"] = "paper"

    @property
    def stochastic(self) -> str | None:
        """The stochastic solver of the whole method or of its warm-up; None without."""
        if self.solver in STOCHASTIC:
            return self.solver
        return self.warmup_solver if self.warmup else None


@dataclass(frozen=True)
class Run:
    """One method on one split of one problem, with every setting that its record depends on."""

    data: DataSet
    split: int
    regulariser: Regulariser
    method: Method
    iterations: int
    zero_below: float
    seed: int = 0
    repeats: int = 0
    """How often a short run is repeated to measure its time on one core; 0: the driver's time is kept."""
    keep_theta: bool = True

    @cached_property
    def key(self) -> str:
        """The hash of these settings and of the package's version: the record's name in the results."""
        text = json.dumps([__version__, FORMAT, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def label(self) -> str:
        """The run in the messages of the progress bar."""
        split = f" split {self.split}" if self.data.splits > 1 else ""
        return (
            f"{self.data.name}{split}, {self.regulariser.name} λ={self.regulariser.lam:g}, {self.method.name}"
        )

    @property
    def timed(self) -> bool:
        """Whether a table or a figure shows the run's time; such runs do not share the machine."""
        return self.repeats > 0 or self.method.solver == "liblinear"

    @property
    def weight(self) -> float:
        """The run's expected duration, in arbitrary units, for the estimate of the time left."""
        rows = {"w8a": 40.0, "cina0": 30.0}.get(self.data.source, 2.0)
        stochastic = self.iterations if self.method.solver in STOCHASTIC else self.method.warmup
        once = 12.0 * stochastic + self.iterations
        if self.method.solver == "newton":
            once = 900.0 if self.regulariser.potential == "welsch" else 200.0
        return rows * once * (1.6 if self.repeats else 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON types."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Run:
        """The inverse of `to_dict`."""
        parts: dict[str, Any] = {"data": DataSet, "regulariser": Regulariser, "method": Method}
        return cls(**(plain | {name: make(**plain[name]) for name, make in parts.items()}))


def _methods(warmup: int) -> tuple[Method, ...]:
    pairs = (("MMI", "mm-inversion"), ("MM", "mm"), ("SUB", "mm-subspace"))
    both = ((Method(name, solver), Method(f"H {name}", solver, warmup)) for name, solver in pairs)
    return (Method("FG", "gradient"), *(method for pair in both for method in pair))


@dataclass(frozen=True)
class Study:
    """The data sets, regularisers, methods and settings of a reproduction."""

    name: str
    data: tuple[DataSet, ...]
    regularisers: tuple[Regulariser, ...] = (
        Regulariser("hyperbolic", "hyperbolic", lam=1e-4, delta=1e-4),
        Regulariser("Welsch", "welsch", lam=1e-4, delta=1e-4),
        Regulariser("ℓ2", "none", eta=1e-4),
    )
    methods: tuple[Method, ...] = _methods(10)
    iterations: int = 100
    """Iterations of deterministic methods, epochs of stochastic methods; hybrids: the sum of both."""
    warmup: int = 10
    """ι: the epochs after which learning rates are compared, and after which hybrids switch solvers."""
    rates: tuple[float, ...] = tuple(10.0**k for k in range(-8, 1))
    """The learning rates of the first round of the search."""
    refinements: tuple[float, ...] = (0.2, 0.5, 2.0, 5.0)
    """Factors that multiply the best rate of the first round to give the rates of the second round."""
    search_seeds: tuple[int, ...] = (0, 1)
    reference_iterations: int = 1000
    """The iteration limit of the runs that find the minimum, with tolerance 0."""
    sparsity_of: str = "H MMI"
    """The method of the tables sparsity:*, not named in the paper; with this one the a1a scores agree."""
    lambdas: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    zero_below: float = 1e-4
    """The largest |w| that counts as zero. The paper does not state its threshold; this is its δ."""
    repeats: int = 10
    labels: tuple[str, ...] = field(default=())
    """The tables and figures to make; empty: all."""


A1A = DataSet("a1a", "a1a", features=119)  # the last feature in the file; the paper has N + 1 = 120
CINA0 = DataSet("cina0", "cina0")
W8A = DataSet("w8a", "w8a", shuffled=True, splits=10)
CINA0_STANDARDISED = DataSet("cina0 standardised", "cina0", standardised=True)
STAND_IN = DataSet("stand-in", "stand-in")

PAPER = Study("full", (A1A, CINA0, W8A, CINA0_STANDARDISED))
"""All experiments of the paper."""

QUICK = Study(
    "quick",
    (A1A, CINA0, replace(W8A, splits=2), CINA0_STANDARDISED),
    rates=tuple(10.0**k for k in range(-7, 0)),
    refinements=(0.3, 3.0),
    search_seeds=(0,),
    reference_iterations=200,
    repeats=5,
)
"""The same tables with fewer splits and a coarser search."""
