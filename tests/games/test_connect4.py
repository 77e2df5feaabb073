"""Connect-4: known counts, other programs, reported mistakes."""

import itertools

import numpy as np
import pytest

from rlgames.compiled import compile_function
from rlgames.games.connect4 import CELL_LINES, Board, Connect4, has_four
from rlgames.games.tictactoe import TicTacToe
from tests.support import random_games

CONNECT4 = Connect4()


def numbers(text):
    return [int(word) for word in text.split()]


WON_WITH_THE_LAST_STONE = numbers("4 6 0 2 6 5 1 2 5 2 3 4 1 1 4 0 3 5 5 6 2 4 3 0 1 3 1 5 0 1 3 0 2 6 2 4 3 0 4 6 6 5")
DRAWN = numbers("5 4 5 0 6 2 4 5 5 0 4 1 1 0 4 5 6 5 3 1 1 2 2 6 2 6 6 3 6 2 0 3 0 3 3 4 3 1 4 2 1 0")


def successors(first, second, ply):
    """All boards one ply later, and from which board they came."""
    boards, parents, count = np.empty((2, 7 * len(first)), np.int64), np.empty(7 * len(first), np.int64), 0
    for k in range(len(first)):
        board = Board(first[k], second[k], ply)
        for move in board.moves():
            after = board.play(move)
            boards[0, count], boards[1, count], parents[count] = after.first, after.second, k
            count += 1
    return boards[:, :count], parents[:count]


def test_known_numbers_of_positions_and_move_sequences():
    """John Tromp's position counts (OEIS A212693) and the numbers of move sequences."""
    boards, ways = np.zeros((2, 1), np.int64), np.ones(1, np.int64)
    positions, sequences = [1], [1]
    for ply in range(8):
        after, parents = compile_function(successors)(*np.ascontiguousarray(boards), ply)
        boards, place = np.unique(after, axis=1, return_inverse=True)
        ways = np.bincount(place.ravel(), ways[parents]).astype(np.int64)
        positions.append(boards.shape[1])
        sequences.append(int(ways.sum()))
    assert positions == [1, 7, 49, 238, 1120, 4263, 16422, 54859, 184275]
    assert sequences[:8] == [1, 7, 49, 343, 2401, 16807, 117649, 823536]


@pytest.fixture(scope="module")
def connect4_traces():
    """5,000 random games, some 107,000 positions."""
    return random_games(CONNECT4, 5000, seed=1)


def drawing(codes):
    """Rows from the top: ``.`` empty, ``x`` first, ``o`` second player, from the seven column codes."""
    columns = []
    for code in map(int, codes):
        height = code.bit_length() - 1
        columns.append("".join("ox"[code >> row & 1] for row in range(height)).ljust(6, "."))
    return ["".join(column[row] for column in columns) for row in reversed(range(6))]


def test_agrees_with_openspiel(connect4_traces):
    spiel = pytest.importorskip("pyspiel", reason="OpenSpiel comes with the extra rlgames[dev]")
    theirs, positions = spiel.load_game("connect_four"), 0
    for moves, legal, winner, over, codes in zip(*connect4_traces, strict=True):
        state = theirs.new_initial_state()
        for ply, move in enumerate([*moves[moves >= 0].tolist(), None]):
            ours = legal[ply][legal[ply] >= 0].tolist()
            assert (sorted(ours), bool(over[ply])) == (state.legal_actions(), state.is_terminal())
            assert state.returns() == [winner[ply], -winner[ply]]
            positions += 1
            if move is not None:
                state.apply_action(move)
        assert str(state).split() == drawing(codes[ply])
    assert positions > 100_000


def test_agrees_with_bitbully(connect4_traces):
    core = pytest.importorskip("bitbully.bitbully_core", reason="bitbully comes with the extra rlgames[solver]")
    positions = 0
    for moves, legal, winner, _, codes in zip(*connect4_traces, strict=True):
        board = core.BoardCore()
        for ply, move in enumerate([*moves[moves >= 0].tolist(), None]):
            won = board.hasWin()
            assert won == (winner[ply] != 0)
            assert won or sorted(legal[ply][legal[ply] >= 0].tolist()) == sorted(board.legalMoves(False, False))
            positions += 1
            assert move is None or board.play(move)
        columns = zip(*reversed(drawing(codes[ply])), strict=True)
        assert np.array(board.toArray()).tolist() == [[".xo".index(cell) for cell in column] for column in columns]
    assert positions > 100_000


def four_cell_lines():
    """Bits (7 * column + row) of the 69 lines."""
    lines = []
    for column, row, (right, up) in itertools.product(range(7), range(6), [(1, 0), (0, 1), (1, 1), (1, -1)]):
        cells = [(column + k * right, row + k * up) for k in range(4)]
        if all(0 <= c < 7 and 0 <= r < 6 for c, r in cells):
            lines.append([7 * c + r for c, r in cells])
    return lines


