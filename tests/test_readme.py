"""A walk through README.md, as somebody does who has just installed the package."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import majorant
from tests import ROOT

BLOCKS = re.findall(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
# The first two install; they are run by whoever runs this test. The others use what is then there.
COMMANDS = [line for block in BLOCKS[2:] for line in block.splitlines() if line]


@pytest.fixture(scope="module")
def shell(data_dir, tmp_path_factory):
    """Run a line in an empty directory, in a new virtual environment that has this package alone.

    What it depends on is lent by the environment of the tests, so that nothing is downloaded.
    """
    place = tmp_path_factory.mktemp("walk")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    (site,) = (place / "venv" / "lib").glob("python*/site-packages")
    (site / "majorant").symlink_to(Path(majorant.__file__).parent)
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    program = place / "venv" / "bin" / "majorant"
    program.write_text(f"#!{place}/venv/bin/python\nfrom majorant.cli import main\nmain()\n")
    program.chmod(0o755)
    home = place / "home"
    home.mkdir()

    def run(line):
        environment = {"PATH": f"{place}/venv/bin:/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8"}
        environment["MAJORANT_DATA"] = str(data_dir)
        return subprocess.run(line, shell=True, cwd=home, env=environment, text=True, capture_output=True)

    return run


def test_there_are_commands_to_walk_through():
    assert len(COMMANDS) >= 8
    assert all(line.startswith("majorant ") for line in COMMANDS)


@pytest.mark.data
@pytest.mark.slow
def test_every_command_does_what_it_says(shell):
    """In the order in which they stand there, since each uses what those before it have written."""
    for line in COMMANDS:
        ended = shell(line)
        assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"
        assert "warning" not in ended.stderr, f"{line}\n{ended.stderr}"
    assert shell("ls").stdout.split() == sorted(
        [
            "a1a.html", "a1a.liblinear", "a1a.model", "chosen.html", "chosen.model", "coefficients.csv",
            "labels.txt",
        ]
    )  # fmt: skip
    assert (
        shell("majorant predict a1a.t a1a.liblinear").stdout
        == shell("majorant predict a1a.t a1a.model").stdout
    )
