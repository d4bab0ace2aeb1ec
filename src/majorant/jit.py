"""Compiling loops with numba; the only module that uses numba's settings and private parts.

All functions release the GIL. None uses numba's own threads, which abort the process under concurrent
callers. Compiled code is kept on disk.

Before numba loads a function from its cache, it imports its compiler: 0.2 of the 0.45 s that the first fit of
a process takes. A loaded function needs numba's runtime only. So `_QuickCache` starts the runtime and loads
the function; numba imports its compiler when a function is not in the cache. This was tried with numba 0.60,
0.61, 0.63, 0.65 and 0.68; versions after `TRIED` use numba's own cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

TRIED = (0, 68)

_OPTIONS: Any = {"nogil": True, "error_model": "numpy"}


class _QuickCache(FunctionCache):
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, or load it from disk."""
    try:
        dispatcher: Any = numba.njit(cache=True, **_OPTIONS)(function)
        if tuple(map(int, numba.__version__.split(".")[:2])) <= TRIED:
            dispatcher._cache = _QuickCache(function)
    except RuntimeError:  # numba can write neither to the package's directory nor to the user's
        return numba.njit(**_OPTIONS)(function)
    return dispatcher


def compiled_part(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled functions call: it is stored with them, and compiles faster."""
    wrappers: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(**_OPTIONS, **wrappers)(function)
