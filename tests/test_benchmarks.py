"""The benchmark in benchopt's format, as far as it can be tested without benchopt."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sklearn.datasets import dump_svmlight_file

HERE = Path(__file__).parent.parent / "benchmarks" / "sparse_svm"


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
