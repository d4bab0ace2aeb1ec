"""The paper's experiments, run again: `majorant reproduce`.

From the protocol as data (`protocol.py`) follow the cells (`plan.py`); the runner does those that are not in
the results yet; tables, claims and figures are functions of the results alone, which they ask through
`outcomes.py`. The paper's own figures are in `printed.py`.
"""

from majorant.experiments.protocol import PAPER, QUICK, DataSet, Method, Regulariser, Study, Task

__all__ = ["PAPER", "QUICK", "DataSet", "Method", "Regulariser", "Study", "Task"]
