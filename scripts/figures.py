"""Figures and tables of a study, from its results file alone.

    python scripts/figures.py results/connect4_table.csv
    python scripts/figures.py results/connect4_lr.csv --over optimizer.lr

Writes to docs/results, named after the file: learning curves, a box plot of the games to 80 %, and a table with the
published values; with ``--over`` the sensitivity to that number. The published values were read off the figures of
Thill (2015) and are kept in docs/results/published.csv.
"""

import argparse
import csv
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from scipy import stats

from rlgames.training.study import ASYMPTOTIC, Results

mpl.use("Agg")
from matplotlib import pyplot as plt

DOCS = Path(__file__).parents[1] / "docs" / "results"
NEVER = 1e15  # games; replaces infinity where infinities would be subtracted
Floats = npt.NDArray[np.float64]


class Published(NamedTuple):
    """Quartiles of the games to 80 %, and the mean learning curve (games and success)."""

    quartiles: tuple[float, float, float]
    curve: Floats


class Variant(NamedTuple):
    """The finished runs of one variant: games to 80 % and 90 % (infinite: never), asymptotic success, curves.

    ``first_80`` is the first evaluation at 80 %, without the smoothing of ``to_80``.
    """

    to_80: Floats
    first_80: Floats
    to_90: Floats
    asymptotic: Floats
    speed: float
    games: Floats
    success: Floats
    failed: int


def points(text: str) -> Floats:
    """``[n, 2]`` from "games:success games:success"."""
    return np.array([[float(number) for number in point.split(":")] for point in text.split()]).reshape(-1, 2)


def published() -> dict[str, Published]:
    with (DOCS / "published.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        row["optimizer"]: Published((float(row["q1"]), float(row["median"]), float(row["q3"])), points(row["curve"]))
        for row in rows
    }


def variants(path: str) -> dict[str, Variant]:
    """The runs of the results file, grouped by the words that distinguish them."""
    groups = defaultdict(list)
    for row in Results(path).rows():
        groups[tuple(row["words"].split())].append(row)
    common = set.intersection(*map(set, groups)) if len(groups) > 1 else set()
    return {" ".join(word for word in key if word not in common): _variant(rows) for key, rows in groups.items()}


def _variant(rows: list[dict[str, str]]) -> Variant:
    done = [row for row in rows if row["status"] == "finished"]

    def numbers(name: str) -> Floats:
        return np.array([float(row[name] or "inf") for row in done])

    curves = [points(row["curve"]) for row in done]
    length = min(map(len, curves), default=0)
    seconds = sum(float(row["train_cpu_seconds"]) for row in done)
    return Variant(
        to_80=numbers("games_to_80"),
        first_80=np.array([min(curve[curve[:, 1] >= 0.8, 0], default=np.inf) for curve in curves]),
        to_90=numbers("games_to_90"),
        asymptotic=numbers("asymptotic"),
        speed=sum(float(row["games"]) for row in done) / seconds if seconds else np.nan,
        games=curves[0][:length, 0] if done else np.empty(0),
        success=np.array([curve[:length, 1] for curve in curves]),
        failed=len(rows) - len(done),
    )


def quartiles(values: Floats) -> Floats:
    """Lower quartile, median and upper quartile; infinite where it involves a run that never got there."""
    found = np.quantile(np.minimum(values, NEVER), [0.25, 0.5, 0.75])
    return np.where(found < NEVER / 100, found, np.inf)


