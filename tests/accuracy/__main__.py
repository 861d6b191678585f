"""How often the diagnosis is right: profiles real loaders, judges them, prints the tables.

python -m tests.accuracy                       the loaders of this package, every tier; writes
                                               notebooks/accuracy.md
python -m tests.accuracy --cases FOLDER        and the cases in a folder of your own (IOSCOPE_CASES)
python -m tests.accuracy --record FOLDER ...   only profile, and keep the profiles there
python -m tests.accuracy --judge FOLDER        only judge profiles that were kept, in seconds
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.accuracy.corpus import own, written_blind
from tests.accuracy.entries import BLIND, Entry, external
from tests.accuracy.judge import Verdict, judged, lines, named
from tests.accuracy.page import figures, page
from tests.accuracy.record import DEADLINE_S, FIRST_SEVERITY, TIERS, record
from tests.bench.measure import machine

PAGE = Path(__file__).parents[2] / "notebooks" / "accuracy.md"


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 1 where a run crashed or hung, or a rule failed; a wrong verdict is no error."""
    arguments = parser().parse_args(words)
    if arguments.judge:
        return judge(arguments.judge, arguments)
    if arguments.record:
        return said(profile_all(arguments.record, arguments))
    with tempfile.TemporaryDirectory(prefix="ioscope-profiles-") as folder:
        failed = profile_all(Path(folder), arguments)
        return judge(Path(folder), arguments, write=not arguments.only) or said(failed)


def profile_all(folder: Path, arguments: argparse.Namespace) -> list[str]:
    """Record what was asked for; what went wrong."""
    entries = [entry for entry in wanted(arguments) if named(entry.name, arguments.only)]
    failed: list[str] = []
    for tier in arguments.tiers:
        chosen = [entry for entry in entries if tier == TIERS[0] or in_every_tier(entry)]
        failed += record(chosen, folder, tier, arguments.deadline)
    return failed


def in_every_tier(entry: Entry) -> bool:
    """Milder severities, mixed causes, repaired variants and loaders written blind are profiled
    with full evidence only."""
    if entry.repaired or entry.group.startswith(BLIND):
        return False
    return entry.severity in ("", FIRST_SEVERITY) and entry.group != "mixed"


def wanted(arguments: argparse.Namespace) -> list[Entry]:
    """The loaders of this package, and the cases of the folders that were named."""
    entries: list[Entry] = [] if arguments.only_cases else [*own(), *written_blind()]
    for folder in arguments.cases or filter(None, [os.environ.get("IOSCOPE_CASES")]):
        entries += external(Path(folder), arguments.fresh)
    return entries


def judge(folder: Path, arguments: argparse.Namespace, write: bool = False) -> int:
    """Print what the diagnosis says of kept profiles, and the figures."""
    verdicts = judged(folder, arguments.only, arguments.jobs)
    print("\n".join(lines(verdicts, arguments.verbose, arguments.wrong)))
    print()
    print("\n".join(figures(verdicts)))
    if write or arguments.write:
        write_page(verdicts)
    broken = [f"{row.tier} {row.entry.name}: {line}" for row in verdicts for line in row.broken]
    return said(broken)


def write_page(verdicts: Sequence[Verdict]) -> None:
    text = page(verdicts, machine(), time.strftime("%Y-%m-%d", time.gmtime()))
    print(text)
    PAGE.write_text(text, encoding="utf-8")
    print(f"Written to {PAGE}")


def said(failed: Sequence[str]) -> int:
    """Tell what failed; 1 if anything did."""
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if failed else 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--judge", type=Path, metavar="FOLDER", help="judge kept profiles again")
    made.add_argument("--record", type=Path, metavar="FOLDER", help="only profile; keep them there")
    made.add_argument("--cases", action="append", metavar="FOLDER", help="a folder of cases")
    made.add_argument("--only-cases", action="store_true", help="not the loaders of this package")
    made.add_argument("--only", default="", metavar="TEXT", help="part of a name, or a pattern")
    made.add_argument("--tiers", nargs="+", choices=TIERS, default=list(TIERS))
    made.add_argument("--fresh", action="store_true", help="make a case's loader for every epoch")
    made.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="S")
    made.add_argument("--jobs", type=int, default=2, help="processes that judge")
    made.add_argument("--write", action="store_true", help=f"write {PAGE.name} from --judge too")
    made.add_argument("-v", "--verbose", action="store_true", help="evidence and advice too")
    made.add_argument("--wrong", action="store_true", help="only those whose first cause is wrong")
    return made


if __name__ == "__main__":
    sys.exit(main())
