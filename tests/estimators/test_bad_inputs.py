"""Bad inputs: each gets a clear error, or the right answer, in bounded time."""

import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError

from majorant import SparseSVC

pytestmark = pytest.mark.timeout(150)  # seconds; a busy machine may need a minute to compile


def data(n=40, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1, -1)
    return X, y


def quiet_fit(X, y, sample_weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SparseSVC(**{"penalty": "l2"} | options).fit(X, y, sample_weight)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["dense", "sparse", "y", "weights"])
def test_not_finite(bad, where):
    X, y = data()
    s = np.ones(len(y))
    if where == "weights":
        s[0] = bad
    elif where == "y":
        y = y.astype(float)
        y[0] = bad
    else:
        X[0, 0] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity|inf"):
        quiet_fit(sp.csr_matrix(X) if where == "sparse" else X, y, s)


@pytest.mark.parametrize("penalty", ["hyperbolic", "welsch", "l1", "l2", "none"])
@pytest.mark.parametrize("scale", [1e150, 1e200, 1e-200])
def test_extreme_scales_end_in_bounded_time(penalty, scale):
    X, y = data()
    if scale != 1e150:
        with pytest.raises(ValueError, match="rescale"):
            quiet_fit(X * scale, y, penalty=penalty, max_iter=50)
        return
    model = quiet_fit(X * scale, y, penalty=penalty, max_iter=50)
    assert np.all(np.isfinite(model.coef_))
    assert model.n_iter_ <= 50


@pytest.mark.parametrize("options", [{"lam": 1e300}, {"lam": 1e-300}, {"eta": 1e300}], ids=str)
@pytest.mark.parametrize("penalty", ["hyperbolic", "welsch", "l1", "l2"])
def test_extreme_strengths_end_in_bounded_time(penalty, options):
    X, y = data()
    model = quiet_fit(X, y, penalty=penalty, max_iter=50, **options)
    assert np.all(np.isfinite(model.coef_))
    if options.get("lam") == 1e300:
        assert np.all(np.abs(model.coef_) < 1e-100)


@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_extreme_weights_end_in_bounded_time(weight):
    X, y = data()
    model = quiet_fit(X, y, np.full(len(y), weight), max_iter=50)
    assert np.all(np.isfinite(model.coef_))
    with pytest.raises(ValueError, match="divide them"):
        quiet_fit(X, y, np.full(len(y), 1e308))


def test_a_column_in_other_units_is_solved_right():
    X, y = data()
    units = np.array([1.0, 1e10, 1.0])
    plain = quiet_fit(X, y, penalty="none", eta=0.0, tol=1e-9)
    scaled = quiet_fit(X * units, y, penalty="none", eta=0.0, tol=1e-9)
    assert plain.converged_
    assert scaled.converged_
    assert np.allclose(scaled.coef_ * units, plain.coef_, rtol=1e-5)


def test_one_class():
    X, _ = data()
    with pytest.raises(ValueError, match="1 class"):
        quiet_fit(X, np.ones(len(X)))


def test_one_class_left_after_zero_weights():
    X, y = data()
    with pytest.raises(ValueError, match="no sample with a positive"):
        quiet_fit(X, y, (y == 1).astype(float))
    with pytest.raises(ValueError, match="product of sample_weight and class_weight"):
        quiet_fit(X, y, class_weight={1: 0.0})


@pytest.mark.parametrize("penalty", ["hyperbolic", "welsch", "l1", "l2", "none"])
def test_all_zero_features(penalty):
    """The intercept is then at its unpenalised optimum, the weighted mean of the labels."""
    y = np.array([1, 1, 1, -1])
    model = quiet_fit(np.zeros((4, 2)), y, penalty=penalty)
    assert model.n_iter_ >= 1
    assert model.intercept_[0] == pytest.approx(0.5, abs=1e-6)
    assert np.all(model.coef_ == 0)


@pytest.mark.parametrize("weights", [-1.0, "some"])
def test_negative_weights(weights):
    X, y = data()
    s = np.full(len(y), -1.0) if weights == -1.0 else np.where(np.arange(len(y)) == 3, -1.0, 1.0)
    with pytest.raises(ValueError, match="sample_weight"):
        quiet_fit(X, y, s)


@pytest.mark.parametrize("class_weight", [{1: -1.0}, {1: np.nan}, {7: 1.0}])
def test_bad_class_weights(class_weight):
    with pytest.raises(ValueError, match="class_weight"):
        quiet_fit(*data(), class_weight=class_weight)


@pytest.mark.parametrize("factor", [[1.0], [-1.0, 1, 1], [np.nan, 1, 1]])
def test_bad_penalty_factors(factor):
    with pytest.raises(ValueError, match="penalty_factor"):
        quiet_fit(*data(), penalty_factor=factor)


