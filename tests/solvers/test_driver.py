"""The loop: stopping, trace, callbacks, interruption."""

import itertools
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from majorant.callbacks import Callback, Checkpoint, Progress, TimeLimit, progress_fraction
from majorant.objective import Objective
from majorant.potentials import L2, Hyperbolic, Welsch
from majorant.rows import MemoryRows
from majorant.solvers import MM, SGD, MMSubspace, Newton, Solver, solve
from majorant.status import Certificate, Iterate, Provisional, Status
from tests.problems import random_objective


class Scripted(Solver):
    """Yields what it is told to; has no name, so it is not registered."""

    def __init__(self, *thetas):
        self.thetas = thetas

    def iterates(self, objective, theta, seed):
        for theta in self.thetas:
            if theta is KeyboardInterrupt:
                raise KeyboardInterrupt
            yield Iterate(np.full(objective.size, theta))
        while True:
            yield Iterate(np.full(objective.size, self.thetas[-1]))


class Spy(Callback):
    def __init__(self, answer=None, at=0):
        self.calls, self.answer, self.at = [], answer, at

    def on_begin(self, objective, tol):
        self.calls.append(("begin", tol))

    def on_iterate(self, iterate, record):
        self.calls.append(("iterate", record.iteration, iterate.value))
        return self.answer if record.iteration == self.at else None

    def on_end(self, result):
        self.calls.append(("end", result.status))


def set_clock(monkeypatch, look):
    """The driver's alone: threads of others may look at Python's."""
    monkeypatch.setattr("majorant.solvers.driver.time", SimpleNamespace(perf_counter=look))


@pytest.fixture
def objective():
    return random_objective(Hyperbolic(0.3, 0.1))


def test_records_are_the_iterates_and_the_clock_never_goes_back(objective):
    result = solve(MM(), objective, tol=0, max_iter=20)
    history = result.history
    assert list(history.column("iteration")) == list(range(21))
    assert np.all(np.diff(history.column("time")) >= 0)
    assert history[-1].objective == result.iterate.value + objective.constant
    assert history[0].nonzeros == 0


def test_history_becomes_a_data_frame(objective):
    frame = solve(MM(), objective, tol=0, max_iter=5).history.to_frame()
    assert list(frame.columns) == ["time", "objective", "gap", "stationarity", "nonzeros"]
    assert frame.index.name == "iteration"
    assert len(frame) == 6


def test_history_is_a_sequence(objective):
    history = solve(MM(), objective, tol=0, max_iter=5).history
    assert len(history[2:]) == 4
    assert [record.iteration for record in history][-1] == history[-1].iteration == 5


def test_the_callbacks_see_every_iterate_once(objective):
    spy = Spy()
    result = solve(MM(), objective, tol=0, max_iter=3, callbacks=[spy])
    assert spy.calls[0] == ("begin", 0)
    assert [call[1] for call in spy.calls[1:-1]] == [0, 1, 2, 3]
    assert spy.calls[-1] == ("end", Status.MAX_ITER)
    assert spy.calls[-2][2] == pytest.approx(result.iterate.value, rel=1e-14)


def test_a_callback_stops_the_run_there(objective):
    result = solve(MM(), objective, tol=0, max_iter=9, callbacks=[Spy(Status.STOPPED, at=4)])
    assert (result.status, result.n_iter) == (Status.STOPPED, 4)


def test_measuring_and_callbacks_are_off_the_clock(objective, monkeypatch):
    """On a clock that only the callback moves, no time passes."""
    now = [0.0]
    set_clock(monkeypatch, lambda: now[0])

    class Slow(Callback):
        def on_iterate(self, iterate, record):
            now[0] += 1.0

    result = solve(MM(), objective, tol=0, max_iter=10, callbacks=[Slow()])
    assert now[0] == 11.0
    assert result.history[-1].time == 0.0


def test_what_a_solver_prepares_is_on_the_clock(objective, monkeypatch):
    now = [0.0]
    set_clock(monkeypatch, lambda: now[0])

    class Preparing(MM):
        def iterates(self, objective, theta, seed):  # no generator: this runs when it is called
            now[0] += 7.0
            return super().iterates(objective, theta, seed)

    assert solve(Preparing(), objective, max_iter=1).history[0].time == 7.0


