"""Play against a saved agent in the terminal: ``python -m rlgames.play checkpoint=runs/tictactoe/2026-01-31_12-00-00``.

With ``against=random`` (minimax, perfect, another checkpoint) the agent plays a match that you watch.
Ends with status 0 after "quit" or the end of the input (Ctrl-D), with 130 after Ctrl-C.
"""

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import hydra
from omegaconf import DictConfig

from rlgames.build import CONF, check_numbers, ready, shown
from rlgames.console import cli
from rlgames.console.terminal import ask, colours, picture
from rlgames.lineup import chosen_run, seats
from rlgames.training.restore import restore
from rlgames.training.trust import trusted

if TYPE_CHECKING:
    from rlgames.games.game import Game, PartBoard, Rules
    from rlgames.lineup import Seat
    from rlgames.training.assemble import Parts

COMMANDS = {
    "hint": "the move that the agent would play",
    "perfect": "each move's result with perfect play",
    "values": "show or hide each move's value for you (-1 lost, +1 won) and how likely the agent would play it",
    "undo": "take back your last move",
    "swap": "change sides",
    "new": "start a new game",
    "help": "this list",
    "quit": "end",
}
SIDES = {"first": 1, "second": -1}


class Thoughts(NamedTuple):
    """What the agent thinks of the moves on a board, which is not over.

    Attributes:
        moves: the legal moves.
        values: of each, for the player to move.
        probabilities: of each, by the Boltzmann formula.
        best: the agent's choice.
    """

    moves: list[int]
    values: list[float]
    probabilities: list[float]
    best: int

    def notes(self) -> dict[int, str]:
        """Value and probability of each move as text."""
        numbers = zip(self.moves, self.values, self.probabilities, strict=True)
        return {move: f"{value:+.2f} {100 * p:.0f}%" for move, value, p in numbers}


class Opponent:
    """The agent at the board.

    Args:
        parts: as ``rlgames.training.assemble.assemble`` builds it.
        temperature: of the probabilities.
        greedy: whether it plays its best move, or draws one.
        seed: of the draws.
        lookahead: plies that it looks ahead.

    Raises:
        ValueError: for a temperature that is not above 0, or an agent that cannot look ahead.
    """

    def __init__(
        self,
        parts: "Parts",
        temperature: float = 0.1,
        greedy: bool = True,
        seed: int = 0,
        lookahead: int = 1,
    ) -> None:
        import numpy as np

        from rlgames.players import GreedyPlayer

        if type(temperature) not in (int, float) or not 0 < temperature < float("inf"):
            raise ValueError(f"temperature is {shown(temperature)}; it must be a number above 0")
        self.parts, self.temperature, self.greedy = parts, float(temperature), greedy
        self.lookahead = int(GreedyPlayer(parts.agent, lookahead).lookahead)  # or an error, before any question
        self.rng = np.random.default_rng(seed)

    def think(self, board: "PartBoard") -> Thoughts:
        """What it thinks of the moves on ``board``."""
        from rlgames.players import GreedyPlayer
        from rlgames.policy import boltzmann

        best = GreedyPlayer(self.parts.agent, self.lookahead).move(board, self.rng)
        values = self._values(board)
        probabilities = boltzmann(values, self.temperature)
        return Thoughts(board.moves().tolist(), values.tolist(), probabilities.tolist(), best)

    def _values(self, board: Any) -> Any:
        if self.lookahead == 1:
            return self.parts.agent.move_values(board)
        import numpy as np

        from rlgames.interrupts import flag
        from rlgames.search.lookahead import lookahead_values

        return self.parts.agent.run(lookahead_values, board, np.int64(self.lookahead), flag())

    def move(self, board: "PartBoard") -> int:
        """Its move on ``board``."""
        import numpy as np

        from rlgames.policy import draw_index

        thoughts = self.think(board)
        return thoughts.best if self.greedy else thoughts.moves[draw_index(np.array(thoughts.probabilities), self.rng)]


class Desk:
    """A person and the agent at a board; reads from stdin and prints.

    Args:
        game: the game.
        opponent: the agent.
        human: +1 or -1, the side of the person.
        show: whether the board shows what the agent thinks.

    Attributes:
        boards: the positions of the game so far.
    """

    def __init__(self, game: "Game[Any]", opponent: Opponent, human: int, show: bool = True) -> None:
        self.game, self.opponent, self.human, self.show = game, opponent, human, show
        self.boards = [game.board]

    def play(self) -> None:
        """Play until the person quits or the input ends."""
        while True:
            self._answer()
            self._draw()
            word = ask(self._prompt())
            while word is not None and not self._do(word):
                word = ask(self._prompt())
            if word is None:
                return

    def _answer(self) -> None:
        """Let the agent move if it is its turn."""
        board = self.boards[-1]
        if not board.over() and board.player() != self.human:
            move = self.opponent.move(board)
            print(f"the agent plays {self.game.labels[move]}")
            self.boards.append(board.play(move))

    def _draw(self) -> None:
        board = self.boards[-1]
        notes = self.opponent.think(board).notes() if self.show and not board.over() else None
        before = self.boards[max(0, len(self.boards) - 3)]
        print(f"\n{picture(self.game, board, notes, before, colours())}\n")
        if board.over():
            print({self.human: "you win", 0: "a draw", -self.human: "the agent wins"}[board.winner()])

    def _prompt(self) -> str:
        return f"{'XO'[self.human < 0]}: "

    def _do(self, word: str) -> bool:
        """Do what ``word`` says; False, after an answer, if there is nothing new to draw."""
        board = self.boards[-1]
        if word == "new":
            self.boards = [self.game.board]
        elif word == "undo":
            return self._undo()
        elif word == "swap":
            self.human = -self.human
        elif word == "values":
            self.show = not self.show
        elif word in ("help", "?"):
            print("\n".join(f"  {name:<8} {what}" for name, what in {"a move": self._moves(), **COMMANDS}.items()))
            return False
        elif board.over():
            print("the game is over; type undo, new or quit")
            return False
        elif word in ("hint", "perfect"):
            print(self._hint() if word == "hint" else perfect_hint(self.game, board))
            return False
        else:
            return self._move(word)
        return True

    def _hint(self) -> str:
        return f"hint: {self.game.labels[self.opponent.think(self.boards[-1]).best]}"

    def _moves(self) -> str:
        return " ".join(self.game.labels[move] for move in sorted(self.boards[-1].moves().tolist())) or "none left"

    def _move(self, word: str) -> bool:
        board, labels = self.boards[-1], list(self.game.labels)
        if word not in labels or labels.index(word) not in board.moves():
            what = "no move" if word not in labels else "not free"
            print(f"{word[:20]!r} is {what}; moves are {self._moves()}; or type {', '.join(COMMANDS)}")
            return False
        self.boards.append(board.play(labels.index(word)))
        return True

    def _undo(self) -> bool:
        """Take back to the person's last turn."""
        turns = [n for n, board in enumerate(self.boards[:-1]) if board.player() == self.human]
        if not turns:
            print("there is no move of yours to take back")
            return False
        del self.boards[turns[-1] + 1 :]
        return True


