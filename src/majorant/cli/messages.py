"""Messages of the package in the words of the command line: options instead of Python's arguments."""

from __future__ import annotations

import re

from majorant.errors import DataFileError

OPTIONS = {
    "class_weight": "--class-weight",
    "cv": "--folds",
    "delta": "--delta",
    "eta": "--eta",
    "fit_intercept": "--intercept",
    "format": "--format",
    "lam": "--lam",
    "lambdas": "--points",
    "max_features": "--max-features",
    "max_iter": "--max-iter",
    "memory": "--memory",
    "multi_class": "--multi-class",
    "n_features": "--n-features",
    "n_jobs": "--jobs",
    "penalty": "--penalty",
    "random_state": "--seed",
    "ratio": "--ratio",
    "refit": "--refit",
    "scoring": "--scoring",
    "selection": "--selection",
    "solver": "--solver",
    "standardize": "--standardize",
    "tol": "--tol",
}
"""The option that sets each argument."""
# Arguments that are no English words: these are named without a value as well.
BARE = [*(name for name in OPTIONS if "_" in name), "tol"]

_IN_PYTHON_AND_HERE = re.compile(
    r"\b(?:label|drop|header|format|preprocessing)=[^\n]*? \((--[^\n]*?)\)(?=[\s,.;:]|$)"
)
_INVALID = re.compile(r"^The '(\w+)' parameter of \w+ ")
_ASSIGNED = re.compile(rf"(?<![\w'\"./-])({'|'.join(OPTIONS)})=(?:'([^']*)'|([^\s,;:)]*[^\s,;:.)]))")
_OF_DATA = re.compile(r"(?<![\w'\"./-])(label|drop|format|memory)= ?")
_FOR_TABLES = re.compile(r"\b(label|drop)(?= and drop are for tables| (?:is|are) for tables)")
_BARE = re.compile(rf"(?<![\w'\"./-])({'|'.join(BARE)})(?![\w'\"/-]|\.\w)")
_PHRASES = (
    (re.compile(r"\blam="), "lam "),  # of a model on a path, which has no option of its own
    (re.compile(r"\(ratio\)"), "(--ratio)"),
    (re.compile(r"\ba smaller ratio\b"), "a smaller --ratio"),
    (re.compile(r"\bstandardize=True\b"), "--standardize"),
    (re.compile(r"\b(product of )?sample_weight( and class_weight)?\b"), "--class-weight"),
    (re.compile(r"\b([Ss])tandardise the features\b"), r"\1tandardise the features (--standardize)"),
    (
        re.compile(r"e\.g\. with sklearn\.preprocessing\.StandardScaler( or MaxAbsScaler)?"),
        "e.g. with --standardize",
    ),
    (re.compile(r"\bbut y has 1 class only\b"), "but the data have 1 class only"),
)


def in_options(message: str) -> str:
    """A message of an estimator with the options of the command line in it.

    >>> in_options("Increase max_iter, or use solver='auto'.")
    'Increase --max-iter, or use --solver auto.'
    """
    message = _IN_PYTHON_AND_HERE.sub(r"\1", message)
    message = _INVALID.sub(
        lambda found: f"{OPTIONS.get(found[1], '--' + found[1].replace('_', '-'))} ", message
    )
    for pattern, words in _PHRASES:
        message = pattern.sub(words, message)
    message = _ASSIGNED.sub(lambda found: f"{OPTIONS[found[1]]} {found[2] or found[3]}", message)
    return _BARE.sub(lambda found: OPTIONS[found[1]], message)


def sentence(error: BaseException) -> str:
    """What a user of the command line is told of an error."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"the data do not fit into memory. {error}".strip()
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, DataFileError):  # which has names of columns in it, e.g. max_iter
        text = _IN_PYTHON_AND_HERE.sub(r"\1", text)
        return _FOR_TABLES.sub(r"--\1", _OF_DATA.sub(r"--\1 ", text))
    return in_options(text)
