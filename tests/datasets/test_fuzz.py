"""Whatever the bytes are: data, or a DataFileError; and LIBSVM text as the plain reference reads it."""

import io
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from majorant.datasets import read
from majorant.datasets.libsvm import read_libsvm
from majorant.datasets.options import ReadOptions
from majorant.errors import DataFileError
from tests.datasets.reference_libsvm import reference
from tests.processes import environment

FUZZER = Path(__file__).with_name("fuzz_readers.py")
RUNS = 100_000
"""Of the coverage-guided fuzzer: half a minute."""
FIXED = settings(deadline=None, derandomize=True, max_examples=60)


class Memory:
    """The content of a file that is none."""

    path = "memory"

    def __init__(self, text, size=1 << 20):
        self.text, self.size = text, size

    def chunks(self):
        return (self.text[i : i + self.size] for i in range(0, len(self.text), self.size))


def agrees(text, size=1 << 20):
    """Read a text as the reference does; the line of the error, if there is one."""
    expected, line = reference(text)
    try:
        X, y, *_ = read_libsvm(Memory(text, size), ReadOptions())
        found = None
    except DataFileError as error:
        found = error
    assert (found is None) == (expected is not None), (text, found)
    if found is not None:
        assert found.line == line, (text, found)
        return line
    assert X.indptr.tolist() == [0, *np.cumsum([len(pairs) for _, pairs in expected]).tolist()]
    assert X.indices.tolist() == [index - 1 for _, pairs in expected for index, _ in pairs]
    values = np.array([value for _, pairs in expected for _, value in pairs])
    assert X.data.tobytes() == values.tobytes()
    assert y.tolist() == [label for label, _ in expected]
    return None


NUMBERS = st.one_of(
    st.integers(-9, 99).map(str),
    st.floats().map(repr),
    st.from_regex(r"[+-]?[0-9]{0,25}\.?[0-9]{0,25}(e[+-]?[0-9]{0,3})?", fullmatch=True),
    st.sampled_from(["1_0", "0x1", "inf", "", "x", "1e400", "9007199254740993", "1" * 25]),
)
PAIRS = st.tuples(st.one_of(st.integers(0, 30).map(str), NUMBERS), NUMBERS).map(":".join)
SPACES = st.sampled_from([" ", " ", "\t", "  ", "\r", "#", "\n", "\0", "é"])
LINES = st.lists(st.one_of(NUMBERS, PAIRS, PAIRS, SPACES, SPACES)).map("".join)


@FIXED
@given(st.lists(LINES), st.sampled_from(["\n", "\r\n"]), st.integers(1, 40))
def test_lines_that_are_nearly_right(lines, end, size):
    agrees(end.join(lines).encode(), size)


@FIXED
@given(st.text("0123456789:.-+eE# \t\r\n", max_size=60), st.integers(1, 9))
@example("1 1:1\r", 1)
@example("1 1:1\n\r\n", 2)
@example("1#", 1)
def test_the_characters_of_numbers(text, size):
    agrees(text.encode(), size)


@FIXED
@given(st.binary(max_size=200), st.sampled_from(["libsvm", "csv", "tsv", "npz", "mat", "parquet", "arrow"]))
def test_bytes_in_every_format(tmp_path_factory, content, format):
    path = tmp_path_factory.mktemp("bytes") / "data"
    path.write_bytes(content)
    for labelled in (True, None):
        try:
            data = read(path, format=format, labelled=labelled)
        except DataFileError:
            continue
        assert data.X.shape[0] > 0


