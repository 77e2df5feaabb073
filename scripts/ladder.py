"""A ladder of players as bars: Elo with 95 % intervals, from the file that a tournament writes.

    python -m rlgames.train +experiment=chess_td_leaf games=1200 eval_every=200 checkpoints_kept=0 run_dir=runs/chess/A
    python -m rlgames.tournament start runs/chess/A/checkpoints/*.pt matches=60 json=ladder.json
    python scripts/ladder.py ladder.json --against start --run runs/chess/A

The last command writes ladder.png and ladder.csv beside the file and also shows the ladder in TensorBoard.
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
from torch.utils.tensorboard import SummaryWriter

COLUMNS = ("player", "elo", "low", "high", "points", "games")

Rung = dict[str, Any]


def rungs(content: dict[str, Any], against: str | None) -> list[Rung]:
    """Players ordered by games played; Elo relative to the player ``against`` (None: to the mean)."""
    wins, games, ratings = (
        content["wins"],
        content["games"],
        dict(zip(content["names"], content["ratings"], strict=True)),
    )
    zero, found = ratings[against]["elo"] if against else 0.0, []
    for k, (name, rating) in enumerate(ratings.items()):
        won, lost, total = sum(wins[k]), sum(row[k] for row in wins), sum(games[k])
        elo = {key: round(rating[key] - zero, 1) for key in ("elo", "low", "high")}
        found.append({"player": name, **elo, "points": won + (total - won - lost) / 2, "games": total})
    return sorted(found, key=lambda rung: played(rung["player"]))


def played(name: str) -> int:
    """Games after which the checkpoint of that name was written; 0 if it is not a checkpoint."""
    found = re.search(r"games_0*(\d+)\.pt$", name)
    return int(found[1]) if found else 0


def label(name: str) -> str:
    """``1,200 games`` for the checkpoint of 1,200 games."""
    return f"{played(name):,} games" if played(name) else name


def draw(found: list[Rung], against: str | None, path: Path) -> None:
    """Draw bars with intervals."""
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    low, elo, high = ([rung[key] for rung in found] for key in ("low", "elo", "high"))
    below, above = [b - a for a, b in zip(low, elo, strict=True)], [b - a for a, b in zip(elo, high, strict=True)]
    axes.bar([label(rung["player"]) for rung in found], elo, yerr=[below, above], capsize=4, color="#8fb3d9")
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set_ylabel(f"Elo above {against or 'the mean'}, 95 % intervals")
    axes.tick_params("x", rotation=30)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def log(found: list[Rung], picture: Path, run: Path) -> None:
    """Write the ladder into the TensorBoard events of a run: Elo and its interval over games, and the bars."""
    with SummaryWriter(str(run)) as writer:
        for rung in found:
            for key in ("elo", "low", "high"):
                writer.add_scalar(f"ladder/{key}", rung[key], played(rung["player"]))
        pixels = (255 * plt.imread(picture)[..., :3]).astype("uint8")
        writer.add_image("ladder", pixels, played(found[-1]["player"]), dataformats="HWC")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path, help="written by python -m rlgames.tournament json=...")
    parser.add_argument("--against", help="player whose Elo is 0 (default: the mean of all)")
    parser.add_argument("--out", type=Path, help="output folder (default: that of the file)")
    parser.add_argument("--run", type=Path, help="run folder whose TensorBoard events also get the ladder")
    args = parser.parse_args()
    try:
        content = json.loads(args.json.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"error: {args.json}: {error}")
    if args.against not in (None, *content["names"]):
        sys.exit(f"error: --against is {args.against}; the players are {', '.join(content['names'])}")
    if args.run and not args.run.is_dir():
        sys.exit(f"error: --run is {args.run}; there is no such folder")
    found, folder = rungs(content, args.against), args.out or args.json.parent
    folder.mkdir(parents=True, exist_ok=True)
    table, picture = folder / f"{args.json.stem}.csv", folder / f"{args.json.stem}.png"
    with table.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({**rung, "player": label(rung["player"])} for rung in found)
    draw(found, args.against, picture)
    if args.run:
        log(found, picture, args.run)
    print(table.read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
