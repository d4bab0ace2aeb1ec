"""Data sets by name: where they are looked for, and what is said when they are not there."""

import bz2
import dataclasses
import gzip
import hashlib
import lzma
import re
import subprocess
import sys
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pytest

from majorant.datasets import REGISTRY, DatasetInfo, describe, find, load, registry
from majorant.errors import DataFileError
from tests import ROOT

CONTENT = b"+1 1:0.5 3:1\n-1 2:2\n"
RECORD = DatasetInfo(
    name="tiny",
    task="which of two rows it is",
    n_rows=2,
    n_features=4,
    last_feature=3,
    n_classes=2,
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    files=("tiny",),
    origin="this test",
    address="http://127.0.0.1:9/data/tiny.bz2",  # the port where everything is discarded: nobody listens
)


def make(directory, name="tiny", content=CONTENT, compress=bytes):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(compress(content))
    return directory / name


def register(monkeypatch, **changes):
    record = dataclasses.replace(RECORD, **changes)
    monkeypatch.setattr(registry, "REGISTRY", {"tiny": record})
    return record


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache of this test, no data directory, and a registry with one record."""
    directory = tmp_path / "cache"
    monkeypatch.setattr("pooch.os_cache", lambda project: directory / project)
    monkeypatch.delenv("MAJORANT_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("majorant.datasets.download.time", SimpleNamespace(sleep=lambda seconds: None))
    register(monkeypatch)
    return directory / "majorant"


@pytest.fixture
def named(monkeypatch, tmp_path):
    """The directory that MAJORANT_DATA names."""
    directory = tmp_path / "data"
    directory.mkdir()
    monkeypatch.setenv("MAJORANT_DATA", str(directory))
    return directory


@pytest.mark.parametrize(
    ("ending", "compress"),
    [("", bytes), (".txt", bytes), (".bz2", bz2.compress), (".gz", gzip.compress), (".xz", lzma.compress)],
)
def test_any_compression_is_found(cache, named, ending, compress):
    path = make(named, "tiny" + ending, compress=compress)
    assert find("tiny", download=False) == path


def test_the_named_directory_comes_before_the_cache(cache, named):
    in_cache = make(cache)
    assert find("tiny", download=False) == in_cache
    in_named = make(named)
    assert find("tiny", download=False) == in_named


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other variables for this")
def test_the_cache_is_that_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("MAJORANT_DATA", raising=False)
    with pytest.raises(DataFileError, match=f"into '{tmp_path}/majorant'"):
        find("a1a", download=False)


def test_wrong_content_in_the_named_directory_is_an_error_with_both_hashes(cache, named):
    make(cache)  # the right one elsewhere does not excuse it
    path = make(named, content=b"something else")
    found = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(DataFileError) as caught:
        find("tiny")
    message = str(caught.value)
    assert message.startswith(str(path))
    assert found in message
    assert RECORD.sha256 in message
    assert "replace the file, or remove it" in message


def test_a_wrong_file_beside_the_right_one_does_no_harm(cache, named):
    make(named, "tiny", content=b"something else")
    right = make(named, "tiny.bz2", compress=bz2.compress)
    assert find("tiny") == right


def test_a_file_that_changes_is_checked_again(cache, named):
    path = make(named)
    find("tiny", download=False)
    path.write_bytes(CONTENT + b"+1 1:1\n")
    with pytest.raises(DataFileError, match="instead of"):
        find("tiny", download=False)


@pytest.mark.parametrize("compress", [bz2.compress, gzip.compress, lzma.compress])
def test_a_damaged_file_is_an_error_that_names_it(cache, named, compress):
    path = make(named, "tiny.bz2", compress=lambda content: compress(content)[:-9])
    with pytest.raises(DataFileError, match=re.escape(str(path)) + ".*compressed data"):
        find("tiny")


def test_numbers_that_are_spelt_otherwise_are_as_good(cache, named, monkeypatch):
    register(monkeypatch, sha256="0" * 64, same_numbers=(RECORD.sha256,))
    path = make(named)
    assert find("tiny", download=False) == path


@pytest.mark.parametrize("download", [False, True])
def test_without_the_file_the_error_says_which_to_put_where(cache, download):
    with pytest.raises(DataFileError) as caught:
        find("tiny", download=download)
    reason = r" and could not be downloaded \(there was no connection to 127\.0\.0\.1:9, in 4 tries\)"
    assert re.fullmatch(
        f"tiny is not on this machine{reason if download else ''}: "
        f"put tiny or tiny.bz2 \\(from {RECORD.address}\\) into '{cache}', "
        "or name a directory that holds it by MAJORANT_DATA",
        str(caught.value),
    )


def test_the_named_directory_is_where_to_put_it(cache, named):
    with pytest.raises(DataFileError, match=f"into '{named}', the directory that MAJORANT_DATA names"):
        find("tiny", download=False)


def test_the_published_name_is_the_one_to_put(cache, monkeypatch):
    register(monkeypatch, files=("long-name", "tiny"))
    with pytest.raises(DataFileError, match=r"put tiny or tiny\.bz2"):
        find("tiny", download=False)


def test_without_an_address_nothing_is_downloaded(cache, monkeypatch):
    register(monkeypatch, address=None)
    with pytest.raises(DataFileError, match="this test; no address is known where this file is published"):
        find("tiny")
    assert not cache.exists()


def test_what_is_not_here_is_downloaded_into_the_cache(cache, named, monkeypatch, capsys):
    asked = []

    def download(url, destination, sha256, most_bytes, *, report):
        asked.append((url, sha256))
        assert len(CONTENT) < most_bytes < 2 * 10**6
        report(1, 2)
        return make(destination.parent, destination.name, compress=bz2.compress)

    monkeypatch.setattr("majorant.datasets.download.download", download)
    assert find("tiny") == cache / "tiny.bz2"
    assert find("tiny") == cache / "tiny.bz2"
    assert asked == [(RECORD.address, RECORD.hashes)]
    assert capsys.readouterr().err == f"downloading tiny from {RECORD.address}\n"


def test_a_wrong_file_in_the_cache_is_downloaded_again(cache, monkeypatch):
    make(cache, "tiny.bz2", content=b"torn")
    with pytest.raises(DataFileError, match="instead of"):
        find("tiny", download=False)

    def download(url, destination, sha256, most_bytes, *, report):
        return make(destination.parent, destination.name, compress=bz2.compress)

    monkeypatch.setattr("majorant.datasets.download.download", download)
    assert find("tiny") == cache / "tiny.bz2"


def test_a_download_can_be_silent(cache, monkeypatch, capsys):
    def download(url, destination, sha256, most_bytes, *, report):
        assert report is None
        return make(destination.parent, destination.name, compress=bz2.compress)

    monkeypatch.setattr("majorant.datasets.download.download", download)
    assert load("tiny", progress=False).X.shape == (2, 4)
    assert capsys.readouterr() == ("", "")


def test_a_file_that_unpacks_to_more_than_can_be_right_is_not_read_to_its_end(cache, named):
    make(named, "tiny.bz2", content=bytes(5 * 10**6), compress=bz2.compress)
    with pytest.raises(DataFileError, match="the content is larger than"):
        find("tiny")


def test_a_named_directory_that_is_none(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("MAJORANT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataFileError, match=r"MAJORANT_DATA names '.*nowhere', which is not a directory"):
        find("tiny")


def test_a_name_that_is_nearly_right():
    with pytest.raises(DataFileError, match=r"called 'w8'; did you mean 'w8a'\?"):
        find("w8")
    with pytest.raises(DataFileError, match=r"called 'zzz'; there are a1a, a1a\.t,"):
        load("zzz")


def test_load_reads_as_many_features_as_the_record_has(cache, named):
    make(named)
    data = load("tiny", download=False)
    assert data.source == "tiny"
    assert data.sha256 == RECORD.sha256
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 1, 0], [0, 2, 0, 0]])
    np.testing.assert_array_equal(data.y, [1, -1])


def test_load_checks_what_was_read_and_not_only_what_was_there(cache, named, monkeypatch):
    path = make(named)
    real = registry.find

    def find_then_change(name, **options):
        found = real(name, **options)
        path.write_bytes(CONTENT + b"+1 1:1\n")
        return found

    monkeypatch.setattr(registry, "find", find_then_change)
    with pytest.raises(DataFileError, match="changed between"):
        load("tiny", download=False)


def test_describe_says_where_each_file_is(cache, named):
    assert [row["where"] for row in describe()] == ["not here"]
    path = make(named)
    (row,) = describe()
    assert row == {
        "name": "tiny",
        "rows": 2,
        "features": 4,
        "classes": 2,
        "size": len(CONTENT),
        "task": RECORD.task,
        "where": str(path),
    }


def test_importing_asks_no_network_and_no_library():
    code = (
        "import sys, majorant.datasets; "
        "print([name for name in ('pooch', 'requests', 'rich', 'scipy', 'pandas') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_the_registry_cannot_be_changed_by_mistake():
    with pytest.raises(TypeError):
        REGISTRY["a1a"] = RECORD
    with pytest.raises(dataclasses.FrozenInstanceError):
        REGISTRY["a1a"].sha256 = ""


def test_no_two_records_share_a_name_a_file_or_a_content():
    records = REGISTRY.values()
    assert len({info.name for info in records}) == len(records) == len(REGISTRY)
    for values in (
        [file for info in records for file in info.files],
        [sha256 for info in records for sha256 in info.hashes],
        [info.address for info in records if info.address],
    ):
        assert len(set(values)) == len(values)


TYPES = {
    "str": str,
    "int": int,
    "bool": bool,
    "str | None": str | None,
    "int | None": int | None,
    "tuple[str, ...]": tuple,
}
"""What the annotations of a record mean: its values come from a TOML file."""


@pytest.mark.parametrize("info", REGISTRY.values(), ids=lambda info: info.name)
def test_a_record_is_consistent(info):
    assert REGISTRY[info.name] is info
    for field in dataclasses.fields(info):
        assert isinstance(getattr(info, field.name), TYPES[field.type]), field.name
    assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in info.hashes)
    assert info.n_rows > 0
    assert info.size > 0
    assert info.n_classes >= 2
    assert info.last_feature is None or 0 < info.last_feature < info.n_features
    assert info.task
    assert info.origin
    assert all(file and "/" not in file for file in info.files)
    if info.address:
        parts = urlsplit(info.address)
        assert parts.scheme == "https"
        assert parts.netloc
        assert not parts.query
        # What is downloaded must be found again.
        published = registry._published_name(info.address)
        assert published in {file + ending for file in info.files for ending in registry.ENDINGS}


@pytest.mark.parametrize("info", REGISTRY.values(), ids=lambda info: info.name)
def test_the_page_about_data_lists_every_record(info):
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    published = f"[{registry._published_name(info.address)}]({info.address})" if info.address else "no"
    shape, size = f"{info.n_rows:,} × {info.n_features:,}", f"{info.size / 1e3:,.0f} kB"
    line = f"| {info.name} | {shape} | {info.n_classes} | {size} | {info.task} | {published} |"
    assert line in page.splitlines()


@pytest.mark.parametrize("name", ["a1a", "a9a", "w8a"])
def test_a_training_and_its_test_file_have_the_same_features(name):
    assert REGISTRY[name].n_features == REGISTRY[f"{name}.t"].n_features


@pytest.mark.data
@pytest.mark.parametrize("info", REGISTRY.values(), ids=lambda info: info.name)
def test_the_files_are_what_the_records_say(data_dir, info):
    path = find(info.name, download=False)
    assert path.parent == data_dir
    content = bz2.decompress(path.read_bytes()) if path.suffix == ".bz2" else path.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    assert sha256 in info.hashes
    if sha256 == info.sha256:
        assert len(content) == info.size
    if path.suffix == ".mat":
        import scipy.io

        file = scipy.io.loadmat(path)
        shape, labels = file["A"].shape, np.unique(file["b"])
    else:
        lines = [line.split() for line in content.splitlines()]
        last = max(int(line[-1].split(b":")[0]) for line in lines if len(line) > 1)
        shape, labels = (len(lines), last), {float(line[0]) for line in lines}
    assert shape == (info.n_rows, info.last_feature or info.n_features)
    assert len(labels) == info.n_classes


@pytest.mark.data
@pytest.mark.parametrize("info", REGISTRY.values(), ids=lambda info: info.name)
def test_every_data_set_loads(data_dir, info):
    data = load(info.name, download=False)
    assert data.X.shape == (info.n_rows, info.n_features)
    assert len(np.unique(data.y)) == info.n_classes
    assert data.source == info.name


@pytest.mark.data
@pytest.mark.parametrize("name", ["colon-cancer", "leukemia", "heart_scale"])
def test_other_spellings_hold_the_same_numbers(data_dir, name):
    """The published file, remade from the numbers of the one that is here, has the published hash."""
    info = REGISTRY[name]
    path = find(name, download=False)
    content = bz2.decompress(path.read_bytes()) if path.suffix == ".bz2" else path.read_bytes()
    if hashlib.sha256(content).hexdigest() == info.sha256:
        return
    if name == "heart_scale":  # the last line has no end here
        published = content + b"\n"
    else:
        published = b"".join(
            b"%f  " % float(label)
            + b" ".join(b"%s:%f" % (index, float(value)) for index, value in (p.split(b":") for p in pairs))
            + b"\n"
            for label, *pairs in (line.split() for line in content.splitlines())
        )
    assert hashlib.sha256(published).hexdigest() == info.sha256
    assert len(published) == info.size