@FIXED
@given(st.text('019.e-"\n\r,;\tx_\0é ', max_size=80))
def test_the_characters_of_tables(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("text") / "data.csv"
    path.write_text(text, encoding="utf-8", newline="")
    for header in (True, False):
        try:
            data = read(path, labelled=None, header=header)
        except DataFileError:
            continue
        assert np.isfinite(data.X).all()


def valid_lines(rng, count):
    """Lines as files have them: indicators, few digits, all digits."""
    lines = []
    for kind in rng.integers(0, 3, count):
        columns = np.sort(rng.choice(300, rng.integers(1, 6), replace=False)) + 1
        x = rng.standard_normal(len(columns)) * 10.0 ** rng.integers(-9, 9)
        values = [["1"] * len(x), [f"{v:.6g}" for v in x], [repr(float(v)) for v in x]][kind]
        pairs = " ".join(f"{column}:{value}" for column, value in zip(columns, values, strict=True))
        lines.append(f"{rng.choice(['+1', '-1', '2', '0.5'])} {pairs}".encode())
    return lines


SPOILERS = np.frombuffer(b"0123456789:::...--++eE##  \t\r\0_xnai\xe9\xff", dtype=np.uint8)


def mutated(rng, lines):
    """Every line with a byte or two replaced, removed, repeated or added."""
    result = []
    for line in lines:
        line = bytearray(line)
        for _ in range(rng.integers(1, 3)):
            at = int(rng.integers(0, len(line)))
            byte = int(SPOILERS[rng.integers(0, SPOILERS.size)])
            match rng.integers(0, 4):
                case 0:
                    line[at] = byte
                case 1:
                    del line[at]
                case 2:
                    line.insert(at, byte)
                case _:
                    line[at:at] = line[at : at + 4]
        result.append(bytes(line) or b"1")
    return result


def check_mutations(seed, count):
    """Read mutated lines; after an error, go on behind its line, so that every line is judged."""
    rng = np.random.default_rng(seed)
    originals = valid_lines(rng, 200)
    wrong = 0
    for _ in range(count // len(originals)):
        lines = mutated(rng, originals)
        while lines:
            line = agrees(b"\n".join(lines))
            if line is None:
                break
            wrong += 1
            lines = lines[line:]
    return wrong


def test_mutated_lines():
    assert check_mutations(0, 4000) > 1000


@pytest.mark.slow
def test_a_million_mutated_lines():
    assert check_mutations(1, 1_000_000) > 250_000


def run(code_or_script, *arguments, **variables):
    return subprocess.run(
        [sys.executable, *code_or_script, *arguments],
        env=environment(**variables),
        capture_output=True, text=True, timeout=280,
    )  # fmt: skip


@pytest.mark.slow
def test_the_kernel_stays_within_its_arrays(tmp_path):
    """The same mutations with numba's own check of every index."""
    code = (
        "import numpy as np; from majorant.datasets import decimals\n"
        "from tests.datasets.test_fuzz import check_mutations\n"
        "try: decimals.read_number(np.zeros(0, np.uint8), 0, decimals.powers_of_five())\n"
        "except IndexError: print('checked', check_mutations(2, 20_000) > 5000)"
    )
    answer = run(["-c", code], NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path))
    assert answer.stdout == "checked True\n", answer.stderr


def seeds():
    """A file of each kind, with the byte before it that chooses the format."""
    X, y = np.array([[1.5, 0.0], [0.25, -3e-7]]), np.array([1, -1])
    table = 'a,b,y\n1,2,u\n3e5,"4","v, w"\n'
    yield b"\0" + b"+1 1:0.5 3:1e-3\n-1 2:12345678901234567890.5 # end\n"
    yield b"\x01" + table.encode()
    yield b"\x02" + table.replace(",", "\t").encode()
    for parts in ({"X": X, "y": y}, {"X": X.astype(np.int8), "y": np.array(["a", "b"])}):
        buffer = io.BytesIO()
        np.savez(buffer, **parts)
        yield b"\x03" + buffer.getvalue()
    buffer = io.BytesIO()
    sp.save_npz(buffer, sp.csr_array(X), compressed=False)
    yield b"\x03" + buffer.getvalue()
    for A in (X, sp.csc_array(X)):
        buffer = io.BytesIO()
        scipy.io.savemat(buffer, {"A": A, "b": y})
        yield b"\x04" + buffer.getvalue()
    columns = pa.table({"a": [0.5, 1.5], "b": pa.array([1, 2]).dictionary_encode(), "y": ["u", "v"]})
    buffer = io.BytesIO()
    parquet.write_table(columns, buffer)
    yield b"\x05" + buffer.getvalue()
    buffer = io.BytesIO()
    with pa.ipc.new_file(buffer, columns.schema) as writer:
        writer.write_table(columns)
    yield b"\x06" + buffer.getvalue()


def finding(answer, directory):
    """What a fuzzer has found: the traceback, which atheris prints to stdout, and the input."""
    _, _, traceback = answer.stdout.partition("=== Uncaught Python exception: ===")
    inputs = [f"{path.name}: {path.read_bytes().hex()}" for path in sorted(directory.glob("*-*"))]
    return "\n".join([traceback.strip() or answer.stderr[-3000:], *inputs])


@pytest.mark.slow
def test_what_a_fuzzer_finds_is_shown(tmp_path):
    pytest.importorskip("atheris", reason="atheris has no wheel for this Python or platform")
    code = (
        "import sys, atheris\n"
        "def judge(content):\n    if content: raise KeyError('a find')\n"
        "atheris.Setup(sys.argv, judge)\natheris.Fuzz()"
    )
    answer = run(["-c", code], "-runs=10", "-seed=1", f"-artifact_prefix={tmp_path}/")
    assert answer.returncode != 0
    shown = finding(answer, tmp_path)
    assert "Traceback" in shown
    assert "KeyError: 'a find'" in shown
    (content,) = (path.read_bytes() for path in tmp_path.glob("crash-*"))
    assert shown.endswith(content.hex())


@pytest.mark.slow
def test_coverage_guided(tmp_path, monkeypatch):
    """The same inputs every time: what this finds, it finds again."""
    pytest.importorskip("atheris", reason="atheris has no wheel for this Python or platform")
    begin, found = tmp_path / "seeds", tmp_path / "found"
    begin.mkdir()
    found.mkdir()
    with monkeypatch.context() as patch:  # .npz and .mat have the date in them
        patch.setattr(time, "localtime", lambda *_: time.gmtime(365 * 24 * 3600 * 15))
        patch.setattr(time, "asctime", lambda *_: "Thu Jan  1 00:00:00 1970")
        for number, seed in enumerate(seeds()):
            (begin / f"seed-{number}").write_bytes(seed)
    options = [
        f"-runs={RUNS}",
        "-max_len=4096",
        "-seed=1",
        "-reload=0",  # which looks at the clock
        "-rss_limit_mb=0",  # the peak it would look at is inherited from the process of these tests
        f"-artifact_prefix={tmp_path}/",
    ]
    answer = run([str(FUZZER)], *options, str(found), str(begin), NUMBA_DISABLE_JIT="1")
    assert answer.returncode == 0, finding(answer, tmp_path)
    assert f"Done {RUNS} runs" in answer.stderr
