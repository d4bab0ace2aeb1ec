"""The paper's experiments: study, printed numbers, a runner that resumes, checks that can fail."""

import base64
import hashlib
import itertools
import json
import math
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from markupsafe import escape

from majorant.cli import run as command
from majorant.errors import MajorantError, OutputError
from majorant.experiments import PAPER, QUICK, DataSet, Method, Regulariser, Run, paper
from majorant.experiments.checks import (
    CLAIMS,
    COMPARISONS,
    Check,
    a1a_is_close,
    adam_is_the_best_warmup,
    four_digits,
    hybrid_inversion_is_best,
    hybrids_lower_the_gap,
    inversion_is_unstable,
    join,
    run_checks,
    sparsity_grows,
)
from majorant.experiments.execution import count_confusion, execute, load_split
from majorant.experiments.figures import draw_gaps, draw_stochastic, draw_theory, draw_zeros
from majorant.experiments.output import markdown, markdown_table, page, plain_table
from majorant.experiments.paper import LABELS, errata
from majorant.experiments.plan import Plan, RateSearch, needs_runs
from majorant.experiments.results import Results
from majorant.experiments.runner import StudyProgress, available_part, run_missing, run_study
from majorant.experiments.study import STAND_IN
from majorant.experiments.study_results import MeanOverSplits, StudyResults, scores_of
from majorant.experiments.tables import all_tables, matching_table, score_table
from tests import ROOT
from tests.processes import environment

SMALL = replace(
    QUICK,
    data=(STAND_IN,),
    regularisers=QUICK.regularisers[:1],
    iterations=6,
    warmup=2,
    rates=(1e-3, 1e-2),
    refinements=(3.0,),
    lambdas=(1e-1, 1e-4),
    reference_iterations=30,
    repeats=0,
)
HYPERBOLIC = SMALL.regularisers[0]


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """A machine without any data set."""
    empty = tmp_path / "no-data"
    empty.mkdir()
    monkeypatch.setenv("MAJORANT_DATA", str(empty))
    monkeypatch.setattr("pooch.os_cache", lambda project: empty / project)
    return empty


# The protocol -----------------------------------------------------------------------------------


def test_the_first_rows_train_and_the_last_ones_test():
    split = load_split(STAND_IN, 0)
    assert (len(split.y), len(split.y_test)) == (320, 80)
    whole = load_split(replace(STAND_IN, train_share=1.0), 0)
    np.testing.assert_array_equal(np.concatenate([split.y, split.y_test]), whole.y)
    np.testing.assert_array_equal(np.vstack([split.X, split.X_test]), whole.X)


def test_divisions_at_random_have_their_own_seeds_and_the_classes_in_proportion():
    data = replace(STAND_IN, shuffled=True, splits=3)
    splits = [load_split(data, k) for k in range(3)]
    assert {int(np.sum(split.y_test > 0)) for split in splits} == {24}
    assert not np.array_equal(splits[0].X, splits[1].X)
    load_split.cache_clear()
    np.testing.assert_array_equal(load_split(data, 1).X, splits[1].X)


def test_standardised_by_the_training_rows():
    split = load_split(replace(STAND_IN, standardised=True), 0)
    varying = split.X.std(axis=0) > 0
    np.testing.assert_allclose(split.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(split.X.std(axis=0)[varying], 1.0)
    assert np.abs(split.X_test.mean(axis=0)).max() > 1e-3


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sizes", "positives"),
    [("a1a", (1284, 321), 88), ("cina0", (12827, 3206), 828), ("w8a", (39800, 9949), 296)],
)
def test_the_splits_have_the_papers_counts(data_dir, name, sizes, positives):
    data = next(one for one in PAPER.data if one.name == name)
    split = load_split(data, 0)
    assert (len(split.y), len(split.y_test)) == sizes
    assert np.sum(split.y_test > 0) == positives
    assert (split.X.shape[1] + 1, *sizes) == paper.DATA[name]


def test_a_task_survives_being_written_down():
    task = Run(STAND_IN, 0, HYPERBOLIC, Method("H MMI", "mm-inversion", 10, rate=0.03), 100, 1e-4)
    again = Run.from_dict(json.loads(json.dumps(task.to_dict())))
    assert again == task
    assert again.key == task.key
    assert replace(task, seed=1).key != task.key
    assert replace(task, regulariser=replace(HYPERBOLIC, lam=0.2)).key != task.key


