"""The paper's experiments as data: change a value, get another study.

What the paper does not say was found out from its figures (the splits follow from the fractions in its
tables), or is a choice of ours that is marked as such. The starting point is θ = 0 everywhere.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from majorant import __version__

__all__ = ["PAPER", "QUICK", "STAND_IN", "DataSet", "Method", "Regulariser", "Study", "Task"]


# To be counted up when records change: those of another format are not used again.
FORMAT = 3


@dataclass(frozen=True)
class DataSet:
    """Data, and how they are divided into training and test rows."""

    name: str
    """What the tables call it."""
    source: str
    """Its name in `majorant.datasets`, or "stand-in" for data that are made up."""
    features: int | None = None
    """How many columns to keep; by default all."""
    shuffled: bool = False
    """False: the first rows train, the last ones test. True: divided at random, each class in proportion."""
    splits: int = 1
    """How many divisions at random; split k has the seed k."""
    standardised: bool = False
    """Whether columns are brought to mean 0 and deviation 1, as the training rows have them."""
    train_share: float = 0.8


@dataclass(frozen=True)
class Regulariser:
    """f(w) = Σ φ(w_i) + η/2 ‖w‖², Eq. (eq:fReg)."""

    name: str
    potential: Literal["hyperbolic", "welsch", "none"]
    lam: float = 0.0
    delta: float = 0.0
    eta: float = 0.0

    @property
    def problem(self) -> str:
        """The regulariser with its strength, where it is not the only one of its name."""
        return f"{self.name} λ={self.lam:g}"


@dataclass(frozen=True)
class Method:
    """A solver, after `warmup` epochs of a stochastic one if there are any."""

    name: str
    """As the heads of the paper's tables have it."""
    solver: str
    """A registered solver, or "liblinear"."""
    warmup: int = 0
    warmup_solver: str = "adam"
    rate: float | None = None
    """The learning rate of the stochastic part; None as long as it has not been looked for."""
    batch_size: int = 128
    """The paper does not say."""
    weighting: Literal["paper", "unbiased"] = "paper"

    @property
    def stochastic(self) -> str | None:
        """The stochastic solver that it is or begins with."""
        if self.solver in STOCHASTIC:
            return self.solver
        return self.warmup_solver if self.warmup else None


STOCHASTIC = ("sgd", "momentum", "adam")


@dataclass(frozen=True)
class Task:
    """One cell of the study: one method on one problem. All that its figures depend on is in here."""

    data: DataSet
    split: int
    regulariser: Regulariser
    method: Method
    iterations: int
    zero_below: float
    seed: int = 0
    repeats: int = 0
    """How often to run it again for its time on one core, if that is short; 0: the time of the driver."""
    keep_theta: bool = True

    @cached_property
    def key(self) -> str:
        """A name for exactly these settings, with this version of the package."""
        text = json.dumps([__version__, FORMAT, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def label(self) -> str:
        """For people."""
        split = f" split {self.split}" if self.data.splits > 1 else ""
        return f"{self.data.name}{split}, {self.regulariser.problem}, {self.method.name}"

    @property
    def timed(self) -> bool:
        """Whether its time is printed, and so measured with care."""
        return self.repeats > 0 or self.method.solver == "liblinear"

    @property
    def weight(self) -> float:
        """About how long it takes, in a unit of its own."""
        rows = {"w8a": 40.0, "cina0": 30.0}.get(self.data.source, 2.0)
        stochastic = self.iterations if self.method.solver in STOCHASTIC else self.method.warmup
        once = 12.0 * stochastic + self.iterations
        if self.method.solver == "newton":
            once = 900.0 if self.regulariser.potential == "welsch" else 200.0
        return rows * once * (1.6 if self.repeats else 1.0)


def _methods(warmup: int) -> tuple[Method, ...]:
    pairs = (("MMI", "mm-inversion"), ("MM", "mm"), ("SUB", "mm-subspace"))
    both = ((Method(name, solver), Method(f"H {name}", solver, warmup)) for name, solver in pairs)
    return (Method("FG", "gradient"), *(method for pair in both for method in pair))


@dataclass(frozen=True)
class Study:
    """All that is run, and with what."""

    name: str
    data: tuple[DataSet, ...]
    regularisers: tuple[Regulariser, ...] = (
        Regulariser("hyperbolic", "hyperbolic", lam=1e-4, delta=1e-4),
        Regulariser("Welsch", "welsch", lam=1e-4, delta=1e-4),
        Regulariser("ℓ2", "none", eta=1e-4),
    )
    methods: tuple[Method, ...] = _methods(10)
    iterations: int = 100
    """Of the deterministic methods; epochs of the stochastic ones; of hybrids, both together."""
    warmup: int = 10
    """ι: the epochs after which learning rates are compared, and hybrids change their method."""
    rates: tuple[float, ...] = tuple(10.0**k for k in range(-8, 1))
    """The learning rates of the first round; the second one looks around the best of them."""
    refinements: tuple[float, ...] = (0.2, 0.5, 2.0, 5.0)
    search_seeds: tuple[int, ...] = (0, 1)
    reference_iterations: int = 1000
    """For the minimum: the fastest solver, with no tolerance at all, up to here."""
    sparsity_of: str = "H MMI"
    """The method of the tables sparsity:*, which do not name it: with this one the scores of a1a agree."""
    lambdas: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    zero_below: float = 1e-4
    """|w| up to here counts as a zero. The paper does not say what it counts; this is its δ."""
    repeats: int = 10
    labels: tuple[str, ...] = field(default=())
    """Which tables and figures are wanted; empty: all."""

    def without(self, missing: set[str]) -> Study:
        """The study on the data sets that there are."""
        return replace(self, data=tuple(data for data in self.data if data.source not in missing))


A1A = DataSet(
    "a1a", "a1a", features=119
)  # the last feature that occurs in the file; the paper has N + 1 = 120
CINA0 = DataSet("cina0", "cina0")
W8A = DataSet("w8a", "w8a", shuffled=True, splits=10)
CINA0_STANDARDISED = DataSet("cina0 standardised", "cina0", standardised=True)
STAND_IN = DataSet("stand-in", "stand-in")

PAPER = Study("full", (A1A, CINA0, W8A, CINA0_STANDARDISED))
"""Everything in the paper."""

QUICK = Study(
    "quick",
    (A1A, CINA0, replace(W8A, splits=2), CINA0_STANDARDISED),
    rates=tuple(10.0**k for k in range(-7, 0)),
    refinements=(0.3, 3.0),
    search_seeds=(0,),
    reference_iterations=200,
    repeats=5,
)
"""The same tables from fewer splits and a coarser search."""


def as_plain(task: Task) -> dict[str, Any]:
    """The settings as JSON has them."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(task)))
    return plain


def from_plain(plain: dict[str, Any]) -> Task:
    """The task that `as_plain` wrote down."""
    parts = {
        "data": DataSet(**plain["data"]),
        "regulariser": Regulariser(**plain["regulariser"]),
        "method": Method(**plain["method"]),
    }
    return Task(**(plain | parts))
