"""Coverage-guided fuzzing of the readers: python tests/fuzz_readers.py [options of libFuzzer] [corpus].

The first byte of an input chooses the format, the rest is the content. Any error but a DataFileError is a
find; so is LIBSVM text of which `reference` has another opinion. The kernels run as Python
(NUMBA_DISABLE_JIT=1, set by the test that runs this), so that atheris sees their branches too. The same
options and corpus lead to the same inputs, on Linux at least.
"""

import ctypes
import io
import os
import re
import sys
import warnings

import atheris

with atheris.instrument_imports(include=["majorant.datasets"]):
    from majorant.datasets import arrays, libsvm, libsvm_kernels, readers, text_tables  # noqa: F401 - instrumented now

from majorant.datasets.sniff import what_it_is
from majorant.errors import DataFileError
from tests.datasets.reference_libsvm import reference

FORMATS = ("libsvm", "csv", "tsv", "npz", "mat", "parquet", "arrow")


class _Stdin:
    def __init__(self, content):
        self.buffer = io.BytesIO(content)


def read_one(content):
    if not content:
        return
    format = FORMATS[content[0] % len(FORMATS)]
    sys.stdin = _Stdin(content[1:])
    try:
        data = readers.read("-", format=format, labelled=True if format == "libsvm" else None)
    except DataFileError as error:
        found, line = None, error.line
    else:
        found, line = data, None
    if format == "libsvm" and not re.match(rb"\x1f\x8b|BZh|\xfd7zXZ", content[1:]):
        expected, expected_line = reference(content[1:])
        assert (found is None) == (expected is None)
        # Of a file that is something else altogether no line is named.
        assert line == expected_line or what_it_is(content[1:], format)
        if found is not None:
            assert found.X.data.tolist() == [value for _, pairs in expected for _, value in pairs]
            assert found.X.indices.tolist() == [index - 1 for _, pairs in expected for index, _ in pairs]
            assert found.y.tolist() == [label for label, _ in expected]


ADDR_NO_RANDOMIZE = 0x0040000


def leave_nothing_to_chance():
    """Begin again with everything at the same address: what libFuzzer tries next depends on addresses."""
    if os.environ.get("PYTHONHASHSEED") == "0":
        return
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.personality(libc.personality(0xFFFFFFFF) | ADDR_NO_RANDOMIZE)
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})


if __name__ == "__main__":
    leave_nothing_to_chance()
    warnings.simplefilter("ignore")
    atheris.Setup(sys.argv, read_one)
    atheris.Fuzz()
