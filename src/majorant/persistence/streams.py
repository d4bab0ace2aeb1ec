"""What `partial_fit` remembers, in a model file: after loading, a stream goes on as if nothing had been."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from majorant.errors import ModelFileError
from majorant.persistence import strict
from majorant.persistence.arrays import array_node, read_array
from majorant.solvers import SGD, Adam, Descent, DescentState, Momentum

# What the update rule of each solver remembers of the steps before: arrays of the size of θ, and counts.
MEMORIES: dict[type, tuple[Sequence[str], Sequence[str]]] = {
    SGD: ((), ()),
    Momentum: (("m",), ()),
    Adam: (("m", "v"), ("t",)),
}


def stream_node(stream: Sequence[Descent] | None) -> list[Any] | None:
    """The descent of every problem; None if there is none, or one by a solver that is not known here."""
    if not stream or type(stream[0].solver) not in MEMORIES:
        return None
    return [_descent_node(descent) for descent in stream]


def _descent_node(descent: Descent) -> dict[str, Any]:
    arrays, counts = MEMORIES[type(descent.solver)]
    state = descent.state()
    generator = state.generator
    return {
        "seen": int(state.seen),
        "steps": int(state.steps),
        "largest_row": strict.number_node(state.largest_row),
        "theta": array_node(state.theta, "theta"),
        "memory": {
            **{name: array_node(state.memory[name], name) for name in arrays},
            **{name: int(state.memory[name]) for name in counts},
        },
        "generator": {  # 128 bits each
            "state": hex(generator["state"]["state"]),
            "inc": hex(generator["state"]["inc"]),
            "has_uint32": int(generator["has_uint32"]),
            "uinteger": int(generator["uinteger"]),
        },
    }


def read_stream(node: Any, solver: Any, n_problems: int, size: int) -> list[Descent] | None:
    """What `stream_node` wrote; without a solver that is known, a stream begins anew at the coefficients."""
    if node is None:
        return None
    nodes = strict.items(node, "stream", n_problems)
    if type(solver) not in MEMORIES:
        return None
    return [_read_descent(node, f"stream[{k}]", solver, size) for k, node in enumerate(nodes)]


def _read_descent(node: Any, where: str, solver: Any, size: int) -> Descent:
    keys = ["seen", "steps", "largest_row", "theta", "memory", "generator"]
    record = strict.keys(node, where, keys)
    arrays, counts = MEMORIES[type(solver)]
    memory = strict.keys(record["memory"], f"{where}.memory", [*arrays, *counts])
    state = DescentState(
        theta=_numbers(record["theta"], f"{where}.theta", size),
        seen=strict.integer(record["seen"], f"{where}.seen"),
        steps=strict.integer(record["steps"], f"{where}.steps"),
        largest_row=strict.number(record["largest_row"], f"{where}.largest_row"),
        memory={
            **{name: _numbers(memory[name], f"{where}.memory.{name}", size) for name in arrays},
            **{name: strict.integer(memory[name], f"{where}.memory.{name}") for name in counts},
        },
        generator=_read_generator(record["generator"], f"{where}.generator"),
    )
    return Descent.restored(solver, state)


def _numbers(node: Any, where: str, size: int) -> Any:
    array = read_array(node, where, size)
    if array.dtype != np.float64 or not np.isfinite(array).all():
        raise ModelFileError(f"{where} must be finite float64 numbers")
    return array


def _read_generator(node: Any, where: str) -> dict[str, Any]:
    record = strict.keys(node, where, ["state", "inc", "has_uint32", "uinteger"])
    state = {name: _wide(record[name], f"{where}.{name}") for name in ("state", "inc")}
    return {
        "bit_generator": "PCG64",
        "state": state,
        "has_uint32": strict.integer(record["has_uint32"], f"{where}.has_uint32", 0, 1),
        "uinteger": strict.integer(record["uinteger"], f"{where}.uinteger", 0, 2**32 - 1),
    }


def _wide(node: Any, where: str) -> int:
    text = strict.text(node, where)
    try:
        value = int(text, 16)
    except ValueError:
        value = -1
    if not text.startswith("0x") or not 0 <= value < 2**128:
        raise ModelFileError(f"{where} must be a hexadecimal number of 128 bits")
    return value
