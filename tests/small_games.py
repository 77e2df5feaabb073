"""Games on the board of tic-tac-toe in which a move may also lose, or draw before the board is full."""

from typing import NamedTuple

from rlgames.compiled import compilable, value
from rlgames.games import tictactoe
from rlgames.games.tictactoe import LINES, TicTacToe

ROWS, COLUMNS = LINES[:3], LINES[3:6]


@compilable
def completed(board, lines):
    """Whether the player who moved last holds one of ``lines``."""
    marks = board.first if board.ply & 1 else board.second
    for a, b, c in lines:
        line = 1 << a | 1 << b | 1 << c
        if marks & line == line:
            return True
    return False


def over(self):
    return self.ply == 9 or completed(self, LINES)


@value
class Misere(NamedTuple):
    """Who completes a line loses."""

    first: int = 0
    second: int = 0
    ply: int = 0

    def winner(self):
        return self.player() if completed(self, LINES) else 0

    def play(self, move):
        if self.ply & 1:
            return Misere(self.first, self.second | 1 << move, self.ply + 1)
        return Misere(self.first | 1 << move, self.second, self.ply + 1)

    over, player, code = over, tictactoe.Board.player, tictactoe.Board.code
    moves, list_moves = tictactoe.Board.moves, tictactoe.Board.list_moves


@value
class EarlyDraw(NamedTuple):
    """A row or diagonal wins, a column ends the game in a draw."""

    first: int = 0
    second: int = 0
    ply: int = 0

    def winner(self):
        won = completed(self, LINES) and not completed(self, COLUMNS)
        return -self.player() if won else 0

    def play(self, move):
        if self.ply & 1:
            return EarlyDraw(self.first, self.second | 1 << move, self.ply + 1)
        return EarlyDraw(self.first | 1 << move, self.second, self.ply + 1)

    over, player, code = over, tictactoe.Board.player, tictactoe.Board.code
    moves, list_moves = tictactoe.Board.moves, tictactoe.Board.list_moves


@value
class Either(NamedTuple):
    """Who completes a row loses, who completes another line wins: a move may make either side win."""

    first: int = 0
    second: int = 0
    ply: int = 0

    def winner(self):
        if completed(self, ROWS):
            return self.player()
        return -self.player() if completed(self, LINES) else 0

    def play(self, move):
        if self.ply & 1:
            return Either(self.first, self.second | 1 << move, self.ply + 1)
        return Either(self.first | 1 << move, self.second, self.ply + 1)

    over, player, code = over, tictactoe.Board.player, tictactoe.Board.code
    moves, list_moves = tictactoe.Board.moves, tictactoe.Board.list_moves


class MisereGame(TicTacToe):
    name, board, boards = "misere", Misere(), None


# Those that leave rows rows: here rows and columns differ.
UPRIGHT = tuple(
    s for s in TicTacToe.symmetries if {frozenset(s[c] for c in row) for row in ROWS} == set(map(frozenset, ROWS))
)


class EarlyDrawGame(TicTacToe):
    name, board, boards, symmetries = "early_draw", EarlyDraw(), None, UPRIGHT


class EitherGame(TicTacToe):
    name, board, boards, symmetries = "either", Either(), None, UPRIGHT


GAMES = [MisereGame(), EarlyDrawGame(), EitherGame()]
