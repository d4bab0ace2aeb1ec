"""LIBSVM text by regular expressions and `float`: slow, plain, and the judge of the fast reader."""

import math
import re

_NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PAIR = re.compile(rb"[ \t]+([0-9]+):(" + _NUMBER + rb")(?=[ \t\r#]|$)")
_LABEL = re.compile(rb"[ \t]*(" + _NUMBER + rb")(?=[ \t\r#]|$)")
_REST = re.compile(rb"[ \t]*(?:#[^\0]*)?\r?")


def reference(text):
    """(rows, None), a row being its label and its (index, value) pairs; or (None, line of the first error).

    The line is None if there is nothing to read in any of them.
    """
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    rows = []
    for number, line in enumerate(lines, start=1):
        row = _row(line)
        if row is None:
            return None, number
        rows += row
    return (rows, None) if any(pairs for _, pairs in rows) else (None, None)


def _row(line):
    """A list of the row in a line, if there is one; None if the line is wrong."""
    if _REST.fullmatch(line):
        return []
    label = _LABEL.match(line)
    if label is None or abs(float(label[1])) > 2**53:
        return None
    end, pairs = label.end(), []
    while pair := _PAIR.match(line, end):
        index, value = int(pair[1][:400]), float(pair[2])
        if not (pairs[-1][0] if pairs else 0) < index < 2**31 or math.isinf(value):
            return None
        pairs.append((index, value))
        end = pair.end()
    return [(float(label[1]), pairs)] if _REST.fullmatch(line, end) else None
