"""Files are written whole or not at all."""

import os
import stat

import pytest

from majorant.errors import OutputError
from majorant.files import check_writable, replacing


def _write(path, content, **kwargs):
    with replacing(path, **kwargs) as file:
        file.write(content)


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "out"
    _write(path, b"one")
    _write(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["out"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out"
    _write(path, b"old")
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"half of the n", None])
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]


def test_an_existing_file_is_kept(tmp_path):
    path = tmp_path / "out"
    _write(path, b"old", overwrite=False)
    with pytest.raises(OutputError, match="exists already"):
        _write(path, b"new", overwrite=False)
    assert path.read_bytes() == b"old"


def test_a_file_that_somebody_else_wrote_meanwhile_is_kept(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(OutputError, match="exists already"), replacing(path, overwrite=False):
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["out"]


def test_permissions_are_those_of_a_new_file_or_of_the_old_one(tmp_path):
    plain, written = tmp_path / "plain", tmp_path / "written"
    plain.write_bytes(b"")
    _write(written, b"")
    assert stat.S_IMODE(written.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    written.chmod(0o640)
    _write(written, b"again")
    assert stat.S_IMODE(written.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    _write(tmp_path / "link", b"content")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"content"


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere/out", "no directory"), (".", "is a directory")],
    ids=["directory", "itself"],
)
def test_what_cannot_be_written_is_said_before(tmp_path, path, message):
    with pytest.raises(OutputError, match=message):
        check_writable(tmp_path / path, overwrite=True)
