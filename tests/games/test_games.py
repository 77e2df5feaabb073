"""Rules of play: what every game promises, and tic-tac-toe counted whole."""

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest

from rlgames.build import CONF, build, load
from rlgames.games.tictactoe import LINES, TicTacToe
from tests.support import random_games

TICTACTOE = TicTacToe()
NAMES = sorted(file.stem for file in (CONF / "game").glob("*.yaml") if file.stem != "chess")  # has tests of its own


@pytest.fixture(scope="module", params=NAMES)
def game(request):
    return build(load(f"game={request.param}"), "game")


@pytest.fixture(scope="module")
def traces(game):
    return random_games(game, 2000)


@pytest.fixture(scope="module")
def lines(game, traces):
    """Some random games as lists of boards and of moves, replayed in Python."""
    moves = [[int(move) for move in row if move >= 0] for row in traces[0][:100]]
    return [(list(itertools.accumulate(m, lambda b, move: b.play(move), initial=game.board)), m) for m in moves]


def flat(game, board):
    """The stones in the order of cell numbers."""
    cells = np.empty(game.n_cells, np.int8)
    cells[game.grid] = game.cells(board)
    return cells


# ---- every game


def test_compiled_play_equals_python(game, lines, traces):
    _, legal, winner, over, codes = traces
    for k, (boards, _) in enumerate(lines):
        for ply, board in enumerate(boards):
            moves = legal[k, ply]
            assert board.ply == ply
            assert board.moves().tolist() == moves[moves >= 0].tolist()
            assert (board.winner(), board.over()) == (winner[k, ply], over[k, ply])
            assert [board.code(part) for part in range(game.n_parts)] == codes[k, ply].tolist()


def test_no_moves_exactly_when_the_game_is_over(lines):
    for boards, _ in lines:
        assert [len(board.moves()) == 0 for board in boards] == [board.over() for board in boards]
        assert [board.over() for board in boards] == [False] * (len(boards) - 1) + [True]


def test_players_alternate(lines):
    for boards, _ in lines:
        assert [(b.ply, b.player()) for b in boards] == [(ply, 1 - 2 * (ply % 2)) for ply in range(len(boards))]
        assert all(board.winner() == 0 for board in boards[:-1])
        assert boards[-1].winner() in (0, -boards[-1].player())


def test_play_leaves_its_argument_alone(lines):
    for boards, moves in lines:
        board, before = boards[-2], tuple(boards[-2])
        after = board.play(moves[-1])
        assert tuple(board) == before != tuple(after)
        assert board.play(moves[-1]) == after


def test_a_move_changes_one_part_only_and_previous_undoes_it(game, traces):
    played, *_, codes = traces
    seen = [set() for _ in range(game.n_parts)]
    for moves, rows in zip(played, codes, strict=True):
        for move, before, after in zip(moves[moves >= 0], rows, rows[1:], strict=False):
            assert (before != after).nonzero()[0].tolist() == [move]
            assert game.previous[after[move]] == before[move]
            seen[move] |= {int(before[move]), int(after[move])}
    possible = game.states(3).min(2) >= 0
    for codes_of_part, row in zip(seen, possible, strict=True):
        assert codes_of_part <= set(row.nonzero()[0].tolist())
        assert len(codes_of_part) > 0.7 * row.sum()  # no column with stones on a vertical line of four
    start = [game.board.code(part) for part in range(game.n_parts)]
    assert game.previous[start].tolist() == start


def test_a_move_adds_one_stone_of_the_player_to_move(game, lines):
    for boards, _ in lines[:20]:
        for before, after in itertools.pairwise(boards):
            changed = flat(game, before) != flat(game, after)
            assert changed.sum() == 1
            assert flat(game, after)[changed] == (1 if before.player() > 0 else 2)
            assert not flat(game, before)[changed].any()