def test_mixed_labels_name_their_types():
    X, y = data()
    mixed = np.array(["a" if label > 0 else 1 for label in y], dtype=object)
    with pytest.raises(ValueError, match="int and str"):
        quiet_fit(X, mixed)


def test_object_integers_are_integers():
    X, y = data()
    model = quiet_fit(X, y.astype(object))
    assert model.classes_.dtype.kind == "i"
    assert set(model.predict(X)) <= {-1, 1}


@pytest.mark.parametrize(
    ("convert", "kind"),
    [
        (lambda y: pd.array(y, dtype="Int64"), "i"),
        (lambda y: pd.Series(y, dtype="Int64"), "i"),
        (lambda y: pd.array(y > 0, dtype="boolean"), "b"),
        (lambda y: y > 0, "b"),
        (lambda y: np.where(y > 0, "yes", "no"), "U"),
        (lambda y: pd.Categorical(np.where(y > 0, "yes", "no")), "OUT"),
        (lambda y: pl.Series(y), "i"),
        (lambda y: y.tolist(), "i"),
        (lambda y: y.astype(">i4"), "i"),
    ],
)
def test_labels_keep_their_type(convert, kind):
    X, y = data()
    model = quiet_fit(X, convert(y))
    assert model.classes_.dtype.kind in kind
    assert np.array_equal(np.asarray(model.predict(X) == model.classes_[1]), quiet_fit(X, y).predict(X) == 1)


def test_missing_labels():
    X, y = data()
    labels = pd.array(y, dtype="Int64")
    labels[0] = pd.NA
    with pytest.raises(ValueError, match="NaN"):
        quiet_fit(X, labels)


FORMS = {
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
    "pandas-nullable": lambda X: pd.DataFrame(X, columns=list("abc")).astype("Float64"),
    "polars": lambda X: pl.DataFrame(X, schema=list("abc")),
    "list": lambda X: X.tolist(),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "big-endian": lambda X: X.astype(">f8"),
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    **{
        form: lambda X, form=form: sp.csr_matrix(X).asformat(form)
        for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
    },
    "csr-array": sp.csr_array,
    "coo-array": sp.coo_array,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_x(form):
    X, y = data()
    given = FORMS[form](X)
    kept = given.copy() if hasattr(given, "copy") else given
    model = quiet_fit(given, y)
    assert np.allclose(model.coef_, quiet_fit(X, y).coef_, rtol=1e-7)
    if sp.issparse(given):
        assert (given != kept).nnz == 0
    elif isinstance(given, np.ndarray):
        assert np.array_equal(given, kept)
    if form in ("pandas", "polars", "pandas-nullable"):
        assert list(model.feature_names_in_) == ["a", "b", "c"]


def test_memory_map(tmp_path):
    X, y = data()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.allclose(quiet_fit(mapped, y).coef_, quiet_fit(X, y).coef_)


def test_64_bit_indices():
    X, y = data()
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert np.allclose(quiet_fit(wide, y).coef_, quiet_fit(X, y).coef_, rtol=1e-7)
    assert wide.indices.dtype == np.int64
    assert np.array_equal(quiet_fit(wide, y).predict(wide), quiet_fit(X, y).predict(X))


def test_unsorted_and_duplicate_entries_are_summed_on_a_copy():
    X, y = data(n=4, p=3)
    X = np.array([[1.0, 2, 0], [0, 1, 0], [3, 0, 1], [0, 0, 2]])
    entries = np.array([2.0, 0.5, 0.5, 1, 1, 3, 2])
    csr = sp.csr_matrix((entries, np.array([1, 0, 0, 1, 2, 0, 2]), np.array([0, 3, 4, 6, 7])), shape=(4, 3))
    before = csr.data.copy()
    y = np.array([1, -1, 1, -1])
    assert np.allclose(quiet_fit(csr, y).coef_, quiet_fit(X, y).coef_)
    assert np.array_equal(csr.data, before)


@pytest.mark.parametrize("bad", [99, -1])
@pytest.mark.parametrize("part", ["indices", "indptr"])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_corrupt_sparse(bad, part, form):
    X, y = data()
    corrupt = sp.csr_matrix(X).asformat(form)
    getattr(corrupt, part)[1] = bad if part == "indices" or bad < 0 else 10**6
    with pytest.raises(ValueError, match="corrupt"):
        quiet_fit(corrupt, y)


def test_unsigned_indices():
    X, y = data()
    known = quiet_fit(X, y)
    unsigned = sp.csr_matrix(X)
    unsigned.indices = unsigned.indices.astype(np.uint32)
    assert np.allclose(quiet_fit(unsigned, y).coef_, known.coef_)
    unsigned.indices[:2], unsigned.data[:2] = unsigned.indices[1::-1], unsigned.data[1::-1].copy()
    unsigned.has_sorted_indices = True  # which is not true, and must not be trusted
    assert np.allclose(quiet_fit(unsigned, y).coef_, known.coef_)


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_index_pointers_that_rise_and_fall(form):
    make = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}[form]
    corrupt = make((np.zeros(0), np.zeros(0, np.int32), np.array([0, 2, 0], np.int32)), shape=(2, 2))
    with pytest.raises(ValueError, match="corrupt"):
        quiet_fit(corrupt, [0, 1])


