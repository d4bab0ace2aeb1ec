"""What users are told: at the edge of a grid, and about parameters of other libraries."""

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer

from majorant import SparseSVC, SparseSVCCV, sparse_svc_path

X, Y = load_breast_cancer(return_X_y=True)
MEAN, STD = X.mean(axis=0), X.std(axis=0)


def warned(model, X=X, y=Y):
    """The model after its fit, and the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return model, " ".join(str(each.message) for each in caught if each.category is UserWarning)


def test_the_smallest_strength_of_a_grid_is_warned_of_with_a_hint_at_scales():
    model, text = warned(SparseSVCCV("l1", lambdas=5))
    assert model.lam_best_ == model.lambdas_[-1]
    assert "at the smallest strength of the grid" in text
    assert "Take a smaller ratio." in text
    assert "differ by a factor of 215171" in text
    assert "standardize=True" in text


def test_similar_scales_are_not_blamed():
    _, text = warned(SparseSVCCV("l1", lambdas=[1e3, 3e2]), (X - MEAN) / STD)
    assert "at the smallest strength of the grid" in text
    assert "standard deviations" not in text


def test_the_largest_strength_of_a_grid_is_warned_of():
    model, text = warned(SparseSVCCV("l1", lambdas=[0.01, 0.001], standardize=True))
    assert model.lam_best_ == model.lambdas_[0]
    assert "at the largest strength of the grid, lam=0.01: a larger one may score better" in text


def test_features_that_do_not_help_are_told():
    noise = np.random.default_rng(0).standard_normal((200, 3))
    labels = np.where(np.arange(200) % 5 == 0, 1, 0)
    _, text = warned(SparseSVCCV("l1", lambdas=5), noise, labels)
    assert "no model that uses features scores better than one without" in text


def test_a_choice_inside_of_the_grid_is_not_warned_of():
    assert warned(SparseSVCCV("l1", lambdas=20, standardize=True))[1] == ""


def test_max_features_limits_a_cross_validation():
    model, text = warned(SparseSVCCV("l1", lambdas=20, standardize=True, max_features=3))
    assert text == ""
    assert 0 < len(model.support_) <= 3
    path = sparse_svc_path(X, Y, "l1", lambdas=20, standardize=True, max_features=3)
    assert np.array_equal(model.lambdas_, path.lambdas)
    chosen = int(np.flatnonzero(path.lambdas == model.lam_)[0])
    assert np.array_equal(model.coef_, path.coefs[[chosen]])


def test_max_features_below_the_first_model_is_refused():
    with pytest.raises(ValueError, match="max_features is 3: begin the path at a larger lam"):
        SparseSVCCV("l1", lambdas=[1e-3, 1e-4], max_features=3, standardize=True).fit(X, Y)


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("C", r"SparseSVC has no parameter 'C': the strength of the penalty is lam.* lam = 1/C"),
        ("alpha", "has no parameter 'alpha': the strength of the penalty is lam"),
        ("alphas", "SparseSVCCV and sparse_svc_path take several as lambdas"),
        ("l1_ratio", "an elastic net is penalty='l1' with the strength lam and a ridge of the strength eta"),
        ("loss", "the loss is the squared hinge"),
    ],
)
def test_parameters_of_other_libraries_are_answered_with_ours(parameter, message):
    with pytest.raises(TypeError, match=message):
        SparseSVC(**{parameter: 1.0})


def test_an_unknown_parameter_is_still_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        SparseSVC(nonsense=1)


def test_a_penalty_in_other_letters_is_recognised():
    with pytest.raises(ValueError, match=r"penalty='L1' is unknown. Did you mean 'l1'\?"):
        SparseSVC("L1").fit(X, Y)


def test_a_penalty_with_a_kink_says_why_there_is_no_partial_fit():
    model = SparseSVC("l1")
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match=r"has no partial_fit: .*'l1' has a kink at zero"):
        model.partial_fit(X, Y, classes=[0, 1])


@pytest.mark.parametrize("name", ["X", "y"])
def test_a_lazy_frame_is_answered_with_collect(name):
    frames = {"X": pl.DataFrame(X), "y": pl.DataFrame({"y": Y})}
    frames[name] = frames[name].lazy()
    with pytest.raises(TypeError, match=rf"{name} is a LazyFrame, .*: pass {name}.collect\(\)"):
        SparseSVC().fit(**frames)


def test_predicting_from_a_lazy_frame_is_answered_with_collect():
    with pytest.raises(TypeError, match=r"pass X.collect\(\)"):
        SparseSVC().fit(X, Y).predict(pl.DataFrame(X).lazy())