# The paper's figures ----------------------------------------------------------------------------

SLIPS = {(slip.label, slip.place) for slip in paper.MISPRINTS}
CELLS = [
    (name, regulariser, method)
    for name in paper.SCORES
    for regulariser, method in itertools.product(("hyperbolic", "Welsch", "ℓ2"), paper.METHODS)
]


def whole_numbers(name, accuracy, precision, recall, f1):
    """Whether some numbers of true and called positives among the test rows give all four figures."""
    rows, positives = paper.DATA[name][2], paper.TEST_POSITIVES[name]

    def near(value, figure):
        return abs(value - figure) <= 1.01e-4  # four digits, some cut off instead of rounded

    for tp in range(positives + 1):
        if not near(tp / positives, recall):
            continue
        low, high = tp / (precision + 1e-4), tp / max(precision - 1e-4, 1e-9)
        for called in range(max(math.floor(low), 1), min(math.ceil(high), rows) + 1):
            wrong = called - tp + positives - tp
            if (
                near(tp / called, precision)
                and near(1 - wrong / rows, accuracy)
                and near(2 * tp / (called + positives), f1)
            ):
                return True
    return False


def figures(name, regulariser, method):
    return [paper.SCORES[name][measure, regulariser, method] for measure in paper.MEASURES]


@pytest.mark.parametrize(("name", "regulariser", "method"), CELLS)
def test_the_printed_scores_are_of_whole_test_rows(name, regulariser, method):
    scores = figures(name, regulariser, method)
    slip = (f"tab:{name}", f"{regulariser}, {method}")
    assert whole_numbers(name, *scores) == (slip not in SLIPS)
    if slip in SLIPS:
        right = {s.measure: s.right for s in paper.MISPRINTS if (s.label, s.place) == slip}
        put_right = [right.get(m, s) for m, s in zip(paper.MEASURES, scores, strict=True)]
        assert whole_numbers(name, *put_right)


@pytest.mark.parametrize("name", paper.SCORES)
def test_precision_and_recall_as_printed_are_swapped(name):
    """With the names of the paper, hardly any cell can come from whole rows."""
    possible = 0
    for regulariser, method in itertools.product(("hyperbolic", "Welsch", "ℓ2"), paper.METHODS):
        accuracy, precision, recall, f1 = figures(name, regulariser, method)
        possible += whole_numbers(name, accuracy, recall, precision, f1)
    assert possible <= 4


@pytest.mark.parametrize("name", paper.SPARSITY)
def test_the_printed_sparsity_tables_have_the_names_right(name):
    for lam, row in paper.SPARSITY[name].items():
        slip = (f"sparsity:{name}", f"λ={lam:g}") in SLIPS
        scores = [row.accuracy, row.precision, row.recall, row.F1]
        assert whole_numbers(name, *scores) or slip
        assert not whole_numbers(name, row.accuracy, row.recall, row.precision, row.F1)


def test_every_misprint_is_in_a_table():
    for slip in paper.MISPRINTS:
        kind, name = slip.label.split(":")
        if kind == "tab":
            assert paper.SCORES[name][(slip.measure, *slip.place.split(", "))] == slip.printed
        else:
            lam = float(slip.place.removeprefix("λ="))
            assert getattr(paper.SPARSITY[name][lam], slip.measure) == slip.printed
        assert slip.printed != slip.right


# One cell ---------------------------------------------------------------------------------------


def test_a_record_has_a_line_for_every_iteration():
    task = Run(STAND_IN, 0, HYPERBOLIC, Method("MM", "mm"), 5, 1e-4, repeats=2)
    record = execute(task)
    assert len(record["phi"]) == len(record["time"]) == len(record["zeros"]) == 6
    assert np.all(np.diff(record["phi"]) < 0)
    assert record["zeros"][0] == 30
    assert record["positives"][-1] == record["confusion"][:2]
    assert record["objective"] == record["phi"][-1]
    assert sum(record["confusion"]) == record["n_test"] == 80
    assert len(record["theta"]) == record["n_features"] + 1 == 31
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_hybrid_is_its_warmup_and_then_its_method():
    method = Method("H MM", "mm", warmup=2, rate=0.01)
    hybrid = execute(Run(STAND_IN, 0, HYPERBOLIC, method, 5, 1e-4))
    adam = execute(Run(STAND_IN, 0, HYPERBOLIC, Method("adam", "adam", rate=0.01), 2, 1e-4))
    assert hybrid["phi"][:3] == pytest.approx(adam["phi"], rel=1e-14)
    assert len(hybrid["phi"]) == 6


