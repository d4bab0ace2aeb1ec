"""ONNX: onnxruntime says of every row what we say."""

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import skl2onnx
from onnx import TensorProto
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from majorant import SparseSVC, SparseSVCCV
from majorant.errors import MajorantError, ModelFileError, OutputError
from majorant.persistence import from_onnx, register_onnx_converters, to_onnx
from tests.persistence.same_model import rows

LABELS = {
    "integers": [3, 5, 8],
    "negative": [-7, -1, 4],
    "uint8": np.array([1, 2, 200], dtype=np.uint8),
    "strings": ["a", "b", "ä"],
    "objects": np.array(["one", "three", "two"], dtype=object),
    "floats": [-1.0, 0.0, 2.0],
}
SCORES = {np.float64: 1e-12, np.float32: 1e-5}


def run(graph, X, name="X"):
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    assert [output.name for output in session.get_outputs()] == ["label", "scores"]
    return session.run(["label", "scores"], {name: X})


@pytest.mark.parametrize(("n_classes", "dtype"), [(2, np.float64), (3, np.float32)], ids=["two", "three"])
@pytest.mark.parametrize("name", LABELS)
def test_every_row_gets_the_same_label(name, n_classes, dtype):
    X, codes = rows(n_classes, dtype)
    X[0] = 0.0
    model = SparseSVC("l1", lam=0.5).fit(X, np.array(LABELS[name])[codes])
    for one in (model, model.sparsify()):
        graph = to_onnx(one)
        onnx.checker.check_model(graph)
        label, scores = run(graph, X)
        assert label.tolist() == model.predict(X).tolist()
        assert scores.dtype == dtype
        np.testing.assert_allclose(scores, model.decision_function(X), rtol=SCORES[dtype], atol=SCORES[dtype])
        assert scores.shape == model.decision_function(X).shape


def test_truth_values_are_labels():
    X, codes = rows()
    model = SparseSVC().fit(X, codes == 1)
    assert run(to_onnx(model), X)[0].tolist() == model.predict(X).tolist()
    assert from_onnx(to_onnx(model)).classes_.dtype == bool


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_row_of_real_data_gets_the_same_label(load):
    X, y = load(return_X_y=True)
    model = make_pipeline(StandardScaler(), SparseSVC("l1", lam=5.0)).fit(X, y)
    label, scores = run(to_onnx(model), X)
    assert np.array_equal(label, model.predict(X))
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-10, atol=1e-10)


def test_a_tie_is_decided_alike():
    X, codes = rows(3)
    model = SparseSVC("l1", fit_intercept=False).fit(X, codes)
    zeros = np.zeros((1, 4))
    assert run(to_onnx(model), zeros)[0].tolist() == model.predict(zeros).tolist() == [0]
    two = SparseSVC("l1", fit_intercept=False).fit(X, codes > 0)
    assert run(to_onnx(two), zeros)[0].tolist() == two.predict(zeros).tolist() == [False]


@pytest.mark.parametrize("kind", [FloatTensorType, DoubleTensorType, Int64TensorType])
def test_rows_of_other_types_are_converted(kind):
    X, codes = rows(3)
    X = np.round(4 * X)
    model = SparseSVC("l1").fit(X, codes)
    register_onnx_converters()
    graph = skl2onnx.to_onnx(model, initial_types=[("X", kind([None, 4]))])
    given = {FloatTensorType: np.float32, DoubleTensorType: np.float64, Int64TensorType: np.int64}[kind]
    label, scores = run(graph, X.astype(given))
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-12, atol=1e-12)
    assert from_onnx(graph).coef_.tolist() == model.coef_.tolist()


def test_several_inputs_are_put_together():
    X, codes = rows(3)
    model = SparseSVC("l1").fit(X, codes)
    register_onnx_converters()
    types = [("a", DoubleTensorType([None, 1])), ("b", FloatTensorType([None, 3]))]
    session = onnxruntime.InferenceSession(skl2onnx.to_onnx(model, initial_types=types).SerializeToString())
    X = X.astype(np.float32)
    label, _ = session.run(None, {"a": X[:, :1].astype(np.float64), "b": X[:, 1:]})
    assert label.tolist() == model.predict(X.astype(np.float64)).tolist()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pipelines_convert_once_we_are_registered():
    X, codes = rows(3)
    register_onnx_converters()
    register_onnx_converters()  # twice does no harm
    columns = make_column_transformer((StandardScaler(), [0, 1]), ("passthrough", [2, 3]))
    for model in (
        make_pipeline(columns, SparseSVC("l1")),
        make_pipeline(StandardScaler(), SparseSVCCV("l1", lambdas=3)),
    ):
        model.fit(X, codes)
        label, scores = run(skl2onnx.to_onnx(model, X[:1]), X)
        assert np.array_equal(label, model.predict(X))
        np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-12, atol=1e-12)


