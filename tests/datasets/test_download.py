"""Downloads from a server that misbehaves in every way known: whole, or not there."""

import bz2
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest

from majorant.datasets.download import download
from majorant.datasets.progress import TransferProgress
from majorant.errors import DownloadError

CONTENT = np.random.default_rng(0).bytes(300_000)
OTHER = np.random.default_rng(1).bytes(300_000)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@dataclass
class Behaviour:
    """What the server does, and what it was asked."""

    content: bytes = CONTENT
    etag: str | None = '"one"'
    status: int = 200
    ranges: bool = True
    cut_after: int | None = None
    """Close the connection after that many bytes of the body …"""
    cuts: float = float("inf")
    """… so many times."""
    hang: float = 0.0
    """Seconds of silence before the answer."""
    pause: float = 0.0
    """Seconds between pieces of the body."""
    then: "Behaviour | None" = None
    """What to do from the next request on."""
    wrong_range: bool = False
    length: bool = True
    headers: dict = field(default_factory=dict)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour = Behaviour()
        self.asked = []
        self.sent = []
        self.url = f"http://127.0.0.1:{self.server_port}/file"

    def handle_error(self, request, client_address):
        pass  # a client that was killed


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        behaviour = self.server.behaviour
        if behaviour.then is not None:
            self.server.behaviour = behaviour.then
        self.server.asked.append(dict(self.headers))
        time.sleep(behaviour.hang)
        self.close_connection = True
        if behaviour.status != 200:
            self.send_response(behaviour.status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self._start(behaviour)
        cut = behaviour.cut_after is not None and behaviour.cuts > 0
        if cut:
            behaviour.cuts -= 1
            body = body[: behaviour.cut_after]
        place = len(self.server.sent)
        self.server.sent.append(0)
        for start in range(0, len(body), 10_000):
            piece = body[start : start + 10_000]
            self.server.sent[place] += len(piece)  # before the client can have it, and look here
            self.wfile.write(piece)
            time.sleep(behaviour.pause)

    def _start(self, behaviour):
        """The headers; the body that is to follow."""
        start, content = 0, behaviour.content
        unchanged = behaviour.etag is not None and self.headers.get("If-Range") == behaviour.etag
        if behaviour.ranges and "Range" in self.headers and unchanged:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            first = start + 1 if behaviour.wrong_range else start
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if behaviour.etag is not None:
            self.send_header("ETag", behaviour.etag)
        if behaviour.length:
            self.send_header("Content-Length", str(len(content) - start))
        for name, value in behaviour.headers.items():
            self.send_header(name, value)
        self.end_headers()
        return content[start:]

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def fetch(server, tmp_path, expected=CONTENT, name="file", **options):
    options = {"wait": 0.0, "timeout": 30.0} | options
    return download(server.url, tmp_path / name, sha256(expected), **options)


def files(directory):
    return sorted(os.listdir(directory))


def test_a_file_is_downloaded_once(server, tmp_path):
    assert fetch(server, tmp_path / "new" / "directory").read_bytes() == CONTENT
    assert files(tmp_path / "new" / "directory") == ["file"]
    fetch(server, tmp_path / "new" / "directory")
    assert len(server.asked) == 1
    assert server.asked[0]["Accept-Encoding"] == "identity"


def test_the_hash_is_that_of_the_uncompressed_content(server, tmp_path):
    server.behaviour = Behaviour(bz2.compress(CONTENT))
    path = fetch(server, tmp_path, name="file.bz2")
    assert bz2.decompress(path.read_bytes()) == CONTENT


def test_a_wrong_file_at_the_destination_is_replaced(server, tmp_path):
    (tmp_path / "file").write_bytes(bz2.compress(CONTENT)[:-10])
    assert fetch(server, tmp_path).read_bytes() == CONTENT


def test_a_cut_connection_is_resumed_with_only_the_rest(server, tmp_path):
    server.behaviour = Behaviour(cut_after=120_000, cuts=1)
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    first, second = server.asked
    assert "Range" not in first
    begin = int(second["Range"].removeprefix("bytes=").removesuffix("-"))
    assert 0 < begin <= 120_000
    assert second["If-Range"] == '"one"'
    assert server.sent == [120_000, len(CONTENT) - begin]
    assert files(tmp_path) == ["file"]


def test_a_later_run_resumes_what_an_earlier_one_left(server, tmp_path):
    server.behaviour = Behaviour(cut_after=120_000)
    with pytest.raises(DownloadError, match="cut the connection"):
        fetch(server, tmp_path, tries=1)
    assert files(tmp_path) == ["file.part", "file.part.json"]
    server.behaviour = Behaviour()
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert "Range" in server.asked[-1]
    assert server.sent[-1] <= len(CONTENT) - 100_000


def test_it_gives_up_after_a_number_of_tries(server, tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr("majorant.datasets.download.time", SimpleNamespace(sleep=waits.append))
    server.behaviour = Behaviour(cut_after=0)
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:\d+ cut the connection.*, in 4 tries"):
        fetch(server, tmp_path, wait=0.5)
    assert len(server.asked) == 4
    assert waits == [0.5, 1.0, 2.0]
    assert "file" not in files(tmp_path)


def test_a_server_that_ignores_ranges_sends_everything_again(server, tmp_path):
    server.behaviour = Behaviour(cut_after=120_000, cuts=1, ranges=False)
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.sent == [120_000, len(CONTENT)]


def test_a_file_that_changes_between_tries_is_not_glued_together(server, tmp_path):
    server.behaviour = Behaviour(OTHER, cut_after=120_000, then=Behaviour(CONTENT, etag='"two"'))
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked[1]["If-Range"] == '"one"'
    assert server.sent == [120_000, len(CONTENT)]


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_mark_of_the_version_nothing_is_resumed(server, tmp_path, etag):
    server.behaviour = Behaviour(etag=etag, cut_after=120_000, cuts=1)
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert "Range" not in server.asked[1]


def test_the_date_is_a_mark_too(server, tmp_path):
    date = "Mon, 01 Jan 2024 00:00:00 GMT"
    server.behaviour = Behaviour(etag=None, cut_after=120_000, headers={"Last-Modified": date})
    with pytest.raises(DownloadError):
        fetch(server, tmp_path, tries=2)
    assert server.asked[1]["If-Range"] == date


def test_another_address_does_not_resume_this_part(server, tmp_path):
    server.behaviour = Behaviour(OTHER, cut_after=120_000)
    with pytest.raises(DownloadError):
        fetch(server, tmp_path, tries=1)
    server.behaviour = Behaviour(CONTENT)
    download(server.url + "?again", tmp_path / "file", sha256(CONTENT))
    assert "Range" not in server.asked[-1]


def test_a_wrong_range_begins_anew(server, tmp_path):
    server.behaviour = Behaviour(cut_after=120_000, then=Behaviour(wrong_range=True, then=Behaviour()))
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert ["Range" in asked for asked in server.asked] == [False, True, False]


@pytest.mark.parametrize(
    "note",
    [
        b"\xff",
        b"",
        b"[]",
        b"{}",
        b'{"url": "URL", "mark": "x", "size": "large"}',
        b'{"url": "URL", "mark": 1, "size": 300000}',
        b'{"url": "URL", "mark": "x", "size": 10}',
        b'{"url": "URL", "mark": "x", "size": 300000, "more": 1}',
    ],
)
def test_a_damaged_note_begins_anew(server, tmp_path, note):
    (tmp_path / "file.part").write_bytes(OTHER[:1000])
    (tmp_path / "file.part.json").write_bytes(note.replace(b"URL", server.url.encode()))
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert "Range" not in server.asked[0]


def test_a_whole_part_needs_no_connection(server, tmp_path):
    """As it is left by a process that is killed just before the renaming."""
    server.behaviour = Behaviour(cut_after=200_000)
    with pytest.raises(DownloadError):
        fetch(server, tmp_path, tries=1)
    (tmp_path / "file.part").write_bytes(CONTENT)
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert len(server.asked) == 1


@pytest.mark.parametrize("sent", [OTHER, bz2.compress(CONTENT)[:-10]], ids=["other", "damaged"])
def test_wrong_content_is_removed(server, tmp_path, sent):
    server.behaviour = Behaviour(sent)
    with pytest.raises(DownloadError, match="sent something else, which was removed"):
        fetch(server, tmp_path)
    assert files(tmp_path) == []
    assert len(server.asked) == 1


def test_the_error_of_a_wrong_hash_names_both(server, tmp_path):
    server.behaviour = Behaviour(OTHER)
    with pytest.raises(DownloadError, match=f"{sha256(OTHER)} instead of {sha256(CONTENT)}"):
        fetch(server, tmp_path)


def test_a_missing_file_is_not_asked_for_twice(server, tmp_path):
    server.behaviour = Behaviour(status=404)
    with pytest.raises(DownloadError, match="answered 404"):
        fetch(server, tmp_path)
    assert len(server.asked) == 1


def test_a_busy_server_is_asked_again(server, tmp_path):
    server.behaviour = Behaviour(status=503, then=Behaviour())
    assert fetch(server, tmp_path).read_bytes() == CONTENT


def test_a_server_that_is_silent(server, tmp_path):
    server.behaviour = Behaviour(hang=60.0)
    with pytest.raises(DownloadError, match=r"did not answer within 0\.1 s, in 2 tries"):
        fetch(server, tmp_path, timeout=0.1, tries=2)


def test_a_server_that_falls_silent(server, tmp_path):
    server.behaviour = Behaviour(pause=60.0)
    with pytest.raises(DownloadError, match="went silent, in 1 try"):
        fetch(server, tmp_path, timeout=1.0, tries=1)  # long enough for the first words of a busy machine


def test_a_server_that_does_not_say_how_long(server, tmp_path):
    server.behaviour = Behaviour(length=False)
    assert fetch(server, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("length", [True, False], ids=["said before", "not said"])
def test_more_than_can_be_right_is_not_taken(server, tmp_path, length):
    server.behaviour = Behaviour(length=length)
    with pytest.raises(DownloadError, match="sends more than 100000 bytes, too much for this file"):
        fetch(server, tmp_path, most_bytes=100_000)
    assert files(tmp_path) == []
    assert len(server.asked) == 1


def test_a_compressed_file_is_not_unpacked_beyond_what_can_be_right(server, tmp_path):
    server.behaviour = Behaviour(bz2.compress(bytes(5_000_000)))
    with pytest.raises(DownloadError, match="the content is larger than 1000000 bytes"):
        fetch(server, tmp_path, expected=bytes(5_000_000), most_bytes=1_000_000)
    assert files(tmp_path) == []


def test_pooch_puts_the_file_into_its_place_without_a_word(server, tmp_path, capfd, monkeypatch):
    import pooch

    asked = []
    retrieve = pooch.retrieve
    monkeypatch.setattr(pooch, "retrieve", lambda *args, **kw: asked.append(args) or retrieve(*args, **kw))
    level = pooch.get_logger().level
    path = fetch(server, tmp_path)
    assert [args[0] for args in asked] == [server.url]
    assert capfd.readouterr() == ("", "")
    assert pooch.get_logger().level == level
    (tmp_path / "plain").write_bytes(b"")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode  # not those of a temporary file
    assert path.stat().st_nlink == 1


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/file", "/etc/passwd", ""])
def test_only_the_web_is_asked(tmp_path, url):
    with pytest.raises(DownloadError, match="not an http or https address"):
        download(url, tmp_path / "file", "")


def test_a_destination_that_cannot_be_written(server, tmp_path):
    (tmp_path / "in the way").write_bytes(b"")
    with pytest.raises(DownloadError, match="cannot be written"):
        fetch(server, tmp_path / "in the way")


def test_two_at_the_same_time_share_one_download(server, tmp_path):
    server.behaviour = Behaviour(pause=0.01)
    paths = []
    threads = [threading.Thread(target=lambda: paths.append(fetch(server, tmp_path))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paths == [tmp_path / "file"] * 3
    assert len(server.asked) == 1


KILLED_AT_EVERY_STEP = """
import os, signal, sys
from pathlib import Path
import requests
from majorant.datasets.download import download

url, directory, sha256 = sys.argv[1:]
destination = Path(directory) / "file"

def run(last_step):
    steps = 0

    def step(event, arguments):
        nonlocal steps
        files = event in ("open", "os.rename", "os.remove", "os.truncate")
        if event == "report" or (files and str(arguments[0]).startswith(directory)):
            if steps == last_step:
                os.kill(os.getpid(), signal.SIGKILL)
            steps += 1

    sys.addaudithook(step)
    download(url, destination, sha256, report=lambda done, total: step("report", ()))
    os._exit(0)

for last_step in range(1000):
    child = os.fork() or run(last_step)
    _, status = os.waitpid(child, 0)
    whole = not destination.exists() or destination.stat().st_size == int(os.environ["SIZE"])
    download(url, destination, sha256)  # checks the hash of what is there, or resumes
    # What stays is the temporary file of a note that was never written, and a temporary name of pooch's,
    # of nothing or of the file itself.
    names = [name for name in os.listdir(directory) if not name.startswith(".") and name != "file"]
    left = []
    for path in (Path(directory) / name for name in names):
        spare = path.stat().st_size == 0 or path.samefile(destination)
        if path.name.startswith("tmp") and spare:
            path.unlink()
        else:
            left.append(path.name)
    destination.unlink()
    print(last_step, whole, left)
    if status == 0:
        break
"""


def test_killed_at_any_step_it_leaves_no_torn_file_and_the_next_run_succeeds(server, tmp_path):
    server.behaviour = Behaviour(CONTENT[:100_000])
    code = [sys.executable, "-c", KILLED_AT_EVERY_STEP]
    arguments = [server.url, str(tmp_path), sha256(CONTENT[:100_000])]
    environment = os.environ | {"SIZE": "100000"}
    run = subprocess.run([*code, *arguments], env=environment, capture_output=True, text=True, check=True)
    lines = [line.split(maxsplit=2) for line in run.stdout.splitlines()]
    assert len(lines) > 10
    assert {tuple(line[1:]) for line in lines} == {("True", "[]")}


@pytest.mark.parametrize("kill_after", [0, 50_000, 150_000, 299_999])
def test_a_killed_download_leaves_nothing_torn_and_is_resumed(server, tmp_path, kill_after):
    """Killed by itself as soon as so many bytes have been reported: SIGKILL runs no `finally`."""
    code = (
        "import os, signal, sys; from pathlib import Path; from majorant.datasets.download import download\n"
        "url, destination, sha256, after = sys.argv[1:]\n"
        "def report(done, total):\n"
        "    if done > int(after): os.kill(os.getpid(), signal.SIGKILL)\n"
        "download(url, Path(destination), sha256, report=report)"
    )
    arguments = [server.url, str(tmp_path / "file"), sha256(CONTENT), str(kill_after)]
    killed = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert files(tmp_path) == ["file.part", "file.part.json"]
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert files(tmp_path) == ["file"]


def test_progress_is_reported_from_nothing_to_everything(server, tmp_path):
    seen = []
    fetch(server, tmp_path, report=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert seen == sorted(seen)


def test_progress_in_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr("majorant.datasets.progress.BETWEEN_LINES", 0.0)
    with TransferProgress("a1a", "https://example.org/a1a") as progress:
        progress(1_000_000, 4_000_000)
        progress(2_000_000, None)
    assert capsys.readouterr().err.splitlines() == [
        "downloading a1a from https://example.org/a1a",
        "a1a: 1.0 MB of 4.0 MB (25%)",
        "a1a: 2.0 MB",
    ]


def test_progress_as_a_bar_on_a_terminal(monkeypatch):
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with TransferProgress("a1a", "https://example.org/a1a", stream) as progress:
        progress(1_000_000, 4_000_000)
        progress._bar.refresh()
    assert "1.0/4.0 MB" in stream.getvalue()