@pytest.mark.parametrize("bad", [99, -1])
@pytest.mark.parametrize("part", ["row", "col"])
def test_corrupt_coo(bad, part):
    X, y = data()
    corrupt = sp.coo_matrix(X)
    getattr(corrupt, part)[0] = bad
    with pytest.raises(ValueError, match="corrupt"):
        quiet_fit(corrupt, y)


def test_a_stale_flag_of_sortedness_is_not_trusted():
    X, y = data()
    csr = sp.csr_matrix(X)
    assert csr.has_canonical_format
    for k in range(len(y)):
        part = slice(csr.indptr[k], csr.indptr[k + 1])
        csr.indices[part], csr.data[part] = csr.indices[part][::-1].copy(), csr.data[part][::-1].copy()
    assert np.allclose(quiet_fit(csr, y).coef_, quiet_fit(X, y).coef_, rtol=1e-7)


def test_masked_arrays():
    X, y = data()
    with pytest.raises(ValueError, match="X is a masked"):
        quiet_fit(np.ma.masked_greater(X, 1.0), y)
    with pytest.raises(ValueError, match="y is a masked"):
        quiet_fit(X, np.ma.masked_greater(y, 0))
    with pytest.raises(ValueError, match="sample_weight is a masked"):
        quiet_fit(X, y, np.ma.masked_greater(np.ones(len(y)), 0.5))


def test_weights_that_vanish_or_overflow_together():
    X, y = data()
    with pytest.raises(ValueError, match="product of sample_weight and class_weight"):
        quiet_fit(X, y, np.full(len(y), 1e-200), class_weight={1: 1e-200})
    with pytest.raises(ValueError, match="divide them"):
        quiet_fit(X, y, np.full(len(y), 1e200), class_weight={1: 1e200})


