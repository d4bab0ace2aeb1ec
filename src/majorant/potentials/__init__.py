"""Potentials φ: what makes coefficients small, or zero.

`base.py` has the contract and its mathematics, `catalogue.py` those that there are, with room for more.
"""

from majorant.potentials.base import Potential, make_potential
from majorant.potentials.catalogue import L1, L2, Hyperbolic, Welsch, Zero

__all__ = [
    "L1",
    "L2",
    "Hyperbolic",
    "Potential",
    "Welsch",
    "Zero",
    "make_potential",
]
