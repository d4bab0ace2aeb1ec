r"""Bounds of the expected number of features that complementary pairs stability selection selects wrongly.

A selection procedure selects q of p features on average when it sees half of the rows. It runs on B pairs of
disjoint halves. Π̂ is the share of the 2B halves that select a feature, Π̃ the share of the B pairs of which
both halves do. A feature is *unlikely* if a half selects it with a probability of at most θ = q/p, which is
what picking features at random would give. Selected are the features with Π̂ ≥ τ; the bounds are of E, the
expected number of unlikely ones among them. Let π ≤ θ be the selection probability of an unlikely feature:

    E Π̂ = π ≤ θ,    E Π̃ = π² ≤ θ²,    Π̂ ≥ τ  implies  Π̃ ≥ 2τ - 1.                      (1)

The second holds since the halves of a pair are independent draws of rows, the third since a half that does
not select the feature spoils one pair. Every bound is p times a bound of a tail of Π̂ or of Π̃, given its mean:

- without an assumption, by Markov's inequality, E ≤ q/τ and E ≤ q² / ((2τ-1) p), which is also the bound of
  Meinshausen & Bühlmann (2010);
- if Π̃ is unimodal. The worst distribution mixes a mass at 0 with a uniform one on 0, …, m/B. With t = 2τ - 1,
  a mixture with the mean θ² has the tail 2Bθ² (m - tB + 1) / (m (m+1)), which is largest at m = 2tB - 1 if
  that is ≤ B, else at m = B:

    E ≤ q²/p · 1 / (2 (2τ - 1 - 1/2B))        if τ ≤ 3/4,
    E ≤ q²/p · 4 (1 - τ + 1/2B) / (1 + 1/B)   if τ > 3/4,                                      (2)

  for θ ≤ 1/√3 and τ > min(1/2 + θ², 1/2 + 1/2B + 3θ²/4), where no other mode is worse;
- if Π̃ is r-concave with r = -1/2 and Π̂ with r = -1/4 (f^r is convex, for the probabilities f). The worst
  distribution has a linear f^r on 0, …, k, that is f(i) ∝ (a + i)^(1/r), and at most as much as that on k + 1
  (Shah & Samworth, Appendix A.4). With a mean of η steps, the mass of f on 0, …, t-1 is

    (k + 1 - η) Σ_{i<t} (a + i)^(1/r) / Σ_{i≤k} (k + 1 - i) (a + i)^(1/r),                      (3)

  which is minimised over k and a: a lies between a_{k+1} and a_k, where f on 0, …, k with a_k has the mean η.

R. D. Shah & R. J. Samworth (2013), Variable selection with error control, J. R. Stat. Soc. B 75, 55-80.
N. Meinshausen & P. Bühlmann (2010), Stability selection, J. R. Stat. Soc. B 72, 417-473.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from majorant.status import Matrix, Vector

ASSUMPTIONS = ("r-concave", "unimodal", "none")
# The exponents r of Π̃ and of Π̂ that Shah & Samworth recommend.
SIMULTANEOUS_CONCAVITY, SINGLE_CONCAVITY = -0.5, -0.25
# Steps of a bisection of log a, until its interval is a rounding error, and of a golden section, whose
# interval shrinks by 1e-5 in these, so that a smooth minimum is exact to 1e-10.
BISECTIONS, SECTIONS = 60, 30
SMALLEST_A, LARGEST_A = 1e-100, 1e9
# Below this, a threshold is a multiple of 1/2B up to rounding.
LATTICE_ROUNDING = 1e-9


def false_selections(
    n_selected: float, n_features: int, threshold: float, n_pairs: int, assumption: str
) -> float:
    """A bound of the expected number of unlikely features that stability selection selects.

    Parameters
    ----------
    n_selected : float
        How many features a half selects on average, q.
    n_features : int
        How many there are, p.
    threshold : float
        The share τ of the halves that have to select a feature.
    n_pairs : int
        The number B of pairs of halves.
    assumption : {"r-concave", "unimodal", "none"}
        What the distribution of an unlikely feature's selections is assumed to be.

    Returns
    -------
    float
    """
    count = halves_needed(threshold, n_pairs)
    theta = n_selected / n_features
    if theta <= 0.0 or count > 2 * n_pairs:
        return 0.0
    tail = min(1.0, theta * 2 * n_pairs / max(count, 1), _markov(theta**2, count - n_pairs, n_pairs))
    if assumption == "unimodal":
        tail = min(tail, _unimodal(theta, count, n_pairs))
    elif assumption == "r-concave":
        tail = min(
            tail,
            concave_tail(theta**2, count - n_pairs, n_pairs, SIMULTANEOUS_CONCAVITY),
            concave_tail(theta, count, 2 * n_pairs, SINGLE_CONCAVITY),
        )
    return n_features * tail


def halves_needed(threshold: float, n_pairs: int) -> int:
    """The smallest number of halves whose share is at least the threshold."""
    if threshold > 1.0:
        return 2 * n_pairs + 1
    return math.ceil(2 * n_pairs * threshold - LATTICE_ROUNDING)


def smallest_threshold(
    n_selected: float, n_features: int, max_false: float, n_pairs: int, assumption: str
) -> float:
    """The smallest threshold above one half whose bound is at most `max_false`; infinity if none is."""
    low, high = n_pairs, 2 * n_pairs + 1  # the bound falls with the threshold; low is too small, or one half
    while high - low > 1:
        middle = (low + high) // 2
        threshold = middle / (2 * n_pairs)
        if false_selections(n_selected, n_features, threshold, n_pairs, assumption) <= max_false:
            high = middle
        else:
            low = middle
    return high / (2 * n_pairs) if high <= 2 * n_pairs else math.inf


def most_selected(n_features: int, threshold: float, max_false: float, n_pairs: int, assumption: str) -> int:
    """The most features that a half may select with a bound of at most `max_false`; at least one."""
    low, high = 1, n_features + 1
    while high - low > 1:
        middle = (low + high) // 2
        if false_selections(middle, n_features, threshold, n_pairs, assumption) <= max_false:
            low = middle
        else:
            high = middle
    return low


def _markov(mean: float, count: int, n_pairs: int) -> float:
    return mean * n_pairs / count if count > 0 else 1.0


def _unimodal(theta: float, count: int, n_pairs: int) -> float:
    """The tail of (2), 1 where (2) does not hold."""
    half_step, threshold = 0.5 / n_pairs, count / (2 * n_pairs)
    least = 0.5 + min(theta**2, half_step + 0.75 * theta**2)
    if theta > 1.0 / math.sqrt(3.0) or threshold <= least:
        return 1.0
    if threshold <= 0.75:
        return theta**2 / (2.0 * (2.0 * threshold - 1.0 - half_step))
    return theta**2 * 4.0 * (1.0 - threshold + half_step) / (1.0 + 2.0 * half_step)


@cache
def concave_tail(mean: float, count: int, steps: int, r: float) -> float:
    """The largest P(X ≥ count/steps) of r-concave X on 0, 1/steps, …, 1 with at most this mean.

    1 if the count is not beyond twice the mean, where (3) need not hold.
    """
    eta = mean * steps
    first = max(math.ceil(2.0 * eta), 1)
    if count <= first:
        return 1.0
    k = np.arange(first, steps + 1, dtype=np.float64)
    a = _shifts(eta, k, steps, 1.0 / r)
    last = 1.0 - float(_mass_below(np.log(a[-1:]), eta, count, k[-1:], steps, 1.0 / r)[0])
    if len(k) == 1:
        return last
    low, high = np.log(a[1:]), np.log(a[:-1])
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    best = np.full(len(low), np.inf)
    for _ in range(SECTIONS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        of_left = _mass_below(left, eta, count, k[:-1], steps, 1.0 / r)
        of_right = _mass_below(right, eta, count, k[:-1], steps, 1.0 / r)
        best = np.minimum(best, np.minimum(of_left, of_right))
        low, high = np.where(of_left < of_right, low, left), np.where(of_left < of_right, right, high)
    return min(1.0, max(last, 1.0 - float(best.min())))


def _powers(a: Vector, steps: int, exponent: float) -> Matrix:
    """(a + i)^exponent for every a, and i = 0, …, steps, relative to the largest, that of i = 0."""
    return np.asarray((1.0 + np.arange(steps + 1) / a[:, None]) ** exponent)


def _shifts(eta: float, k: Vector, steps: int, exponent: float) -> Vector:
    """The a for which f on 0, …, k has the mean η, for every k: the mean grows with a."""
    i = np.arange(steps + 1)
    low, high = np.full(len(k), math.log(SMALLEST_A)), np.full(len(k), math.log(LARGEST_A))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        f = np.where(i <= k[:, None], _powers(np.exp(middle), steps, exponent), 0.0)
        above = f @ i > eta * f.sum(axis=1)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(np.exp(high))


def _mass_below(log_a: Vector, eta: float, count: int, k: Vector, steps: int, exponent: float) -> Vector:
    """Formula (3) for every pair of log a and k."""
    f = _powers(np.exp(log_a), steps, exponent)
    weights = np.maximum(k[:, None] + 1 - np.arange(steps + 1), 0)
    return np.asarray((k + 1 - eta) * f[:, :count].sum(axis=1) / (weights * f).sum(axis=1))
