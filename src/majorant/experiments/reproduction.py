"""`majorant reproduce`: run a study, and write its tables, checks and figures."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from majorant.errors import MajorantError, OutputError
from majorant.experiments.checks import CLAIMS, COMPARISONS, run_checks
from majorant.experiments.output import markdown, page, plain_table
from majorant.experiments.paper import LABELS
from majorant.experiments.results import Results
from majorant.experiments.runner import StudyProgress, available_part, run_study
from majorant.experiments.study import PAPER, QUICK, Study
from majorant.experiments.study_results import StudyResults
from majorant.experiments.tables import all_tables
from majorant.files import atomic_write
from majorant.rows.threads import n_cores

if TYPE_CHECKING:
    from majorant.cli.output import Output


def reproduce(
    out: Path,
    output: Output,
    *,
    quick: bool = False,
    jobs: int | None = None,
    only: Sequence[str] = (),
    download: bool = True,
    fresh: bool = False,
) -> StudyResults:
    """Execute the runs that are missing from the results, then write tables and checks.

    Parameters
    ----------
    out : path
        The directory for `results.jsonl` and the documents; created if it does not exist.
    output : Output
        The output of the command.
    quick : bool
        The small study instead of the full one.
    jobs : int, optional
        The number of runs at the same time; by default the number of cores.
    only : sequence of str
        The paper's labels of the tables and figures to make; by default all.
    download : bool
        Whether to download data sets that are not on this machine.
    fresh : bool
        Whether to discard the results in the directory.

    Returns
    -------
    StudyResults
    """
    study = _select(QUICK if quick else PAPER, only)
    with _locked(out):
        path = out / "results.jsonl"
        if fresh:
            path.unlink(missing_ok=True)
        records = Results(path)
        study, missing = available_part(study, download=download)
        for sentence in missing.values():
            output.warn(sentence)
        if not study.data:
            raise MajorantError(
                "none of the paper's data sets is on this machine: put one where the warnings say, or try "
                "--quick, which uses generated rows then"
            )
        progress = StudyProgress(shown=output.options.talkative)
        try:
            results = run_study(study, records, jobs=jobs or n_cores(), progress=progress)
        except KeyboardInterrupt:
            output.warn(f"{len(records)} cells are done and kept: the same command resumes from there")
            raise
        _write(results, out, output, missing)
    return results


def _write(results: StudyResults, out: Path, output: Output, missing: dict[str, str]) -> None:
    document, report = out / "reproduction.md", out / "reproduction.html"
    for path, text in ((document, markdown(results, missing)), (report, page(results, missing))):
        with atomic_write(path) as file:
            file.write(text.encode())
    checks = [] if results.study.labels else run_checks([*COMPARISONS, *CLAIMS], results)
    blocks = [*map(plain_table, all_tables(results)), *(f"{check}." for check in checks)]
    for line in "\n\n".join([*blocks, f"Written to {document} and {report}"]).split("\n"):
        output.say(line)
    output.finish(
        study=results.study.name,
        cells=len(results.records),
        missing=missing,
        verdicts=[asdict(check) for check in checks],
        document=str(document),
        report=str(report),
    )


def _select(study: Study, labels: Sequence[str]) -> Study:
    for label in labels:
        if label not in LABELS:
            close = difflib.get_close_matches(label, LABELS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(LABELS)}"
            raise MajorantError(f"the paper has no table or figure {label!r}; {hint}")
    return replace(study, labels=tuple(labels))


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Lock the directory against a second process that would write the same results."""
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
                f"another run is writing to {str(out)!r}: wait until it has ended, or name another directory"
            ) from None
        yield
