"""Model files that are not as they should be: refused, in a sentence."""

import json
import os
import pickle
import random
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from majorant import SparseSVC, SparseSVCCV, load_model, save_model
from majorant.errors import ModelFileError
from majorant.persistence import load_provenance, store, strict
from majorant.persistence.document import checksum, document_of, model_of
from majorant.potentials import Welsch
from majorant.solvers import Adam
from tests.persistence.same_model import assert_same_model, rows, run_script, save

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


@pytest.fixture(scope="module", autouse=True)
def no_time_passes():
    """Models hold the times of their iterations: without them, a seed damages the same bytes every time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("majorant.solvers.driver.time", SimpleNamespace(perf_counter=lambda: 0.0))
        yield


@pytest.fixture(scope="module")
def documents(no_time_passes):
    """A document of each kind, as JSON."""
    X, codes = rows(3)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    ovr = SparseSVC("l1", lam=0.5, class_weight={"x": 2.0}, random_state=np.random.RandomState(0))
    stream = SparseSVC(Welsch(0.1, 0.1), solver=Adam(batch_size=7), penalty_factor=np.ones(4), random_state=0)
    models = [
        ovr.fit(frame, np.array(["x", "y", "z"])[codes]),
        stream.partial_fit(X.astype(np.float32), codes > 0, classes=[False, True]).sparsify(),
        SparseSVCCV("l1", lambdas=3, cv=StratifiedKFold(3), multi_class="joint").fit(X, codes),
    ]
    return [json.loads(strict.render(document_of(model, {"a": ["b"]}))) for model in models]


def changed(document, place, value):
    """A copy with one node replaced (or, by `del`, removed) and a checksum that fits."""
    document = json.loads(json.dumps(document))
    *above, last = place
    node = document
    for key in above:
        node = node[key]
    if value is del_:
        del node[last]
    else:
        node[last] = value
    if place != ("sha256",):
        document["sha256"] = checksum(document)
    return document


del_ = object()
COEF, INTERCEPT = ("fitted", "coef_"), ("fitted", "intercept_")
NESTED: list = []
for _ in range(30):
    NESTED = [NESTED]
DAMAGE = [
    (0, ("format",), "another", "not a model file of majorant"),
    (0, ("version",), 4, "of version 4, and majorant .* reads versions 1 to 3: pip install -U majorant"),
    (0, ("version",), "1", "version must be an integer"),
    (0, ("version",), True, "version must be an integer"),
    (0, ("sha256",), "00", "its checksum does not fit"),
    (0, ("extra",), 1, "the file has 'extra', which is unknown"),
    (0, ("params",), del_, "the file has no 'params'"),
    (0, ("majorant",), 1, "majorant must be a string"),
    (0, ("estimator",), "os.system", "estimator must be one of SparseSVC, SparseSVCCV"),
    (0, ("estimator",), "SparseSVCCV", "params has no 'lambdas'"),
    (0, ("provenance",), [], "provenance must be an object"),
    (0, ("provenance",), {"a": NESTED}, "provenance must be an object that is not nested deeply"),
    (0, ("stream",), [], "stream must have 3 entries, got 0"),
    (0, ("params", "lam"), del_, "params has no 'lam'"),
    (0, ("params", "lam"), "strong", "The 'lam' parameter of SparseSVC must be"),
    (0, ("params", "lam"), -1.0, "The 'lam' parameter of SparseSVC must be"),
    (0, ("params", "lam"), {"number": None}, "The 'lam' parameter"),
    (0, ("params", "extra"), 1, "params has 'extra', which is unknown"),
    (0, ("params", "solver"), {"import": "os"}, "params.solver is of an unknown kind, 'import'"),
    (0, ("params", "solver"), {}, "params.solver must be a parameter"),
    (0, ("params", "solver"), {"solver": {"name": "adam", "settings": {"step": 1}}}, "has no 'batch_size'"),
    (0, ("params", "solver"), {"solver": {"name": "newton", "settings": 3}}, "must be an object"),
    (0, ("params", "solver"), {"solver": {"name": "nobody's", "settings": 3}}, "must be an object"),
    (0, ("params", "solver"), {"solver": {"name": "gradient", "settings": {"relative_step": 9}}}, "Gradient"),
    (0, ("params", "penalty"), {"potential": {"name": "l1", "settings": {"lam": "x"}}}, "cannot be a L1"),
    (0, ("params", "penalty"), {"function": "system"}, "must be one of memory_gradient"),
    (0, ("params", "class_weight"), NESTED, "params.class_weight.* is nested too deeply"),
    (0, ("params", "class_weight"), {"dict": [[1, 2], [1, 3]]}, "a key that is no label or is there twice"),
    (0, ("params", "class_weight"), {"dict": [[[1], 2]]}, "a key that is no label or is there twice"),
    (0, ("params", "class_weight"), {"dict": [[1]]}, "must have 2 entries, got 1"),
    (0, ("params", "random_state", "random_state", "key"), [1], "must have 624 entries"),
    (0, ("params", "random_state", "random_state", "position"), 625, "between 0 and 624"),
    (0, ("fitted", "n_features_in_"), 10**18, "n_features_in_ must be between 1 and 268435456"),
    (0, ("fitted", "n_features_in_"), 2**28, "would have 3 × 268435456 entries"),
    (0, ("fitted", "n_features_in_"), 0, "n_features_in_ must be between"),
    (0, ("fitted", "n_features_in_"), 4.0, "n_features_in_ must be an integer"),
    (0, ("fitted", "n_features_in_"), 3, "must have an index above|3"),
    (0, ("fitted", "feature_names_in_"), ["a"], "feature_names_in_ must have 4 entries, got 1"),
    (0, ("fitted", "feature_names_in_", 2), 3, r"feature_names_in_\[2\] must be a string"),
    (0, ("fitted", "status_"), "HAPPY", "status_ must be one of CONVERGED"),
    (0, ("fitted", "n_iter_"), -1, "n_iter_ must be between 0"),
    (0, ("fitted", "gap_"), "nan", "gap_ must be a number"),
    (0, ("fitted", "gap_"), True, "gap_ must be a number"),
    (0, ("fitted", "solver_"), 3, "solver_ must be a solver"),
    (0, ("fitted", "lambdas_"), [], "fitted has 'lambdas_', which is unknown"),
    (0, ("fitted", "history_", 0, "columns", 0), "x", "columns are not iteration, time"),
    (0, ("fitted", "history_", 0, "rows", 0), [1], "must have 6 entries, got 1"),
    (0, ("fitted", "history_", 0, "rows", 0, 0), 0.5, "must be an integer"),
    (0, ("fitted", "history_"), [], "history_ must have 3 entries"),
    (0, ("fitted", "classes_", "dtype"), "O", "dtype 'O' is unknown"),
    (0, ("fitted", "classes_", "dtype"), "U0", "dtype .U0. is unknown"),
    (0, ("fitted", "classes_", "dtype"), "U999999999", "is unknown"),
    (0, ("fitted", "classes_", "dtype"), "int64", "must be an integer, got 'x'"),
    (0, ("fitted", "classes_", "values"), ["x", "y"], "coef_.rows must have 1 entries, got 3"),
    (0, ("fitted", "classes_", "values"), ["x"], "two labels or more, got 1"),
    (0, ("fitted", "classes_", "values"), ["x", "x", "z"], "in order, each label once"),
    (0, ("fitted", "classes_", "values"), ["z", "y", "x"], "in order, each label once"),
    (0, ("fitted", "classes_", "values"), ["x", "y", "zz"], "not of its type U1"),
    (0, (*INTERCEPT, "values"), [0.0], "intercept_.values must have 3 entries, got 1"),
    (0, (*INTERCEPT, "values", 0), None, "intercept_ must be finite"),
    (0, (*INTERCEPT, "dtype"), "float16", "intercept_ has values that are not of its type|must be finite"),
    (0, (*COEF, "dtype"), "float32", "coef_ has values that are not float32"),
    (0, (*COEF, "dtype"), "int64", "coef_.dtype must be one of float64, float32"),
    (0, (*COEF, "sparse"), 0, "sparse must be true or false"),
    (0, (*COEF, "rows"), [], "coef_.rows must have 3 entries"),
    (0, (*COEF, "rows", 0), [[0, 1.0], [0, 1.0]], "must have an index above 0 and below 4"),
    (0, (*COEF, "rows", 0), [[1, 1.0], [0, 1.0]], "must have an index above 1 and below 4"),
    (0, (*COEF, "rows", 0), [[4, 1.0]], "must have an index above -1 and below 4, got 4"),
    (0, (*COEF, "rows", 0), [[-1, 1.0]], "must have an index above -1"),
    (0, (*COEF, "rows", 0), [[0.0, 1.0]], "must have an index above -1"),
    (0, (*COEF, "rows", 0), [[True, 1.0]], "must have an index above -1"),
    (0, (*COEF, "rows", 0), [[0]], r"must be \[index, value\]"),
    (0, (*COEF, "rows", 0), [[0, None]], "must be a number"),
    (0, (*COEF, "rows", 0), [[0, "inf"]], "must be a number"),
    (0, (*COEF, "rows", 0), [[0, 1.0]] * 5, "has 5 entries of 4"),
    (1, ("params", "penalty_factor", "array", "dtype"), "complex128", "dtype 'complex128' is unknown"),
    (1, ("stream", 0, "theta", "values"), [1.0], "theta.values must have 5 entries"),
    (1, ("stream", 0, "theta", "values", 0), None, "theta must be finite float64"),
    (1, ("stream", 0, "memory"), {}, "memory has no 'm'"),
    (1, ("stream", 0, "generator", "state"), "0x", "must be a hexadecimal number of 128 bits"),
    (1, ("stream", 0, "generator", "state"), hex(2**128), "must be a hexadecimal number of 128 bits"),
    (1, ("stream", 0, "seen"), -1, "seen must be between 0"),
    (2, ("fitted", "lambdas_"), del_, "fitted has no 'lambdas_'"),
    (2, ("fitted", "lambdas_", "dtype"), "float32", "not of its type|must be finite float64"),
    (2, ("fitted", "cv_results_", "columns", 1), "split7", "columns are not lam, split0_test_score"),
    (2, ("fitted", "selection_frequency_"), [[9, 1.0]], "below 4, got 9"),
    (2, ("params", "scoring"), 3, "scoring must be a name"),
    (2, ("stream",), [], "stream must be null for a SparseSVCCV"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("which", "place", "value", "message"),
    [pytest.param(*row, id=f"{'.'.join(map(str, row[1]))}-{k}") for k, row in enumerate(DAMAGE)],
)
def test_damage_is_named(documents, which, place, value, message, path):
    path.write_text(json.dumps(changed(documents[which], place, value)))
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def whole(documents):
    return strict.render(documents[0])


BYTES = {
    "empty": (lambda data: b"", "it is empty"),
    "white": (lambda data: b" \n ", "it is empty"),
    "cut": (lambda data: data[: len(data) // 2], "cut short|not JSON"),
    "cut at the end": (lambda data: data.rstrip()[:-1], "it was cut short"),
    "twice": (lambda data: data + data, "it is not JSON"),
    "text": (lambda data: b"hello", r"it is not JSON \(line 1, column 1"),
    "number": (lambda data: b"1", "not a model file of majorant"),
    "list": (lambda data: b"[]", "not a model file of majorant"),
    "other json": (lambda data: b'{"a": 1}', "not a model file of majorant"),
    "key twice": (lambda data: data.replace(b'"lam"', b'"eta"', 1), "the key 'eta' is there twice"),
    "nan": (lambda data: data.replace(b'"lam": 0.5', b'"lam": NaN'), "it holds NaN, which is not JSON"),
    "infinity": (lambda data: data.replace(b'"lam": 0.5', b'"lam": -Infinity'), "it holds -Infinity"),
    "overflow": (lambda data: data.replace(b'"lam": 0.5', b'"lam": 1e999'), "beyond double precision"),
    "long integer": (lambda data: data.replace(b'"lam": 0.5', b'"lam": ' + b"9" * 9999), "has 9999 digits"),
    "deep": (lambda data: b"[" * 10**5 + b"]" * 10**5, "nested deeper"),
    "deep objects": (lambda data: b'{"a":' * 10**5 + b"1" + b"}" * 10**5, "nested deeper"),
    "utf-16": (lambda data: data.decode().encode("utf-16"), "it is not UTF-8"),
    "latin-1": (lambda data: data.replace(b'"x"', b'"\xe4"'), "it is not UTF-8"),
    "bom": (lambda data: b"\xef\xbb\xbf" + data, "it is not JSON"),
    "zeros": (lambda data: bytes(1000), "it is not JSON"),
    "pickle": (lambda data: pickle.dumps(SparseSVC()), "this is a pickle.*majorant does not load pickles"),
    "old pickle": (lambda data: pickle.dumps(3, protocol=2), "majorant does not load pickles"),
    "liblinear": (
        lambda data: b"solver_type L2R_LR\nnr_class 2\n",
        "LIBLINEAR.*`majorant convert`",
    ),
    "zip": (lambda data: b"PK\x03\x04rest", "zip archive"),
    "gzip": (lambda data: b"\x1f\x8brest", "it is compressed"),
}


@pytest.mark.parametrize("name", BYTES)
def test_what_is_no_model_file_is_named(documents, name, path):
    damage, message = BYTES[name]
    data = damage(whole(documents))
    assert data != whole(documents)
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelFileError, match=message):
        load_provenance(path)


def test_files_that_cannot_be_read_are_named(tmp_path, monkeypatch):
    for place in (tmp_path, tmp_path / "none", "nul\0"):
        with pytest.raises(ModelFileError, match="it cannot be read"):
            load_model(place)
    monkeypatch.setattr(strict, "MAX_BYTES", 1000)
    with pytest.raises(ModelFileError, match="it is larger than a model file can be"):
        load_model("/dev/zero" if os.path.exists("/dev/zero") else __file__)
    X, codes = rows()
    with pytest.raises(ModelFileError, match="a model file at most"):
        save_model(SparseSVC().fit(X, codes), tmp_path / "large")
    assert not list(tmp_path.iterdir())


def test_a_pickle_is_not_executed(path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(path) + ".exploded",)

    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError):
        load_model(path)
    assert not os.path.exists(str(path) + ".exploded")


# Damage at random -------------------------------------------------------------------------------------------

JUNK = [None, True, False, 0, 1, -1, 2**31, 2**53, 2**63, 10**18, 0.5, -0.0, 1e308, 5e-324, "", "nan", "inf",
        "\ud800", "x" * 1000, [], {}, [[]], [0, 1.0], {"a": 1}, {"unavailable": "os.system"},
        {"number": "inf"},
        {"solver": {"name": "newton", "settings": {"gram_features": 1}}}, NESTED]  # fmt: skip


def places(node, here=()):
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in entries:
        yield (*here, key)
        yield from places(child, (*here, key))


def damaged(document, rng):
    """A copy with something removed, replaced, moved, repeated or added somewhere."""
    document = json.loads(json.dumps(document))
    everywhere = list(places(document))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        *above, last = rng.choice(everywhere)
        node = document
        try:
            for key in above:
                node = node[key]
            kind = rng.randrange(5)
            if kind == 0:
                del node[last]
            elif kind == 1:
                node[last] = rng.choice(JUNK)
            elif kind == 2:
                other = document
                for key in rng.choice(everywhere):
                    other = other[key]
                node[last] = json.loads(json.dumps(other))
            elif isinstance(node, list):
                node.insert(rng.randrange(len(node) + 1), rng.choice([*JUNK, *node]))
            else:
                node[rng.choice(["", "lam", "x", last + "_", "sha256"])] = rng.choice(JUNK)
        except (KeyError, IndexError, TypeError):  # an earlier change has taken the place away
            continue
    return json.loads(json.dumps(document))


def attempt(node, original):
    """Load; a model that comes out can predict, and without a new checksum it is the model that went in."""
    try:
        model, _ = model_of(node)
    except ModelFileError:
        return None
    wide = min(model.n_features_in_, 1000)
    if wide == model.n_features_in_:
        with np.errstate(all="ignore"):
            assert len(model.predict(np.ones((2, wide)))) == 2
    return model


def fuzz_trees(documents, count, seed):
    rng, loaded = random.Random(seed), 0
    for _ in range(count):
        original = rng.choice(documents)
        node = damaged(original, rng)
        changed_ = node != original or json.dumps(node) != json.dumps(original)
        assert attempt(node, original) is None or not changed_ or node == original
        if isinstance(node, dict):
            node["sha256"] = checksum(node)
            loaded += attempt(node, original) is not None
    return loaded


def test_damaged_documents_are_refused_or_load(documents):
    assert fuzz_trees(documents, 150, seed=1) > 0


@pytest.mark.slow
def test_many_thousand_damaged_documents_are_refused_or_load(documents):
    assert fuzz_trees(documents, 10_000, seed=2) > 100


def fuzz_bytes(data, model, count, seed, path, monkeypatch):
    """Bytes changed, removed, repeated: refused, or white space, and the model is the same."""
    rng = random.Random(seed)
    for _ in range(count):
        mutated = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 8])):
            at = rng.randrange(len(mutated))
            kind = rng.randrange(4)
            if kind == 0:
                mutated[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                mutated[at] = rng.choice(b'0123456789.-+eE"[]{},: \n\\u')
            elif kind == 2:
                del mutated[at : at + rng.randrange(1, 20)]
            else:
                mutated[at:at] = mutated[at : at + rng.randrange(1, 20)]
        monkeypatch.setattr(store, "read_limited", lambda path, content=bytes(mutated): content)
        try:
            loaded = load_model(path)
        except ModelFileError:
            continue
        assert_same_model(model, loaded)


def test_damaged_bytes_are_refused_or_change_nothing(path, monkeypatch):
    X, codes = rows(3)
    model = SparseSVC("l1", lam=0.5, max_iter=2).fit(X, codes)
    fuzz_bytes(save(model, path).read_bytes(), model, 200, 1, path, monkeypatch)


@pytest.mark.slow
def test_many_thousand_damaged_files_are_refused_or_change_nothing(path, monkeypatch):
    X, codes = rows(3)
    model = SparseSVC("l1", lam=0.5, max_iter=2).fit(X, codes)
    fuzz_bytes(save(model, path).read_bytes(), model, 20_000, 2, path, monkeypatch)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(which=st.integers(0, 2), where=st.integers(0, 10**6), value=JSON)
def test_any_json_anywhere_is_refused_or_loads(documents, which, where, value):
    everywhere = list(places(documents[which]))
    attempt(changed(documents[which], everywhere[where % len(everywhere)], value), documents[which])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_refused(data):
    with pytest.raises(ModelFileError):
        model_of(strict.parse(data))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(node=st.dictionaries(st.text(), JSON, max_size=4))
def test_what_is_rendered_is_parsed(node):
    data = strict.render(node)
    again = strict.parse(data)
    assert json.dumps(again) == json.dumps(node)
    assert strict.render(again) == data


@pytest.mark.slow
def test_a_coverage_guided_fuzzer_finds_nothing(tmp_path, documents):
    pytest.importorskip("atheris", reason="atheris has no wheel for this Python or platform")
    for k, document in enumerate(documents):
        (tmp_path / f"seed{k}").write_text(json.dumps(document))
    # Its own copies of what it finds go to the first directory.
    # No limit of memory: the peak that it would look at is inherited from the process of these tests.
    limits = ["-runs=15000", "-seed=1", "-max_len=20000", "-rss_limit_mb=0"]
    done = run_script("fuzz_model_file.py", *limits, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Done 15000 runs" in done.stderr
