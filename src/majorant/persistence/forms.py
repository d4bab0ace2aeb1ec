"""Forms: how a value of each kind is written to a model document, and read from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from majorant.persistence import strict


class Form(NamedTuple):
    """Two functions, each the inverse of the other."""

    write: Callable[[Any], Any]
    """From a value to a node of JSON's own types."""
    read: Callable[[Any, str], Any]
    """From a node, and where it is, to the value; or a `ModelFileError`."""


def integer(low: int = 0, high: int = 2**63 - 1) -> Form:
    """An integer between two bounds."""
    return Form(int, partial(strict.integer, low=low, high=high))


def list_of(form: Form, length: int | None = None) -> Form:
    """A list, of that length if one is given."""
    return Form(
        lambda values: [form.write(value) for value in values],
        lambda node, where: strict.each(form.read, strict.items(node, where, length), where),
    )


def record(forms: Mapping[str, Form]) -> Form:
    """A dict with exactly these keys, as an object."""

    def read(node: Any, where: str) -> dict[str, Any]:
        entries = strict.keys(node, where, list(forms))
        return {name: form.read(entries[name], f"{where}.{name}") for name, form in forms.items()}

    return Form(lambda values: {name: form.write(values[name]) for name, form in forms.items()}, read)


COUNT = integer()
NUMBER = Form(strict.number_node, strict.number)
FINITE = Form(float, strict.finite)
TEXT = Form(str, strict.text)
BIT = integer(0, 1)
UINT32 = integer(0, 2**32 - 1)
# Of the fields of a dataclass, by their annotation.
BY_ANNOTATION = {"int": COUNT, "float": NUMBER}