def test_a_run_that_leaves_the_numbers_is_kept_as_what_it_is():
    record = execute(Run(STAND_IN, 0, HYPERBOLIC, Method("sgd", "sgd", rate=1e200), 3, 1e-4))
    assert record["status"] == "NOT_FINITE"
    assert len(record["phi"]) < 4
    json.dumps(record, allow_nan=False)


def test_liblinear_comes_near_the_minimum():
    plain = Regulariser("ℓ2", "none", eta=1e-2)
    theirs = execute(Run(STAND_IN, 0, plain, Method("LIBLINEAR", "liblinear"), 0, 1e-4))
    ours = execute(Run(STAND_IN, 0, plain, Method("auto", "newton"), 100, 1e-4))
    assert len(theirs["phi"]) == len(theirs["time"])
    assert ours["objective"] <= theirs["phi"][-1] <= (1 + 1e-6) * ours["objective"]
    assert theirs["phi"][-1] < theirs["phi"][0]


def test_outcomes_are_counted_as_the_scores_need_them():
    X, theta = np.array([[1.0], [2.0], [-1.0], [-2.0], [3.0]]), np.array([1.0, 0.0])
    assert count_confusion(theta, X, np.array([1.0, -1.0, 1.0, -1.0, 1.0])) == [2, 1, 1, 1]
    assert scores_of({"confusion": [2, 1, 1, 1]}) == pytest.approx(
        {"accuracy": 3 / 5, "precision": 2 / 3, "recall": 2 / 3, "F1": 2 / 3}
    )
    assert scores_of({"confusion": [0, 0, 2, 3]})["F1"] == 0.0


@pytest.mark.data
@pytest.mark.parametrize("regulariser", ["hyperbolic", "ℓ2"])
@pytest.mark.parametrize(("method", "rate"), [("MMI", None), ("H MMI", 0.02), ("H MMI", 0.05)])
def test_a1a_gives_the_papers_four_digits(data_dir, regulariser, method, rate):
    data = next(one for one in PAPER.data if one.name == "a1a")
    chosen = next(one for one in PAPER.regularisers if one.name == regulariser)
    solver = replace(next(one for one in PAPER.methods if one.name == method), rate=rate)
    scores = scores_of(execute(Run(data, 0, chosen, solver, PAPER.iterations, 1e-4)))
    assert [round(scores[measure], 4) for measure in paper.MEASURES] == figures("a1a", regulariser, method)


@pytest.mark.data
def test_a1a_at_other_strengths_names_the_method_of_the_sparsity_table(data_dir):
    data = next(one for one in PAPER.data if one.name == "a1a")
    agreeing = []
    for method in PAPER.methods:
        rate = 0.05 if method.warmup else None
        scores = {}
        for lam in (1e-1, 1e-2):
            regulariser = replace(PAPER.regularisers[0], lam=lam)
            scores[lam] = scores_of(execute(Run(data, 0, regulariser, replace(method, rate=rate), 100, 1e-4)))
        if all(
            score == pytest.approx(getattr(paper.SPARSITY["a1a"][lam], measure), abs=1e-4)
            for lam, four in scores.items()
            for measure, score in four.items()
        ):
            agreeing.append(method.name)
    assert agreeing == [PAPER.sparsity_of]


# The search -------------------------------------------------------------------------------------


def test_the_search_looks_around_the_best_of_the_first_round(tmp_path):
    results = Results()
    first = RateSearch(SMALL, results).runs()
    assert {task.method.rate for task in first} == {1e-3, 1e-2}
    run_missing(first, results)
    second = [task for task in RateSearch(SMALL, results).runs() if task not in results]
    assert len(second) == 3
    run_missing(second, results)
    assert all(task in results for task in RateSearch(SMALL, results).runs())
    search = RateSearch(SMALL, results)
    for (data, regulariser, solver), rate in search.best().items():
        tried = {run.method.rate for run in search.runs() if run.method.solver == solver}
        phi = {r: search.mean_phi(data, regulariser, solver, r) for r in tried}
        assert phi[rate] == min(phi.values())


