"""What importing the package and asking the command line for help cost, side by side with scikit-learn.

python benchmarks/startup.py
"""

from __future__ import annotations

import subprocess
import sys
import time

CASES = {
    "python -c pass": "pass",
    "import sklearn.svm": "import sklearn.svm",
    "import majorant": "import majorant",
    "from majorant import SparseSVC": "from majorant import SparseSVC",
    "import sklearn.svm, then SparseSVC": "import sklearn.svm; from majorant import SparseSVC",
    "majorant --help": "import sys; sys.argv = ['majorant', '--help']; from majorant.cli import main; main()",
}


def main():
    times = {name: [] for name in CASES}
    for _ in range(7):
        for name, code in CASES.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - start)
    for name, seconds in times.items():
        print(f"{name:36} {sorted(seconds)[len(seconds) // 2]:.3f} s")


if __name__ == "__main__":
    main()
