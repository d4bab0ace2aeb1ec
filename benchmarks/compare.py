"""Time to a relative gap of 1e-3 and 1e-6, ours against every peer, cell by cell.

    MAJORANT_DATA=… python benchmarks/compare.py [--data w8a a9a …] [--paper] [--out DIRECTORY]
    python benchmarks/compare.py --data text wide sparse dense tall [--out DIRECTORY]

The second line runs on data that are made by `sparse_svm/datasets/simulated.py`.

Runs the solvers of `sparse_svm/` (which `benchopt run benchmarks/sparse_svm` runs as well). Each climbs
a ladder of tolerances until it is within the smallest gap; its time to a gap is that of the fastest fit that
reached it. A rung is the best of many fits, so that a busy machine counts less. Φ* is the lowest value that
anyone reached. A peer that has not arrived when a fit takes longer than PATIENCE has no time; where no peer
has one, the ratio is a lower bound, marked ≥. Beside it stands our time in product pairs: X @ v and Xᵀ @ u by
scipy or numpy on one thread, so that a cell shows how much room is left. Ratios are capped at CAP for the
geometric mean. Writes table.md, results.json and curves.png.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent / "sparse_svm"
DATA = ["w8a", "cina0", "a9a", "ijcnn1", "mushrooms", "rcv1_subset", "leukemia"]
CELLS = [("l1", 1e-1), ("l1", 1e-2), ("l1", 1e-3), ("l2", 1.0), ("l2", 1e-2)]
PEERS = ["liblinear", "cyanure", "skglm", "LinearSVC"]
GAPS = (1e-3, 1e-6)
LADDER = [10.0 ** (-k / 2) for k in range(1, 21)]
PATIENCE = 5.0  # seconds of one fit, after which a solver climbs no further
CAP = 20.0
REPEAT = 0.6  # seconds for which a fit that reached a gap is repeated, so that a busy moment counts less


def load(path, name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def timed(solver, tolerance):
    start = time.perf_counter()
    solver.run(tolerance)
    return time.perf_counter() - start


def climb(solver, evaluate, tightest):
    """(tolerance, seconds, Φ) for every rung, until Φ stops falling."""
    rungs = []
    for tolerance in LADDER:
        times = [timed(solver, tolerance)]
        value = evaluate(**solver.get_result())["value"]
        while value <= tightest * (1 + max(GAPS)) and sum(times) < REPEAT:
            times.append(timed(solver, tolerance))
        seconds = min(times)
        rungs.append((tolerance, seconds, value))
        stuck = tolerance < 1e-6 and len(rungs) > 3 and rungs[-4][2] <= value * (1 + 1e-12)
        if seconds > PATIENCE or stuck or value <= tightest * (1 + 0.9 * min(GAPS)):
            break
    return rungs


@contextlib.contextmanager
def silence():
    """Some peers print from compiled code, past sys.stdout."""
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    for descriptor in kept:
        os.dup2(nowhere, descriptor)
    try:
        yield
    finally:
        for descriptor, copy in kept.items():
            os.dup2(copy, descriptor)
            os.close(copy)
        os.close(nowhere)


def time_to(gap, rungs, best):
    return min((seconds for _, seconds, value in rungs if value <= best * (1 + gap)), default=math.inf)


def product_pair(X):
    """Seconds for X @ v and Xᵀ @ u on one thread, the best of many."""
    v, u = np.ones(X.shape[1]), np.ones(X.shape[0])
    best, end = math.inf, time.perf_counter() + REPEAT
    with threadpool_limits(1):
        while time.perf_counter() < end:
            start = time.perf_counter()
            X @ v
            X.T @ u
            best = min(best, time.perf_counter() - start)
    return best


def run_cell(X, y, penalty, strength, contestants):
    objective = load(HERE / "objective.py", "Objective").get_instance(penalty=penalty, strength=strength)
    objective.set_data(X=X, y=y)
    problem = objective.get_objective()
    ours = load(HERE / "solvers" / "majorant.py", "Solver").get_instance(solver="auto")
    ours.set_objective(**problem)
    ours.run(1e-12)
    tightest = objective.evaluate_result(**ours.get_result())["value"]
    results = {}
    for name, solver in contestants():
        skip, _ = solver.skip(**problem)
        if skip:
            continue
        with silence():
            solver.set_objective(**problem)
            solver.warm_up()
            results[name] = climb(solver, objective.evaluate_result, tightest)
    best = min([tightest, *(value for rungs in results.values() for *_, value in rungs)])
    return {"lam": problem["lam"], "best": best, "rungs": results}


def contestants(paper):
    majorant = load(HERE / "solvers" / "majorant.py", "Solver")
    yield "majorant", majorant.get_instance(solver="auto")
    for name in PEERS:
        yield name, load(HERE / "solvers" / f"{name.lower()}.py", "Solver").get_instance()
    if paper:
        for solver in majorant.parameters["solver"]:
            if solver != "auto":
                yield f"majorant[{solver}]", majorant.get_instance(solver=solver)


def table(results):
    lines = []
    for gap in GAPS:
        names = ["majorant", *PEERS]
        lines += [
            f"\n## Seconds to a relative gap of {gap:g}\n",
            f"| data | penalty | {' | '.join(names)} | best peer / ours | ours in product pairs |",
            "|---" * (len(names) + 4) + "|",
        ]
        ratios = {}
        for key, cell in results.items():
            times = [time_to(gap, cell["rungs"].get(name, []), cell["best"]) for name in names]
            arrived = math.isfinite(min(times[1:]))
            ratio = (min(times[1:]) if arrived else PATIENCE) / times[0]
            shown = " | ".join("–" if math.isinf(t) else f"{t:.4f}" for t in times)
            pairs = times[0] / cell["pair"]
            lines.append(f"| {key} | {shown} | {'' if arrived else '≥ '}{ratio:.1f} | {pairs:.0f} |")
            ratios[key] = min(ratio, CAP)
        values = np.array(list(ratios.values()))
        worst = min(ratios, key=ratios.get)
        lines.append(
            f"\n{len(results)} cells, ratios capped at {CAP:g}: geometric mean "
            f"{np.exp(np.mean(np.log(values))):.1f}, median {np.median(values):.1f}, worst "
            f"{ratios[worst]:.1f} ({worst.replace(' | ', ', ')})."
        )
    return "\n".join(lines) + "\n"


def curves(results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = math.ceil(len(results) / 5)
    figure, axes = plt.subplots(rows, 5, figsize=(22, 3.6 * rows), squeeze=False)
    for axis, (key, cell) in zip(axes.flat, results.items(), strict=False):
        for name, rungs in cell["rungs"].items():
            seconds = [rung[1] for rung in rungs]
            gaps = [max(rung[2] / cell["best"] - 1, 1e-12) for rung in rungs]
            axis.loglog(seconds, gaps, "o-", markersize=3, label=name)
        axis.set_title(key.replace(" | ", ", "), fontsize=9)
    axes[0, 0].legend(fontsize=7)
    figure.supxlabel("seconds")
    figure.supylabel("relative gap")
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=DATA)
    parser.add_argument("--paper", action="store_true", help="add every method of the paper")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    simulated = HERE / "datasets" / "simulated.py"
    results = {}
    for data in options.data:
        made = data in load(simulated, "KINDS")
        X, y = load(simulated if made else HERE / "datasets" / "files.py", "load")(data)
        pair = product_pair(X)
        for penalty, strength in CELLS:
            key = f"{data} | {penalty} {'λmax × ' if penalty == 'l1' else ''}{strength:g}"
            results[key] = run_cell(X, y, penalty, strength, lambda: contestants(options.paper))
            cell = results[key]
            cell["pair"] = pair
            times = {name: time_to(1e-6, rungs, cell["best"]) for name, rungs in cell["rungs"].items()}
            print(key, {name: round(seconds, 4) for name, seconds in times.items()}, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(results))
    (options.out / "table.md").write_text(table(results))
    curves(results, options.out / "curves.png")
    print(table(results))


if __name__ == "__main__":
    main()
