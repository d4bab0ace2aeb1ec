"""Which features each method selects: ours and its peers, on data with a known truth and on real data.

    [MAJORANT_DATA=…] python benchmarks/selection.py [--cells D F …] [--data leukemia …] [--seeds 3]
                                                     [--methods NAME …] [--again] [--out DIRECTORY]

A cell is a kind of simulated problem: rows x ~ N(0, Σ) with Σ_ij = ρ^|i-j|; the true features are equally
spaced, with coefficients ±1 of random sign; an intercept gives the wanted share of positive labels, of which
5 % are then flipped. Without `MAJORANT_DATA` there are no real data, and a line says so.

Every method sees the training rows and lists supports (sets of features), up to the first with more than MOST
features. Each support is refitted on the training rows: squared hinge loss with a ridge of η = RIDGE × rows.
The support whose refit has the fewest errors on the validation rows, as many as the training rows, is the
method's choice (of equal ones the smallest). `SparseSVCCV()` and `StabilitySelection` choose by themselves,
from the training rows alone. Reported are

- F1, the harmonic mean of precision and recall of the chosen support;
- error, the share of test rows that the refit on the chosen support gets wrong;
- excess, the refit's objective of the best support of the true size minus that of the truth ("-": in some run
  the method lists no support of that size);
- CPU s, the processor time of the search for the supports, without refits and validation, which are the same
  for all. The JSON file has the time of these as `tuning_seconds`.

Each method has run on a tiny problem before the clock starts; BLAS has one thread. The results file is a
cache: a run goes on where the last one ended, and `--again` runs the named methods anew. Writes selection.md,
selection.json and selection.png.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.signal import lfilter
from scipy.stats import norm
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from majorant import SparseSVC, SparseSVCCV, StabilitySelection, sparse_svc_path
from majorant.files import atomic_write

HERE = Path(__file__).parent / "sparse_svm"
FLIPPED = 0.05  # the share of labels that are wrong
TEST_ROWS = 5000  # of a cell: the standard error of an error of 10 % is 0.4 %
RIDGE = 1e-3  # η of a refit, per row: shrinks the coefficient of a standardised feature by about 0.1 %
LARGEST = 30  # features of the largest support of a size path
MOST = 60  # features at which the path of a penalty ends
MCP_GAMMAS = (
    1.5,
    3.0,
    6.0,
    12.0,
)  # for a mean loss; 0.5 is the limit of skglm's steps for standardised features
TEXT_ROWS, TEXT_FREQUENCY = (
    1000,
    10,
)  # training rows of the text, and in how many of these a word has to occur


# Data -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A kind of simulated problem."""

    rows: int
    features: int
    true: int
    correlation: float
    positives: float

    def __str__(self):
        size = f"{self.rows} × {self.features}, {self.true} true"
        return f"{size}, ρ = {self.correlation:g}, {self.positives:.0%} positive"


