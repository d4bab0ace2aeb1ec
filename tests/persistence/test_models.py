"""Models in files: what comes back is what was there, and nothing else gets in."""

import ast
import json
import pickle
import re
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from numbers import Integral
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import Interval, InvalidParameterError

import majorant
from majorant import SparseSVC, SparseSVCCV, load_model, save_model, sparse_svc_path
from majorant.cli.models import Model
from majorant.datasets import Data
from majorant.errors import ModelFileError, OutputError
from majorant.estimators.fitted import FITTED, Attribute, Origin, get_fitted, origin_of, set_fitted
from majorant.estimators.parameters import constrained, declared, parameter
from majorant.persistence import (
    Provenance,
    Unavailable,
    from_liblinear,
    kind_of,
    load_provenance,
    strict,
    to_liblinear,
)
from majorant.persistence import document as document_module
from majorant.persistence.document import ESTIMATORS, checksum, document_of, model_of
from majorant.persistence.fitted import FORMS
from majorant.persistence.provenance import FIELDS
from majorant.potentials import L1, Potential, Welsch
from majorant.solvers import SGD, Adam, Descent, MMSubspace, Momentum, Solver, gradient_direction
from majorant.status import Status
from tests import ROOT
from tests.persistence.same_model import assert_same_model, differences, rows, save
from tests.problems import all_examples, random_objective

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
GOLDEN = sorted((Path(__file__).parent / "models").glob("*.json"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


def through_a_file(model, path):
    save_model(model, path)
    loaded = load_model(path)
    assert_same_model(model, loaded)
    before = path.read_bytes()
    save_model(loaded, path)
    assert path.read_bytes() == before
    return loaded


# Laws ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("potential", all_examples(Potential.registry))
def test_every_penalty_comes_back(potential, path):
    X, codes = rows()
    for penalty in (potential, potential.name):
        model = SparseSVC(penalty, lam=0.7, delta=0.05, eta=0.1).fit(X, codes)
        loaded = through_a_file(model, path)
        assert loaded.get_params() == model.get_params()
        assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
        assert np.array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_every_way_to_train_classes_comes_back(multi_class, path):
    X, codes = rows(3)
    model = SparseSVC("l1", lam=0.7, multi_class=multi_class).fit(X, codes)
    assert np.array_equal(through_a_file(model, path).decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_numbers_of_features_come_back(multi_class, path):
    X, codes = rows(3)
    model = SparseSVC(n_features=2, multi_class=multi_class).fit(X, codes)
    loaded = through_a_file(model, path)
    assert (loaded.n_features, loaded.status_) == (2, Status.NO_SWAP)
    model = SparseSVCCV(n_features=[1, 3], cv=3, multi_class=multi_class).fit(X, codes)
    loaded = through_a_file(model, path)
    assert loaded.sizes_.tolist() == loaded.cv_results_["n_features"].tolist() == [1, 3]
    assert loaded.n_features_ == model.n_features_
    assert not hasattr(loaded, "lambdas_")


@pytest.mark.parametrize("solver", all_examples(Solver.registry))
def test_every_solver_comes_back(solver, path):
    X, codes = rows()
    for chosen in (solver, solver.name):
        model = SparseSVC(solver=chosen, delta=0.1, max_iter=3, random_state=3).fit(X, codes)
        assert through_a_file(model, path).get_params() == model.get_params()


LABELS = {
    **{name: np.arange(5, 8).astype(name) for name in ("int8", "int16", "int32", "int64")},
    **{name: np.arange(5, 8).astype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
    "big integers": np.array([-(2**63), 0, 2**63 - 1]),
    "big unsigned": np.array([0, 2**63, 2**64 - 1], dtype=np.uint64),
    "other end": np.arange(3).astype(">i4"),
    "float16": np.array([-1.0, 0.0, 2.0], dtype=np.float16),
    "float32": np.array([-1.0, 0.0, 2.0], dtype=np.float32),
    "float64": np.array([-1.0, 0.0, 2.0]),
    "strings": np.array(["a", "bb", "ä\u2028\U0001f40d"]),
    "other end strings": np.array(["a", "b", "cc"]).astype(">U2"),
    "objects": np.array(["", "b\x00", "\ud800"], dtype=object),
    "quotes": np.array(['"', "\\", "\n"]),
}


@pytest.mark.parametrize("name", LABELS)
def test_every_kind_of_label_comes_back(name, path):
    for n_classes, dtype in ((2, np.float32), (3, np.float64)):
        X, codes = rows(n_classes, dtype)
        labels = np.sort(LABELS[name])[:n_classes]
        model = SparseSVC("l1", lam=0.5).fit(X, labels[codes])
        loaded = through_a_file(model, path)
        assert loaded.classes_.dtype == labels.dtype
        assert loaded.predict(X).tolist() == model.predict(X).tolist()
        assert loaded.coef_.dtype == dtype


def test_truth_values_are_labels(path):
    X, codes = rows()
    assert through_a_file(SparseSVC().fit(X, codes == 1), path).classes_.tolist() == [False, True]


def test_parameters_of_every_kind_come_back(path):
    X, codes = rows(3)
    model = SparseSVC(
        Welsch(0.2, 0.3),
        penalty_factor=np.array([1.0, 2.0, 0.0, 0.5]),
        solver=MMSubspace(gradient_direction, memory=2),
        warmup=2,
        warmup_solver=Adam(step=0.01, schedule="constant"),
        class_weight={0: 2.0, np.int64(2): 0.5},
        random_state=np.random.RandomState(5),
        max_iter=np.int64(7),
        tol=np.float32(1e-3),
        zero_tol=0.25,
    ).fit(X, codes)
    loaded = load_model(save(model, path))
    assert differences(model.get_params(), loaded.get_params()) == ["model.max_iter"]  # a Python int now
    assert loaded.max_iter == 7
    assert loaded.solver_ == model.solver_
    for factor in ([1.0, 2.0, 0.0, 0.5], (1, 2, 0, 3), pd.Series([1.0, 2.0, 0.0, 0.5])):
        model.set_params(penalty_factor=factor, tol=1e-3).fit(X, codes)
        factor_back = load_model(save(model, path)).penalty_factor
        assert type(factor_back) is (type(factor) if isinstance(factor, list | tuple) else np.ndarray)
        assert np.array_equal(factor_back, factor)


def test_cross_validation_comes_back(path):
    X, codes = rows(3)
    folds = StratifiedKFold(4)
    splits = list(folds.split(X, codes))
    for cv in (None, 3, splits):
        model = SparseSVCCV("l1", lambdas=[3.0, 1.0, 0.3], cv=cv, scoring="accuracy", selection="1se")
        model.fit(pd.DataFrame(X, columns=["a", "b", "c", "d"]), codes)
        loaded = through_a_file(model, path)
        assert loaded.cv_results_["rank_test_score"].dtype == model.cv_results_["rank_test_score"].dtype
        assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_signed_zeros_subnormals_and_extremes_come_back(path):
    X, codes = rows()
    model = SparseSVC("l2").fit(X, codes)
    model.coef_[0] = [-0.0, 5e-324, -1.7976931348623157e308, 0.1]
    model.support_ = np.array([1, 2, 3])
    assert np.signbit(through_a_file(model, path).coef_[0, 0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparsified_models_and_those_of_a_path_come_back(dtype, path):
    X, codes = rows(3, dtype)
    through_a_file(SparseSVC("l1", lam=2.0).fit(X, codes).sparsify(), path)
    for model in sparse_svc_path(X, codes, "l1", lambdas=4).models:
        loaded = through_a_file(model, path)
        assert_same_model(clone(model), clone(loaded))


def test_a_loaded_model_is_a_normal_estimator(path):
    X, codes = rows()
    model = SparseSVC("l1", lam=0.5, warm_start=True).fit(X, codes)
    loaded = load_model(save(model, path))
    assert_same_model(pickle.loads(pickle.dumps(loaded)), model)
    assert loaded.fit(X, codes).n_iter_ == model.fit(X, codes).n_iter_ <= 2
    assert loaded.score(X, codes) == model.score(X, codes)
    assert repr(clone(loaded)) == repr(clone(model))
    assert len(loaded.history_.to_frame()) == len(loaded.history_)


@pytest.mark.parametrize("solver", ["auto", SGD(batch_size=5), Momentum(step=0.01), Adam(batch_size=3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stream_goes_on_after_loading_bit_for_bit(solver, n_classes, path):
    X, codes = rows(n_classes)
    model = SparseSVC(solver=solver, delta=0.1, random_state=1, zero_tol=0.01)
    model.partial_fit(X[:15], codes[:15], classes=range(n_classes))
    loaded = through_a_file(model, path)
    for part in (slice(15, 30), slice(30, 40)):
        assert_same_model(model.partial_fit(X[part], codes[part]), loaded.partial_fit(X[part], codes[part]))


@pytest.mark.parametrize("solver", [SGD(), Momentum(), Adam()], ids=lambda solver: solver.name)
def test_a_descent_is_restored_from_its_state(solver):
    objective = random_objective(Welsch(0.2, 0.3))
    descent = Descent(solver, np.zeros(7), seed=3)
    descent.epoch(objective, 40)
    state = deepcopy(descent.state())
    twins = [Descent.restored(solver, state) for _ in range(2)]
    descent.epoch(objective, 40)
    for twin in twins:  # the second one finds the state as the first one did
        twin.epoch(objective, 40)
        assert differences(vars(descent), vars(twin)) == []


def test_the_stream_of_a_solver_that_is_not_known_begins_at_the_coefficients(path):
    X, codes = rows()
    model = SparseSVC(solver=SGD(schedule=lambda epochs: 0.5), delta=0.1).partial_fit(
        X, codes, classes=[0, 1]
    )
    loaded = load_model(save(model, path))
    assert loaded._stream is None
    loaded.set_params(solver="sgd").partial_fit(X, codes)
    assert loaded.t_ == 2 * model.t_


@pytest.mark.parametrize("status", Status)
def test_every_status_comes_back(status, path):
    X, codes = rows()
    model = SparseSVC().fit(X, codes)
    model.status_, model.converged_ = status, status.converged
    model.gap_, model.lower_bound_, model.stationarity_ = np.nan, -np.inf, np.inf
    through_a_file(model, path)


def test_the_same_model_makes_the_same_bytes(path):
    X, codes = rows()
    model = SparseSVC().fit(X, codes)
    twin = pickle.loads(pickle.dumps(model))
    assert save(model, path).read_bytes() == save(twin, path).read_bytes()


def test_a_file_can_be_reformatted(path):
    X, codes = rows()
    model = SparseSVC().fit(X, codes)
    node = json.loads(save(model, path).read_bytes())
    path.write_text(json.dumps(dict(reversed(node.items())), indent=7).replace("\n", "\r\n"))
    assert_same_model(model, load_model(path))


# Extensions ------------------------------------------------------------------------------------------------


@pytest.fixture
def registries(monkeypatch):
    monkeypatch.setattr(Potential, "registry", dict(Potential.registry))
    monkeypatch.setattr(Solver, "registry", dict(Solver.registry))


def test_a_potential_of_ones_own_comes_back_if_it_is_registered(registries, path):
    @dataclass(frozen=True)
    class Mine(L1):
        power: int = 1
        name = "mine"

    X, codes = rows()
    model = SparseSVC(Mine(0.5, 3)).fit(X, codes)
    assert load_model(save(model, path)).penalty == Mine(0.5, 3)
    text = path.read_bytes()
    del Potential.registry["mine"]
    loaded = load_model(path)
    assert isinstance(loaded.penalty, Unavailable)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert save(loaded, path).read_bytes() == text
    with pytest.raises(InvalidParameterError, match="the potential 'mine', of which the model file has only"):
        loaded.fit(X, codes)
    with pytest.raises(InvalidParameterError, match="set it again"):
        clone(loaded).fit(X, codes)


def test_what_cannot_be_written_down_is_known_by_name(path):
    X, codes = rows()
    model = SparseSVCCV("l1", lambdas=3, cv=StratifiedKFold(3), scoring=len_of_prediction).fit(X, codes)
    loaded = load_model(save(model, path))
    assert "StratifiedKFold" in repr(loaded.cv)
    assert "len_of_prediction" in repr(loaded.scoring)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(InvalidParameterError, match="StratifiedKFold"):
        loaded.fit(X, codes)
    assert loaded.set_params(cv=3, scoring=None).fit(X, codes).best_score_ > 0.5


def len_of_prediction(estimator, X, y):
    return float(len(estimator.predict(X)))


# One declaration of parameters and attributes ---------------------------------------------------------------


def documented(kind, section):
    """What a section of a class docstring lists: the text after the colon, by name."""
    text = re.split(rf"\n    {section}\n    -+\n", kind.__doc__)[1]
    text = re.split(r"\n    [A-Z]\w+\n    -+\n", text)[0]
    entries = re.findall(r"^    (\w+(?:, \w+)*)(?: : (.*))?(?:, …)?$", text, flags=re.MULTILINE)
    return {name: kind for names, kind in entries for name in names.split(", ")}


@pytest.mark.parametrize("kind", [SparseSVC, SparseSVCCV])
def test_parameters_agree_everywhere(kind):
    names = set(declared(kind))
    assert set(kind().get_params()) == set(kind._parameter_constraints) == names
    page = documented(SparseSVC, "Parameters") | documented(kind, "Parameters")
    assert names <= page.keys()
    assert documented(kind, "Parameters").keys() <= names
    for name, value in kind().get_params().items():
        _, stated, default = page[name].partition("default=")
        assert value is None if not stated else ast.literal_eval(default) == value, name


def test_attributes_agree_everywhere():
    assert documented(SparseSVC, "Attributes").keys() == {
        name for name, attribute in FITTED.items() if attribute.origins and not attribute.cv
    }
    assert {name for name, attribute in FITTED.items() if attribute.cv} <= documented(
        SparseSVCCV, "Attributes"
    ).keys()
    for attribute in FITTED.values():
        assert (attribute.form in FORMS) != (attribute.follows is not None), attribute.name


def test_each_model_has_the_attributes_of_its_origin():
    X, codes = rows()
    stream = SparseSVC(delta=0.1).partial_fit(X, codes, classes=[0, 1])
    models = {
        Origin.FITTED: [SparseSVC().fit(X, codes), deepcopy(stream).fit(X, codes)],
        Origin.STREAM: [stream, SparseSVC(delta=0.1).fit(X, codes).partial_fit(X, codes)],
        Origin.IMPORTED: [from_liblinear(to_liblinear(stream))],
    }
    for origin, group in models.items():
        for model in group:
            assert origin_of(model) is origin
            known = {
                name for name, attribute in FITTED.items() if origin in attribute.origins and not attribute.cv
            }
            assert get_fitted(model).keys() == known - {"feature_names_in_", "scale_"}
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    searched = SparseSVCCV("l1", lambdas=3, standardize=True).fit(frame, codes)
    sizes = {"sizes_", "n_features_", "n_features_best_", "n_features_1se_"}
    known = {name for name, attribute in FITTED.items() if attribute.origins} - sizes
    assert get_fitted(searched).keys() == known
    assert get_fitted(searched.fit(X, codes)).keys() == known - {"feature_names_in_"}
    searched.set_params(penalty="hyperbolic", n_features=2).fit(frame, codes)
    strengths = {name for name in known if FITTED[name].instead}
    assert get_fitted(searched).keys() == known - strengths | sizes


def test_a_new_parameter_and_a_new_attribute_are_declared_once(path, monkeypatch):
    @constrained
    @dataclass(repr=False, eq=False, kw_only=True)
    class Made(SparseSVC):
        sharpness: int = parameter(3, Interval(Integral, 1, 9, closed="both"), since=4)

    monkeypatch.setitem(ESTIMATORS, "Made", Made)
    new = Attribute("swiftness_", (Origin.FITTED,), "number", summary=True, since=4)
    monkeypatch.setitem(FITTED, "swiftness_", new)
    X, codes = rows()
    model = Made("l1", lam=0.5, sharpness=5).fit(X, codes)
    set_fitted(model, get_fitted(model) | {"swiftness_": 2.5})
    loaded = through_a_file(model, path)
    assert (loaded.sharpness, loaded.swiftness_) == (5, 2.5)
    assert repr(clone(loaded)) == "Made(lam=0.5, penalty='l1', sharpness=5)"
    assert Model(loaded).summary["swiftness"] == 2.5
    document = json.loads(path.read_bytes())
    assert document["version"] == 4
    document["params"]["sharpness"] = 10
    document["sha256"] = checksum(document)
    with pytest.raises(ModelFileError, match="The 'sharpness' parameter of Made must be"):
        model_of(document)
    assert not hasattr(loaded.fit(X, codes), "swiftness_")
    # Files of version 1 have neither.
    document = json.loads(GOLDEN[0].read_bytes()) | {"estimator": "Made"}
    document["sha256"] = checksum(document)
    assert model_of(document)[0].sharpness == 3
    document["params"]["sharpness"] = 4
    document["sha256"] = checksum(document)
    with pytest.raises(ModelFileError, match="params has 'sharpness', which is unknown"):
        model_of(document)
    document["version"] = 5
    with pytest.raises(ModelFileError, match=r"of version 5, and majorant .* reads versions 1 to 4"):
        model_of(document)


# Provenance ------------------------------------------------------------------------------------------------


def test_provenance_is_kept(path):
    X, codes = rows()
    model = SparseSVC().fit(X, codes)
    data = Data(X, codes, None, "rows.csv", "00" * 32)
    origin = Provenance.of(model, data, ["majorant", "train", "rows.csv"], standardized=True)
    save_model(model, path, provenance=origin)
    known = load_provenance(path)
    assert known == origin
    assert known.source == "rows.csv"
    assert known.sha256 == data.sha256
    assert known.n_rows == 40
    assert known.command == ["majorant", "train", "rows.csv"]
    assert known.objective == model.objective_
    assert known.certificate.startswith("duality gap")
    assert known.standardized is True
    assert known.versions["majorant"] == majorant.__version__
    assert known.versions.keys() == {"majorant", "numpy", "scipy", "scikit-learn"}
    assert_same_model(model, load_model(path))
    save_model(model, path, provenance=known)
    assert load_provenance(path) == known
    save_model(model, path, provenance={"by": ("me", np.int64(3), np.float64(0.5), True, None), "n_rows": 7})
    assert load_provenance(path) == Provenance(n_rows=7, more={"by": ["me", 3, 0.5, True, None]})
    save_model(model, path)
    assert load_provenance(path) is None


def test_every_field_of_a_provenance_is_read():
    assert [*FIELDS, "more"] == [field.name for field in fields(Provenance)]


def test_provenance_in_words():
    origin = Provenance(
        source="rows.csv", sha256="ab", n_rows=12345, objective=62.0191724, certificate="duality gap 1.0e-07",
        command=["majorant", "train", "my rows.csv"], versions={"majorant": "0.1.0", "numpy": "2.4"},
        more={"note": "mine", "list": ["é", 1]},
    )  # fmt: skip
    assert origin.facts() == {
        "Data": "rows.csv",
        "SHA-256 of the data": "ab",
        "Training rows": "12,345",
        "Objective": "62.0192",
        "Certificate": "duality gap 1.0e-07",
        "Trained by": "majorant train 'my rows.csv'",
        "Trained with": "majorant 0.1.0, numpy 2.4",
        "note": "mine",
        "list": '["é", 1]',
    }
    scaled = replace(origin, standardized=True).facts()
    assert scaled["Features"].startswith("divided by their standard deviations while training")
    assert scaled["Objective"] == "62.0192 (of the scaled problem)"
    assert scaled["Certificate"] == "duality gap 1.0e-07 (of the scaled problem)"
    assert Provenance().facts() == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("source", 3), ("sha256", ["ab"]), ("n_rows", 1.5), ("n_rows", -1), ("n_rows", True),
        ("objective", "low"), ("certificate", {}), ("command", "majorant train"), ("command", [1]),
        ("versions", ["numpy"]), ("versions", {"numpy": 2}), ("standardized", "yes"), ("standardized", 1),
    ],
)  # fmt: skip
def test_provenance_of_another_type_is_neither_written_nor_read(name, value, path):
    X, codes = rows()
    model = SparseSVC().fit(X, codes)
    for provenance in ({name: value}, replace(Provenance(), **{name: value})):
        with pytest.raises(ModelFileError, match=rf"provenance\.{name}.* must be"):
            save_model(model, path, provenance=provenance)
    assert not path.exists()
    document = document_of(model, None)
    document["provenance"] = {name: value}
    document["sha256"] = checksum(document)
    path.write_bytes(strict.render(document))
    for load in (load_provenance, load_model):
        with pytest.raises(ModelFileError, match=rf"provenance\.{name}.* must be"):
            load(path)


def test_a_field_is_not_hidden_among_the_rest(path):
    X, codes = rows()
    with pytest.raises(ModelFileError, match="'source' in `more`, which is a field"):
        save_model(SparseSVC().fit(X, codes), path, provenance=Provenance(more={"source": "x"}))


@pytest.mark.parametrize("value", [np.nan, object(), {1: 2}, 10**30, b"bytes"])
def test_provenance_that_is_not_plain_is_refused(value, path):
    X, codes = rows()
    with pytest.raises(ModelFileError, match="provenance must be"):
        save_model(SparseSVC().fit(X, codes), path, provenance={"key": value})
    assert not path.exists()


# Models with a million coefficients ------------------------------------------------------------------------


def dense_model(n_features=400):
    """Three classes, and no coefficient is zero."""
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((30, n_features)), np.arange(30) % 3
    return SparseSVC("l2").fit(X, codes)


def test_coefficients_are_written_down_once_for_the_file(path, monkeypatch):
    model, encode, lengths = dense_model(), strict._encode, []

    def count(node):
        text = encode(node)
        lengths.append(len(text))
        return text

    monkeypatch.setattr(strict, "_encode", count)
    save_model(model, path)
    assert sum(lengths) < 1.1 * path.stat().st_size


def test_coefficients_are_read_all_at_once(path, monkeypatch):
    """A call for each of a million numbers takes seconds."""
    model = dense_model()
    save_model(model, path)
    calls = []
    for name in ("_float", "_integer", "finite"):
        real = getattr(strict, name)
        counted = lambda *given, real=real: calls.append(given) or real(*given)  # noqa: E731
        monkeypatch.setattr(strict, name, counted)
    assert_same_model(load_model(path), model)
    assert len(calls) < 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e999", "beyond double precision"), ("[1.5E+400]", "beyond double precision"),
        ('{"e": -12e0400\n}', "beyond double precision"), (f"[{'9' * 400}.0, 1]", "beyond double precision"),
        (f"[{'1' * 22}]", "22 digits"), (f"-{'1' * 21}", "22 digits"),
    ],
)  # fmt: skip
def test_numbers_beyond_their_type_are_found_wherever_they_are(text, message):
    with pytest.raises(ModelFileError, match=message):
        strict.parse(text.encode())


@pytest.mark.parametrize(
    "node", [1e308, [-1e-320, 5e-324], 10**20, [2**64 - 1, -(2**63)], {"sha": "ae123"}, ["1e999"], "e+000"]
)
def test_numbers_at_the_border_are_read(node):
    assert strict.parse(json.dumps(node).encode()) == node


# What is refused at saving ---------------------------------------------------------------------------------


def test_what_is_no_fitted_model_is_not_saved(path):
    X, codes = rows()
    with pytest.raises(NotFittedError):
        save_model(SparseSVC(), path)
    with pytest.raises(ModelFileError, match="this is a LinearSVC"):
        save_model(LinearSVC().fit(X, codes), path)
    model = SparseSVC().fit(X, codes)
    with pytest.raises(ModelFileError, match=r"lam.*set it right before saving"):
        save_model(clone(model).fit(X, codes).set_params(lam=-1.0), path)
    model.coef_[0, 0] = np.nan
    with pytest.raises(ModelFileError, match="not finite"):
        save_model(model, path)
    assert not path.exists()


def test_a_file_that_is_there_is_kept_if_asked(path):
    X, codes = rows()
    model = SparseSVC().fit(X, codes)
    path.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        save_model(model, path, overwrite=False)
    assert path.read_text() == "mine"


# Files of old -----------------------------------------------------------------------------------------------

ROWS = [[0.5, -1.0, 2.0, 0.25], [-1.5, 0.75, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
GOLDEN_DECISIONS = {
    "version1-classes": (
        ["spam", "news", "spam"],
        [
            [-0.568804037763992, -2.256077101595074, 0.9452895769490948],
            [-1.3825145158857521, 0.006782526204547112, -0.004432775325876603],
            [-0.5013563630937733, -1.132294869498682, -0.09735052554931861],
        ],
    ),
    "version1-cv": (
        [2, 1, 2],
        [
            [-0.32633847886346073, -2.131517652438651, 0.7566808794783021],
            [-1.2447994888737886, 0.21353601543690004, -0.106609015739009],
            [-0.33286180969650475, -0.9267465610050233, -0.30811428303809485],
        ],
    ),
    "version1-single-precision": (
        [-1.0, 1.0, -1.0],
        [-0.7921270139049739, 1.2233678521588445, 0.0],
    ),
    "version1-stream": (
        [0, 1, 0],
        [-0.006520715231193543, 0.022562571192125607, -0.0013066934611622532],
    ),
    "version3-sizes": (
        ["spam", "spam", "spam"],
        [0.21479495698492235, 2.4940216368570867, 0.7846016269529634],
    ),
    "version2-standardized": (
        ["spam", "news", "spam"],
        [0.8765161075772433, -1.7560943947742549, 0.11346473454430869],
    ),
    "version3-refit": (
        ["spam", "ham", "ham"],
        [2.0576439098816985, -3.366070854255314, -0.19935322169601366],
    ),
    "version2-calibrated": (
        ["ham", "ham", "spam"],
        [-0.34474067750288934, -0.805235164474926, 0.38552176891701523],
    ),
    "version3-preprocessing": (
        ["ham", "spam", "spam"],
        [-0.44648398059416905, 1.526720052540361, 0.23234415475323422],
    ),
}


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_files_of_every_version_load_for_ever(file, path, monkeypatch):
    model = load_model(file)
    labels, decisions = GOLDEN_DECISIONS[file.stem]
    X = pd.DataFrame(ROWS, columns=getattr(model, "feature_names_in_", None))
    assert model.predict(X).tolist() == labels
    # Sums of four products: the order of which is the library's.
    np.testing.assert_allclose(model.decision_function(X), decisions, rtol=1e-14, atol=1e-15)
    # What is written today is what was written then, but for the version of the package, and for what
    # later versions of the files have.
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["version"] == int(file.stem[len("version")])
    monkeypatch.setattr(document_module, "__version__", written["majorant"])
    save_model(model, path, provenance=load_provenance(file))
    again = json.loads(path.read_text(encoding="utf-8"))
    if written["version"] == again["version"]:
        assert path.read_bytes() == file.read_bytes()
        return
    later = {name: again["params"].pop(name) for name in again["params"].keys() - written["params"].keys()}
    new = {"standardize": False, "max_features": None, "n_features": None, "refit": None}
    assert later.items() <= new.items()
    if written["fitted"].get("solver_") == {"joint": "newton"}:  # a solver that is "newton" itself by now
        assert again["fitted"].pop("solver_") == {
            "solver": {"name": "newton", "settings": {"gram_features": 1000}}
        }
        del written["fitted"]["solver_"]
    for key in ("version", "sha256"):
        del written[key], again[key]
    assert again == written
    assert kind_of(file) == "majorant"


def test_a_calibrated_file_of_old_has_the_same_probabilities():
    (file,) = (file for file in GOLDEN if file.stem == "version2-calibrated")
    expected = [[0.75, 0.25], [1.0, 0.0], [0.1428571428571429, 0.8571428571428571]]
    np.testing.assert_allclose(load_model(file).predict_proba(ROWS), expected, rtol=1e-12)


def test_there_is_a_file_of_each_kind():
    assert {file.stem for file in GOLDEN} == GOLDEN_DECISIONS.keys()


def test_a_model_is_written_whole_or_not_at_all(path, monkeypatch):
    """By `atomic_write`, of which tests/test_files.py knows what a killed process leaves."""
    X, codes = rows()
    save_model(SparseSVC().fit(X, codes), path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save_model(SparseSVC("l1").fit(X, codes), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# skops, and the page that describes all this ---------------------------------------------------------------


def test_skops_takes_our_models():
    X, codes = rows(3)
    trusted = set()
    for model in (SparseSVC().fit(X, codes), SparseSVCCV("l1", lambdas=3).fit(X, codes)):
        data = skops.io.dumps(model)
        unknown = skops.io.get_untrusted_types(data=data)
        assert all(name.startswith("majorant.") for name in unknown)
        trusted |= set(unknown)
        assert_same_model(model, skops.io.loads(data, trusted=unknown))
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert set(re.findall(r'"(majorant\.[a-zA-Z._]+)"', page)) == trusted


def test_the_page_names_every_field():
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    for file in GOLDEN:
        document = json.loads(file.read_text(encoding="utf-8"))
        for names in (document, document["fitted"], *(document["stream"] or [])):
            for name in names:
                assert f"`{name}`" in page, name
        for name in document["provenance"] or {}:
            assert name == "note" or f"`{name}`" in page, name
    for name in FIELDS:
        assert f"`{name}`" in page, name
