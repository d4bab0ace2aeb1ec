"""Saves to the same path for ever, in a process that is killed: `python kill_while_saving.py PATH ROUNDS`.

Prints "whole" for every round after which the file is one of the two models that were being saved, and how
many rounds have left a half-written file beside it.
"""

import os
import random
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from majorant import SparseSVC, load_model, save_model
from majorant.persistence import store


def models():
    X, y = np.random.default_rng(0).standard_normal((20, 2000)), np.arange(20) % 2
    return [SparseSVC("l2", lam=lam).fit(X, y) for lam in (1.0, 10.0)]


@contextmanager
def slowly(path, *, overwrite, replacing=store.replacing):
    """The same file, written piece by piece: what would take a moment takes most of the time."""
    with replacing(path, overwrite=overwrite) as file:

        class Slow:
            def write(self, data):
                for begin in range(0, len(data), 1000):
                    file.write(data[begin : begin + 1000])
                    file.flush()
                    time.sleep(2e-4)

        yield Slow()


def main(path, rounds):
    rng, known = random.Random(0), models()
    save_model(known[0], path)
    store.replacing = slowly
    for _ in range(rounds):
        child = os.fork()
        if not child:
            while True:
                for model in known:
                    save_model(model, path)
        time.sleep(rng.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        loaded = load_model(path).coef_
        print("whole" if any(np.array_equal(loaded, model.coef_) for model in known) else "torn")
    print(len(list(Path(path).parent.glob("*.part"))))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
