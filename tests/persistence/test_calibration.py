"""Calibrations in model files: the same probabilities, bit for bit; and only in files that have one."""

import json

import numpy as np
import pytest

from majorant import SparseSVC, load_model, save_model
from majorant.errors import ModelFileError
from majorant.estimators.calibration import METHODS, Calibration
from majorant.persistence.document import checksum
from tests import ROOT


def fitted(method=None, classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = np.argmax(X[:, :classes] + rng.standard_normal((80, classes)), axis=1)
    model = SparseSVC("l2").fit(X, y)
    if method:
        model.calibration_ = Calibration.fit(method, 5, model.decision_function(X), y, model.classes_)
    return model, X


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_calibration_comes_back_to_the_last_bit(tmp_path, method, classes):
    model, X = fitted(method, classes)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert (loaded.calibration_.method, loaded.calibration_.folds) == (method, 5)
    save_model(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    assert json.loads((tmp_path / "m").read_text())["version"] == 3


def test_a_model_without_calibration_has_no_probabilities(tmp_path):
    save_model(fitted()[0], tmp_path / "m")
    document = json.loads((tmp_path / "m").read_text())
    assert "calibration_" not in document["fitted"]
    assert not hasattr(load_model(tmp_path / "m"), "predict_proba")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "magic"}, "method must be one of sigmoid, isotonic"),
        ({"folds": -1}, "folds must be between"),
        ({"curves": []}, "curves must have 1 entries"),
        ({"curves": [[[1.0]]]}, "must have 2 entries"),
        ({"curves": [[[], []]]}, "lists of another length"),
        ({"curves": [[[1.0, 2.0], [0.5]]]}, "lists of another length"),
        ({"curves": [[[1.0], [None]]]}, "must be a number"),
        ({"method": "sigmoid", "curves": [[[1.0, 2.0], [1.0, 2.0]]]}, "lists of another length than sigmoid"),
        ({"curves": [[[2.0, 1.0], [0.1, 0.2]]]}, "must rise"),
        ({"curves": [[[1.0, 2.0], [0.2, 0.1]]]}, "must rise"),
        ({"curves": [[[1.0, 2.0], [0.2, 1.1]]]}, "must rise"),
        ({"extra": 1}, "has 'extra', which is unknown"),
    ],
)
def test_a_damaged_calibration_is_refused(tmp_path, change, message):
    save_model(fitted("isotonic")[0], tmp_path / "m")
    document = json.loads((tmp_path / "m").read_text())
    document["fitted"]["calibration_"] |= change
    document["sha256"] = checksum(document)
    (tmp_path / "m").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=f"calibration_.*{message}"):
        load_model(tmp_path / "m")


def test_a_calibration_in_a_file_of_version_1_is_unknown(tmp_path):
    save_model(fitted("sigmoid")[0], tmp_path / "m")
    document = json.loads((tmp_path / "m").read_text()) | {"version": 1}
    for parameter in ("standardize", "n_features", "refit"):  # of later versions
        del document["params"][parameter]
    document["sha256"] = checksum(document)
    (tmp_path / "m").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="fitted has 'calibration_', which is unknown"):
        load_model(tmp_path / "m")


def test_the_page_describes_the_calibration():
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in ("calibration_", "curves", "folds", *METHODS))