def test_coefficients_beyond_single_precision_stay_double():
    X, y = data()
    model = quiet_fit((X * 1e-42).astype(np.float32), y, penalty="none")
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("solver", ["mm-subspace", "mm-gradient", "gradient", "mm", "mm-inversion", "newton"])
@pytest.mark.parametrize("scale", [1e100, 1e140])
def test_large_numbers_in_every_solver(solver, scale):
    X, y = data()
    model = quiet_fit(X * scale, y, solver=solver, max_iter=20)
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "solver",
    ["gradient", pytest.param("mm", marks=pytest.mark.slow), pytest.param("adam", marks=pytest.mark.slow)],
)
def test_ctrl_c_in_the_middle_of_a_sparse_fit(solver):
    """In a process of its own, from outside, while compiled code runs."""
    code = f"""
import sys, numpy as np, scipy.sparse as sp
from majorant import SparseSVC, SparseSVCCV
from majorant.callbacks import Callback
rng = np.random.default_rng(0)
X = sp.csr_matrix(rng.standard_normal((20_000, 50)))
y = np.where(X[:, [0]].toarray().ravel() + rng.standard_normal(20_000) > 0, 1, -1)
class Ready(Callback):
    def on_iterate(self, iterate, record):
        if record.iteration == 3:
            print("ready", flush=True)
model = SparseSVC("l2", solver="{solver}", tol=0, max_iter=10**7).set_callbacks(Ready())
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("kept", model.status_.name, model.n_iter_ >= 3, model.score(X, y) > 0.6)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=100)
    assert output == "kept INTERRUPTED True True\n", errors


def test_dask_is_not_pulled_into_memory():
    class Lazy:
        shape = (40, 3)

        def __dask_graph__(self):
            return {}

        def __array__(self, *args, **kwargs):
            raise AssertionError("pulled into memory")

    with pytest.raises(TypeError, match="dask"):
        SparseSVC(solver="sgd").partial_fit(Lazy(), data()[1], classes=[-1, 1])


@pytest.mark.parametrize("X", [np.zeros((0, 3)), np.zeros((4, 0)), np.zeros(4), np.array([["a"], ["b"]])])
def test_shapes_and_types_that_are_no_data(X):
    with pytest.raises(ValueError):  # noqa: PT011 - scikit-learn's words
        quiet_fit(X, np.array([1, -1, 1, -1])[: len(X)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: (np.array([[1.0], [2.0]]), np.array([0, 1])),  # K = 2
        lambda: (np.ones((10, 3)), np.arange(10) % 2),  # all rows identical
        lambda: (np.outer(np.arange(10.0), [1.0, 2.0, 3.0]), (np.arange(10) > 4).astype(int)),  # rank 1
        lambda: (np.column_stack([np.ones(10), np.arange(10.0)]), (np.arange(10) > 4).astype(int)),
    ],
    ids=["two-rows", "identical-rows", "rank-one", "constant-column"],
)
@pytest.mark.parametrize("penalty", ["hyperbolic", "welsch", "l1", "l2", "none"])
def test_ill_posed_data_end(make, penalty):
    X, y = make()
    model = quiet_fit(X, y, penalty=penalty, lam=1e-6, max_iter=200)
    assert np.all(np.isfinite(model.coef_))
    assert model.objective_ <= len(y) * (1 + 1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_fits_in_threads_give_the_same_bits(sparse):
    X, y = data(n=500)
    X = sp.csr_matrix(X) if sparse else X
    reference = quiet_fit(X, y).coef_
    results = []
    threads = [threading.Thread(target=lambda: results.append(quiet_fit(X, y).coef_)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(np.array_equal(result, reference) for result in results)


def test_fork_after_a_fit():
    import joblib

    X, y = data(n=200)
    reference = quiet_fit(sp.csr_matrix(X), y).coef_
    with joblib.parallel_backend("multiprocessing"):
        results = joblib.Parallel(n_jobs=2)(joblib.delayed(quiet_fit)(sp.csr_matrix(X), y) for _ in range(2))
    assert all(np.array_equal(result.coef_, reference) for result in results)


def test_parameters_are_checked_before_the_data():
    with pytest.raises(InvalidParameterError):
        SparseSVC(max_iter=0).fit("nonsense", None)


CLASSES = pytest.mark.parametrize("multi_class", ["ovr", "joint"])


def three_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    return X, np.argmax(X + 0.5 * rng.standard_normal(X.shape), axis=1)


@CLASSES
@pytest.mark.parametrize("penalty", ["hyperbolic", "welsch", "l1", "l2"])
@pytest.mark.parametrize(
    "extreme",
    [{"lam": 1e300}, {"lam": 1e-300}, {"scale": 1e150}, {"weight": 1e300}, {"class_weight": {0: 1e300}}],
    ids=str,
)
def test_extremes_with_several_classes_end_in_bounded_time(multi_class, penalty, extreme):
    X, y = three_classes()
    options = dict(extreme)
    weights = np.full(60, options.pop("weight", 1.0))
    X = X * options.pop("scale", 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseSVC(penalty, multi_class=multi_class, max_iter=50, **options).fit(X, y, weights)
    assert np.all(np.isfinite(model.coef_))
    assert model.n_iter_ <= 50
    assert model.converged_ or any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


@CLASSES
@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_scales_beyond_squares_with_several_classes(multi_class, scale):
    X, y = three_classes()
    with pytest.raises(ValueError, match="rescale"):
        SparseSVC(multi_class=multi_class).fit(X * scale, y)


@CLASSES
def test_a_class_without_weight_is_named(multi_class):
    X, y = three_classes()
    with pytest.raises(ValueError, match="class 2 has no sample with a positive sample_weight"):
        SparseSVC(multi_class=multi_class).fit(X, y, (y != 2).astype(float))


@CLASSES
def test_a_column_in_other_units_with_several_classes(multi_class):
    """The penalty is faint, and so is what the units change by it."""
    X, y = three_classes()
    plain = quiet_fit(X, y, penalty="l1", lam=1e-3, multi_class=multi_class)
    scaled = quiet_fit(X * [1e10, 1.0, 1.0], y, penalty="l1", lam=1e-3, multi_class=multi_class)
    assert np.mean(plain.predict(X) == scaled.predict(X * [1e10, 1.0, 1.0])) > 0.95


@CLASSES
@pytest.mark.parametrize("penalty", ["hyperbolic", "welsch", "l1", "l2"])
def test_nothing_to_learn_from_with_several_classes(multi_class, penalty):
    """Every intercept is at its optimum: 2 × share of the class - 1."""
    _, y = three_classes()
    model = SparseSVC(penalty, multi_class=multi_class).fit(np.zeros((60, 3)), y)
    shares = np.bincount(y) / 60
    np.testing.assert_allclose(model.intercept_, 2.0 * shares - 1.0, atol=1e-9)
    assert not model.coef_.any()
