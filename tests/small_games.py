"""Games on the board of tic-tac-toe in which a move may also lose, or draw before the board is full."""

from typing import NamedTuple

import numpy as np

from rlgames.compiled import compilable, value
from rlgames.games.tictactoe import LINES, TicTacToe

ROWS, COLUMNS = LINES[:3], LINES[3:6]


@compilable
def holds(marks, lines):
    for a, b, c in lines:
        line = 1 << a | 1 << b | 1 << c
        if marks & line == line:
            return True
    return False


@compilable
def completed(board, lines):
    """Whether the player who moved last holds one of ``lines``."""
    return holds(board.first if board.ply & 1 else board.second, lines)


@compilable
def free_cells(board, moves):
    count = 0
    if not board.over():
        for cell in range(9):
            if not (board.first | board.second) >> cell & 1:
                moves[count] = cell
                count += 1
    return count


@value
class Misere(NamedTuple):
    """Who completes a line loses."""

    first: int = 0
    second: int = 0
    ply: int = 0

    def player(self):
        return 1 - 2 * (self.ply & 1)

    def winner(self):
        return self.player() if completed(self, LINES) else 0

    def over(self):
        return self.ply == 9 or completed(self, LINES)

    def moves(self):
        moves = np.empty(9, np.int64)
        return moves[: self.list_moves(moves)]

    def list_moves(self, moves):
        return free_cells(self, moves)

    def play(self, move):
        if self.ply & 1:
            return Misere(self.first, self.second | 1 << move, self.ply + 1)
        return Misere(self.first | 1 << move, self.second, self.ply + 1)

    def code(self, part):
        return (self.first >> part & 1) + 2 * (self.second >> part & 1)


@value
class EarlyDraw(NamedTuple):
    """A row or diagonal wins, a column ends the game in a draw."""

    first: int = 0
    second: int = 0
    ply: int = 0

    def player(self):
        return 1 - 2 * (self.ply & 1)

    def winner(self):
        won = completed(self, LINES) and not completed(self, COLUMNS)
        return -self.player() if won else 0

    def over(self):
        return self.ply == 9 or completed(self, LINES)

    def moves(self):
        moves = np.empty(9, np.int64)
        return moves[: self.list_moves(moves)]

    def list_moves(self, moves):
        return free_cells(self, moves)

    def play(self, move):
        if self.ply & 1:
            return EarlyDraw(self.first, self.second | 1 << move, self.ply + 1)
        return EarlyDraw(self.first | 1 << move, self.second, self.ply + 1)

    def code(self, part):
        return (self.first >> part & 1) + 2 * (self.second >> part & 1)


@value
class Either(NamedTuple):
    """Who completes a row loses, who completes another line wins: a move may make either side win."""

    first: int = 0
    second: int = 0
    ply: int = 0

    def player(self):
        return 1 - 2 * (self.ply & 1)

    def winner(self):
        if completed(self, ROWS):
            return self.player()
        return -self.player() if completed(self, LINES) else 0

    def over(self):
        return self.ply == 9 or completed(self, LINES)

    def moves(self):
        moves = np.empty(9, np.int64)
        return moves[: self.list_moves(moves)]

    def list_moves(self, moves):
        return free_cells(self, moves)

    def play(self, move):
        if self.ply & 1:
            return Either(self.first, self.second | 1 << move, self.ply + 1)
        return Either(self.first | 1 << move, self.second, self.ply + 1)

    def code(self, part):
        return (self.first >> part & 1) + 2 * (self.second >> part & 1)


class MisereGame(TicTacToe):
    name, board, boards = "misere", Misere(), None


class EarlyDrawGame(TicTacToe):
    name, board, boards = "early_draw", EarlyDraw(), None


class EitherGame(TicTacToe):
    name, board, boards = "either", Either(), None


GAMES = [MisereGame(), EarlyDrawGame(), EitherGame()]
