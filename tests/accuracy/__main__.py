"""How often the diagnosis is right: profiles real loaders, judges them, prints the tables.

python -m tests.accuracy                             the loaders of this package, every tier
python -m tests.accuracy --cases FOLDER              and the cases in a folder of your own
python -m tests.accuracy --record FOLDER ...         only profile, and keep the profiles there
python -m tests.accuracy --judge FOLDER              only judge profiles that were kept
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.accuracy.entries import Entry, external
from tests.accuracy.judge import judged, lines
from tests.accuracy.record import DEADLINE_S, TIERS, record


def main() -> int:
    arguments = parser().parse_args()
    if arguments.judge:
        verdicts = judged(arguments.judge, arguments.only, arguments.jobs)
        print("\n".join(lines(verdicts, arguments.verbose, arguments.wrong)))
        return 0
    entries = [entry for entry in wanted(arguments) if arguments.only in entry.name]
    failed: list[str] = []
    for tier in arguments.tiers:
        failed += record(entries, arguments.record, tier, arguments.deadline)
    return 1 if failed else 0


def wanted(arguments: argparse.Namespace) -> list[Entry]:
    entries: list[Entry] = []
    for folder in arguments.cases or filter(None, [os.environ.get("IOSCOPE_CASES")]):
        entries += external(Path(folder), arguments.fresh)
    return entries


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--judge", type=Path, metavar="FOLDER", help="judge kept profiles again")
    made.add_argument("--record", type=Path, metavar="FOLDER", help="where to keep profiles")
    made.add_argument("--cases", action="append", metavar="FOLDER", help="a folder of cases")
    made.add_argument("--only", default="", metavar="TEXT", help="part of a name")
    made.add_argument("--tiers", nargs="+", choices=TIERS, default=["full"])
    made.add_argument("--fresh", action="store_true", help="make a loader for every epoch")
    made.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="S")
    made.add_argument("--jobs", type=int, default=2)
    made.add_argument("-v", "--verbose", action="store_true", help="evidence and advice too")
    made.add_argument("--wrong", action="store_true", help="only those whose first cause is wrong")
    return made


if __name__ == "__main__":
    sys.exit(main())
