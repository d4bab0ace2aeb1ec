"""The algorithms, a file for each family, and the one loop that drives them."""

from majorant.solvers.auto import choose_solver
from majorant.solvers.base import Solver, make_solver, require_suitable
from majorant.solvers.driver import solve
from majorant.solvers.hybrid import Hybrid
from majorant.solvers.mm import MM, Gradient, MMInversion
from majorant.solvers.newton import Newton
from majorant.solvers.stochastic import SGD, Adam, Descent, DescentState, Momentum, StochasticSolver
from majorant.solvers.subspace import MMGradient, MMSubspace, gradient_direction, memory_gradient

__all__ = [
    "MM",
    "SGD",
    "Adam",
    "Descent",
    "DescentState",
    "Gradient",
    "Hybrid",
    "MMGradient",
    "MMInversion",
    "MMSubspace",
    "Momentum",
    "Newton",
    "Solver",
    "StochasticSolver",
    "choose_solver",
    "gradient_direction",
    "make_solver",
    "memory_gradient",
    "require_suitable",
    "solve",
]
