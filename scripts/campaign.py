"""A reliability campaign: bad words, damaged files, full disks, signals and kills, and what programs make of them.

    python scripts/campaign.py                                # 15 minutes on two quiet cores; Linux
    python scripts/campaign.py --all                          # hours
    python scripts/campaign.py --parts kills,words --minutes 5
    python scripts/campaign.py --only "kills: q fused, 1" --keep there

Every case becomes a row of the csv file as soon as it has ended. Given again, the same command does what is missing;
rows of another commit do not count. docs/reliability.md says what the parts try and what is a failure.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from reliability import damage, disk, kills, signals, uci, words
from reliability.cases import FINE, Book, Case, FoundError, in_turns
from reliability.processes import Lab

from rlgames.training.records import versions

PARTS = {
    "kills": kills.cases,
    "damage": damage.cases,
    "words": words.cases,
    "uci": uci.cases,
    "signals": signals.cases,
    "disk": disk.cases,
}


def attempt(case: Case, folder: Path, book: Book, again: str) -> None:
    """Try ``case`` in the new ``folder``, and note what was found."""
    folder.mkdir(parents=True)
    began = time.monotonic()
    try:
        verdict, detail = "ok", case.run(folder) or ""
    except FoundError as found:
        verdict, detail = found.verdict, found.detail
    except Exception as error:  # of the campaign itself
        verdict, detail = "campaign", f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - began
    book.add(case, verdict, detail, seconds, case.command or again)
    if verdict not in FINE:
        print(f"{case.part}: {case.name}: {verdict}: {detail}", flush=True)


def run(cases: list[Case], book: Book, lab: Lab, processes: int, minutes: float) -> None:
    """Try ``cases``, so many at the same time; those that have not begun after some ``minutes`` are left."""
    end, script = time.monotonic() + 60 * minutes, "python scripts/campaign.py --all"

    def one(number: int, case: Case) -> None:
        if time.monotonic() < end:
            again = f"{script} --seed {lab.seed} --keep there --only '{case.part}: {case.name}'"
            attempt(case, lab.folder / f"{number}", book, again)

    with ThreadPoolExecutor(processes) as pool:
        try:
            list(pool.map(one, range(len(cases)), cases))
        except KeyboardInterrupt:
            end = 0.0  # what has begun is ended
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="with commas (default: all)")
    parser.add_argument("--all", action="store_true", help="every case, without a limit of time")
    parser.add_argument("--minutes", type=float, help="begin no case after so many (default 15)")
    parser.add_argument("--processes", type=int, default=2, help="cases at the same time (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    parser.add_argument("--csv", type=Path, default=Path("results", "campaign.csv"), help="(results/campaign.csv)")
    parser.add_argument("--only", metavar="PATTERN", help='only cases whose "PART: NAME" matches, again')
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the files of all cases here")
    args = parser.parse_args()
    unknown = set(args.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"--parts: no {', '.join(sorted(unknown))} here; allowed are {', '.join(PARTS)}")
    if sys.platform != "linux":
        parser.error("the campaign forks, limits memory and mounts disks in Linux's way")
    with tempfile.TemporaryDirectory(prefix="campaign-") as temporary:
        if args.keep:
            args.keep.mkdir(parents=True)
        lab = Lab((args.keep or Path(temporary)).resolve(), args.seed)
        parts = [PARTS[part](lab, args.all) for part in args.parts.split(",")]
        cases = in_turns(parts)
        book = Book(args.csv, versions()["commit"] or "installed")
        if args.only:
            names = {f"{case.part}: {case.name}": case for case in cases}
            todo = [case for name, case in names.items() if args.only == name or fnmatchcase(name, args.only)]
        else:
            todo = [case for case in cases if case[:2] not in book.rows]
        print(f"{len(todo)} of {len(cases)} cases to try, into {args.csv}", flush=True)
        try:
            run(todo, book, lab, args.processes, args.minutes or (float("inf") if args.all or args.only else 15.0))
        except KeyboardInterrupt:
            print("stopped; the same command continues")
        finally:
            lab.close()
    print(book.table(Counter(part[0].part for part in parts for _ in part)))
    sys.exit(bool(book.failures()))


if __name__ == "__main__":
    main()