def interval(values: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Bootstrap 95 % interval of the median."""
    if len(values) < 2 or np.isinf(values).any() or len(set(values)) == 1:
        return np.nan, np.nan
    found = stats.bootstrap((values,), np.median, rng=rng, method="percentile").confidence_interval
    return float(found.low), float(found.high)


def label(words: str) -> str:
    """What distinguishes a variant, for people to read."""
    words = " ".join(word.removeprefix("optimizer=").removeprefix("learner.") for word in words.split())
    return words or "as configured"


# ---- the table


def thousands(number: float) -> str:
    return "-" if np.isnan(number) else "never" if np.isinf(number) else f"{number / 1000:,.0f}"


def mark(median: float, box: tuple[float, float, float]) -> str:
    return "below" if median < box[0] else "above" if median > box[2] else "inside"


def table(found: dict[str, Variant]) -> str:
    """Markdown, in thousands of games. Final success: the mean over the last 200,000, with the published mean."""
    known, rng = published(), np.random.default_rng(0)
    lines = [
        "| variant | runs | median games to 80 % [95 %] | quartiles | published quartiles | median is"
        " | without smoothing | that is | to 90 % | success at the end | published | games per CPU-second |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for words, v in found.items():
        if not len(v.to_80):
            lines.append(f"| {label(words)} | 0, {v.failed} failed |" + " |" * 10)
            continue
        low, middle, high = quartiles(v.to_80)
        bounds = " to ".join(thousands(number) for number in interval(v.to_80, rng))
        theirs = known.get(words.removeprefix("optimizer="))
        box = " / ".join(thousands(number) for number in theirs.quartiles) if theirs else ""
        first = float(quartiles(v.first_80)[1])
        last = v.games[-1] - ASYMPTOTIC / 2
        cells = [
            label(words),
            f"{len(v.to_80)}" + (f", {v.failed} failed" if v.failed else ""),
            f"{thousands(middle)} [{bounds}]",
            f"{thousands(low)} / {thousands(middle)} / {thousands(high)}",
            box,
            mark(middle, theirs.quartiles) if theirs else "",
            thousands(first),
            mark(first, theirs.quartiles) if theirs else "",
            thousands(float(quartiles(v.to_90)[1])),
            f"{np.median(v.asymptotic):.3f}",
            f"{np.interp(last, *theirs.curve.T):.3f}" if theirs else "",
            f"{v.speed:,.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# ---- figures


def draw_curves(found: dict[str, Variant], axes: Any) -> None:
    """Median and quartiles of the success rate, smoothed by a running median of 3; published means dotted."""
    known = published()
    colours = mpl.color_sequences["tab20"]  # alternately dark and light
    axes.set_prop_cycle(color=[*colours[::2], *colours[1::2]])
    for words, v in found.items():
        if not v.success.size:
            continue
        padded = np.pad(v.success, ((0, 0), (1, 1)), mode="edge")
        smooth = np.median([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]], axis=0)
        low, middle, high = np.quantile(smooth, [0.25, 0.5, 0.75], axis=0)
        (line,) = axes.plot(v.games, middle, label=label(words))
        axes.fill_between(v.games, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        theirs = known.get(words.removeprefix("optimizer="))
        if theirs:
            shown = theirs.curve[theirs.curve[:, 0] <= v.games[-1]]
            axes.plot(*shown.T, ":", color=line.get_color(), linewidth=1)
    axes.axhline(0.8, color="gray", linewidth=0.5)
    axes.set(xlabel="games", ylabel="success rate against perfect play", ylim=(0, 1))
    axes.legend(fontsize="small", ncols=2)


def draw_boxes(found: dict[str, Variant], axes: Any) -> None:
    """Games to 80 % of every run, over the published box from quartile to quartile."""
    known = published()
    shown = [(words, v) for words, v in found.items() if len(v.to_80)]
    for place, (words, v) in enumerate(shown):
        theirs = known.get(words.removeprefix("optimizer="))
        if theirs:
            low, middle, high = theirs.quartiles
            axes.bar(place, high - low, 0.7, low, color="lightgray")
            axes.hlines(middle, place - 0.35, place + 0.35, color="gray")
        reached = v.to_80[np.isfinite(v.to_80)]
        axes.plot([place] * len(reached), reached, "k.", alpha=0.5)
        if np.isfinite(quartiles(v.to_80)[1]):
            axes.plot(place, quartiles(v.to_80)[1], "r_", markersize=14, markeredgewidth=2)
    axes.set_xticks(range(len(shown)), [label(words) for words, _ in shown], rotation=60, ha="right")
    axes.set(ylabel="games to 80 % (red: median; gray: published)", ylim=(0, None))


def draw_sensitivity(found: dict[str, Variant], over: str, axes: Any) -> None:
    """Median games to 80 % over the number ``over``; runs that never got there count as their length."""
    lines = defaultdict(list)
    for words, v in found.items():
        numbers = [word for word in words.split() if word.startswith(f"{over}=")]
        if numbers and len(v.to_80):
            rest = " ".join(word for word in words.split() if word not in numbers)
            never = np.minimum(v.to_80, v.games[-1])
            lines[rest].append((float(numbers[0].partition("=")[2]), float(np.median(never))))
    for rest, values in lines.items():
        axes.semilogx(*np.array(sorted(values)).T, ".-", label=label(rest))
    axes.set(xlabel=over, ylabel="median games to 80 %", ylim=(0, None))
    axes.legend(fontsize="small")


def draw_transfer(axes: Any) -> None:
    """The transfer functions g of temporal coherence (Bagheri et al. 2015, figure 2)."""
    x, beta = np.linspace(0, 1, 200), 2.7
    axes.plot(x, x, label="TCL: g(x) = x")
    axes.plot(x, np.exp(beta * (x - 1)), label="TCL-EXP: exp(2.7 (x - 1))")
    axes.plot(x, np.maximum(beta * x + 1 - beta, np.exp(-beta)), label="TCL-PL")
    axes.set(xlabel="x = |N| / A", ylabel="g(x)", xlim=(0, 1), ylim=(0, 1))
    axes.legend()


def save(path: Path, draw: Any, *args: Any) -> None:
    figure, axes = plt.subplots(figsize=(10, 5.5), layout="constrained")
    draw(*args, axes)
    figure.savefig(path, dpi=100)
    plt.close(figure)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="csv file of a study")
    parser.add_argument("--over", help="draw the sensitivity to this number, such as optimizer.lr")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder (default docs/results)")
    args = parser.parse_args()
    try:
        found = variants(args.results)
    except ValueError as error:
        sys.exit(f"error: {error}")
    if not found:
        sys.exit(f"error: {args.results} does not exist or holds no runs")
    args.out.mkdir(parents=True, exist_ok=True)
    name = Path(args.results).stem
    if args.over:
        save(args.out / f"{name}_sensitivity.png", draw_sensitivity, found, args.over)
        return
    save(args.out / f"{name}_curves.png", draw_curves, found)
    save(args.out / f"{name}_boxes.png", draw_boxes, found)
    save(args.out / "transfer_functions.png", draw_transfer)
    (args.out / f"{name}.md").write_text(table(found), encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