# The runner -------------------------------------------------------------------------------------


def without_times(path):
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for record in records:
        del record["time"], record["seconds"]
    return {record["key"]: record for record in records}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "results.jsonl"
    return path, run_study(SMALL, Results(path))


def test_a_finished_study_has_nothing_left_to_do(finished, monkeypatch):
    path, outcomes = finished
    assert all(task in outcomes.records for task in outcomes.plan.runs())
    monkeypatch.setattr("majorant.experiments.runner.execute", None)  # whoever calls it fails
    run_study(SMALL, Results(path))


@pytest.mark.parametrize("kept", [0, 1, 7])
def test_goes_on_after_a_torn_line(finished, tmp_path, kept):
    path, _ = finished
    lines = path.read_bytes().splitlines(keepends=True)
    torn = tmp_path / "results.jsonl"
    torn.write_bytes(b"".join(lines[:kept]) + lines[kept][: len(lines[kept]) // 2])
    results = Results(torn)
    assert len(results) == kept
    assert torn.read_bytes().startswith(b"".join(lines[:kept]))  # reading changes nothing
    run_study(SMALL, results)
    assert without_times(torn) == without_times(path)


KILLED = """
import os, signal, sys
from pathlib import Path
from majorant.experiments.results import Results
from majorant.experiments.runner import run_study
from tests.experiments.test_experiments import SMALL, children

class Three(Results):
    def add(self, record):
        super().add(record)
        if len(self) == 3:
            Path(sys.argv[2]).write_text(" ".join(children(os.getpid())))
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    run_study(SMALL, Three(sys.argv[1]), jobs=2)
"""


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"  # nobody may have asked how it ended
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the workers in /proc")
def test_goes_on_after_being_killed_and_leaves_no_worker_behind(finished, tmp_path):
    path, _ = finished
    script, results = tmp_path / "killed.py", tmp_path / "results.jsonl"
    script.write_text(KILLED, encoding="utf-8")
    killed = [sys.executable, str(script), str(results), str(tmp_path / "workers")]
    assert subprocess.run(killed, env=environment()).returncode == -signal.SIGKILL
    workers = (tmp_path / "workers").read_text().split()
    assert len(workers) >= 2
    wait_for(lambda: not any(map(alive, workers)))
    assert len(Results(results)) == 3 < len(without_times(path))
    run_study(SMALL, Results(results))
    assert without_times(results) == without_times(path)


def test_a_file_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"shopping": "milk"}\n', encoding="utf-8")
    with pytest.raises(OutputError, match=r"line 1 .* no result of this program.*--fresh"):
        Results(path)
    assert path.read_text(encoding="utf-8") == '{"shopping": "milk"}\n'


def test_progress_tells_how_much_is_left(capsys, monkeypatch):
    now = iter([0.0] + [30.0] * 10)
    clock = SimpleNamespace(monotonic=lambda: next(now))
    monkeypatch.setattr("majorant.callbacks.progress.time", clock)
    progress = StudyProgress(every=10.0)
    progress.begin("cells", 4, 100.0)
    progress.advance("a1a, MM", 20.0)
    progress.end()
    said = capsys.readouterr().err.splitlines()
    assert said == ["cells: 4 cells", "cells:  20%  30.0 s, 2 min 0 s left  1 of 4 cells  a1a, MM"]


# Data that are not there ------------------------------------------------------------------------


def test_says_which_file_to_put_where_and_goes_on(no_data):
    study, missing = available_part(PAPER, download=False)
    assert study.data == ()
    assert missing.keys() == {"a1a", "cina0", "w8a"}
    assert all(str(no_data) in sentence for sentence in missing.values())
    mixed = replace(PAPER, data=(*PAPER.data, STAND_IN))
    assert available_part(mixed, download=False)[0].data == (STAND_IN,)


def test_without_data_the_full_study_explains_itself(no_data, tmp_path, capsys):
    assert command(["reproduce", "--out", str(tmp_path / "out"), "--no-download"]) == 1
    said = capsys.readouterr().err
    assert said.count("is not on this machine") == 3
    assert "error: none of the paper's data sets is on this machine" in said
    assert "Traceback" not in said


def test_without_data_the_quick_study_runs_on_the_stand_in(no_data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("majorant.experiments.reproduction.QUICK", replace(SMALL, data=QUICK.data))
    out = tmp_path / "out"
    arguments = ["reproduce", "--quick", "--out", str(out), "--no-download", "--jobs", "1"]
    assert command(arguments) == 0
    said = capsys.readouterr()
    assert said.err.count("warning:") == 3
    assert "Scores on the test rows of stand-in after 6 iterations" in said.out
    assert re.search(r"^accuracy +hyperbolic +ours( +0\.\d{4}){8}$", said.out, flags=re.MULTILINE)
    document = (out / "reproduction.md").read_text(encoding="utf-8")
    assert "## Data that were not there" in document
    before = (out / "results.jsonl").read_bytes()
    assert command([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["study"] == "quick"
    assert len(facts["verdicts"]) == 18
    assert (out / "results.jsonl").read_bytes() == before


def test_a_label_that_the_paper_does_not_have(no_data, tmp_path, capsys):
    assert command(["reproduce", "--only", "tab:a2a", "--out", str(tmp_path)]) == 1
    assert "did you mean 'tab:a1a'?" in capsys.readouterr().err


def test_only_what_is_asked_for_is_run():
    a1a, cina0, w8a, standardised = PAPER.data
    one = replace(PAPER, labels=("sparsity:w8a",))
    assert needs_runs(one, "sparsity", w8a)
    assert not needs_runs(one, "scores", w8a)
    assert not needs_runs(one, "sparsity", a1a)
    rates = {
        (data, regulariser, solver): 0.1
        for data in PAPER.data
        for regulariser in PAPER.regularisers
        for solver in ("sgd", "momentum", "adam")
    }
    tasks = Plan(one, rates).runs()
    assert {task.data for task in tasks} == {w8a}
    assert {task.regulariser.lam for task in tasks} == set(PAPER.lambdas)
    assert {task.data for task in RateSearch(one, Results()).runs()} == {w8a}
    assert Plan(replace(PAPER, labels=("tab:data",)), rates).runs() == []
    everything = Plan(PAPER, rates).runs()
    assert len(everything) == len(set(everything))
    for label in LABELS:
        assert set(Plan(replace(PAPER, labels=(label,)), rates).runs()) <= set(everything)
    assert not needs_runs(PAPER, "sparsity", standardised)
    assert needs_runs(PAPER, "stochastic", cina0)


# Tables and verdicts ----------------------------------------------------------------------------

A1A = DataSet("a1a", "a1a", features=119)
MADE_UP = replace(PAPER, data=(A1A,), lambdas=(1e-1, 1e-4), search_seeds=(0,))


def made_up_outcomes(phi, study=MADE_UP, zeros=lambda lam: 10, confusion=(52, 25, 36, 208), warm=None):
    """Results of a study in which `phi(method, regulariser)` is where every run ends."""
    warm = warm or {"sgd": 30.0, "momentum": 20.0, "adam": 10.0}
    results = Results()

    def add(task, end):
        trace = [100.0, 50.0, end] if task.keep_theta else [100.0] * study.warmup + [end]
        rows = {"n_train": 1284, "n_test": 321, "n_features": 119, "test_positives": 88}
        record = {"key": task.key, "task": task.to_dict(), "status": "MAX_ITER", "seconds": 0.001, **rows}
        record |= {
            "phi": trace,
            "time": [0.1 * k for k in range(len(trace))],
            "zeros": [119, 119, zeros(task.regulariser.lam)],
        }
        record |= {"positives": [[0, 0], [54, 22], list(confusion[:2])]}
        record |= {"objective": end, "gap": 0.0, "stationarity": 0.0, "theta": [0.1] * 120}
        results.add(record | {"confusion": list(confusion)})

    for _ in range(2):
        for task in RateSearch(study, results).runs():
            add(task, warm[task.method.solver])
    plan = Plan(study, RateSearch(study, results).best())
    for task in plan.runs():
        add(task, phi(task.method.name, task.regulariser))
    return StudyResults(plan, results)


def as_claimed(method, regulariser):
    ends = {"auto": 1.0, "H MMI": 1.1, "MMI": 1.4, "H MM": 1.2, "MM": 1.5, "H SUB": 1.3, "SUB": 1.6}
    return ends.get(method, 2.0)


def test_claims_hold_where_they_are_true():
    outcomes = made_up_outcomes(as_claimed, zeros=lambda lam: 40 if lam > 1e-3 else 20)
    for claim in (
        adam_is_the_best_warmup,
        hybrids_lower_the_gap,
        hybrid_inversion_is_best,
        sparsity_grows,
    ):
        assert claim(outcomes).holds is True, claim
    assert four_digits(outcomes).holds is True


def test_claims_do_not_hold_where_they_are_false():
    def end(method, regulariser):
        if regulariser.potential == "welsch" and method == "H MMI":
            return 1.9
        return as_claimed(method, regulariser)

    outcomes = made_up_outcomes(
        end, confusion=(53, 25, 35, 208), warm={"sgd": 30.0, "momentum": 5.0, "adam": 10.0}
    )
    verdict = hybrids_lower_the_gap(outcomes)
    assert verdict.holds is False
    assert "8 of 9 cells" in verdict.because
    assert "a1a/Welsch/MMI" in verdict.because
    assert "on a1a/Welsch H MM ends at" in hybrid_inversion_is_best(outcomes).because
    assert "momentum has Φ = 5.0" in adam_is_the_best_warmup(outcomes).because
    assert sparsity_grows(outcomes).holds is False
    assert four_digits(outcomes).holds is False


def test_what_was_not_run_is_not_judged():
    outcomes = made_up_outcomes(as_claimed)
    assert inversion_is_unstable(outcomes).holds is None
    nothing = StudyResults(outcomes.plan, Results())
    verdicts = [*run_checks(CLAIMS, nothing), *run_checks(COMPARISONS, nothing)]
    assert [verdict.statement for verdict in verdicts if verdict.holds is not None] == []
    assert "not tested here, since" in str(verdicts[0])
    assert all_tables(nothing) == []


def test_instability_is_seen_where_there_is_one():
    w8a = DataSet("w8a", "w8a", shuffled=True, splits=2)
    outcomes = made_up_outcomes(
        lambda method, regulariser: 70.0 if method == "MMI" else 1.0, study=replace(MADE_UP, data=(w8a,))
    )
    assert inversion_is_unstable(outcomes).holds is True  # 100, 50, 70
    calm = made_up_outcomes(as_claimed, study=replace(MADE_UP, data=(w8a,)))
    assert inversion_is_unstable(calm).holds is False


def test_a_table_has_our_figure_the_papers_and_the_difference():
    outcomes = made_up_outcomes(as_claimed)
    table = score_table(outcomes, A1A)
    rows = {row[:3]: row[3:] for row in table.rows}
    assert len(rows) == 36
    assert rows["precision", "hyperbolic", "ours"][1] == "0.6753"
    assert rows["precision", "hyperbolic", "paper"][1] == "0.6753"
    assert rows["precision", "hyperbolic", "difference"][1] == "0"
    assert rows["accuracy", "Welsch", "difference"][6] == "-0.0026"
    assert any("swapped" in note for note in table.notes)
    assert any("0.8126 is very likely 0.8162" in note for note in table.notes)


def test_where_runs_pass_through_the_papers_scores():
    outcomes = made_up_outcomes(as_claimed)
    rows = {row[0]: row[1:] for row in matching_table(outcomes, A1A).rows}
    assert rows["hyperbolic"] == ("—", "2", "2", "—", "1", "—", "1")  # 54 of 76: H MM, its misprint put right
    verdict = a1a_is_close(outcomes)
    assert verdict.holds is False
    assert "H MM/hyperbolic last at iteration 1" in verdict.because


def test_all_tables_are_there_and_even(finished):
    labels = {table.label for table in all_tables(made_up_outcomes(as_claimed))}
    ours = {"rates", "minima", "fig:optimality", "passages:a1a"}
    assert labels == {"tab:data", "tab:a1a", "tab:time", "sparsity:a1a"} | ours
    for table in all_tables(finished[1]):
        assert {len(row) for row in table.rows} == {len(table.header)}
        lines = markdown_table(table).splitlines()
        assert lines[2].count("|") == lines[3].count("|") == lines[4].count("|")
        assert table.title in plain_table(table)


def test_the_document_has_everything(finished):
    text = markdown(finished[1], {"a1a": "put a1a there"})
    for part in ("## Does it agree?", "## What the paper claims", "## Tables", "put a1a there", *errata()):
        assert part in text
    assert "nan" not in text


# Figures and the page ---------------------------------------------------------------------------


def curve_ends(svg):
    """Where the lines of a picture end, from above: the lower the number, the higher on the page."""
    paths = re.findall(r'd="M[^"]*?([\d.]+) ([\d.]+)" class="line ([^"]*)"', svg)
    return {classes: float(y) for _, y, classes in paths}


def test_a_gap_is_drawn_by_iterations_and_by_time():
    outcomes = made_up_outcomes(as_claimed)
    pairs = draw_gaps(outcomes)
    assert len(pairs) == 3
    iterations, by_time = pairs[1]
    assert iterations.title == "a1a, Welsch (fig:optimality, panel a)"
    assert "not in the paper" in pairs[0][0].title
    assert [entry.text for entry in iterations.legend] == list(paper.METHODS)
    assert {entry.text for entry in by_time.legend} == {*paper.METHODS, "auto"}
    assert "LIBLINEAR" in {entry.text for entry in pairs[2][1].legend}
    ends = curve_ends(iterations.svg)
    order = ["pale", "c2", "c1", "c0", "c2 dashes", "c1 dashes", "c0 dashes"]
    assert sorted(ends, key=ends.get) == order  # from the largest gap down to that of H MMI


def test_the_page_is_whole_and_loads_nothing(finished):
    outcomes = finished[1]
    text = page(outcomes, {"a1a": "put <a1a> there"})
    assert text.count('class="chart"') >= 8
    names = re.findall(r' id="([^"]+)"', text)
    assert len(names) == len(set(names))
    assert "put &lt;a1a&gt; there" in text
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="(?!#)', text)
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src &#39;sha256-{digest}&#39;" in text
    for table in all_tables(outcomes):
        assert f"({table.label})" in text
    for verdict in run_checks(CLAIMS, outcomes):
        assert str(escape(verdict.statement)) in text


def test_the_page_of_the_docs_is_of_a_full_run():
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert "(full, majorant" in text
    for label in LABELS:
        assert f"(`{label}`)" in text or label == "fig:stochastic"
    assert "not tested here" not in text


def test_the_pictures_of_results(finished):
    outcomes = finished[1]
    assert len(draw_stochastic(outcomes)) == len(draw_zeros(outcomes)) == 1
    assert [entry.text.split(",")[0] for entry in draw_stochastic(outcomes)[0].legend] == [
        "sgd",
        "momentum",
        "adam",
    ]
    assert [entry.text for entry in draw_zeros(outcomes)[0].legend] == ["λ = 0.1", "λ = 0.0001"]
    assert len({picture.title for picture in draw_theory()}) == 4


def test_two_runs_do_not_write_to_the_same_directory(no_data, tmp_path, capsys):
    fcntl = pytest.importorskip("fcntl", reason="the lock is that of POSIX")
    with open(tmp_path / ".lock", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert command(["reproduce", "--quick", "--out", str(tmp_path), "--no-download"]) == 1
    assert "another run is writing to" in capsys.readouterr().err


def test_only_some_tables():
    study = replace(MADE_UP, labels=("tab:a1a",))
    outcomes = made_up_outcomes(as_claimed, study=study)
    assert [table.label for table in all_tables(outcomes)] == ["tab:a1a", "rates"]
    assert "## What the paper claims" not in markdown(outcomes)


def test_small_words():
    assert join(["a"]) == "a"
    assert join(["a", "b", "c"], 2) == "a, b and 1 more"
    assert MeanOverSplits.of([1.0]).text() == "1.0000"
    assert MeanOverSplits.of([1.0, 2.0]).text(1) == "1.5 ± 0.7"
    assert str(Check("it is", False, "it is not")) == "it is: does not hold here, because it is not"
    assert issubclass(OutputError, MajorantError)
