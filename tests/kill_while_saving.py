"""Saves to the same path for ever, in a process that is killed: `python kill_while_saving.py PATH ROUNDS`.

Prints "whole" for every round after which the file is one of the two models that were being saved.
"""

import os
import random
import signal
import sys
import time

import numpy as np

from majorant import SparseSVC, load_model, save_model


def models():
    X, y = np.random.default_rng(0).standard_normal((20, 3000)), np.arange(20) % 2
    return [SparseSVC("l2", lam=lam).fit(X, y) for lam in (1.0, 10.0)]


def main(path, rounds):
    rng, known = random.Random(0), models()
    begin = time.monotonic()
    save_model(known[0], path)
    once = time.monotonic() - begin
    for _ in range(rounds):
        child = os.fork()
        if not child:
            while True:
                for model in known:
                    save_model(model, path)
        time.sleep(rng.uniform(0.0, 4.0) * once)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        loaded = load_model(path).coef_
        print("whole" if any(np.array_equal(loaded, model.coef_) for model in known) else "torn")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
