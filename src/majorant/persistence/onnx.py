"""Models in ONNX, for onnxruntime.

The graph consists of basic operators, in double precision if the model or the rows are: ONNX's operator
`LinearClassifier` has single precision only, so that some predictions would differ.

    scores = X coef + intercept         for two classes, one score per row
    label  = classes[scores > 0]        for more classes, classes[argmax scores]
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from majorant.errors import MajorantError, ModelFileError
from majorant.estimators import SparseSVC, SparseSVCCV
from majorant.estimators.from_coef import imported_classifier
from majorant.files import atomic_write
from majorant.persistence.store import naming, read_limited, refuse_preprocessing

ALIASES: dict[type, str] = {SparseSVC: "MajorantSparseSVC", SparseSVCCV: "MajorantSparseSVCCV"}
# The ONNX types of labels, by the kind of their array: for a variable, and for a constant. Others are
# strings.
LABEL_TYPES = {
    "b": ("BooleanTensorType", "BOOL"),
    "i": ("Int64TensorType", "INT64"),
    "u": ("Int64TensorType", "INT64"),
    "f": ("DoubleTensorType", "DOUBLE"),
}
STRINGS = ("StringTensorType", "STRING")
# The operators of a graph, after a cast of the rows if it is needed.
TWO_CLASSES = ["MatMul", "Add", "Reshape", "Greater", "Cast", "Gather"]
MANY_CLASSES = ["MatMul", "Add", "ArgMax", "Gather"]


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    target_opset: int | None = None,
    overwrite: bool = True,
) -> Any:
    """The model as an ONNX graph, with the input X and the outputs label and scores.

    Parameters
    ----------
    model : SparseSVC, SparseSVCCV, or a Pipeline with one
        Fitted. X is double precision, unless the model is in single precision.
    path : path, optional
        A file to write the graph to.
    target_opset : int, optional
        The version of ONNX's operators; by default the latest of skl2onnx.
    overwrite : bool, default=True
        Whether an existing file may be replaced.

    Returns
    -------
    onnx.ModelProto
    """
    register_onnx_converters()
    import skl2onnx
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    check_is_fitted(model)
    refuse_preprocessing(model, "ONNX")
    single = getattr(getattr(model, "coef_", None), "dtype", None) == np.float32
    kind = FloatTensorType if single else DoubleTensorType
    rows = ("X", kind([None, model.n_features_in_]))
    graph = skl2onnx.convert_sklearn(model, initial_types=[rows], target_opset=target_opset)
    if path is not None:
        with atomic_write(path, overwrite=overwrite) as file:
            file.write(graph.SerializeToString())
    return graph


def register_onnx_converters() -> None:
    """Register the estimators with skl2onnx, whose `to_onnx` then accepts them, also in a pipeline.

    >>> import skl2onnx  # doctest: +SKIP
    >>> register_onnx_converters()  # doctest: +SKIP
    >>> skl2onnx.to_onnx(make_pipeline(StandardScaler(), SparseSVC()).fit(X, y), X[:1])  # doctest: +SKIP
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        raise MajorantError('ONNX needs skl2onnx: pip install "majorant[onnx]"') from None
    for estimator, alias in ALIASES.items():
        update_registered_converter(estimator, alias, _set_types, _convert, parser=_parse)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs: arrays of labels and scores (skl2onnx's default is a list of maps)."""
    operator = scope.declare_local_operator(ALIASES[type(model)], model)
    operator.inputs = inputs
    label, scores = _types(operator)
    operator.outputs.append(scope.declare_local_variable("label", label))
    operator.outputs.append(scope.declare_local_variable("scores", scores))
    return operator.outputs


def _set_types(operator: Any) -> None:
    for output, kind in zip(operator.outputs, _types(operator), strict=True):
        output.type = kind


def _types(operator: Any) -> tuple[Any, Any]:
    from skl2onnx.common import data_types

    model = operator.raw_operator
    n_rows = operator.inputs[0].get_first_dimension()
    label = getattr(data_types, LABEL_TYPES.get(model.classes_.dtype.kind, STRINGS)[0])
    score = data_types.DoubleTensorType if _in_double(operator) else data_types.FloatTensorType
    shape = [n_rows] if len(model.classes_) == 2 else [n_rows, len(model.classes_)]
    return label([n_rows]), score(shape)


def _in_double(operator: Any) -> bool:
    from skl2onnx.common.data_types import FloatTensorType

    single = all(isinstance(rows.type, FloatTensorType) for rows in operator.inputs)
    return not single or operator.raw_operator.coef_.dtype != np.float32


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """The graph of one estimator."""
    from onnx import TensorProto
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    model = operator.raw_operator
    number = TensorProto.DOUBLE if _in_double(operator) else TensorProto.FLOAT
    same = DoubleTensorType if _in_double(operator) else FloatTensorType

    def node(kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        output = output or str(scope.get_unique_variable_name(kind.lower()))
        name = scope.get_unique_operator_name(f"majorant_{kind}")
        container.add_node(kind, inputs, output, name=name, **attributes)
        return output

    def constant(name: str, kind: int, shape: list[int], values: Any) -> str:
        name = scope.get_unique_variable_name(name)
        container.add_initializer(name, kind, shape, values)
        return name

    parts = [
        rows.full_name if isinstance(rows.type, same) else node("Cast", [rows.full_name], to=number)
        for rows in operator.inputs
    ]
    rows = parts[0] if len(parts) == 1 else node("Concat", parts, axis=1)
    coef = (model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()).T
    weights = constant("coef", number, list(coef.shape), coef.ravel().tolist())
    beta = constant("intercept", number, [coef.shape[1]], model.intercept_.tolist())
    kind, labels = _labels(model)
    classes = constant("classes", kind, [len(labels)], labels)
    label, scores = (output.full_name for output in operator.outputs)
    product = node("MatMul", [rows, weights])
    if len(labels) == 2:
        shape = constant("shape", TensorProto.INT64, [1], [-1])
        node("Reshape", [node("Add", [product, beta]), shape], scores)
        zero = constant("zero", number, [1], [0.0])
        codes = node("Cast", [node("Greater", [scores, zero])], to=TensorProto.INT64)
    else:
        codes = node("ArgMax", [node("Add", [product, beta], scores)], axis=1, keepdims=0)
    node("Gather", [classes, codes], label, axis=0)


def _labels(model: Any) -> tuple[int, list[Any]]:
    from onnx import TensorProto

    labels, kind = model.classes_.tolist(), model.classes_.dtype.kind
    if kind == "u" and max(labels) >= 2**63:
        raise MajorantError(f"ONNX's labels are signed integers of 64 bits, and {max(labels)} is too large")
    if kind not in LABEL_TYPES:
        labels = [label.encode("utf-8") for label in labels]
    return getattr(TensorProto, LABEL_TYPES.get(kind, STRINGS)[1]), labels


def from_onnx(source: Any) -> SparseSVC:
    """The classifier of a graph that `to_onnx` made of a model (not of a pipeline).

    Parameters
    ----------
    source : path, or onnx.ModelProto

    Returns
    -------
    SparseSVC
        Fitted, so that it predicts; its parameters are the default ones, since a graph does not contain them.
    """
    if isinstance(source, _model_proto()):
        return _read(source)
    with naming(source):
        return model_from_bytes(read_limited(source))


def model_from_bytes(data: bytes) -> SparseSVC:
    """The model of the content of a file."""
    graph = _model_proto()()
    try:
        graph.ParseFromString(data)
    except Exception:  # of protobuf, whose classes differ by version
        raise ModelFileError("it is not an ONNX model") from None
    return _read(graph)


def _model_proto() -> Any:
    try:
        from onnx import ModelProto
    except ImportError:
        raise MajorantError('ONNX needs onnx: pip install "majorant[onnx]"') from None
    return ModelProto


def _read(model: Any) -> SparseSVC:
    nodes = list(model.graph.node)
    if nodes and nodes[0].op_type == "Cast":
        del nodes[0]
    kinds = [node.op_type for node in nodes]
    chain = all(before.output[0] in after.input for before, after in pairwise(nodes))
    if kinds not in (TWO_CLASSES, MANY_CLASSES) or not chain:
        raise ModelFileError("it is not the graph of a single majorant model")
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    try:
        weights, beta, classes = (
            _array(tensors[name]) for name in (nodes[0].input[1], nodes[1].input[1], nodes[-1].input[0])
        )
    except Exception:  # damaged tensors lead to many types of errors
        raise ModelFileError("its tensors are damaged, or in other files") from None
    columns = 1 if len(classes) == 2 else len(classes)
    fits = weights.ndim == 2 and weights.shape[1] == columns and len(weights) and beta.shape == (columns,)
    known = classes.ndim == 1 and len(np.unique(classes)) == len(classes) >= 2
    if not fits or not known or weights.dtype != beta.dtype or weights.dtype.kind != "f":
        raise ModelFileError("its tensors do not fit each other")
    if not np.array_equal(np.sort(classes), classes) or (len(classes) == 2) != (kinds == TWO_CLASSES):
        raise ModelFileError("its labels are not those of a majorant model")
    theta = np.column_stack([weights.T, beta]).astype(np.float64)
    if not np.isfinite(theta).all():
        raise ModelFileError("its coefficients are not finite")
    return imported_classifier(SparseSVC().penalty, classes, theta, weights.dtype, fit_intercept=True)


def _array(tensor: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL:
        raise ValueError("a path out of an untrusted file is not followed")
    if tensor.data_type == TensorProto.STRING:
        labels = [label.decode("utf-8") for label in tensor.string_data]
        return np.array(labels)
    array = numpy_helper.to_array(tensor)
    if array.shape != tuple(tensor.dims):
        raise ValueError("a size that is left to be guessed")
    return array
