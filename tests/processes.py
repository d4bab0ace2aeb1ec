"""Other Python processes: with the package under test and with the tests on their path."""

import os
import sys
from pathlib import Path

import majorant
from tests import ROOT


def environment(**variables):
    """The variables of this process, a PYTHONPATH on which `majorant` and `tests` are, and these."""
    path = [str(Path(majorant.__file__).parents[1]), str(ROOT), *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **variables}
