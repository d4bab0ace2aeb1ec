"""The project's own promises: layers, equations, instructions that work."""

import ast
import importlib.util
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import majorant
from majorant.potentials import Potential
from majorant.solvers import Solver
from tests import ROOT

SOURCE = ROOT / "src" / "majorant"


def layers():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("<!-- layers -->")[1].split("<!-- end of layers -->")[0]
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", table, flags=re.MULTILINE)
    return [module.strip().replace("\\", "") for _, modules in rows for module in modules.split(",")]


def top_level(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path):
    """The parts of the package that a file imports, wherever in the file, but not only for type checking."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("majorant."):
            yield node.module.split(".")[1]


MODULES = sorted(path for path in SOURCE.rglob("*.py") if top_level(path) != "__init__")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_go_downwards(path):
    order = layers()
    here = top_level(path)
    assert here in order, f"{here} is missing from ARCHITECTURE.md"
    for other in imports(path):
        assert other == here or order.index(other) < order.index(here), f"{here} imports {other}"


def test_the_layer_list_names_what_exists():
    assert sorted(layers()) == sorted({top_level(path) for path in MODULES})


def test_every_equation_is_cited_and_the_page_is_current():
    spec = importlib.util.spec_from_file_location("make_equations", ROOT / "docs" / "make_equations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.citations()
    assert [label for label in module.STATEMENTS if label not in found] == []
    assert [label for label in found if label not in module.STATEMENTS] == []
    page = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    assert page == module.page(), "run python docs/make_equations.py"


def test_the_instructions_for_contributors_work(monkeypatch):
    monkeypatch.setattr(Potential, "registry", dict(Potential.registry))
    monkeypatch.setattr(Solver, "registry", dict(Solver.registry))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    namespace = {"__name__": "contribution"}
    # A dataclass looks up its module, so the blocks need one.
    module = type(sys)("contribution")
    monkeypatch.setitem(sys.modules, "contribution", module)
    for block in blocks:
        exec(compile(block, "CONTRIBUTING.md", "exec"), namespace)
    assert {"log-cosh"} <= Potential.registry.keys()
    assert {"nesterov"} <= Solver.registry.keys()
    from sklearn.datasets import make_classification

    X, y = make_classification(random_state=0)
    model = majorant.SparseSVC("log-cosh", lam=0.1, delta=0.05).fit(X, y)
    assert model.converged_


def test_the_pipeline_of_the_page_about_data_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ward, age = rng.choice(["east", "north"], 60), rng.standard_normal(60)
    ill = np.where((ward == "north") + age > 0.5, "ill", "well")
    patients = pd.DataFrame({"age": age, "ward": ward, "stage": rng.integers(1, 4, 60), "outcome": ill})
    patients.loc[::7, "age"] = np.nan
    patients.to_csv("patients.csv", index=False)
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    section = text.split("## Missing values and categories")[1].split("\n## ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    namespace = {}
    exec(compile(block, "docs/data.md", "exec"), namespace)
    assert "ward_north" in namespace["used"]
    new = pd.DataFrame({"age": [np.nan], "ward": ["mars"], "stage": [2]})
    assert namespace["model"].predict(new)[0] in ("ill", "well")
    assert "ward_north" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_version_is_stated_once_more_and_agrees():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{majorant.__version__}"' in text


def test_readme_begins_with_two_one_line_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 2
    assert all(block.count("\n") == 1 for block in blocks[:2])
    assert "majorant demo" in blocks[0]
    assert "pytest" in blocks[1]


def test_ci_runs_the_readmes_test_line():
    """The script's own way of reading README.md, run by the shell, gives that line."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (reader,) = re.findall(r"^test_line=\$\((.*)\)$", script, flags=re.MULTILINE)
    read = subprocess.run(["bash", "-c", reader], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert read == re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)[1]


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, majorant, majorant.cli; "
        "print([name for name in ('numpy', 'sklearn', 'numba', 'rich') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_a_dense_estimator_does_not_import_numba():
    code = "import sys; from majorant import SparseSVC; print('numba' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "False"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute"):
        majorant.nothing  # noqa: B018
    assert "SparseSVC" in dir(majorant)
