"""`save_model`, `load_model`, and `load_any`, which recognises other formats by the first bytes of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from majorant.errors import ModelFileError
from majorant.estimators import SparseSVC, SparseSVCCV
from majorant.files import atomic_write, check_writable
from majorant.persistence import strict
from majorant.persistence.document import check_document, document_of, model_of
from majorant.persistence.provenance import Provenance, read_provenance

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Kind: TypeAlias = Literal["majorant", "liblinear", "onnx"]

LIBLINEAR_HEAD = b"solver_type "
# A protobuf message of the type ModelProto begins with field 1, the version of the format, a number below
# 128; then comes one of the fields 2 to 8 or 14: the producer, the domain, the graph, the operators, ….
_ONNX_FIRST, _ONNX_SECOND = 0x08, (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72)
_LONGEST_HEAD = 4096
# Error messages for files of other formats, by their first bytes.
_OTHER_FILES: dict[tuple[bytes, ...], str] = {
    (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"): (
        "this is a pickle, which can run any program when it is loaded; majorant does not load pickles: "
        "load it where you trust it and use save_model"
    ),
    (b"PK\x03\x04",): "this is a zip archive (skops.io.load reads those of skops)",
    (b"\x1f\x8b", b"BZh", b"\xfd7zXZ"): "it is compressed: decompress it first",
    (LIBLINEAR_HEAD,): (
        "this is a model of LIBLINEAR: use majorant.persistence.from_liblinear or `majorant convert`"
    ),
}


def save_model(
    model: SparseSVC | SparseSVCCV | Pipeline,
    path: str | os.PathLike[str],
    *,
    provenance: Provenance | Mapping[str, Any] | None = None,
    overwrite: bool = True,
) -> None:
    """Write a fitted model to a file: JSON, which people can read, and which cannot contain a program.

    After an error there is either the old file or the whole new one. The same model gives the same bytes.
    docs/models.md describes every field.

    Parameters
    ----------
    model : SparseSVC, SparseSVCCV or Pipeline
        Fitted. Callbacks are not saved. A pipeline of scalers (`StandardScaler`, `MaxAbsScaler`,
        `MinMaxScaler`, `RobustScaler`) and a model becomes one model for unscaled features; with other
        scalers than `StandardScaler`, the model predicts, but has no certificate.
    path : path
        Any name; editors recognise ``.json``.
    provenance : Provenance or dict, optional
        Where the model comes from, e.g. ``Provenance.of(model, data)``; a dict of its fields and further
        facts.
    overwrite : bool, default=True
        Whether an existing file may be replaced.

    Examples
    --------
    >>> import tempfile, os
    >>> from majorant import SparseSVC, load_model, save_model
    >>> model = SparseSVC("l1", lam=0.1).fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "model.json")
    ...     save_model(model, path)
    ...     load_model(path).predict([[0.9, 0.0]])
    array(['yes'], dtype='<U3')
    """
    check_writable(path, overwrite=overwrite)
    with strict.without_garbage_collection():
        data = strict.render(document_of(model, provenance))
    if len(data) > strict.MAX_BYTES:
        raise ModelFileError(
            f"the model takes {len(data) / 2**20:.0f} MiB, and a model file at most "
            f"{strict.MAX_BYTES / 2**20:.0f}: a penalty with zeros makes it smaller"
        )
    with atomic_write(path, overwrite=overwrite) as file:
        file.write(data)


def load_model(path: str | os.PathLike[str]) -> SparseSVC | SparseSVCCV:
    """Read a model that `save_model` wrote; it predicts the same, bit for bit.

    Nothing in the file is executed. A potential or solver of your own is loaded if its class is already
    defined; otherwise the model predicts, and `fit` says what is missing.

    Parameters
    ----------
    path : path

    Returns
    -------
    SparseSVC or SparseSVCCV
        Fitted, with the saved parameters and attributes.

    Raises
    ------
    ModelFileError
        If anything is wrong with the file, in one sentence.
    """
    with naming(path):
        return _described_model(read_limited(path))[0]


def load_provenance(path: str | os.PathLike[str]) -> Provenance | None:
    """The provenance of the model in a file, as given to `save_model`.

    Parameters
    ----------
    path : path

    Returns
    -------
    Provenance or None
    """
    with naming(path):
        return read_provenance(check_document(_parsed(read_limited(path)))["provenance"])


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """The format of a model file, by its first bytes.

    Parameters
    ----------
    path : path

    Returns
    -------
    {"majorant", "liblinear", "onnx"} or None
        JSON, LIBLINEAR's text, or an ONNX graph. None for other files and for files that cannot be read;
        `load_any` says what is wrong with them.
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
        The file, which may be a pipe, since it is read once; "-" is standard input.

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
    """The model that `load_any` returns, and its provenance if the file has one; the file is read once."""
    from majorant.persistence import liblinear, onnx

    with naming(path):
        data = read_limited(path)
        match kind_of_bytes(data):
            case "liblinear":
                return liblinear.model_from_bytes(data), None
            case "onnx":
                return onnx.model_from_bytes(data), None
            case _:
                return _described_model(data)


def _described_model(data: bytes) -> tuple[SparseSVC | SparseSVCCV, Provenance | None]:
    """The model in the content of a file, and its provenance."""
    with strict.without_garbage_collection():
        return model_of(_parsed(data))


def _parsed(data: bytes) -> Any:
    """The document in the content of a file."""
    for heads, message in _OTHER_FILES.items():
        if data.startswith(heads):
            raise ModelFileError(message)
    if kind_of_bytes(data) == "onnx":
        raise ModelFileError("this is a graph of ONNX: use majorant.persistence.from_onnx")
    if not data.strip():
        raise ModelFileError("it is empty")
    return strict.parse(data)


def kind_of_bytes(data: bytes) -> Kind | None:
    """The format of a model file, by its content or the beginning of its content."""
    head = data[:_LONGEST_HEAD]
    if head.startswith(LIBLINEAR_HEAD):
        return "liblinear"
    if len(head) > 2 and head[0] == _ONNX_FIRST and head[1] < 128 and head[2] in _ONNX_SECOND:
        return "onnx"
    return "majorant" if head.lstrip().startswith(b"{") else None


def refuse_preprocessing(model: Any, format: str) -> None:
    """An error if a model needs its preprocessing, which other formats cannot hold."""
    if hasattr(model, "preprocessing_"):
        raise ModelFileError(
            f"the model fills in missing values or makes features of categories, which {format} cannot hold: "
            "prepare the columns beforehand, and train on the result"
        )


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Prefix errors about the content of a file with its name."""
    name = "<stdin>" if os.fspath(path) == "-" else os.fspath(path)
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from None
    except RecursionError:
        raise ModelFileError(f"{name}: it is nested deeper than any model file") from None
    except MemoryError:
        raise ModelFileError(f"{name}: it describes a model that does not fit into memory") from None


def read_limited(path: str | os.PathLike[str]) -> bytes:
    """The content of a file of at most MAX_BYTES; "-" is standard input."""
    try:
        if os.fspath(path) == "-":
            data = sys.stdin.buffer.read(strict.MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(strict.MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ModelFileError(f"it cannot be read ({reason})") from None
    if len(data) > strict.MAX_BYTES:
        raise ModelFileError(f"it is larger than a model file can be, {strict.MAX_BYTES / 2**20:.0f} MiB")
    return data
