"""Play against a saved agent in the terminal: ``python -m rlgames.play checkpoint=runs/tictactoe/2026-01-31_12-00-00``.

Ends with status 0 after "quit" or the end of the input (Ctrl-D), with 130 after Ctrl-C.
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import hydra
from omegaconf import DictConfig, OmegaConf

from rlgames import cli
from rlgames.build import CONF, build, check
from rlgames.train import assemble

HELP = "a move, hint, undo, new, quit"
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


class Opponent:
    """The agent at the board.

    Args:
        player: as ``rlgames.train.assemble`` builds it.
        temperature: of the probabilities.
        greedy: whether it plays its best move, or draws one.
        seed: of the draws.

    Raises:
        ValueError: for a temperature that is not above 0.
    """

    def __init__(self, player: Any, temperature: float = 0.1, greedy: bool = True, seed: int = 0) -> None:
        import numpy as np

        if type(temperature) not in (int, float) or not 0 < temperature < float("inf"):
            raise ValueError(f"temperature is {temperature!r}; it must be a number above 0")
        self.player, self.temperature, self.greedy = player, float(temperature), greedy
        self.rng = np.random.default_rng(seed)

    def think(self, board: Any) -> Thoughts:
        """What it thinks of the moves on ``board``."""
        from rlgames.policy import boltzmann, greedy_move

        values = self.player.learner.move_values(self.player.agent, board)
        probabilities = boltzmann(values, self.temperature)
        best = int(self.player.agent.run(greedy_move, board)[0])
        return Thoughts(board.moves().tolist(), values.tolist(), probabilities.tolist(), best)

    def move(self, board: Any) -> int:
        """Its move on ``board``."""
        import numpy as np

        from rlgames.policy import draw_index

        thoughts = self.think(board)
        return thoughts.best if self.greedy else thoughts.moves[draw_index(np.array(thoughts.probabilities), self.rng)]


def picture(game: Any, board: Any, thoughts: Thoughts | None = None) -> str:
    """The board for people: stones, labels of the moves, and what the agent thinks of them."""
    notes = {}
    if thoughts:
        numbers = zip(thoughts.moves, thoughts.values, thoughts.probabilities, strict=True)
        notes = {move: f"{value:+.2f} {100 * p:3.0f}%" for move, value, p in numbers}
    inside = game.n_moves == game.n_cells  # else a move is a column
    rows = []
    for cells, stones in zip(game.grid.tolist(), game.cells(board).tolist(), strict=True):
        free = [f"{game.labels[cell]} {notes.get(cell, '')}" if inside else "." for cell in cells]
        rows.append([" XO"[stone] if stone else text for stone, text in zip(stones, free, strict=True)])
    if not inside:
        rows += [list(game.labels), [notes.get(move, "") for move in range(game.n_moves)] if notes else []]
    width = 2 + max(len(text) for row in rows for text in row)
    return "\n".join("".join(text.ljust(width) for text in row).rstrip() for row in rows if row)


class Table:
    """A person and the agent at a board; reads from stdin and prints.

    Args:
        game: the game.
        opponent: the agent.
        human: +1 or -1, the side of the person.
        show: whether the board shows what the agent thinks.
    """

    def __init__(self, game: Any, opponent: Opponent, human: int, show: bool = True) -> None:
        self.game, self.opponent, self.human, self.show = game, opponent, human, show
        self.boards = [game.board]

    def play(self) -> None:
        """Play until the person quits or the input ends."""
        while True:
            board = self.boards[-1]
            if not board.over() and board.player() != self.human:
                move = self.opponent.move(board)
                print(f"the agent plays {self.game.labels[move]}")
                self.boards.append(board.play(move))
                continue
            thoughts = self.opponent.think(board) if self.show and not board.over() else None
            print(f"\n{picture(self.game, board, thoughts)}\n")
            if board.over():
                print({self.human: "you win", 0: "a draw", -self.human: "the agent wins"}[board.winner()])
            word = ask(f"{'XO'[self.human < 0]}: ")
            while word is not None and not self._do(word):
                word = ask(f"{'XO'[self.human < 0]}: ")
            if word is None:
                return

    def _do(self, word: str) -> bool:
        """Do what ``word`` says; False, after an explanation, if the board has not changed."""
        board = self.boards[-1]
        if word == "new":
            self.boards = [self.game.board]
        elif word == "undo":
            return self._undo()
        elif board.over():
            print("the game is over; type undo, new or quit")
            return False
        elif word == "hint":
            best = self.opponent.think(board).best
            print(f"hint: {self.game.labels[best]}")
            return False
        else:
            return self._move(word)
        return True

    def _move(self, word: str) -> bool:
        board, labels = self.boards[-1], list(self.game.labels)
        free = sorted(board.moves().tolist())
        if word not in labels or labels.index(word) not in free:
            what = "no move" if word not in labels else "not free"
            print(f"{word[:20]!r} is {what}; moves are {' '.join(labels[move] for move in free)}; or type {HELP[8:]}")
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


def ask(prompt: str) -> str | None:
    """A word from the person, small letters; None for quit and at the end of the input."""
    try:
        word = input(prompt).strip().lower()
    except EOFError:
        print()
        return None
    return None if word in ("quit", "q", "exit") else word


def ask_side() -> int | None:
    """The side the person chooses; None to quit."""
    while True:
        word = ask("do you move first or second? ")
        if word is None or word in SIDES:
            return SIDES[word] if word else None
        print(f"{word[:20]!r} is no side; type first, second or quit")


def newest_run(cfg: DictConfig) -> Path:
    """The run folder of the game of ``cfg`` under runs/ that was written last.

    Raises:
        ValueError: if there is none.
    """
    if "game" not in cfg:
        raise ValueError("name checkpoint=..., or game=tictactoe or game=connect4 for the newest run of that game")
    game = build(cfg, "game").name
    files = sorted(Path("runs", game).glob("*/checkpoints/*.pt"), key=lambda file: file.stat().st_mtime)
    if not files:
        raise ValueError(f"there is no checkpoint under runs/{game}; train one: python -m rlgames.train game={game}")
    return files[-1].parents[1]


def play(cfg: DictConfig) -> None:
    """Let a person play against the agent of ``cfg.checkpoint``.

    Raises:
        ValueError: if the checkpoint cannot be read or the configuration makes no sense.
    """
    from rlgames import checkpoint

    check(cfg)
    if cfg.side not in (None, *SIDES):
        raise ValueError(f"side is {cfg.side!r}; it must be first or second")
    path = newest_run(cfg) if cfg.checkpoint is None else cfg.checkpoint
    saved = checkpoint.load(path)
    saved_cfg = OmegaConf.create(saved["config"])
    saved_cfg.update(engine=cfg.engine, device=cfg.device)
    player = assemble(saved_cfg, saved)
    if not hasattr(player.game, "grid"):
        raise ValueError(
            f"{player.game.name} is played in a chess program, with python -m rlgames.uci checkpoint={path}"
        )
    opponent = Opponent(player, cfg.temperature, cfg.greedy, cfg.seed)
    print(f"{player.game.name}: an agent of {saved['games']:,} games, {path}. Type {HELP}.")
    side = ask_side() if cfg.side is None else SIDES[cfg.side]
    if side is not None:
        Table(player.game, opponent, side, cfg.show).play()


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="play")
def main(cfg: DictConfig) -> None:
    """Play with the configuration of the command line."""
    try:
        play(cfg)
    except KeyboardInterrupt:
        print()
        raise
    except Exception as error:
        cli.report(error, "play")
        sys.exit(1)


if __name__ == "__main__":
    cli.run(main, "play")