CELLS = {
    "D": Cell(500, 1000, 5, 0.9, 0.5),
    "F": Cell(500, 1000, 20, 0.5, 0.5),
    "K": Cell(500, 1000, 5, 0.5, 0.1),
    "H": Cell(2000, 200, 20, 0.9, 0.5),
    "L": Cell(2000, 1000, 20, 0.5, 0.1),
}
REAL = ["leukemia", "colon-cancer", "rcv1_subset"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows for training, validation and test, each X and y, and the true features if they are known."""

    train: tuple
    validation: tuple
    test: tuple
    truth: np.ndarray | None = None


def simulate(cell: Cell, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    truth = ((np.arange(cell.true) + 0.5) * cell.features / cell.true).astype(int)
    signs = rng.choice([-1.0, 1.0], cell.true)
    correlation = cell.correlation ** np.abs(truth[:, None] - truth)
    intercept = norm.ppf(cell.positives) * math.sqrt(signs @ correlation @ signs)

    def draw(rows):
        noise = rng.standard_normal((rows, cell.features))
        noise[:, 1:] *= math.sqrt(1.0 - cell.correlation**2)
        X = np.ascontiguousarray(lfilter([1.0], [1.0, -cell.correlation], noise, axis=1))
        y = np.where(X[:, truth] @ signs + intercept > 0.0, 1.0, -1.0)
        return X, np.where(rng.random(rows) < FLIPPED, -y, y)

    return Problem(draw(cell.rows), draw(cell.rows), draw(TEST_ROWS), truth)


def load(file, name):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def real(name: str, seed: int) -> Problem:
    """A stratified split: two fifths, two fifths, a fifth; of text TEXT_ROWS rows, as many, and TEST_ROWS."""
    X, y = load(HERE / "datasets" / "files.py", "load")(name)
    size = TEXT_ROWS if sp.issparse(X) else 2 * len(y) // 5
    train, rest = train_test_split(np.arange(len(y)), train_size=size, stratify=y, random_state=seed)
    validation, test = train_test_split(rest, train_size=size, stratify=y[rest], random_state=seed)
    if sp.issparse(X):
        X = X[:, X[train].getnnz(axis=0) >= TEXT_FREQUENCY]
    return Problem(*((X[rows], y[rows]) for rows in (train, validation, test[:TEST_ROWS])))


# Methods ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """What lists supports.

    The clock sees `search(X, y)`, which returns the supports. A package that makes all supports in one call
    but hands out only one of them has `listed(X, y)`, which returns all and which the clock does not see.
    """

    name: str
    search: Callable
    listed: Callable | None = None


def up_to_most(coefs) -> list[np.ndarray]:
    """The supports of these coefficients, until one has more than MOST features."""
    supports = []
    for coef in coefs:
        support = np.flatnonzero(coef)
        if len(support) > MOST:
            break
        supports.append(support)
    return supports


def l1_path(X, y):
    path = sparse_svc_path(X, y, "l1", lambdas=50, ratio=1e-2, max_features=MOST)
    return [model.support_ for model in path.models]


def welsch_path(X, y):
    # λ is the price of a feature: from a tenth of the loss of no features to what chance alone buys.
    lambdas = np.geomspace(0.1 * len(y), min(8.0, 0.01 * len(y)), 10)
    # 3 δ is the rounded bottom of the potential: smaller coefficients mean zero.
    path = sparse_svc_path(X, y, "welsch", delta=1e-4, zero_tol=3e-4, lambdas=lambdas)
    return [model.support_ for model in path.models]


def size_path(X, y):
    path = sparse_svc_path(X, y, n_features=range(1, LARGEST + 1))
    return [model.support_ for model in path.models]


def default_call(X, y):
    return [SparseSVCCV().fit(X, y).support_]


def stability(X, y):
    return [StabilitySelection(SparseSVC("l1", lam=0.0), random_state=0).fit(X, y).support_]


def linear_svc(X, y):
    from sklearn.svm import LinearSVC, l1_min_c

    smallest = l1_min_c(X, y, loss="squared_hinge", fit_intercept=False)
    strengths = smallest * np.geomspace(1.0, 100.0, 50)
    return up_to_most(LinearSVC(penalty="l1", dual=False, C=C).fit(X, y).coef_.ravel() for C in strengths)


def skglm_mcp(X, y):
    """One path from strong to weak for each γ, each fit from where the last one ended."""
    from skglm.utils.jit_compilation import compiled_clone

    X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    datafit = compiled_clone(skglm_squared_hinge())
    return [support for gamma in MCP_GAMMAS for support in up_to_most(mcp_coefs(X, y, datafit, gamma))]


def mcp_coefs(X, y, datafit, gamma):
    from skglm.penalties import MCPenalty
    from skglm.solvers import AndersonCD
    from skglm.utils.jit_compilation import compiled_clone

    K = len(y)
    solver = AndersonCD(tol=1e-4 * math.sqrt(K), max_iter=20, max_epochs=500, fit_intercept=True)
    at_zero = np.where(y > 0, 2.0 * np.mean(y < 0), -2.0 * np.mean(y > 0))
    w, Xw = np.zeros(X.shape[1] + 1), np.zeros(K)
    for lam in 2.0 * np.max(np.abs(X.T @ at_zero)) * np.geomspace(1.0, 0.1, 30):
        # MCP of K λ and γ / K beside the sum of the loss is MCP of λ and γ beside its mean.
        penalty = compiled_clone(MCPenalty(lam, gamma / K))
        w, _, error = solver.solve(X, y, datafit, penalty, w_init=w, Xw_init=Xw)
        Xw = X @ w[:-1] + w[-1]
        yield w[:-1]
        if error > solver.tol:
            return  # with the smallest γ, skglm diverges from here on: a second for each strength


@cache
def skglm_squared_hinge():
    """Loaded once: numba compiles every class anew."""
    return load(HERE / "solvers" / "skglm.py", "SquaredHinge")()


def abess_model(X, y, sizes):
    from abess import LogisticRegression

    return LogisticRegression(support_size=sizes).fit(X, (y > 0).astype(int))


def abess_sizes(X, y):
    return range(1, min(LARGEST, *X.shape) + 1)


def abess_path(X, y):
    return abess_model(X, y, abess_sizes(X, y))


def abess_each_size(X, y):
    return up_to_most(abess_model(X, y, [size]).coef_.ravel() for size in abess_sizes(X, y))


METHODS = [
    Method("majorant, l1", l1_path),
    Method("majorant, Welsch", welsch_path),
    Method("majorant, SparseSVCCV()", default_call),
    Method("majorant, StabilitySelection", stability),
    Method("LinearSVC, l1", linear_svc),
    Method("skglm, MCP", skglm_mcp),
    Method("abess", abess_path, listed=abess_each_size),
]
if "n_features" in inspect.signature(SparseSVC).parameters:
    METHODS.insert(2, Method("majorant, sizes", size_path))


# One run ----------------------------------------------------------------------------------------------------


class Refits:
    """The refits of a problem's supports, each made once."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self._models = problem, {}

    def columns(self, X, support):
        return X[:, support] if len(support) else np.zeros((X.shape[0], 1))

    def model(self, support) -> SparseSVC:
        key = support.tobytes()
        if key not in self._models:
            X, y = self.problem.train
            refit = SparseSVC("none", eta=RIDGE * len(y), tol=1e-9)
            self._models[key] = refit.fit(self.columns(X, support), y)
        return self._models[key]

    def error(self, support, rows) -> float:
        X, y = rows
        return float(np.mean(self.model(support).predict(self.columns(X, support)) != y))


def run(method: Method, problem: Problem, refits: Refits) -> dict:
    """The figures of a method on a problem."""
    X, y = problem.train
    start = time.process_time()
    supports = method.search(X, y)
    seconds = time.process_time() - start
    if method.listed is not None:
        supports = method.listed(X, y)
    supports = sorted(map(np.sort, supports), key=len)
    start = time.process_time()
    errors = [refits.error(support, problem.validation) for support in supports]
    chosen = supports[int(np.argmin(errors))]
    figures = {"features": len(chosen), "error": refits.error(chosen, problem.test)}
    figures |= {"seconds": seconds, "tuning_seconds": time.process_time() - start}
    if problem.truth is not None:
        right = len(np.intersect1d(chosen, problem.truth))
        figures["f1"] = 2.0 * right / (len(chosen) + len(problem.truth))
        best = refits.model(problem.truth).objective_
        of_true_size = [support for support in supports if len(support) == len(problem.truth)]
        excess = [refits.model(support).objective_ - best for support in of_true_size]
        figures["excess"] = min(excess, default=None)
    return figures


def warm_up(methods: Sequence[Method]) -> None:
    """Compile what is compiled at its first use."""
    X, y = simulate(Cell(60, 10, 2, 0.5, 0.5), 0).train
    for method in methods:
        for rows in (X, sp.csr_matrix(X)):
            method.search(rows, y)


def run_all(problems, methods: Sequence[Method], results: dict, out: Path) -> None:
    """Add to the results what is missing, and save them after every run."""
    for name, seed, make in problems:
        missing = [method for method in methods if key_of(name, seed, method.name) not in results]
        if not missing:
            continue
        problem = make(seed)
        refits = Refits(problem)
        for method in missing:
            figures = run(method, problem, refits)
            results[key_of(name, seed, method.name)] = figures
            with atomic_write(out / "selection.json") as file:
                file.write(json.dumps(results, indent=1).encode())
            shown = ", ".join(f"{name} {value:.3g}" for name, value in figures.items() if value is not None)
            print(f"{name} {seed} {method.name}: {shown}", flush=True)


def key_of(problem: str, seed: int, method: str) -> str:
    return f"{problem} | {seed} | {method}"


# Tables and picture -----------------------------------------------------------------------------------------


def values_of(results: dict, problem: str, method: str, figure: str) -> list[float]:
    """A figure of all runs, by seed; nan where there is none."""
    found = []
    for key, figures in results.items():
        of_problem, _, of_method = key.split(" | ")
        if (of_problem, of_method) == (problem, method):
            value = figures.get(figure)
            found.append(math.nan if value is None else value)
    return found


# The figure of a table, its format, how runs are summed up, and how problems are.
TABLES = [
    ("F1 of the support, mean", "f1", "{:.3f}", np.mean, np.mean),
    ("Test error, %, mean", "error", "{:.2f}", lambda errors: 100.0 * np.mean(errors), np.mean),
    ("Features, mean", "features", "{:.1f}", np.mean, np.mean),
    ("Excess of the refit's objective at the true size, largest", "excess", "{:+.2g}", np.max, np.max),
    ("CPU s, median", "seconds", "{:.2f}", np.median, np.sum),
]


def markdown(results: dict, problems: Sequence[str], methods: Sequence[str]) -> str:
    lines = ["# Which features each method selects"]
    for title, figure, form, over_runs, over_problems in TABLES:
        known = [name for name in problems if name in CELLS or figure not in ("f1", "excess")]
        if not known:
            continue
        lines += [f"\n## {title}\n", f"| | {' | '.join(known)} | all |", "|---" * (len(known) + 2) + "|"]
        for method in methods:
            cells = [over_runs(values_of(results, name, method, figure) or [math.nan]) for name in known]
            cells.append(over_problems(cells))
            shown = ["-" if math.isnan(value) else form.format(value) for value in cells]
            lines.append(f"| {method} | {' | '.join(shown)} |")
    lines += ["", *(f"- {name}: {CELLS[name]}" for name in problems if name in CELLS)]
    seeds = {name: len(values_of(results, name, methods[0], "error")) for name in problems}
    lines.append("- runs: " + ", ".join(f"{name} {count}" for name, count in seeds.items()))
    return "\n".join(lines) + "\n"


def picture(results: dict, problems: Sequence[str], methods: Sequence[str], path: Path) -> None:
    """F1 of cells, error of real data, features and time, with a colour for each method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    bar = {"markersize": 9, "markeredgewidth": 2.5}

    cells, others = [n for n in problems if n in CELLS], [n for n in problems if n not in CELLS]
    panels = [(cells, "f1", "F1 of the support", 1.0), (others, "error", "Test error, %", 100.0)]
    panels += [(problems, "features", "Features selected", 1.0), (problems, "seconds", "CPU s", 1.0)]
    panels = [panel for panel in panels if panel[0]]
    figure, axes = plt.subplots(
        1, len(panels), figsize=(4.2 * len(panels), 4.6), layout="constrained", squeeze=False
    )
    for ax, (names, name, title, unit) in zip(axes[0], panels, strict=True):
        for k, method in enumerate(methods):
            shift = 0.7 * ((k + 0.5) / len(methods) - 0.5)
            for i, problem in enumerate(names):
                values = unit * np.array(values_of(results, problem, method, name))
                if len(values):
                    ax.plot(np.full(len(values), i + shift), values, ".", color=f"C{k}", alpha=0.35)
                    ax.plot(i + shift, np.mean(values), "_", color=f"C{k}", **bar)
        ax.set_xticks(range(len(names)), names, rotation=20 if others else 0)
        ax.set_title(title, loc="left", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.3)
        if name in ("features", "seconds"):
            ax.set_yscale("log")
        if name == "features":
            for i, problem in enumerate(names):
                if problem in CELLS:
                    ax.plot([i - 0.4, i + 0.4], [CELLS[problem].true] * 2, ":", color="0.3", linewidth=1.2)
    handles = [Line2D([], [], color=f"C{k}", linewidth=3, label=method) for k, method in enumerate(methods)]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def arguments(given: Sequence[str] | None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [method.name for method in METHODS]
    parser.add_argument("--cells", nargs="*", choices=list(CELLS), default=list(CELLS))
    parser.add_argument("--data", nargs="*", choices=REAL, default=REAL)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each cell, and splits of each data set")
    parser.add_argument("--methods", nargs="+", choices=names, default=names)
    parser.add_argument("--again", action="store_true", help="run the methods anew where there are results")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/selection"))
    options = parser.parse_args(given)
    if options.data and not os.environ.get("MAJORANT_DATA"):
        print("MAJORANT_DATA does not name the directory of the data sets: simulated data only.")
        options.data = []
    if not options.cells and not options.data:
        parser.error("there is nothing to run: name cells or data sets")
    return options


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(given)
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    problems = [
        (name, seed, partial(simulate, CELLS[name]))
        for name in options.cells
        for seed in range(options.seeds)
    ]
    problems += [(name, seed, partial(real, name)) for name in options.data for seed in range(options.seeds)]
    methods = [method for method in METHODS if method.name in options.methods]
    file = options.out / "selection.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    wanted = {key_of(name, seed, method.name) for name, seed, _ in problems for method in methods}
    if options.again:
        results = {key: figures for key, figures in results.items() if key not in wanted}
    with threadpool_limits(1):
        if not wanted <= results.keys():
            warm_up(methods)
        run_all(problems, methods, results, options.out)
    names = [*options.cells, *options.data]
    shown = [m.name for m in METHODS if any(values_of(results, name, m.name, "error") for name in names)]
    table = markdown(results, names, shown)
    (options.out / "selection.md").write_text(table, encoding="utf-8")
    picture(results, names, shown, options.out / "selection.png")
    print(table)


if __name__ == "__main__":
    main()
