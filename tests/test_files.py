"""Files are written whole or not at all."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from majorant.errors import OutputError
from majorant.files import atomic_write, check_writable
from tests.processes import environment


def _write(path, content, **kwargs):
    with atomic_write(path, **kwargs) as file:
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
    with pytest.raises(TypeError), atomic_write(path) as file:
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
    with pytest.raises(OutputError, match="exists already"), atomic_write(path, overwrite=False):
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names, which Windows does not have")
def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for path in (tmp_path / "pipe", tmp_path / "link"):
        with pytest.raises(OutputError, match="is a device or a pipe, not a file that can be replaced"):
            _write(path, b"content")
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_permissions_are_kept_where_python_has_no_fchmod(tmp_path, monkeypatch):
    """As on Windows before Python 3.13."""
    monkeypatch.delattr(os, "fchmod", raising=False)
    path = tmp_path / "out"
    _write(path, b"one")
    path.chmod(0o600)
    _write(path, b"two")
    assert path.read_bytes() == b"two"


@pytest.mark.skipif(os.name != "posix", reason="Windows cannot open a directory")
def test_the_bytes_reach_the_disk_before_the_name_and_the_name_as_well(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor):
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("directory" if is_directory else "bytes")
        fsync(descriptor)

    def watched_replace(*names):
        steps.append("rename")
        replace(*names)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    _write(tmp_path / "out", b"content")
    assert steps == ["bytes", "rename", "directory"]


KILLED_AT_A_STEP = """
import os, signal, sys
from majorant.files import atomic_write

path, last_step = sys.argv[1], int(sys.argv[2])
steps = 0

def step(*_):
    global steps
    if steps == last_step:
        os.kill(os.getpid(), signal.SIGKILL)
    steps += 1

def audit(event, arguments):
    if event in ("open", "os.rename", "os.chmod") and str(arguments[0]).startswith(os.path.dirname(path)):
        step()

fsync = os.fsync
os.fsync = lambda descriptor: (step(), fsync(descriptor))
sys.addaudithook(audit)
with atomic_write(path) as file:
    for _ in range(3):
        step()
        file.write(b"new" * 100_000)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that Windows does not have")
def test_killed_at_any_step_there_is_the_old_file_or_the_new_one(tmp_path):
    """Open, three writes, to the disk, permissions, rename, the directory to the disk."""
    path = tmp_path / "out"
    found = []
    for last_step in range(20):
        path.write_bytes(b"old")
        code = [sys.executable, "-c", KILLED_AT_A_STEP, str(path), str(last_step)]
        done = subprocess.run(code, capture_output=True, env=environment())
        content = path.read_bytes()
        assert content in (b"old", b"new" * 300_000)
        found.append(content[:3])
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert found[:7] == [b"old"] * 7
    assert found[7:] == [b"new"] * len(found[7:])
    assert len(found) > 7