def test_time_limit(objective, monkeypatch):
    """On a clock that ticks once per reading, an iterate takes a second."""
    ticks = itertools.count()
    set_clock(monkeypatch, lambda: float(next(ticks)))
    result = solve(SGD(), objective, tol=0, max_iter=10**9, callbacks=[TimeLimit(5.0)])
    assert result.status is Status.TIME_LIMIT
    assert list(result.history.column("time")) == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_convergence_stops_before_the_limit(objective):
    result = solve(MMSubspace(), objective, tol=1e-4, max_iter=10_000)
    assert result.status is Status.CONVERGED
    assert result.certificate.error <= 1e-4 < result.history[-2].certificate.error


def test_a_fixed_point_is_a_stall_not_an_endless_loop(objective):
    result = solve(Scripted(1.0, 2.0, 2.0), objective, tol=0, max_iter=10**9)
    assert (result.status, result.n_iter) == (Status.STALLED, 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_not_finite_keeps_the_last_finite_iterate(objective, bad):
    result = solve(Scripted(1.0, 2.0, bad), objective, tol=0)
    assert result.status is Status.NOT_FINITE
    assert result.iterate.theta[0] == 2.0


def test_ctrl_c_keeps_the_last_iterate(objective):
    result = solve(Scripted(1.0, 2.0, KeyboardInterrupt), objective, tol=0)
    assert result.status is Status.INTERRUPTED
    assert result.iterate.theta[0] == 2.0


def test_an_interrupt_before_the_first_iterate_is_raised(objective):
    with pytest.raises(KeyboardInterrupt):
        solve(Scripted(KeyboardInterrupt), objective)


class PressCtrlC(Callback):
    def __init__(self, at, times=1):
        self.at, self.times = at, times

    def on_iterate(self, iterate, record):
        if record.iteration == self.at:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("at", [0, 3])
def test_ctrl_c_waits_for_the_end_of_an_iteration(objective, at):
    before = signal.getsignal(signal.SIGINT)
    result = solve(MM(), objective, tol=0, max_iter=10, callbacks=[PressCtrlC(at)])
    assert (result.status, result.n_iter) == (Status.INTERRUPTED, at)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_does_not_wait(objective):
    result = solve(MM(), objective, tol=0, max_iter=10, callbacks=[PressCtrlC(2, times=2), Spy()])
    assert (result.status, result.n_iter) == (Status.INTERRUPTED, 2)


def test_the_callers_own_handler_is_left_alone(objective):
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        result = solve(MM(), objective, tol=0, max_iter=5, callbacks=[PressCtrlC(2)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert (pressed, result.n_iter) == ([True], 5)


@pytest.mark.parametrize("solver", [MM(), Newton(), Newton(gram_features=0), MMSubspace()], ids=repr)
def test_what_is_claimed_at_the_end_is_computed_afresh(objective, solver):
    result = solve(solver, objective, tol=0, max_iter=3)
    again = objective.evaluate(result.iterate.theta)
    afresh, certificate = objective.certify(again.theta)
    assert result.iterate.value == afresh.value
    assert result.history[-1].objective == afresh.value + objective.constant
    assert np.isclose(afresh.value, again.value, rtol=1e-14)
    assert result.certificate == result.history[-1].certificate == certificate


def test_only_a_certificate_ends_a_run_never_an_estimate(monkeypatch):
    """The estimate of a non-convex fit is soon within the tolerance; here nothing ever is for certain."""
    objective = random_objective(Welsch(1.0, 0.1))

    def uncertain(objective, theta, tol):
        return objective.evaluate(theta), Certificate(1.0)

    monkeypatch.setattr("majorant.solvers.driver.certify", uncertain)
    assert not solve(Newton(), objective).status.converged


def test_points_underway_are_counted_and_shown_but_never_converged(objective):
    best = solve(MM(), objective, tol=1e-9, max_iter=100_000).iterate.theta

    class Travelling(Scripted):
        def iterates(self, objective, theta, seed):
            yield objective.evaluate(theta)
            for _ in range(5):
                yield Provisional(best, objective.evaluate(best).value)
            yield objective.evaluate(best)

    spy = Spy()
    result = solve(Travelling(), objective, tol=1e-6, callbacks=[spy])
    assert (result.status, result.n_iter) == (Status.CONVERGED, 6)
    assert len([call for call in spy.calls if call[0] == "iterate"]) == 7
    stopped = solve(Travelling(), objective, tol=1e-6, max_iter=3)
    assert stopped.n_iter == 3
    assert stopped.iterate.value + objective.constant == stopped.history[-1].objective


def test_rounding_noise_is_a_stall(objective):
    class Noisy(Scripted):
        def iterates(self, objective, theta, seed):
            rng = np.random.default_rng(0)
            yield objective.evaluate(objective.start())
            while True:
                yield objective.evaluate(1e3 + 1e-3 * rng.standard_normal(objective.size))

    result = solve(Noisy(), objective, tol=0, max_iter=10**6)
    assert result.status is Status.STALLED
    assert result.n_iter < 100


def test_every_status_has_a_sentence_of_its_own():
    sentences = [status.value for status in Status]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence.endswith(".") for sentence in sentences)
    assert [status for status in Status if status.converged] == [Status.CONVERGED, Status.NO_SWAP]


def test_checkpoint_is_written_whole_and_reads_back(objective, tmp_path):
    path = tmp_path / "fit.npz"
    result = solve(MM(), objective, max_iter=5, tol=0, callbacks=[Checkpoint(path, every=0.0)])
    assert np.array_equal(np.load(path)["theta"], result.iterate.theta)
    assert list(tmp_path.iterdir()) == [path]


def test_checkpoint_leaves_the_old_file_when_writing_fails(objective, tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    path.write_bytes(b"old")

    def fail(*args, **arrays):
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="No space"):
        solve(MM(), objective, max_iter=1, tol=0, callbacks=[Checkpoint(path)])
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_progress_lines(objective, capsys):
    solve(MM(), objective, tol=1e-3, max_iter=400, callbacks=[Progress()])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("iteration     0")
    assert "duality gap" in lines[0]
    assert lines[-1].startswith(Status.CONVERGED.value)


@pytest.mark.parametrize(
    ("stationarity", "tol", "fraction"),
    [
        (1.0, 1e-6, 0.0),
        (1e-3, 1e-6, 0.5),
        (1e-7, 1e-6, 1.0),
        (5.0, 1e-6, 0.0),
        (0.5, 0.0, 0.0),
        (np.nan, 0.1, 0.0),
    ],
)
def test_progress_is_on_a_log_scale(stationarity, tol, fraction):
    assert progress_fraction(stationarity, tol) == pytest.approx(fraction)


def test_a_start_that_overflows_is_reported(objective):
    result = solve(MM(), objective, np.full(objective.size, 1e300))
    assert result.status is Status.NOT_FINITE
    assert len(result.history) == 1


def test_zero_is_optimal_when_classes_balance():
    objective = Objective(MemoryRows(np.zeros((4, 2)), np.array([1.0, -1, 1, -1])), L2(1.0))
    result = solve(MM(), objective)
    assert (result.status, result.n_iter) == (Status.CONVERGED, 0)


def test_ctrl_c_in_the_last_iteration_is_not_lost():
    class Press(Callback):
        def on_iterate(self, iterate, record):
            if record.certificate.error <= 1e-6:
                signal.raise_signal(signal.SIGINT)

    result = solve(Newton(), random_objective(L2(1.0)), tol=1e-6, callbacks=[Press()])
    assert result.status is Status.INTERRUPTED
    assert result.certificate.error <= 1e-6


def test_a_callback_answers_with_a_status():
    class Truth(Callback):
        def on_iterate(self, iterate, record):
            return True

    with pytest.raises(TypeError, match="must return a Status or None, got True"):
        solve(Newton(), random_objective(L2(1.0)), callbacks=[Truth()])
