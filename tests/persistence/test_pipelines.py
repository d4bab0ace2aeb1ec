"""Pipelines of scalers and a classifier are saved as one model for unscaled features."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC

from majorant import SparseSVC, SparseSVCCV, load_model, save_model
from majorant.errors import ModelFileError

FRAME, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X = FRAME.to_numpy()

SCALERS = {
    "standard": [StandardScaler()],
    "not centred": [StandardScaler(with_mean=False)],
    "not scaled": [StandardScaler(with_std=False)],
    "max-abs": [MaxAbsScaler()],
    "min-max": [MinMaxScaler((-1.0, 2.0))],
    "robust": [RobustScaler()],
    "robust, not centred": [RobustScaler(with_centering=False)],
    "two": [MaxAbsScaler(), "passthrough", StandardScaler()],
    "none": ["passthrough"],
}


def through_a_file(pipeline, tmp_path):
    save_model(pipeline, tmp_path / "model.json")
    return load_model(tmp_path / "model.json")


@pytest.mark.parametrize("scalers", SCALERS.values(), ids=SCALERS)
def test_the_model_of_a_pipeline_decides_as_the_pipeline(scalers, tmp_path):
    pipeline = make_pipeline(*scalers, SparseSVC("l1", lam=0.5)).fit(FRAME, Y)
    model = through_a_file(pipeline, tmp_path)
    assert np.allclose(
        model.decision_function(FRAME), pipeline.decision_function(FRAME), rtol=1e-9, atol=1e-9
    )
    assert model.feature_names_in_.tolist() == FRAME.columns.tolist()
    assert np.array_equal(model.support_, pipeline[-1].support_)


def test_several_classes_are_folded(tmp_path):
    rows, labels = load_iris(return_X_y=True)
    pipeline = make_pipeline(RobustScaler(), SparseSVC("l1", lam=0.5)).fit(rows, labels)
    model = through_a_file(pipeline, tmp_path)
    assert np.allclose(model.decision_function(rows), pipeline.decision_function(rows), rtol=1e-9, atol=1e-9)


def test_sparse_pipelines_are_folded(tmp_path):
    rows = sp.csr_array(np.where(X < np.median(X, axis=0) + 1e-9, 0.0, X))  # noqa: SIM300
    pipeline = make_pipeline(MaxAbsScaler(), SparseSVC("l1", lam=0.5)).fit(rows, Y)
    pipeline[-1].sparsify()
    model = through_a_file(pipeline, tmp_path)
    assert sp.issparse(model.coef_)
    assert np.allclose(model.decision_function(rows), pipeline.decision_function(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [SparseSVC, SparseSVCCV], ids=lambda kind: kind.__name__)
def test_a_standard_scaler_is_standardize_and_all_claims_stay_true(kind, tmp_path):
    options = {"lam": 5.0} if kind is SparseSVC else {"lambdas": 6}
    pipeline = make_pipeline(StandardScaler(), kind("l1", **options)).fit(X, Y)
    model = through_a_file(pipeline, tmp_path)
    assert model.standardize is True
    assert np.allclose(model.scale_, X.std(axis=0), rtol=1e-12)
    margins = np.where(Y == 1, 1.0, -1.0) * model.decision_function(X)
    phi = (
        np.sum(np.maximum(0.0, 1.0 - margins) ** 2) + model.lam_ * np.abs(model.coef_[0] * model.scale_).sum()
    )
    assert np.isclose(model.objective_, phi, rtol=1e-9)
    again = SparseSVC("l1", lam=model.lam_, standardize=True).fit(X, Y)
    assert np.allclose(model.coef_, again.coef_, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("kind", [SparseSVC, SparseSVCCV], ids=lambda kind: kind.__name__)
def test_of_other_scalers_nothing_is_claimed(kind, tmp_path):
    options = {"lam": 5.0} if kind is SparseSVC else {"lambdas": 6}
    pipeline = make_pipeline(MaxAbsScaler(), kind("l1", **options)).fit(X, Y)
    model = through_a_file(pipeline, tmp_path)
    assert type(model) is SparseSVC
    assert model.lam_ == pipeline[-1].lam_
    assert not hasattr(model, "objective_")


def test_a_step_that_is_no_scaler_is_named(tmp_path):
    pipeline = make_pipeline(PCA(3), SparseSVC()).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"has a step PCA, .*: save its last step, model\[-1\]"):
        save_model(pipeline, tmp_path / "model.json")


def test_another_classifier_is_named(tmp_path):
    pipeline = make_pipeline(StandardScaler(), LinearSVC()).fit(X, Y)
    with pytest.raises(ModelFileError, match="the last step of this Pipeline is a LinearSVC"):
        save_model(pipeline, tmp_path / "model.json")
