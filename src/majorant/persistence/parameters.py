"""Constructor parameters in a model file.

None, truth values, numbers, strings and lists are written as they are. Anything else is an object with one
key, its kind: ``{"potential": {"name": "welsch", "settings": {"lam": 0.1, "delta": 0.01}}}``. Loading looks
names up in the registries of potentials and solvers and in two short lists here; it imports nothing and calls
nothing else. If a value cannot be stored (a function, a splitter, a potential that is not registered), its
name is: the model predicts, and `fit` says which parameter has to be set again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from majorant.errors import ModelFileError
from majorant.persistence import strict
from majorant.persistence.arrays import array_node, read_array
from majorant.persistence.strict import BIT, FINITE, UINT32, integer_between, list_of, record
from majorant.potentials import Potential
from majorant.solvers import Hybrid, Newton, Solver, gradient_direction, memory_gradient

FUNCTIONS = {function.__name__: function for function in (memory_gradient, gradient_direction)}


@dataclass(frozen=True)
class Unavailable:
    """A parameter of which the model file has only the name.

    The model predicts; `fit` raises an error until the parameter is set again (`set_params`).
    """

    name: str
    """The name of the original value, e.g. a class with its module."""
    node: str
    """The text in the file, which `save_model` writes again."""

    def __repr__(self) -> str:
        return f"<{self.name}, of which the model file has only the name: set it again>"


def parameter_node(value: Any, depth: int = strict.DEPTH) -> Any:
    """The node of a parameter."""
    if isinstance(value, Unavailable):
        return json.loads(value.node)
    with suppress(TypeError):
        return strict.plain(value, 0)
    if isinstance(value, Real) and not isinstance(value, Integral):
        return {"number": strict.number_node(value)}
    if depth and isinstance(value, list):
        return [parameter_node(entry, depth - 1) for entry in value]
    for tag, kind in KINDS.items() if depth else ():
        payload = kind.write(value, depth - 1)
        if payload is not None:
            return {tag: payload}
    named = value if hasattr(value, "__qualname__") else type(value)  # a function, or an object of a class
    return {"unavailable": f"{named.__module__}.{named.__qualname__}"}


def read_parameter(node: Any, where: str, depth: int = strict.DEPTH) -> Any:
    """The parameter that `parameter_node` wrote."""
    if node is None or type(node) in (bool, int, float, str):
        return node
    if not depth:
        raise ModelFileError(f"{where} is nested too deeply")
    if type(node) is list:
        return [read_parameter(entry, f"{where}[{k}]", depth - 1) for k, entry in enumerate(node)]
    if type(node) is not dict or len(node) != 1:
        raise ModelFileError(f"{where} must be a parameter, got {strict.shown(node)}")
    ((tag, payload),) = node.items()
    if tag not in KINDS:
        raise ModelFileError(f"{where} is of an unknown kind, {strict.shown(tag)}")
    return KINDS[tag].read(payload, f"{where}.{tag}", depth - 1)


# Kinds: `write` returns None if the value is not of its kind -----------------------------------------------


class Kind(NamedTuple):
    """The functions that write and read a parameter of one kind; the last argument limits the nesting."""

    write: Callable[[Any, int], Any]
    read: Callable[[Any, str, int], Any]


def _write_tuple(value: Any, depth: int) -> Any:
    return [parameter_node(entry, depth) for entry in value] if isinstance(value, tuple) else None


def _read_tuple(node: Any, where: str, depth: int) -> Any:
    return tuple(read_parameter(strict.items(node, where), where, depth + 1))


def _write_dict(value: Any, depth: int) -> Any:
    if not isinstance(value, Mapping):
        return None
    return [[parameter_node(key, depth), parameter_node(entry, depth)] for key, entry in value.items()]


def _read_dict(node: Any, where: str, depth: int) -> Any:
    entries = {}
    for k, pair in enumerate(strict.items(node, where)):
        place = f"{where}[{k}]"
        key, value = (read_parameter(entry, place, depth) for entry in strict.items(pair, place, 2))
        if type(key) not in (bool, int, float, str) or key in entries:
            raise ModelFileError(f"{place} has a key that is no label or is there twice")
        entries[key] = value
    return entries


def _write_array(value: Any, depth: int) -> Any:
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


def _made(kind: type, node: Any, where: str, depth: int, whole: Any) -> Any:
    """An object of a known class with these settings."""
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    entries = strict.keys(node, f"{where}.settings", names)
    settings = {name: read_parameter(entries[name], f"{where}.settings.{name}", depth) for name in names}
    if missing := [value for value in settings.values() if isinstance(value, Unavailable)]:
        return Unavailable(f"{kind.__name__} with {missing[0].name}", json.dumps(whole))
    try:
        return kind(**settings)
    except Exception as error:  # any error, since a registered class may be a user's
        raise ModelFileError(f"{where} cannot be a {kind.__name__}: {error}") from None


def _registered(tag: str, kind: type[Potential] | type[Solver]) -> Kind:
    """An object of a registered class, by the name of the class and its settings."""

    def write(value: Any, depth: int) -> Any:
        if not isinstance(value, kind) or kind.registry.get(value.name) is not type(value):
            return None
        settings = _settings(value, depth)
        return None if settings is None else {"name": value.name, "settings": settings}

    def read(node: Any, where: str, depth: int) -> Any:
        entries = strict.keys(node, where, ["name", "settings"])
        name = strict.text(entries["name"], f"{where}.name")
        if name not in kind.registry:
            if type(entries["settings"]) is not dict:
                raise ModelFileError(f"{where}.settings must be an object")
            return Unavailable(f"the {tag} {name!r}", json.dumps({tag: node}))
        return _made(kind.registry[name], entries["settings"], where, depth, {tag: node})

    return Kind(write, read)


def _read_joint(node: Any, where: str, depth: int) -> Any:
    strict.one_of(node, where, [Newton.name])
    return Newton()  # older files, in which joint problems had a solver of their own


RANDOM_STATE = record(
    {"key": list_of(UINT32, 624), "position": integer_between(0, 624), "has_gauss": BIT, "gauss": FINITE}
)


def _write_random_state(value: Any, depth: int) -> Any:
    if not isinstance(value, np.random.RandomState):
        return None
    state = value.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        return None
    inner = {"key": state["state"]["key"].tolist(), "position": state["state"]["pos"]}
    return RANDOM_STATE.write({**state, **inner})


def _read_random_state(node: Any, where: str, depth: int) -> Any:
    state = RANDOM_STATE.read(node, where)
    state["key"] = np.array(state["key"], dtype=np.uint32)
    random_state = np.random.RandomState()
    random_state.set_state(("MT19937", *state.values()))
    return random_state


def _never(value: Any, depth: int) -> None:
    """The `write` of a kind that `parameter_node` writes without it, or that is only read."""


# The kinds, in the order in which `parameter_node` tries them.
KINDS: dict[str, Kind] = {
    "tuple": Kind(_write_tuple, _read_tuple),
    "dict": Kind(_write_dict, _read_dict),
    "potential": _registered("potential", Potential),
    "solver": _registered("solver", Solver),
    "hybrid": Kind(
        lambda value, depth: _settings(value, depth) if type(value) is Hybrid else None,
        lambda node, where, depth: _made(Hybrid, node, where, depth, {"hybrid": node}),
    ),
    "joint": Kind(_never, _read_joint),
    "function": Kind(
        lambda value, depth: next((name for name, known in FUNCTIONS.items() if known is value), None),
        lambda node, where, depth: FUNCTIONS[strict.one_of(node, where, list(FUNCTIONS))],
    ),
    "random_state": Kind(_write_random_state, _read_random_state),
    "number": Kind(_never, lambda node, where, depth: strict.number(node, where)),
    "array": Kind(_write_array, lambda node, where, depth: read_array(node, where)),
    "unavailable": Kind(
        _never,
        lambda node, where, depth: Unavailable(strict.text(node, where), json.dumps({"unavailable": node})),
    ),
}
