"""A ladder of players as bars: Elo with 95 % intervals, from the file that a tournament writes.

python -m rlgames.train +experiment=chess_td_leaf games=1200 eval_every=200 checkpoints_kept=0 run_dir=runs/chess/A
python -m rlgames.tournament start runs/chess/A/checkpoints/*.pt matches=60 json=ladder.json
python scripts/ladder.py ladder.json --against start                           # ladder.png and ladder.csv beside it
"""

import argparse
import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

COLUMNS = ("player", "elo", "low", "high", "points", "games")


def rungs(content: dict[str, Any], against: str | None) -> list[dict[str, Any]]:
    """Each player's Elo, in the order of games played, relative to the player named ``against`` (None: to the mean)."""
    zero, rows = 0.0, []
    for name, rating, wins, games, place in zip(
        *(content[key] for key in ("names", "ratings", "wins", "games")), range(len(content["names"])), strict=True
    ):
        zero = rating["elo"] if name == against else zero
        lost = sum(row[place] for row in content["wins"])
        points = sum(wins) + (sum(games) - sum(wins) - lost) / 2
        rows.append({"player": label(name), **rating, "points": points, "games": sum(games)})
    for row in rows:
        row.update({key: round(row[key] - zero, 1) for key in ("elo", "low", "high")})
    return sorted(rows, key=lambda row: int("".join(re.findall(r"\d+", row["player"])) or 0))


def label(name: str) -> str:
    """``1,200 games`` for the checkpoint of 1,200 games."""
    found = re.search(r"games_0*(\d+)\.pt$", name)
    return f"{int(found[1]):,} games" if found else name


def draw(rows: list[dict[str, Any]], against: str | None, path: Path) -> None:
    """Bars with intervals."""
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    names, elo = [row["player"] for row in rows], [row["elo"] for row in rows]
    errors = [[row["elo"] - row["low"] for row in rows], [row["high"] - row["elo"] for row in rows]]
    axes.bar(names, elo, yerr=errors, capsize=4, color="#8fb3d9")
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set_ylabel(f"Elo above {against or 'the mean'}, 95 % intervals")
    axes.tick_params("x", rotation=30)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path, help="written by python -m rlgames.tournament json=...")
    parser.add_argument("--against", help="the player whose Elo is 0 (default: the mean of all)")
    parser.add_argument("--out", type=Path, help="folder (default: that of the file)")
    args = parser.parse_args()
    try:
        content = json.loads(args.json.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"error: {args.json}: {error}")
    if args.against not in (None, *content["names"]):
        sys.exit(f"error: --against {args.against}: the players are {', '.join(content['names'])}")
    rows, folder = rungs(content, args.against), args.out or args.json.parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{args.json.stem}.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, args.against, folder / f"{args.json.stem}.png")
    print((folder / f"{args.json.stem}.csv").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
