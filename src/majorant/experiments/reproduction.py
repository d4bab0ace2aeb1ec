"""`majorant reproduce`: run a study, and write what it shows."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from majorant.errors import MajorantError, OutputError
from majorant.experiments.agreement import all_agreements
from majorant.experiments.claims import all_claims
from majorant.experiments.document import markdown, plain_table
from majorant.experiments.outcomes import Outcomes
from majorant.experiments.page import page
from majorant.experiments.plan import LABELS
from majorant.experiments.progress import Progress, Silent
from majorant.experiments.protocol import PAPER, QUICK, Study
from majorant.experiments.results import Results
from majorant.experiments.runner import available_part, run_study
from majorant.experiments.tables import all_tables
from majorant.files import replacing

__all__ = ["reproduce"]


class Voice(Protocol):
    """What a command says: see `majorant.cli.output.Output`."""

    options: Any

    def say(self, text: str) -> None:
        """A line for people."""

    def warn(self, text: str) -> None:
        """A line that must not be lost."""

    def finish(self, **facts: Any) -> None:
        """The facts, for programs."""


def reproduce(
    out: Path,
    voice: Voice,
    *,
    quick: bool = False,
    jobs: int | None = None,
    only: Sequence[str] = (),
    download: bool = True,
    fresh: bool = False,
) -> Outcomes:
    """Run what is not in the results yet, then write tables and verdicts.

    Parameters
    ----------
    out : path
        The directory for `results.jsonl` and what is made of it; made if it is not there.
    voice : Voice
        Whom to tell.
    quick : bool
        The small study instead of the full one.
    jobs : int, optional
        Cells at the same time; by default as many as there are cores.
    only : sequence of str
        The paper's labels of what is wanted; by default everything.
    download : bool
        Whether to fetch data that are not on this machine.
    fresh : bool
        Whether to forget the results that are in the directory.

    Returns
    -------
    Outcomes
    """
    study = _chosen(QUICK if quick else PAPER, only)
    with _alone_in(out):
        return _reproduce(study, out, voice, jobs=jobs or _cores(), download=download, fresh=fresh)


def _reproduce(study: Study, out: Path, voice: Voice, *, jobs: int, download: bool, fresh: bool) -> Outcomes:
    results = _open(out, fresh=fresh)
    study, missing = available_part(study, download=download)
    for sentence in missing.values():
        voice.warn(sentence)
    if not study.data:
        raise MajorantError(
            "none of the paper's data sets is on this machine: put one where the warnings say, or try "
            "--quick, which goes on with data that are made up"
        )
    progress = Progress() if voice.options.talkative else Silent()
    try:
        plan, results = run_study(study, results, jobs=jobs, progress=progress)
    except KeyboardInterrupt:
        voice.warn(f"{len(results)} cells are done and kept: the same command goes on from there")
        raise
    outcomes = Outcomes(plan, results)
    document, report = out / "reproduction.md", out / "reproduction.html"
    for path, text in ((document, markdown(outcomes, missing)), (report, page(outcomes, missing))):
        with replacing(path) as file:
            file.write(text.encode())
    for table in all_tables(outcomes):
        voice.say("\n" + plain_table(table))
    verdicts = [] if study.labels else [*all_agreements(outcomes), *all_claims(outcomes)]
    for verdict in verdicts:
        voice.say(f"\n{verdict}.")
    voice.say(f"\nWritten to {document} and {report}")
    voice.finish(
        study=study.name,
        cells=len(results),
        missing=missing,
        verdicts=[{"statement": v.statement, "holds": v.holds, "because": v.because} for v in verdicts],
        document=str(document),
        report=str(report),
    )
    return outcomes


def _chosen(study: Study, labels: Sequence[str]) -> Study:
    for label in labels:
        if label not in LABELS:
            close = difflib.get_close_matches(label, LABELS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(LABELS)}"
            raise MajorantError(f"the paper has no table or figure {label!r}; {hint}")
    return replace(study, labels=tuple(labels))


@contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """Keep a second run out of the directory, whose results both would write."""
    if out.exists() and not out.is_dir():
        raise OutputError(f"{str(out)!r} is a file, not a directory to write to")
    out.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with open(out / ".lock", "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"another run is writing to {str(out)!r}: wait for it, or name another"
            ) from None
        yield


def _open(out: Path, *, fresh: bool) -> Results:
    path = out / "results.jsonl"
    if fresh:
        path.unlink(missing_ok=True)
    return Results(path)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
