"""Preprocessing in model files: what was learned comes back; other formats refuse it."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from majorant import SparseSVC, load_model, save_model
from majorant.datasets import Preprocessing
from majorant.errors import ModelFileError
from majorant.persistence import to_liblinear, to_onnx
from majorant.persistence.document import checksum
from tests import ROOT
from tests.persistence.same_model import rows

LEARNED = Preprocessing("mean", ("ward", "stage"), {"age": 31.5}, {"ward": ["", "x"], "stage": ["1"]})


def fitted(preprocessing=LEARNED):
    X, codes = rows()
    model = SparseSVC("l1").fit(X, codes)
    model.feature_names_in_ = np.array(["age", "ward=", "ward=x", "stage=1"], dtype=object)
    if preprocessing is not None:
        model.preprocessing_ = preprocessing
    return model


@pytest.mark.parametrize(
    "preprocessing",
    [
        LEARNED,
        Preprocessing("median", (), {"age": -1.0, "": 1e300}, {}),
        Preprocessing(-1, ("c",), {"b": -1.0}, {"c": ["1", "2"]}),
        Preprocessing(None, ("ß\u2028",), {}, {"ß\u2028": ['"', "\n"][::-1]}),
    ],
    ids=str,
)
def test_it_comes_back(tmp_path, preprocessing):
    model = fitted(preprocessing)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.preprocessing_ == preprocessing
    save_model(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_another_fit_does_not_keep_it(tmp_path):
    X, codes = rows()
    assert not hasattr(clone(fitted()), "preprocessing_")
    assert not hasattr(fitted().fit(X, codes), "preprocessing_")
    save_model(fitted(None), tmp_path / "m")
    assert "preprocessing_" not in json.loads((tmp_path / "m").read_text())["fitted"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"impute": "mode"}, "impute must be one of median, mean"),
        ({"impute": [1]}, "impute must be a number"),
        ({"impute": True}, "impute must be a number"),
        ({"fill": [1.0]}, "fill must be an object"),
        ({"fill": {"age": "1"}}, "fill.'age' must be a number"),
        ({"categories": {"ward": "x"}}, "categories.'ward' must be a list"),
        ({"categories": {"ward": [1]}}, r"categories.'ward'\[0\] must be a string"),
        ({"categories": {"ward": ["x", "a"]}}, "categories.'ward' must be in order, each once"),
        ({"extra": 1}, "has 'extra', which is unknown"),
    ],
)
def test_damaged_preprocessing_is_refused(tmp_path, change, message):
    save_model(fitted(), tmp_path / "m")
    document = json.loads((tmp_path / "m").read_text())
    document["fitted"]["preprocessing_"] |= change
    document["sha256"] = checksum(document)
    (tmp_path / "m").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=f"preprocessing_.*{message}"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("convert", [to_liblinear, to_onnx])
def test_formats_that_cannot_hold_it_refuse_it(convert):
    with pytest.raises(ModelFileError, match=r"makes features of categories, which .* cannot hold: prepare"):
        convert(fitted())
    assert convert(fitted(None))


def test_the_page_describes_it():
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in ("preprocessing_", "impute", "fill", "categories"))
