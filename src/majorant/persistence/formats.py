"""Which format a model file has, by its first bytes, and `load_any`, which reads all of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from majorant.errors import ModelFileError

if TYPE_CHECKING:
    from majorant.estimators import SparseSVC, SparseSVCCV
    from majorant.persistence.provenance import Provenance

Kind: TypeAlias = Literal["majorant", "liblinear", "onnx"]

LIBLINEAR_HEAD = b"solver_type "
# How a protobuf message of the type ModelProto begins: its field 1, the version of the format, a number below
# 128; then one of the fields 2 to 8 or 14, which are the producer, the domain, the graph, the operators, ….
_ONNX_FIRST, _ONNX_SECOND = 0x08, (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72)
_LONGEST_HEAD = 4096


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """Of which format a model file seems to be.

    Parameters
    ----------
    path : path

    Returns
    -------
    {"majorant", "liblinear", "onnx"} or None
        By the first bytes, whatever the name is: JSON, LIBLINEAR's text, a graph of ONNX. None for anything
        else, also for what cannot be read; `load_any` says what is wrong with it.
    """
    try:
        with open(path, "rb") as file:
            return kind_of_bytes(file.read(_LONGEST_HEAD))
    except (OSError, ValueError):
        return None


def load_any(path: str | os.PathLike[str]) -> SparseSVC | SparseSVCCV:
    """Read a model of any format: our own, LIBLINEAR's text, or ONNX as `to_onnx` writes it.

    Parameters
    ----------
    path : path or "-"
        Read once, from its beginning to its end: it may be a pipe; "-" is standard input.

    Returns
    -------
    SparseSVC or SparseSVCCV
        Fitted, so that it predicts; of the other formats, see `from_liblinear` and `from_onnx`.

    Raises
    ------
    ModelFileError
        If anything is wrong with the file, in one sentence.
    """
    return load_described(path)[0]


def load_described(path: str | os.PathLike[str]) -> tuple[SparseSVC | SparseSVCCV, Provenance | None]:
    """What `load_any` reads, and where it comes from as far as the file says; still read once."""
    from majorant.persistence import liblinear, onnx, store

    with store.naming(Path(path)):
        data = store.read_limited(path)
        match kind_of_bytes(data):
            case "liblinear":
                return liblinear.model_from_bytes(data), None
            case "onnx":
                return onnx.model_from_bytes(data), None
            case _:
                return store.described_model_from_bytes(data)


def refuse_other_formats(data: bytes) -> None:
    """Say what a file is that is not our own, where its first bytes tell."""
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise ModelFileError(
            "this is a pickle, which can run any program when it is loaded; majorant does not load pickles: "
            "load it where you trust it and use save_model"
        )
    if data.startswith(b"PK\x03\x04"):
        raise ModelFileError("this is a zip archive (skops.io.load reads those of skops)")
    if data.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ")):
        raise ModelFileError("it is compressed: decompress it first")
    match kind_of_bytes(data):
        case "liblinear":
            raise ModelFileError(
                "this is a model of LIBLINEAR: use majorant.persistence.from_liblinear or `majorant convert`"
            )
        case "onnx":
            raise ModelFileError("this is a graph of ONNX: use majorant.persistence.from_onnx")
    if not data.strip():
        raise ModelFileError("it is empty")


def kind_of_bytes(data: bytes) -> Kind | None:
    """Of which format a model file seems to be, by its content or the beginning of its content."""
    head = data[:_LONGEST_HEAD]
    if head.startswith(LIBLINEAR_HEAD):
        return "liblinear"
    if len(head) > 2 and head[0] == _ONNX_FIRST and head[1] < 128 and head[2] in _ONNX_SECOND:
        return "onnx"
    return "majorant" if head.lstrip().startswith(b"{") else None
