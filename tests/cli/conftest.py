"""Commands that run in the process of the test."""

import pytest

from majorant.cli import run


@pytest.fixture
def run_command(capsys):
    """A function that runs a command, checks its exit code, and returns what it printed (out, err)."""

    def call(*words, code=0):
        capsys.readouterr()
        answer = run([str(word) for word in words])
        printed = capsys.readouterr()
        assert answer == code, printed.err + printed.out
        assert "Traceback" not in printed.err
        return printed

    return call
