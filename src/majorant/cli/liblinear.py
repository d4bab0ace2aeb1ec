"""LIBLINEAR's flags, for its users.

-s 1, -s 2    --penalty l2        (dual or primal: the same problem)
-s 5          --penalty l1
-c C          --lam 1/C
-e EPSILON    --tol EPSILON
-B BIAS       --intercept if BIAS ≥ 0, else --no-intercept; ours is never penalised (LIBLINEAR's -R)
-wLABEL W     --class-weight LABEL=W
-v FOLDS      cross-validation accuracy instead of a model
-q            --quiet
"""

from __future__ import annotations

import re
from collections.abc import Sequence

PENALTIES = {1: "l2", 2: "l2", 5: "l1"}

OTHERS = {
    0: "logistic regression",
    3: "the hinge loss, which is not squared",
    4: "the method of Crammer and Singer (--multi-class joint also trains all classes at once)",
    6: "logistic regression",
    7: "logistic regression",
    11: "regression",
    12: "regression",
    13: "regression",
    21: "a one-class machine",
}


def translated(arguments: Sequence[str]) -> list[str]:
    """The arguments with every ``-wLABEL WEIGHT`` as an option that parsers of options understand."""
    words = iter(arguments)
    out: list[str] = []
    for word in words:
        if word == "--":
            return [*out, word, *words]
        match = re.fullmatch(r"-w(.+)", word)
        weight = next(words, None) if match else None
        if match and weight is not None:
            out += ["--class-weight", f"{match[1]}={weight}"]
        else:
            out.append(word)
    return out
