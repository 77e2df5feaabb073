"""Every player against every other: ``python -m rlgames.tournament runs/connect4/A random minimax perfect``."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import hydra
from omegaconf import DictConfig, ListConfig

from rlgames.build import CONF, build, check_numbers, ready, shown
from rlgames.console import cli
from rlgames.lineup import NAMES, Seat, seats
from rlgames.training.trust import trusted

# torch, numpy and numba are imported only where they are needed, so --help answers at once.


# Takes two players and a random generator; yields results of the first one, and a key that distinguishes games.
Meeting = Callable[[Any, Any, Any], Iterator[tuple[int, tuple[Any, ...]]]]


class Standing(NamedTuple):
    """Result of a tournament.

    Attributes:
        names, descriptions: of the players, the strongest first.
        ratings: their ``rlgames.evaluation.ratings.Rating``.
        wins: of player i against player j, ``[n][n]``.
        games: number of games between them, ``[n][n]``.
        distinct: how many of these are different, ``[n][n]``; equal games count once in the ratings' intervals.
    """

    names: list[str]
    descriptions: list[str]
    ratings: list[Any]
    wins: list[list[int]]
    games: list[list[int]]
    distinct: list[list[int]]

    def points(self, i: int, j: int) -> float:
        """Points of player i against player j: a win 1, a draw 1/2."""
        return self.wins[i][j] + (self.games[i][j] - self.wins[i][j] - self.wins[j][i]) / 2


def opening(board: Any, plies: int, rng: Any) -> Any:
    """A board after ``plies`` random moves that do not end the game."""
    from rlgames.players.player import draw_lots

    while True:
        start = board
        for _ in range(plies):
            if start.over():
                break
            start = start.play(draw_lots(start.moves().tolist(), rng))
        if not start.over():
            return start


def tournament(
    game: Any,
    players: list[Seat],
    matches: int,
    plies: int,
    rng: Any,
    report: Callable[[str], None] = lambda text: None,
) -> Standing:
    """Let every player play every other.

    Each opening is played twice, with sides swapped, so no player profits from a good one.

    Args:
        game: the game.
        players: at least two.
        matches: number per pair of players, even.
        plies: length of the random openings.
        rng: source of all randomness.
        report: called with each result in words.
    """
    import numpy as np

    from rlgames.evaluation.ratings import ratings

    n, meet = len(players), _engines(plies) if _think(players) else _boards(game.board, plies)
    wins = np.zeros((n, n), np.int64)
    games, distinct = wins.copy(), wins.copy()
    for i, j in combinations(range(n), 2):
        seen = set()
        for _ in range(matches // 2):
            for result, played in meet(players[i].player, players[j].player, rng):
                wins[i, j] += result > 0
                wins[j, i] += result < 0
                games[i, j] = games[j, i] = games[i, j] + 1
                seen.add(played)
        distinct[i, j] = distinct[j, i] = len(seen)
        won, lost = wins[i, j], wins[j, i]
        text = f"{players[i].name} - {players[j].name}: {won} won, {games[i, j] - won - lost} drawn, {lost} lost"
        report(text + (f" in {len(seen)} different games" if len(seen) < games[i, j] else ""))
    new = distinct / np.maximum(games, 1)  # the share of games that add information
    found = ratings(new * (wins + (games - wins - wins.T) / 2), distinct.astype(np.float64))
    order = sorted(range(n), key=lambda k: -found[k].elo)
    names, descriptions, _ = zip(*(players[k] for k in order), strict=True)
    tables = (table[np.ix_(order, order)].tolist() for table in (wins, games, distinct))
    return Standing(list(names), list(descriptions), [found[k] for k in order], *tables)


def _boards(board: Any, plies: int) -> Meeting:
    """Two matches from a random opening, with sides swapped."""
    from rlgames.evaluation.matches import play_match

    def meet(first: Any, second: Any, rng: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
        start = opening(board, plies, rng)
        for side, players in ((1, (first, second)), (-1, (second, first))):
            moves, end = play_match(*players, start, rng)
            yield side * end.winner(), (side, start, *moves)

    return meet


def _think(players: list[Seat]) -> bool:
    from rlgames.chess.contest import Engine

    return all(isinstance(seat.player, Engine) for seat in players)


def _engines(plies: int) -> Meeting:
    """The same between chess engines, whose games are adjudicated."""
    from rlgames.chess.contest import Adjudication
    from rlgames.chess.openings import Openings
    from rlgames.chess.pairs import play_pair

    openings, rules = Openings(random_plies=plies), Adjudication()

    def meet(first: Any, second: Any, rng: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
        pair = play_pair(first, second, openings, rules, first.score, rng)
        for side, record in zip((1, -1), pair.records, strict=True):
            if record is not None:
                yield side * record.winner, (side, *record.course.moves)

    return meet


def table(standing: Standing) -> str:
    """The result as text, with points in percent."""
    n = len(standing.names)
    lines = [f"      Elo  95 % interval  {''.join(f'{k + 1:>6}' for k in range(n))}  player"]
    for i, (name, what, rating) in enumerate(zip(*standing[:3], strict=True)):
        shares = ("" if i == j else f"{100 * standing.points(i, j) / standing.games[i][j]:.0f} %" for j in range(n))
        interval = f"[{rating.low:+.0f}, {rating.high:+.0f}]"
        points = "".join(f"{share:>6}" for share in shares)
        lines.append(f"{i + 1:>2}  {rating.elo:+5.0f}  {interval:<15}{points}  {name}{f' ({what})' if what else ''}")
    lines.append("Elo relative to the mean; in percent the points against the player of that number")
    games, distinct = (sum(map(sum, counts)) // 2 for counts in (standing.games, standing.distinct))
    if distinct < games:
        lines.append(f"{distinct} of {games} games are different; equal games count once in the intervals")
    return "\n".join(lines)


def run(cfg: DictConfig) -> Standing:
    """Play the tournament of ``cfg`` and print its table.

    Raises:
        ValueError: if the configuration is invalid.
        OSError: if the file ``cfg.json`` cannot be written.
    """
    import numpy as np

    from rlgames.training.files import write_atomically

    cfg = ready(cfg)
    if not isinstance(cfg.players, ListConfig):
        raise ValueError(f"players is {shown(cfg.players)}; it must be a list, such as players=[random,minimax]")
    names = [str(name) for name in cfg.players]
    if len(names) < 2:
        raise ValueError(
            f"a tournament needs two players or more: {', '.join(NAMES)}, and run folders such as runs/..."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"a player is named twice: {', '.join(sorted({n for n in names if names.count(n) > 1}))}")
    check_numbers(cfg, matches=2, depth=1, nodes=1)
    if cfg.matches % 2:
        raise ValueError(f"matches is {cfg.matches}; it must be even, since each opening is played with both sides")
    game = build(cfg, "game") if cfg.get("game") else None
    game, players = seats(names, game, cfg.depth, cfg.engine, cfg.device, cfg.nodes, cfg.lookahead, trusted(cfg))
    from rlgames.games.game import Game

    usual, below = (2, game.n_cells // 2) if isinstance(game, Game) else (8, 64)  # in chess
    plies = usual if cfg.opening is None else cfg.opening
    if type(plies) is not int or not 0 <= plies < below:
        raise ValueError(f"opening is {shown(plies)}; it must be a whole number below {below}")
    print(f"{game.name}: {cfg.matches} matches of each two of {len(players)} players", flush=True)
    standing = tournament(
        game, players, cfg.matches, plies, np.random.default_rng(cfg.seed), lambda text: print(text, flush=True)
    )
    print(table(standing))
    if cfg.json is not None:
        content = {**standing._asdict(), "ratings": [rating._asdict() for rating in standing.ratings]}
        write_atomically(Path(os.path.expanduser(str(cfg.json))), (json.dumps(content, indent=2) + "\n").encode())
    return standing


def named_players(words: list[str]) -> list[str]:
    """``words`` with those that have no "=" collected into one: ``players=[...]``."""
    players = [word for word in words if "=" not in word and not word.startswith(("-", "~"))]
    quoted = ",".join(f'"{word}"' for word in players)
    rest = [word for word in words if word not in players]
    return [*rest, f"players=[{quoted}]"] if players else words


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="tournament")
def main(cfg: DictConfig) -> None:
    """Play the tournament that the command line describes."""
    try:
        run(cfg)
    except Exception as error:
        cli.report(error, "tournament")
        sys.exit(1)


if __name__ == "__main__":
    sys.argv[1:] = named_players(sys.argv[1:])
    cli.run(main, "tournament")
