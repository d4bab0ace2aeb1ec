"""The records of a solver: iterates while it runs, a `Result` with a reason when it stops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Status(Enum):
    """The reason why a solver stopped. The value is the message for the user."""

    CONVERGED = "Converged: the certificate is within the tolerance."
    NO_SWAP = (
        "Converged: no swap of one of the 8 weakest features for one of the 3 best others lowers the "
        "objective."
    )
    MAX_ITER = "The iteration limit was reached before the tolerance."
    STALLED = "Rounding leaves no further progress."
    ZERO_TOL = "The solver converged, but zeros as zero_tol asks for cost more than the tolerance."
    NOT_FINITE = "The iterates left the range of floating-point numbers; the last finite one is kept."
    TIME_LIMIT = "The time limit was reached before the tolerance."
    STOPPED = "A callback asked to stop."
    INTERRUPTED = "The fit was interrupted; the last iterate is kept."

    @property
    def converged(self) -> bool:
        """Whether the result satisfies the tolerance."""
        return self in (Status.CONVERGED, Status.NO_SWAP)

    def __reduce__(self) -> tuple[Any, ...]:
        return Status, (self.value,)  # skops needs this; pickle would use Enum's own


@dataclass(frozen=True, eq=False)
class Iterate:
    """θ = (w, β), β last, after one step of an algorithm."""

    theta: Vector


@dataclass(frozen=True, eq=False)
class Provisional(Iterate):
    """A point inside a longer step: counted, timed and shown, but not tested for convergence."""

    value: float


@dataclass(frozen=True, eq=False)
class Evaluated(Iterate):
    """An iterate with Φ(θ) and the gradient of the loss part at θ.

    `carried` says that the numbers were updated from step to step, and may contain the rounding errors of all
    steps: such an iterate is evaluated again before its certificate is used.
    """

    value: float
    loss_gradient: Vector
    carried: bool = False
    lower_bound: float = -math.inf
    """A lower bound of Φ from earlier iterates or other computations."""
    candidate: bool = True
    """Whether a run may end here. (0 is a local minimum for most potentials that are not convex.)"""


@dataclass(frozen=True)
class Certificate:
    """The distance of θ from optimality, in numbers that can be recomputed from θ alone.

    `gap` bounds (Φ(θ) - min Φ)/Φ(θ), both without the constant Σ c_i φ(0); it is nan where nothing bounds it
    (φ not convex). `stationarity` is a predicted decrease of Φ, relative to Φ: see `objective.py`.
    """

    stationarity: float
    gap: float = math.nan

    @property
    def error(self) -> float:
        """What the tolerance is compared with: the gap where there is one, else the stationarity."""
        return self.stationarity if math.isnan(self.gap) else self.gap

    def __str__(self) -> str:
        if math.isnan(self.error):
            return "no certificate yet"
        return f"{'stationarity' if math.isnan(self.gap) else 'duality gap'} {self.error:.1e}"


@dataclass(frozen=True)
class Record:
    """One line of the trace, measured outside the solver's clock.

    In all records but the last, the gap is an estimate that needs no pass over the rows. If there is a gap,
    the stationarity is nan; if there is none, the stationarity is a lower bound of the true one.
    """

    iteration: int
    time: float
    objective: float
    gap: float
    stationarity: float
    nonzeros: int

    @property
    def certificate(self) -> Certificate:
        """Gap and stationarity as one."""
        return Certificate(self.stationarity, self.gap)


class History(Sequence[Record]):
    """The trace of a fit: a sequence of records whose columns are arrays."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self._records = list(records)

    def append(self, record: Record) -> None:
        """Add the record of one more iteration."""
        self._records.append(record)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> History: ...
    def __getitem__(self, index: int | slice) -> Record | History:
        if isinstance(index, slice):
            return History(self._records[index])
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"History({len(self)} records)"

    def column(self, name: str) -> NDArray[Any]:
        """One field of all records, e.g. ``history.column("objective")``."""
        return np.array([getattr(record, name) for record in self._records])

    def to_frame(self) -> pd.DataFrame:
        """The trace as a pandas DataFrame, one row per iteration."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        return pd.DataFrame({field.name: self.column(field.name) for field in fields(Record)}).set_index(
            "iteration"
        )


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a run: the last iterate, the reason for stopping, and the history."""

    iterate: Evaluated
    status: Status
    n_iter: int
    certificate: Certificate
    history: History
