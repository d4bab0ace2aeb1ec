"""The paper's experiments, run again: `majorant reproduce`.

`study.py` describes the experiments, `plan.py` lists their runs, and `runner.py` executes the runs without a
record in the results (`results.py`). Tables, claims and figures are functions of the records
(`study_results.py`) and of the paper's printed numbers (`paper.toml`).
"""

from majorant.experiments.study import PAPER, QUICK, DataSet, Method, Regulariser, Run, Study

__all__ = ["PAPER", "QUICK", "DataSet", "Method", "Regulariser", "Run", "Study"]
