"""The benchmark in benchopt's format, as far as it can be tested without benchopt."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from tests import ROOT

HERE = ROOT / "benchmarks" / "sparse_svm"


class Base:
    """Takes the place of benchopt's classes."""

    @classmethod
    def get_instance(cls, **parameters):
        instance = cls()
        vars(instance).update({"data": "w8a"} | parameters)
        return instance


@pytest.fixture
def benchmark(monkeypatch):
    stub = ModuleType("benchopt")
    stub.BaseDataset = stub.BaseObjective = Base
    monkeypatch.setitem(sys.modules, "benchopt", stub)

    def load(name):
        spec = importlib.util.spec_from_file_location(Path(name).stem, HERE / name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_data_sets_of_files_are_skipped_where_there_are_none(benchmark, monkeypatch, tmp_path):
    files, objective = benchmark("datasets/files.py"), benchmark("objective.py").Objective
    check = benchmark("test_config.py").check_test_dataset_get_data
    monkeypatch.delenv("MAJORANT_DATA", raising=False)
    for reason in ("MAJORANT_DATA does not name", "there is no file"):
        data = files.Dataset.get_instance().get_data()
        skip, said = objective().skip(**data)
        assert skip
        assert reason in said
        with pytest.raises(pytest.skip.Exception, match=reason):
            check(None, files.Dataset)
        monkeypatch.setenv("MAJORANT_DATA", str(tmp_path))
    monkeypatch.setitem(files.FILES, "w8a", "w8a")
    dump_svmlight_file([[1.0, 0.0], [0.0, 1.0]], [1, 2], str(tmp_path / "w8a"))
    data = files.Dataset.get_instance().get_data()
    assert objective().skip(**data) == (False, None)
    assert data["y"].tolist() == [-1.0, 1.0]
    check(None, files.Dataset)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("small", (2_000, 200)), ("text", (6_000, 20_000)), ("wide", (800, 100_000)), ("dense", (2_600, 500))],
)
def test_simulated_data_are_the_same_each_time(benchmark, kind, shape):
    simulated = benchmark("datasets/simulated.py")
    X, y = simulated.load(kind)
    again = simulated.Dataset.get_instance(kind=kind).get_data()
    assert X.shape == shape
    assert set(y) == {-1.0, 1.0}
    assert 0.2 < np.mean(y > 0) < 0.8
    assert (again["X"] != X).sum() == 0
    assert np.array_equal(y, again["y"])
    if sp.issparse(X):
        assert X.indices.dtype == np.int32
        assert X.has_canonical_format
