"""Constructor parameters in a model file.

None, truth values, numbers, strings and lists stand for themselves. Anything else is an object with one key,
which says what it is: ``{"potential": {"name": "welsch", "settings": {"lam": 0.1, "delta": 0.01}}}``. Loading
looks names up, in the registries of potentials and solvers and in two short lists here; it imports nothing
and calls nothing else. What cannot be written down (a function, a splitter, a potential that is not
registered) is kept by its name: the model predicts, and `fit` says what has to be set again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from majorant.errors import ModelFileError
from majorant.persistence import strict
from majorant.persistence.arrays import array_node, read_array
from majorant.potentials import Potential
from majorant.solvers import Hybrid, Newton, Solver, gradient_direction, memory_gradient

FUNCTIONS = {function.__name__: function for function in (memory_gradient, gradient_direction)}


@dataclass(frozen=True)
class Unavailable:
    """Stands for a parameter that a model file knows by name only.

    The model predicts as ever; `fit` refuses, until the parameter is set (`set_params`) to what it was.
    """

    name: str
    """What it was, e.g. a class with its module."""
    node: str
    """What the file says, which `save_model` writes again."""

    def __repr__(self) -> str:
        return f"<{self.name}, of which the model file has only the name: set it anew>"


def parameter_node(value: Any, depth: int = strict.DEPTH) -> Any:
    """A parameter, written down."""
    if isinstance(value, Unavailable):
        return json.loads(value.node)
    with suppress(TypeError):
        return strict.plain(value, 0)
    if isinstance(value, Real) and not isinstance(value, Integral):
        return {"number": strict.number_node(value)}
    for tag, write in WRITERS.items():
        payload = write(value, depth - 1) if depth else None
        if payload is not None:
            return payload if tag == "list" else {tag: payload}
    named = value if hasattr(value, "__qualname__") else type(value)  # a function, or an object of a class
    return {"unavailable": f"{named.__module__}.{named.__qualname__}"}


def read_parameter(node: Any, where: str, depth: int = strict.DEPTH) -> Any:
    """What `parameter_node` wrote."""
    if node is None or type(node) in (bool, int, float, str):
        return node
    if not depth:
        raise ModelFileError(f"{where} is nested too deeply")
    if type(node) is list:
        return [read_parameter(entry, f"{where}[{k}]", depth - 1) for k, entry in enumerate(node)]
    if type(node) is not dict or len(node) != 1:
        raise ModelFileError(f"{where} must be a parameter, got {strict.shown(node)}")
    ((tag, payload),) = node.items()
    if tag not in READERS:
        raise ModelFileError(f"{where} is of an unknown kind, {strict.shown(tag)}")
    return READERS[tag](payload, f"{where}.{tag}", depth - 1)


# Writing: each function answers with None if the value is not of its kind ---------------------------------


def _list(value: Any, depth: int) -> Any:
    return [parameter_node(entry, depth) for entry in value] if isinstance(value, list) else None


def _tuple(value: Any, depth: int) -> Any:
    return [parameter_node(entry, depth) for entry in value] if isinstance(value, tuple) else None


def _dict(value: Any, depth: int) -> Any:
    if not isinstance(value, Mapping):
        return None
    return [[parameter_node(key, depth), parameter_node(entry, depth)] for key, entry in value.items()]


def _array(value: Any, depth: int) -> Any:
    if not hasattr(value, "__array__"):
        return None
    try:
        return array_node(np.asarray(value), "a parameter")
    except (ModelFileError, TypeError, ValueError):
        return None


def _settings(value: Any, depth: int) -> dict[str, Any] | None:
    if not is_dataclass(value) or not all(field.init for field in fields(value)):
        return None
    return {field.name: parameter_node(getattr(value, field.name), depth) for field in fields(value)}


def _registered(kind: type[Potential] | type[Solver]) -> Callable[[Any, int], Any]:
    def write(value: Any, depth: int) -> Any:
        if not isinstance(value, kind) or kind.registry.get(value.name) is not type(value):
            return None
        settings = _settings(value, depth)
        return None if settings is None else {"name": value.name, "settings": settings}

    return write


def _hybrid(value: Any, depth: int) -> Any:
    return _settings(value, depth) if type(value) is Hybrid else None


def _function(value: Any, depth: int) -> Any:
    return next((name for name, function in FUNCTIONS.items() if function is value), None)


def _random_state(value: Any, depth: int) -> Any:
    if not isinstance(value, np.random.RandomState):
        return None
    state = value.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        return None
    key, position = state["state"]["key"], state["state"]["pos"]
    return {
        "key": key.tolist(),
        "position": int(position),
        "has_gauss": int(state["has_gauss"]),
        "gauss": float(state["gauss"]),
    }


WRITERS: dict[str, Callable[[Any, int], Any]] = {
    "list": _list,
    "tuple": _tuple,
    "dict": _dict,
    "potential": _registered(Potential),
    "solver": _registered(Solver),
    "hybrid": _hybrid,
    "function": _function,
    "random_state": _random_state,
    "array": _array,
}


# Reading ---------------------------------------------------------------------------------------------------


def _read_tuple(node: Any, where: str, depth: int) -> Any:
    return tuple(read_parameter(strict.items(node, where), where, depth + 1))


def _read_dict(node: Any, where: str, depth: int) -> Any:
    entries = {}
    for k, pair in enumerate(strict.items(node, where)):
        place = f"{where}[{k}]"
        key, value = (read_parameter(entry, place, depth) for entry in strict.items(pair, place, 2))
        if type(key) not in (bool, int, float, str) or key in entries:
            raise ModelFileError(f"{place} has a key that is no label or is there twice")
        entries[key] = value
    return entries


def _read_registered(tag: str, kind: type[Potential] | type[Solver]) -> Callable[[Any, str, int], Any]:
    def read(node: Any, where: str, depth: int) -> Any:
        record = strict.keys(node, where, ["name", "settings"])
        name = strict.text(record["name"], f"{where}.name")
        if name not in kind.registry:
            if type(record["settings"]) is not dict:
                raise ModelFileError(f"{where}.settings must be an object")
            return Unavailable(f"the {tag} {name!r}", json.dumps({tag: node}))
        return _made(kind.registry[name], record["settings"], where, depth, {tag: node})

    return read


def _made(kind: type, node: Any, where: str, depth: int, whole: Any) -> Any:
    """An object of a known kind by its settings."""
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    record = strict.keys(node, f"{where}.settings", names)
    settings = {name: read_parameter(record[name], f"{where}.settings.{name}", depth) for name in names}
    if missing := [value for value in settings.values() if isinstance(value, Unavailable)]:
        return Unavailable(f"{kind.__name__} with {missing[0].name}", json.dumps(whole))
    try:
        return kind(**settings)
    except Exception as error:  # of whatever kind: a registered class may be anybody's
        raise ModelFileError(f"{where} cannot be a {kind.__name__}: {error}") from None


def _read_hybrid(node: Any, where: str, depth: int) -> Any:
    return _made(Hybrid, node, where, depth, {"hybrid": node})


def _read_joint(node: Any, where: str, depth: int) -> Any:
    strict.one_of(node, where, [Newton.name])
    return Newton()  # files of before joint problems had the same solver as others


def _read_function(node: Any, where: str, depth: int) -> Any:
    return FUNCTIONS[strict.one_of(node, where, list(FUNCTIONS))]


def _read_random_state(node: Any, where: str, depth: int) -> Any:
    record = strict.keys(node, where, ["key", "position", "has_gauss", "gauss"])
    nodes = strict.items(record["key"], f"{where}.key", 624)
    key = [strict.integer(entry, f"{where}.key", 0, 2**32 - 1) for entry in nodes]
    position = strict.integer(record["position"], f"{where}.position", 0, 624)
    has_gauss = strict.integer(record["has_gauss"], f"{where}.has_gauss", 0, 1)
    gauss = strict.finite(record["gauss"], f"{where}.gauss")
    random_state = np.random.RandomState()
    random_state.set_state(("MT19937", np.array(key, dtype=np.uint32), position, has_gauss, gauss))
    return random_state


def _read_number(node: Any, where: str, depth: int) -> Any:
    return strict.number(node, where)


def _read_array(node: Any, where: str, depth: int) -> Any:
    return read_array(node, where)


def _read_unavailable(node: Any, where: str, depth: int) -> Any:
    return Unavailable(strict.text(node, where), json.dumps({"unavailable": node}))


READERS: dict[str, Callable[[Any, str, int], Any]] = {
    "tuple": _read_tuple,
    "dict": _read_dict,
    "potential": _read_registered("potential", Potential),
    "solver": _read_registered("solver", Solver),
    "hybrid": _read_hybrid,
    "joint": _read_joint,
    "function": _read_function,
    "random_state": _read_random_state,
    "number": _read_number,
    "array": _read_array,
    "unavailable": _read_unavailable,
}
