"""The benchmark in benchopt's format, as far as it can be tested without benchopt, and that of selections."""

import importlib.util
import json
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


@pytest.fixture(scope="module")
def selection():
    spec = importlib.util.spec_from_file_location("selection", ROOT / "benchmarks" / "selection.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["selection"] = module  # a dataclass looks up its module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["selection"]


def test_the_benchmark_of_selections_writes_tables_and_a_picture(selection, monkeypatch, tmp_path, capsys):
    """On a tiny cell, with the methods that need no other package and a stand-in for a peer."""

    def marginal(X, y):
        """The features with the largest correlations."""
        order = np.argsort(-np.abs(X.T @ (y - y.mean())))
        return [order[:size] for size in range(1, 6)]

    peer = selection.Method("peer", lambda X, y: None, listed=marginal)
    ours = [method for method in selection.METHODS if method.name in ("majorant, l1", "LinearSVC, l1")]
    monkeypatch.setattr(selection, "METHODS", [*ours, peer])
    monkeypatch.setattr(selection, "CELLS", {"tiny": selection.Cell(100, 20, 3, 0.3, 0.5)})
    command = ["--cells", "tiny", "--data", "--seeds", "2", "--out", str(tmp_path)]
    selection.main(command)
    table = (tmp_path / "selection.md").read_text(encoding="utf-8")
    assert table in capsys.readouterr().out
    assert all(f"\n| {method.name} | " in table for method in selection.METHODS)
    assert "tiny 2" in table
    assert (tmp_path / "selection.png").read_bytes().startswith(b"\x89PNG")
    results = json.loads((tmp_path / "selection.json").read_text())
    assert len(results) == 6
    assert results["tiny | 0 | majorant, l1"]["f1"] > 0.7
    monkeypatch.setattr(selection, "run", lambda *arguments: pytest.fail("runs again"))
    monkeypatch.setattr(selection, "picture", lambda *arguments: None)
    selection.main(command)


def test_a_cell_has_the_stated_correlations_positives_and_truth(selection):
    cell = selection.Cell(20_000, 12, 3, 0.6, 0.1)
    X, y = selection.simulate(cell, 0).train
    indices = np.arange(12)
    assert np.corrcoef(X.T) == pytest.approx(0.6 ** np.abs(indices[:, None] - indices), abs=0.03)
    assert X.std(axis=0) == pytest.approx(np.ones(12), abs=0.03)
    assert np.mean(y > 0) == pytest.approx(0.95 * 0.1 + 0.05 * 0.9, abs=0.01)
    assert selection.simulate(cell, 0).truth.tolist() == [2, 6, 10]


def test_the_refit_of_the_truth_has_no_excess(selection):
    problem = selection.simulate(selection.Cell(200, 10, 2, 0.0, 0.5), 0)
    wrong = np.array([0, 1])
    method = selection.Method("both", lambda X, y: [wrong, problem.truth, np.array([], dtype=int)])
    figures = selection.run(method, problem, selection.Refits(problem))
    assert figures["f1"] == 1.0
    assert figures["excess"] == 0.0
    only_wrong = selection.Method("wrong", lambda X, y: [wrong])
    assert selection.run(only_wrong, problem, selection.Refits(problem))["excess"] > 1.0


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
