"""Models in files: `save_model` and `load_model`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from majorant.errors import ModelFileError
from majorant.files import atomic_write, check_writable
from majorant.persistence import strict
from majorant.persistence.document import check_document, described_model_of, document_of
from majorant.persistence.formats import refuse_other_formats
from majorant.persistence.provenance import Provenance, read_provenance

if TYPE_CHECKING:
    from majorant.estimators import SparseSVC, SparseSVCCV


def save_model(
    model: SparseSVC | SparseSVCCV,
    path: str | os.PathLike[str],
    *,
    provenance: Provenance | Mapping[str, Any] | None = None,
    overwrite: bool = True,
) -> None:
    """Write a fitted model to a file: JSON, which is readable and cannot contain a program.

    The file is replaced whole: whatever happens meanwhile, there is the old one or the new one. The same
    model makes the same bytes. docs/models.md describes every field.

    Parameters
    ----------
    model : SparseSVC or SparseSVCCV
        Fitted. Callbacks are not kept.
    path : path
        Any name; ``.json`` lets editors know what it is.
    provenance : Provenance or dict, optional
        Where the model comes from, e.g. ``Provenance.of(model, data)``; a dict is taken for its fields, and
        for what else there is to tell.
    overwrite : bool, default=True
        Whether a file that is there already may be replaced.

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
    with strict.many_small_lists():
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

    Nothing in the file is executed. A potential or solver of your own is found again if its class is defined
    before; otherwise the model predicts, and `fit` says what is missing.

    Parameters
    ----------
    path : path

    Returns
    -------
    SparseSVC or SparseSVCCV
        Fitted, as it was.

    Raises
    ------
    ModelFileError
        If anything is wrong with the file, in one sentence.
    """
    with naming(path):
        return described_model_from_bytes(read_limited(path))[0]


def load_provenance(path: str | os.PathLike[str]) -> Provenance | None:
    """Where the model of a file comes from, as far as `save_model` was told.

    Parameters
    ----------
    path : path

    Returns
    -------
    Provenance or None
    """
    with naming(path):
        return read_provenance(check_document(_parsed(read_limited(path)))["provenance"])


def described_model_from_bytes(data: bytes) -> tuple[SparseSVC | SparseSVCCV, Provenance | None]:
    """The model of the content of a file, and where it comes from."""
    with strict.many_small_lists():
        return described_model_of(_parsed(data))


def _parsed(data: bytes) -> Any:
    refuse_other_formats(data)
    return strict.parse(data)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors about the content of a file begin with its name."""
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
    """The content of a file that is not larger than model files are; "-" is standard input."""
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
