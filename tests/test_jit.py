"""Compiled functions: kept on disk, and loaded without what compiling needs."""

import os
import subprocess
import sys

import numba

from majorant import jit

# Two functions of a module, one of which calls a part; prints what numba has imported after loading them.
MODULE = """
import sys
from majorant.jit import compiled, compiled_part

@compiled_part
def _twice(x):
    return 2 * x

@compiled
def total(values):
    result = 0.0
    for value in values:
        result += _twice(value)
    return result

"""


def test_a_function_on_disk_is_loaded_without_what_compiling_needs(tmp_path):
    (tmp_path / "loops.py").write_text(MODULE, encoding="utf-8")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(code):
        command = [sys.executable, "-c", code]
        answer = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment
        )
        return answer.stdout.split()

    first = "import numpy as np, sys; from loops import total; print(total(np.arange(4.0)))"
    assert run(first) == ["12.0"]
    # The second type of argument has to be compiled, in a process that has loaded the first.
    second = first + "; print('numba.np.linalg' in sys.modules, total(np.arange(4)))"
    quick = tuple(map(int, numba.__version__.split(".")[:2])) <= jit.TRIED
    assert run(second) == ["12.0", str(not quick), "12.0"]


def test_functions_work_where_nothing_can_be_cached(monkeypatch):
    plain = numba.njit

    def njit(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*args, **options)

    monkeypatch.setattr(numba, "njit", njit)
    assert jit.compiled(lambda x: x + 1)(2) == 3


def test_an_untried_version_of_numba_uses_its_own_cache(monkeypatch):
    monkeypatch.setattr(jit, "TRIED", (0, 1))
    assert type(jit.compiled(lambda x: x)._cache).__name__ != "_QuickCache"
