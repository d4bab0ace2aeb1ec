"""Potentials φ: penalties that make coefficients small, or zero.

`base.py` has the interface and its mathematics, `catalogue.py` the potentials of this package.
"""

from majorant.potentials.base import Potential, make_potential
from majorant.potentials.catalogue import (
    L1,
    L2,
    MCP,
    SCAD,
    Cauchy,
    GemanMcClure,
    Hyperbolic,
    LogSum,
    Lp,
    Welsch,
    Zero,
)

__all__ = [
    "L1",
    "L2",
    "MCP",
    "SCAD",
    "Cauchy",
    "GemanMcClure",
    "Hyperbolic",
    "LogSum",
    "Lp",
    "Potential",
    "Welsch",
    "Zero",
    "make_potential",
]
