"""One function for model files of every format."""

import os
import pickle
import threading

import numpy as np
import pytest

from majorant import SparseSVC, SparseSVCCV, load_model
from majorant.datasets import write_libsvm
from majorant.errors import ModelFileError
from majorant.persistence import kind_of, load_any, to_liblinear, to_onnx
from tests.persistence.same_model import assert_same_model, rows, save


@pytest.fixture(scope="module")
def model():
    X, codes = rows(3)
    return SparseSVC("l1", lam=0.5).fit(X, codes)


WRITERS = {
    "majorant": save,
    "liblinear": to_liblinear,
    "onnx": to_onnx,
    "onnx of old": lambda model, path: to_onnx(model, path, target_opset=9),
}


@pytest.mark.parametrize("name", ["model", "model.txt", "model.onnx"])
@pytest.mark.parametrize("format", WRITERS)
def test_every_format_is_known_by_its_bytes(model, tmp_path, format, name):
    X, _ = rows(3)
    WRITERS[format](model, tmp_path / name)
    assert kind_of(tmp_path / name) == format.split()[0]
    loaded = load_any(str(tmp_path / name))
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_our_own_comes_back_whole(tmp_path):
    X, codes = rows()
    model = SparseSVCCV("l1", lambdas=3).fit(X, codes)
    assert_same_model(load_any(save(model, tmp_path / "model")), model)


def test_an_imported_model_is_saved_and_loaded(model, tmp_path):
    for write in (to_liblinear, to_onnx):
        write(model, tmp_path / "other")
        imported = load_any(tmp_path / "other")
        assert not hasattr(imported, "solver_")
        assert imported.t_ == 0
        assert_same_model(load_any(save(imported, tmp_path / "ours")), imported)


OTHERS = {
    "empty": (b"", "it is empty"),
    "text": (b"1 1:0.5\n", "it is not JSON"),
    "pickle": (pickle.dumps({}), "does not load pickles"),
    "zip": (b"PK\x03\x04rest", "zip archive"),
    "one byte": (b"\x08", "it is not JSON"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_model_is_named(tmp_path, name):
    content, message = OTHERS[name]
    (tmp_path / "file").write_bytes(content)
    assert kind_of(tmp_path / "file") is None
    with pytest.raises(ModelFileError, match=message) as caught:
        load_any(tmp_path / "file")
    assert str(caught.value).startswith(str(tmp_path / "file"))


@pytest.mark.parametrize("content", [b"{}", b"solver_type x", b"\x08\x07\x12\x01", b" \n{"])
def test_damaged_models_are_named(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    assert kind_of(tmp_path / "file") is not None
    with pytest.raises(ModelFileError):
        load_any(tmp_path / "file")


def test_what_cannot_be_read_has_no_kind(tmp_path):
    for path in (tmp_path, tmp_path / "none", "nul\0"):
        assert kind_of(path) is None
        with pytest.raises(ModelFileError, match="it cannot be read"):
            load_any(path)


def test_data_are_no_model(tmp_path):
    X, codes = rows()
    write_libsvm(tmp_path / "data", X, codes)
    assert kind_of(tmp_path / "data") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names, which Windows does not have")
def test_a_pipe_is_read_once(model, tmp_path):
    text = to_liblinear(model).encode()
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(text))
    writer.start()
    assert np.array_equal(load_any(tmp_path / "pipe").classes_, model.classes_)
    writer.join()


def test_our_own_function_says_what_the_others_are(model, tmp_path):
    to_onnx(model, tmp_path / "graph")
    with pytest.raises(ModelFileError, match="this is a graph of ONNX: use majorant"):
        load_model(tmp_path / "graph")