def perfect_hint(game: "Game[Any]", board: "PartBoard") -> str:
    """Which moves win, draw and lose by perfect play; or why they are unknown."""
    from rlgames.players import perfect_of

    try:
        solver = perfect_of(game)
    except ValueError as error:
        return str(error)
    results: dict[str, list[str]] = {"win": [], "draw": [], "lose": []}
    for move in sorted(board.moves().tolist()):
        after = board.play(move)
        value = after.winner() * board.player() if after.over() else -solver.solve(after).value
        results["win" if value > 0 else "lose" if value < 0 else "draw"].append(game.labels[move])
    return "perfect play: " + "; ".join(f"{name} {' '.join(moves)}" for name, moves in results.items() if moves)


def ask_side() -> int | None:
    """The side the person chooses; None to quit."""
    while True:
        word = ask("do you move first or second? ")
        if word is None:
            return None
        for side, name in enumerate(SIDES, start=1):
            if word and (name.startswith(word) or word == str(side)):
                return SIDES[name]
        print(f"{word[:20]!r} is not a side; type first, second or quit")


def watch(game: "Game[Any]", first: "Seat", second: "Seat", seed: int) -> None:
    """Show a match between two of ``rlgames.lineup.Seat``."""
    import numpy as np

    from rlgames.evaluation.matches import play_match

    board = game.board
    moves, _ = play_match(first.player, second.player, board, np.random.default_rng(seed))
    print(f"\n{picture(game, board, colour=colours())}")
    for move in moves:
        seat, before, board = first if board.player() > 0 else second, board, board.play(move)
        print(f"\n{seat.name} plays {game.labels[move]}\n{picture(game, board, None, before, colours())}")
    result = {1: f"{first.name} wins", 0: "a draw", -1: f"{second.name} wins"}[board.winner()]
    print(f"\n{result} after {board.ply} plies: {''.join(game.labels[move] for move in moves)}")


def cells_of(game: "Rules[Any]", path: str) -> "Game[Any]":
    """``game``, if this program can draw its board.

    Raises:
        ValueError: naming the game.
    """
    from rlgames.games.game import Game

    if not isinstance(game, Game):
        raise ValueError(f"{game.name} is played in a chess program, with python -m rlgames.uci checkpoint={path}")
    return game


def play(cfg: DictConfig) -> None:
    """Let a person, or the player ``cfg.against``, play against the agent of ``cfg.checkpoint``.

    Raises:
        ValueError: if the checkpoint cannot be read or the configuration is invalid.
    """
    cfg = ready(cfg)
    check_numbers(cfg, depth=1)
    for key in ("show", "greedy"):
        if type(cfg[key]) is not bool:
            raise ValueError(f"{key} is {shown(cfg[key])}; it must be true or false")
    if cfg.side not in (None, *SIDES):
        raise ValueError(f"side is {shown(cfg.side)}; it must be first or second")
    path = chosen_run(cfg)
    if cfg.against is not None:
        game, (one, other) = seats(
            [path, str(cfg.against)],
            None,
            cfg.depth,
            cfg.engine,
            cfg.device,
            lookahead=cfg.lookahead,
            trust=trusted(cfg),
            key="against=",
        )
        board_game = cells_of(game, path)
        print(f"{game.name}: {one.name} ({one.description}) against {other.name}")
        watch(board_game, *((one, other) if cfg.side != "second" else (other, one)), cfg.seed)
        return
    agent = restore(path, cfg.engine, cfg.device, cfg.lookahead, trusted(cfg))
    game = cells_of(agent.parts.game, path)
    opponent = Opponent(agent.parts, cfg.temperature, cfg.greedy, cfg.seed, agent.lookahead)
    print(f"{game.name}: an agent ({agent.description}), {path}. Type a move, or {', '.join(COMMANDS)}.")
    side = ask_side() if cfg.side is None else SIDES[cfg.side]
    if side is not None:
        Desk(game, opponent, side, cfg.show).play()


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="play")
def main(cfg: DictConfig) -> None:
    """Play with the configuration of the command line."""
    try:
        play(cfg)
    except Exception as error:
        cli.report(error, "play")
        sys.exit(1)


if __name__ == "__main__":
    cli.run(main, "play")
