"""Players by name: random, minimax, perfect, or the trained agent of a run folder or checkpoint."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from omegaconf import DictConfig

from rlgames.build import CONF, did_you_mean
from rlgames.training.restore import Restored, restore
from rlgames.training.trust import read_config

if TYPE_CHECKING:
    from rlgames.games.game import Game, Rules
    from rlgames.players.player import Player

# torch, numpy and numba are imported only where they are needed, so --help answers at once.

NAMES = ("random", "minimax", "perfect")
START = "start"  # in chess: the engine before learning


def newest_run(game: str | None = None) -> Path:
    """The run folder under runs/ with the newest checkpoint.

    Args:
        game: only runs of this game, a file of conf/game or the path of a class; None: of any.

    Raises:
        ValueError: if there is none.
    """
    target = None if game is None else _target_of(CONF / "game" / f"{game}.yaml") or game
    files = sorted(Path("runs").glob("**/checkpoints/*.pt"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files:
        if target is None or _target_of(file.parents[1] / "config.yaml") == target:
            return file.parents[1]
    word = "" if game is None else f" game._target_={game}" if game == target else f" game={game}"
    raise ValueError(
        f"there is no checkpoint{f' of {game}' if game else ''} under runs/; train one: python -m rlgames.train{word}"
    )


def _target_of(file: Path) -> str | None:
    """The class of the game that a configuration names; it is not imported. None if there is none."""
    try:
        config = read_config(file)
        return str(config.get("game", config)["_target_"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _name_of(game: DictConfig) -> str:
    """The name of its file in conf/game, or else the path of its class."""
    files = (CONF / "game").glob("*.yaml")
    return next((file.stem for file in files if _target_of(file) == game._target_), str(game._target_))


def chosen_run(cfg: DictConfig) -> str:
    """``cfg.checkpoint``, or else the newest run, of the game in ``cfg`` if it names one.

    Raises:
        ValueError: if there is none.
    """
    if cfg.checkpoint is not None:
        return str(cfg.checkpoint)
    return str(newest_run(_name_of(cfg.game) if cfg.get("game") else None))


def player_named(name: str, game: "Game[Any]", depth: int = 8, key: str = "") -> "Player":
    """The player called ``name``: random, minimax (which looks ``depth`` plies ahead) or perfect.

    Args:
        name: of the player.
        game: the game.
        depth: of minimax.
        key: what the program writes before a player, such as "against=".

    Raises:
        ValueError: if there is no such player, or no perfect player of ``game``.
    """
    from rlgames.players import Minimax, RandomPlayer, perfect_of

    if name == "random":
        return RandomPlayer(game)
    if name == "minimax":
        return Minimax(game, depth)
    if name != "perfect":
        raise ValueError(
            f"{name!r} is not a player{did_you_mean(name, NAMES)}; players are {', '.join(NAMES)}, and run folders"
        )
    try:
        return perfect_of(game)
    except ValueError as error:
        raise ValueError(f"{error}; use {key}minimax instead") from error


class Seat(NamedTuple):
    """A participant in a match.

    Attributes:
        name: as requested.
        description: what it is.
        player: chooses the moves.
    """

    name: str
    description: str
    player: Any


def seats(
    names: list[str],
    game: "Rules[Any] | None" = None,
    depth: int = 8,
    engine: str | None = None,
    device: str = "cpu",
    nodes: int = 2000,
    lookahead: int | None = None,
    trust: Iterable[str] = (),
    key: str = "",
) -> "tuple[Rules[Any], list[Seat]]":
    """The game that the players ``names`` play, and the players.

    Args:
        names: any of ``NAMES``, ``start``, run folders or checkpoints.
        game: the game, if no checkpoint determines it.
        depth: search depth of minimax, in plies.
        engine: of agents; see ``restore``.
        device: of agents.
        nodes: search nodes of chess agents, per move.
        lookahead: plies that agents of other games look ahead; see ``restore``.
        trust: modules outside the package whose classes agents may name; see ``restore``.
        key: see ``player_named``.

    Raises:
        ValueError: for unknown players, agents of different games, or if nothing determines the game.
    """
    trained = [name for name in names if name not in (*NAMES, START)]
    agents = {name: restore(_existing(name), engine, device, lookahead, trust) for name in trained}
    games = {agent.parts.game.name: agent.parts.game for agent in agents.values()}
    if game is not None:
        games[game.name] = game
    if len(games) > 1:
        raise ValueError(f"all players must play the same game, but these play {' and '.join(games)}")
    if not games:
        raise ValueError("name the game, such as game=connect4, or an agent: runs/...")
    game = next(iter(games.values()))
    from rlgames.games.game import Game

    if not isinstance(game, Game):
        return game, [_engine(name, agents.get(name), nodes) for name in names]
    found = []
    for name in names:
        if name in agents:
            found.append(Seat(name, agents[name].description, agents[name].greedy()))
        else:
            one = player_named(name, game, depth, key)
            found.append(Seat(name, f"{depth} plies" if name == "minimax" else "", one))
    return game, found


def _engine(name: str, agent: Restored | None, nodes: int) -> Seat:
    from rlgames.chess.evaluation import start_values
    from rlgames.chess.search_agent import SearchAgent
    from rlgames.chess.searcher import Searcher

    if agent is not None:
        player = agent.parts.agent
        if not isinstance(player, SearchAgent):
            raise ValueError(f"{name!r} has no coefficients for a search; players of chess learn by learner=td_leaf")
        return Seat(name, agent.description, Searcher(player.coefficients(), nodes, name=name))
    if name != START:
        raise ValueError(f"{name!r} does not play chess; players of chess are {START}, run folders and checkpoints")
    return Seat(name, "material only", Searcher(start_values(), nodes, name=name))


def _existing(name: str) -> str:
    from rlgames.chess.uci_engine import command_of

    if command_of(name) is not None:
        raise ValueError(f"{name!r} is an engine of another program, which plays in python -m rlgames.match")
    if not Path(os.path.expanduser(name)).exists():
        near = did_you_mean(name, (*NAMES, START))
        players = f"{', '.join(NAMES)}, and run folders or checkpoints"
        raise ValueError(f"{name!r} is not a player{near}; players are {players}")
    return name
