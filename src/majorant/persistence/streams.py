"""The state of `partial_fit` in a model file, so that a loaded model continues its stream exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from majorant.errors import ModelFileError
from majorant.persistence import strict
from majorant.persistence.arrays import float_array
from majorant.persistence.strict import BIT, COUNT, NUMBER, UINT32, Form, list_of, record
from majorant.solvers import SGD, Adam, Descent, DescentState, Momentum

# The memory of each solver's update rule: the names of arrays of the size of θ, and of counts.
MEMORIES: dict[type, tuple[Sequence[str], Sequence[str]]] = {
    SGD: ((), ()),
    Momentum: (("m",), ()),
    Adam: (("m", "v"), ("t",)),
}


def stream_node(stream: Sequence[Descent] | None) -> list[Any] | None:
    """The descents of all problems; None if there are none, or their solver is not in MEMORIES."""
    if not stream or type(stream[0].solver) not in MEMORIES:
        return None
    form = _descent(stream[0].solver)
    return [form.write(vars(descent.state())) for descent in stream]


def read_stream(node: Any, solver: Any, n_problems: int, size: int) -> list[Descent] | None:
    """The descents that `stream_node` wrote; None, so that a new stream starts, if the solver is unknown."""
    if node is None:
        return None
    nodes = strict.items(node, "stream", n_problems)
    if type(solver) not in MEMORIES:
        return None
    states = list_of(_descent(solver, size)).read(nodes, "stream")
    return [Descent.restored(solver, DescentState(**state)) for state in states]


def _descent(solver: Any, size: int | None = None) -> Form:
    """The form of the state of a descent by this solver, for θ of that size."""
    arrays, counts = MEMORIES[type(solver)]
    memory = {name: float_array(name, size) for name in arrays} | dict.fromkeys(counts, COUNT)
    return record(
        {
            "seen": COUNT,
            "steps": COUNT,
            "largest_row": NUMBER,
            "theta": float_array("theta", size),
            "memory": record(memory),
            "generator": GENERATOR,
        }
    )


def _read_wide(node: Any, where: str) -> int:
    text = strict.text(node, where)
    try:
        value = int(text, 16)
    except ValueError:
        value = -1
    if not text.startswith("0x") or not 0 <= value < 2**128:
        raise ModelFileError(f"{where} must be a hexadecimal number of 128 bits")
    return value


def _generator_state(values: dict[str, Any]) -> dict[str, Any]:
    inner = {name: values.pop(name) for name in ("state", "inc")}
    return {"bit_generator": "PCG64", "state": inner, **values}


WIDE = Form(hex, _read_wide)
GENERATOR = record({"state": WIDE, "inc": WIDE, "has_uint32": BIT, "uinteger": UINT32}).converted(
    lambda state: {**state, **state["state"]}, _generator_state
)