def test_symmetries_form_a_group_and_keep_parts_together(game):
    symmetries = {tuple(s) for s in game.symmetries}
    assert game.symmetries[0] == tuple(range(game.n_cells))
    assert len(symmetries) == len(game.symmetries)
    assert {tuple(a[c] for c in b) for a in symmetries for b in symmetries} == symmetries
    size = game.n_cells // game.n_parts
    for s in symmetries:
        assert all(len({s[part * size + k] // size for k in range(size)}) == 1 for part in range(game.n_parts))


def test_symmetric_games_stay_symmetric(game, lines):
    """Image boards show in cell c what the board shows in cell s[c]; so a move into part s[p] becomes one into p."""
    size = game.n_cells // game.n_parts
    for s in game.symmetries:
        image_of = {s[part * size] // size: part for part in range(game.n_parts)}
        for boards, moves in lines[:10]:
            image = game.board
            for board, move in zip(boards, [*moves, None], strict=True):
                assert flat(game, image).tolist() == flat(game, board)[list(s)].tolist()
                assert image.winner() == board.winner()
                assert {image_of[m] for m in board.moves().tolist()} == set(image.moves().tolist())
                image = image if move is None else image.play(image_of[move])


def test_text_shows_stones_and_labels(game, lines):
    assert len(game.labels) == game.n_moves
    for boards, moves in lines[:5]:
        text = game.text(boards[-1])
        assert (text.count("X"), text.count("O")) == ((len(moves) + 1) // 2, len(moves) // 2)
        assert game.play("".join(game.labels[move] for move in moves)) == game.play(moves) == boards[-1]


def test_bad_moves_raise_and_change_nothing(game, lines):
    boards, moves = lines[0]
    with pytest.raises(ValueError, match=f"the game is over after {len(moves)} moves"):
        game.play([*moves, moves[-1]])
    for move in (-1, game.n_moves):
        with pytest.raises(ValueError, match=f"move {move} is not legal here; legal moves are 1 2 3"):
            game.play([move])
    with pytest.raises(ValueError, match=f"'x' is not a move of {game.name}; moves are 1 2 3"):
        game.play("x")
    assert game.play(moves[:3]) == boards[3]
    assert game.play([moves[2]], boards[2]) == boards[3]


def test_states_refuses_other_numbers(game):
    with pytest.raises(ValueError, match=r"features.states is 5"):
        game.states(5)


# ---- tic-tac-toe


def test_tictactoe_has_5478_positions_and_255168_games():
    seen, layer = set(), {TICTACTOE.board}
    while layer:
        seen |= layer
        layer = {board.play(int(move)) for board in layer for move in board.moves()}
    winners = [board.winner() for board in seen if board.over()]
    assert len(seen) == 5478
    assert len(seen) - len(winners) == 4520
    assert [winners.count(w) for w in (1, -1, 0)] == [626, 316, 16]

    @functools.cache
    def count(board):
        return 1 if board.over() else sum(count(board.play(int(move))) for move in board.moves())

    assert count(TICTACTOE.board) == 255_168


def test_random_tictactoe_ends_as_often_as_it_should():
    @functools.cache
    def chances(board):
        if board.over():
            return [Fraction(board.winner() == w) for w in (1, -1, 0)]
        after = [chances(board.play(int(move))) for move in board.moves()]
        return [sum(column) / len(after) for column in zip(*after, strict=True)]

    exact = [float(p) for p in chances(TICTACTOE.board)]
    assert exact == pytest.approx([0.5849, 0.2881, 0.1270], abs=5e-5)
    games = 100_000
    _, _, winner, over, _ = random_games(TICTACTOE, games, seed=3)
    ends = winner[over]
    assert len(ends) == games
    for w, p in zip((1, -1, 0), exact, strict=True):
        assert abs(np.mean(ends == w) - p) < 4 * (p * (1 - p) / games) ** 0.5


@pytest.mark.parametrize("line", LINES)
def test_tictactoe_lines_win_for_both(line):
    marks = sum(1 << cell for cell in line)
    board = type(TICTACTOE.board)
    assert (board(marks, 0, 5).winner(), board(0, marks, 6).winner()) == (1, -1)
    for cell in line:
        assert board(marks ^ 1 << cell, 1 << cell, 5).winner() == 0
