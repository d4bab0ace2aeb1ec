import math

import numpy as np
import pytest

from majorant.errors import MajorantError
from majorant.losses import SquaredHinge
from majorant.potentials import (
    L1,
    MCP,
    SCAD,
    Cauchy,
    GemanMcClure,
    Hyperbolic,
    LogSum,
    Lp,
    Potential,
    Welsch,
    make_potential,
)
from majorant.testing import check_potential
from tests.problems import all_examples


@pytest.mark.parametrize("potential", all_examples(Potential.registry))
def test_laws(potential):
    check_potential(potential)


def test_the_catalogue():
    names = {"hyperbolic", "welsch", "geman-mcclure", "cauchy", "lp", "log-sum", "mcp", "scad"}
    assert names | {"l1", "l2", "none"} <= Potential.registry.keys()


def test_hyperbolic_tends_to_l1_as_delta_vanishes():
    w = np.array([-2.0, -1e-3, 0.0, 0.5])
    gaps = [np.max(np.abs(Hyperbolic(0.7, d).value(w) - L1(0.7).value(w))) for d in (1e-2, 1e-4, 1e-6)]
    assert np.all(np.array(gaps) <= 0.7 * np.array([1e-2, 1e-4, 1e-6]) * (1 + 1e-9))


def test_welsch_tends_to_the_indicator_of_non_zero():
    w = np.array([-1.0, 0.0, 0.01])
    assert np.allclose(Welsch(0.7, 1e-4).value(w), [0.7, 0.0, 0.7])


@pytest.mark.parametrize(
    "limit", [lambda d: MCP(0.7, d), lambda d: SCAD(0.7, d), lambda d: LogSum(0.7 * d, d)]
)
def test_mcp_scad_and_log_sum_tend_to_l1_as_delta_grows(limit):
    w = np.array([-2.0, -1e-3, 0.0, 0.5])
    for delta in (1e3, 1e6):
        assert np.allclose(limit(delta).value(w), L1(0.7).value(w), rtol=2.0 / delta)


def test_geman_mcclure_and_lp_tend_to_their_sharp_limits():
    w = np.array([-1.0, 0.0, 0.01])
    assert np.allclose(GemanMcClure(0.7, 1e-6).value(w), [0.7, 0.0, 0.7], rtol=1e-6)
    assert np.allclose(Lp(0.7, 1e-12, p=0.3).value(w), 0.7 * np.abs(w) ** 0.3, rtol=1e-2)


def test_mcp_and_scad_leave_what_is_beyond_delta_alone():
    w = np.array([0.31, 5.0])
    for potential in (MCP(0.7, 0.3), SCAD(0.7, 0.3)):
        assert np.array_equal(potential.derivative(w), [0.0, 0.0])
        assert np.allclose(potential.value(w), potential.limit)
    assert MCP(0.7, 0.3).derivative(np.array([0.15]))[0] == pytest.approx(0.35)
    assert SCAD(0.7, 0.37, gamma=3.7).derivative(np.array([0.1]))[0] == pytest.approx(0.7)


@pytest.mark.parametrize("wrong", [lambda: Lp(1.0, 1.0, p=1.0), lambda: SCAD(1.0, 1.0, gamma=1.0)])
def test_impossible_shapes(wrong):
    with pytest.raises(MajorantError, match="must"):
        wrong()


def test_cauchy_far_outside_grows_like_a_logarithm():
    values = Cauchy(1.0, 1e-3).value(np.array([1.0, 10.0, 100.0]))
    assert np.allclose(np.diff(values), np.log(10.0), rtol=1e-5)


def test_welsch_far_outside_neither_overflows_nor_warns():
    with np.errstate(all="raise", under="ignore"):
        assert Welsch(1.0, 1e-4).weight(np.array([1e6])) == 0.0


@pytest.mark.parametrize(("lam", "delta"), [(-1.0, 1.0), (math.nan, 1.0), (1.0, 0.0), (1.0, math.inf)])
def test_impossible_parameters(lam, delta):
    with pytest.raises(MajorantError, match="must be a"):
        Hyperbolic(lam, delta)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(MajorantError, match="hyperbolic"):
        make_potential("lasso", lam=1.0, delta=1.0)


def test_a_broken_potential_is_found_out():
    class Wrong(Hyperbolic):  # no name of its own, so it is not registered
        def weight(self, w):
            return 1.1 * super().weight(w)

    with pytest.raises(AssertionError):
        check_potential(Wrong(0.7, 0.3))
    assert Wrong not in Potential.registry.values()


@pytest.mark.parametrize("wrong", ["curvature", "inverse_derivative", "max_slope", "derivative"])
def test_a_broken_claim_is_found_out(wrong):
    claims = {
        "curvature": lambda self, w: 50 * self.weight(w),
        "inverse_derivative": lambda self, slope: -7 * slope,
        "max_slope": property(lambda self: 3 * self.lam),
        "derivative": lambda self, w: Hyperbolic.derivative(self, w) + 1e-3,
    }
    broken = type("Broken", (Hyperbolic,), {wrong: claims[wrong]})(0.7, 0.3)
    with pytest.raises(AssertionError):
        check_potential(broken)


@pytest.mark.parametrize("delta", [1e-200, 1e200])
def test_welsch_refuses_a_delta_whose_square_is_no_number(delta):
    with pytest.raises(MajorantError, match="delta"):
        Welsch(1.0, delta)


def test_squared_hinge_value_derivative_and_curvature():
    v = np.linspace(-3, 3, 1201)
    h = 1e-5
    stencil = (SquaredHinge.value(v + h) - SquaredHinge.value(v - h)) / (2 * h)
    assert np.allclose(stencil, SquaredHinge.derivative(v), atol=2e-5)
    assert np.array_equal(SquaredHinge.value(np.array([1.0, 2.0, 0.0])), [0.0, 0.0, 1.0])
    s = np.linspace(0.0, 2.0, len(v))
    value, slopes = SquaredHinge.weighted_sum(v.copy(), s)
    assert np.isclose(value, s @ SquaredHinge.value(v))
    assert np.allclose(slopes, s * SquaredHinge.derivative(v))
    slopes = np.abs(np.subtract.outer(SquaredHinge.derivative(v), SquaredHinge.derivative(v)))
    assert np.all(slopes <= SquaredHinge.curvature_bound * np.abs(np.subtract.outer(v, v)) + 1e-12)