def test_files(tmp_path):
    X, codes = rows()
    model = SparseSVC("l1").fit(X, codes)
    path = tmp_path / "model.onnx"
    graph = to_onnx(model, path, target_opset=15)
    assert onnx.load(path) == graph
    assert from_onnx(path).coef_.tolist() == model.coef_.tolist()
    with pytest.raises(OutputError, match="exists already"):
        to_onnx(model, path, overwrite=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labels", [[1, 2, 3], ["x", "y", "ß"]])
def test_there_and_back(labels, n_classes, dtype):
    X, codes = rows(n_classes, dtype)
    model = SparseSVC("l1").fit(X, np.array(labels)[codes])
    back = from_onnx(to_onnx(model))
    assert np.array_equal(back.classes_, model.classes_)
    assert np.array_equal(back.decision_function(X), model.decision_function(X))
    assert back.coef_.dtype == model.coef_.dtype
    assert np.array_equal(back.support_, model.support_)
    assert back.n_features_in_ == 4


def _set(name, **fields):
    def damage(graph):
        (tensor,) = [tensor for tensor in graph.graph.initializer if tensor.name == name]
        for field, value in fields.items():
            if isinstance(value, list):
                del getattr(tensor, field)[:]
                getattr(tensor, field).extend(value)
            else:
                setattr(tensor, field, value)

    return damage


DAMAGE = {
    "another operator": (lambda graph: setattr(graph.graph.node[0], "op_type", "Gemm"), "not the graph"),
    "one operator less": (lambda graph: graph.graph.node.pop(), "not the graph of a single majorant model"),
    "another order": (lambda graph: graph.graph.node[1].input.__setitem__(0, "X"), "not the graph"),
    "no tensors": (lambda graph: graph.graph.initializer.pop(0), "tensors are damaged"),
    "elsewhere": (_set("coef", data_location=TensorProto.EXTERNAL), "damaged, or in other files"),
    "shape": (_set("coef", dims=[3, 4]), "do not fit|damaged"),
    "huge": (_set("coef", dims=[10**12, 3]), "damaged"),
    "negative": (_set("coef", dims=[-1, 3]), "damaged|do not fit"),
    "not finite": (_set("intercept", double_data=[np.nan, 0.0, 0.0]), "coefficients are not finite"),
    "too few": (_set("intercept", dims=[2], double_data=[0.0, 0.0]), "do not fit"),
    "labels twice": (_set("classes", int64_data=[1, 1, 2]), "do not fit"),
    "labels in disorder": (_set("classes", int64_data=[2, 1, 0]), "labels are not those"),
    "two labels": (_set("classes", dims=[2], int64_data=[0, 1]), "do not fit"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named(name, tmp_path):
    X, codes = rows(3)
    graph = to_onnx(SparseSVC("l1").fit(X, codes))
    damage, message = DAMAGE[name]
    damage(graph)
    with pytest.raises(ModelFileError, match=message):
        from_onnx(graph)
    (tmp_path / "model").write_bytes(graph.SerializeToString())
    with pytest.raises(ModelFileError, match=message) as caught:
        from_onnx(tmp_path / "model")
    assert str(caught.value).startswith(str(tmp_path))


def test_what_is_no_graph_of_ours_is_refused(tmp_path):
    X, codes = rows(3)
    with pytest.raises(ModelFileError, match="not the graph of a single majorant model"):
        from_onnx(to_onnx(make_pipeline(StandardScaler(), SparseSVC("l1")).fit(X, codes)))
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match=r"it is not an ONNX model|not the graph"):
        from_onnx(tmp_path / "text")
    with pytest.raises(ModelFileError, match="it cannot be read"):
        from_onnx(tmp_path / "none")


def test_what_cannot_be_converted_is_refused():
    X, codes = rows()
    with pytest.raises(NotFittedError):
        to_onnx(SparseSVC())
    large = np.array([0, 2**64 - 1], dtype=np.uint64)
    with pytest.raises(MajorantError, match="signed integers of 64 bits"):
        to_onnx(SparseSVC().fit(X, large[codes]))


def test_without_skl2onnx_we_say_what_to_install(monkeypatch):
    X, codes = rows()
    model = SparseSVC().fit(X, codes)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    for call in (register_onnx_converters, lambda: to_onnx(model), lambda: from_onnx("model.onnx")):
        with pytest.raises(MajorantError, match=r'pip install "majorant\[onnx\]"'):
            call()
