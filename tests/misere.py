"""Misère tic-tac-toe, as a user writes it: who completes a line loses."""

from typing import NamedTuple

import numpy as np

from rlgames import Game, value

LINES = (0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124)  # bit = cell


@value
class Board(NamedTuple):
    first: int = 0
    second: int = 0
    ply: int = 0

    def player(self):
        return 1 - 2 * (self.ply & 1)

    def winner(self):
        for line in LINES:
            if self.first & line == line or self.second & line == line:
                return self.player()
        return 0

    def over(self):
        return self.ply == 9 or self.winner() != 0

    def moves(self):
        moves = np.empty(9, np.int64)
        return moves[: self.list_moves(moves)]

    def list_moves(self, moves):
        count = 0
        for k in range(9):
            if not (self.over() or (self.first | self.second) >> k & 1):
                moves[count] = k
                count += 1
        return count

    def play(self, move):
        odd = self.ply & 1
        return Board(self.first | (1 - odd) << move, self.second | odd << move, self.ply + 1)

    def code(self, part):
        return (self.first >> part & 1) + 2 * (self.second >> part & 1)


class Misere(Game[Board]):
    name, labels, board = "misere", "123456789", Board()
    n_moves = n_parts = n_cells = 9
    n_codes, previous, grid = 3, np.array([0, 0, 0]), np.arange(9).reshape(3, 3)
    symmetries = tuple(tuple(map(int, np.rot90(s, k).ravel())) for s in (grid, grid.T) for k in range(4))

    def states(self, n_states):
        return np.broadcast_to(np.arange(3, dtype=np.int8).reshape(1, 3, 1), (9, 3, 1))

    def text(self, board):
        return "".join(self.labels[c] if not board.code(c) else " XO"[board.code(c)] for c in range(9))
