"""Rules of play: known counts, other programs, reported mistakes, and what every game promises."""

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest

from rlgames.build import CONF, build, load
from rlgames.compiled import compile_function
from rlgames.games.connect4 import CELL_LINES, Board, Connect4, has_four
from rlgames.games.tictactoe import LINES, TicTacToe

CONNECT4, TICTACTOE = Connect4(), TicTacToe()
NAMES = sorted(file.stem for file in (CONF / "game").glob("*.yaml") if file.stem != "chess")  # has tests of its own


def numbers(text):
    return [int(word) for word in text.split()]


WON_WITH_THE_LAST_STONE = numbers("4 6 0 2 6 5 1 2 5 2 3 4 1 1 4 0 3 5 5 6 2 4 3 0 1 3 1 5 0 1 3 0 2 6 2 4 3 0 4 6 6 5")
DRAWN = numbers("5 4 5 0 6 2 4 5 5 0 4 1 1 0 4 5 6 5 3 1 1 2 2 6 2 6 6 3 6 2 0 3 0 3 3 4 3 1 4 2 1 0")


# ---- random games, played in compiled code


def trace(board, games, rng, n_moves, n_parts):
    """Random games: the moves, and for every position the legal moves in order, the winner, whether over, the codes."""
    plies = n_moves if n_moves == 9 else 42
    played = np.full((games, plies), -1, np.int8)
    legal = np.full((games, plies + 1, n_moves), -1, np.int8)
    winner = np.zeros((games, plies + 1), np.int8)
    over = np.zeros((games, plies + 1), np.bool_)
    codes = np.zeros((games, plies + 1, n_parts), np.int16)
    for game in range(games):
        b = board
        while True:
            moves = b.moves()
            legal[game, b.ply, : len(moves)] = moves
            winner[game, b.ply], over[game, b.ply] = b.winner(), b.over()
            for part in range(n_parts):
                codes[game, b.ply, part] = b.code(part)
            if b.over():
                break
            move = moves[int(rng.random() * len(moves))]
            played[game, b.ply] = move
            b = b.play(move)
    return played, legal, winner, over, codes


def random_games(game, count, seed=0):
    rng = np.random.default_rng(seed)
    return compile_function(trace)(game.board, count, rng, game.n_moves, game.n_parts)


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
    with pytest.raises(ValueError, match=f"'x' is no move of {game.name}; moves are 1 2 3"):
        game.play("x")
    assert game.play(moves[:3]) == boards[3]
    assert game.play([moves[2]], boards[2]) == boards[3]


def test_states_refuses_other_numbers(game):
    with pytest.raises(ValueError, match=r"features.states is 5"):
        game.states(5)


# ---- Connect-4


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
    boards = list(itertools.accumulate(numbers("0 1 2 3 4 5 7 6 8"), lambda b, m: b.play(m), initial=TICTACTOE.board))
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