def test_all_69_lines_win_for_both_and_none_with_a_stone_replaced():
    lines = four_cell_lines()
    assert len(lines) == 69
    for line in lines:
        stones = sum(1 << bit for bit in line)
        assert Board(stones, 0, 7).winner() == 1
        assert Board(0, stones, 8).winner() == -1
        for bit in line:
            for other in (0, 1 << bit):  # nothing, or a stone of the other player
                assert Board(stones ^ 1 << bit, other, 7).winner() == 0
                assert Board(other, stones ^ 1 << bit, 8).winner() == 0


def fours(stones):
    """``has_four`` of many bitboards."""
    found = np.empty(len(stones), np.bool_)
    for k in range(len(stones)):
        found[k] = has_four(stones[k])
    return found


def test_win_test_equals_a_line_scan_on_random_bitboards():
    rng = np.random.default_rng(2)
    cells = np.array([1 << 7 * column + row for column in range(7) for row in range(6)])
    stones = ((rng.random((100_000, 42)) < 0.4) * cells).sum(1)
    masks = [sum(1 << bit for bit in line) for line in four_cell_lines()]
    wanted = np.any([stones & mask == mask for mask in masks], axis=0)
    assert 0.1 < wanted.mean() < 0.9
    np.testing.assert_array_equal(compile_function(fours)(stones), wanted)


def test_order_of_moves_is_by_lines_through_the_free_cell():
    through = np.zeros((7, 7), int)
    for line in four_cell_lines():
        for bit in line:
            through[bit // 7, bit % 7] += 1
    assert CELL_LINES.tolist() == through[:, :6].tolist()
    assert CONNECT4.board.moves().tolist() == [3, 2, 4, 1, 5, 0, 6]
    assert CONNECT4.play("44").moves().tolist() == [3, 2, 4, 1, 5, 0, 6]
    assert CONNECT4.play("4444").moves().tolist() == [3, 2, 4, 1, 5, 0, 6]
    assert CONNECT4.play("22233").moves().tolist() == [2, 1, 3, 4, 5, 0, 6]  # on 11, 8, 7, 5, 4, 3 and 3 lines


def test_a_win_with_the_last_stone_is_no_draw():
    boards = list(itertools.accumulate(WON_WITH_THE_LAST_STONE, Board.play, initial=CONNECT4.board))
    assert [board.winner() for board in boards] == [0] * 42 + [-1]
    assert CONNECT4.play(WON_WITH_THE_LAST_STONE).over()
    boards = list(itertools.accumulate(numbers("0 1 2 3 4 5 7 6 8"), lambda b, m: b.play(m), initial=TicTacToe().board))
    assert [board.winner() for board in boards] == [0] * 9 + [1]


def test_a_full_board_without_a_line_is_a_draw():
    board = CONNECT4.play(DRAWN)
    assert (board.ply, board.over(), board.winner(), board.moves().tolist()) == (42, True, 0, [])
    assert CONNECT4.text(board).count("X") == CONNECT4.text(board).count("O") == 21
    assert not any(board.legal(move) for move in range(7))


@pytest.mark.parametrize("text", ["0 0 1 1 2 2 4 4 5 5 6 6 3", "0 1 0 5 3 6 1 2 2 5 1 5 0 1 0"])
def test_seven_in_a_row_and_two_lines_at_once_are_one_win(text):
    board = CONNECT4.play(numbers(text))
    assert (board.winner(), board.over(), len(board.moves())) == (1, True, 0)
    assert CONNECT4.play(numbers(text)[:-1]).winner() == 0


def test_a_full_column_is_refused_and_its_neighbours_are_not():
    board = CONNECT4.play([3] * 6)
    with pytest.raises(ValueError, match="move 4 is not legal here; legal moves are 1 2 3 5 6 7"):
        CONNECT4.play([3], board)
    assert [board.legal(move) for move in range(7)] == [True, True, True, False, True, True, True]
    assert board == CONNECT4.play("444444")
    for move in (2, 4):
        assert CONNECT4.play([move], board).ply == 7


@pytest.mark.parametrize("n_states", [3, 4])
def test_connect4_states_are_those_of_the_article(n_states):
    board = CONNECT4.play("4435444")
    codes = [board.code(part) for part in range(7)]
    states = CONNECT4.states(n_states)[range(7), codes].reshape(7, 6)
    free = 3 if n_states == 4 else 0
    columns = [[], [], [1], [1, 2, 1, 2, 1], [2], [], []]
    assert states.tolist() == [([*column, free] + [0] * 6)[:6] for column in columns]
    assert CONNECT4.states(4)[3, CONNECT4.play("444444").code(3)].tolist() == [1, 2, 1, 2, 1, 2]
    assert (CONNECT4.states(n_states)[:, 0] == -1).all()


def test_mirror():
    board = CONNECT4.play("1122237")
    assert CONNECT4.mirror(board) == CONNECT4.play("7766651")
    assert CONNECT4.mirror(CONNECT4.mirror(board)) == board
    assert CONNECT4.text(CONNECT4.mirror(board)).split("\n")[-2] == "X . . . O X X"
