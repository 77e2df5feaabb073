"""N-tuples against the plain definition, compact rows against plain rows, and words that make no sense."""

import itertools

import numpy as np
import pytest

from rlgames.features.ntuples import NTuples, random_walks, read_tuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from tests.support import DATA

CONNECT4, TICTACTOE = Connect4(), TicTacToe()
PUBLISHED = DATA / "connect4_tuples_70x8.txt"
FEATURES = {
    "connect4": (CONNECT4, {"count": 12, "length": 5}),
    "connect4-3-states": (CONNECT4, {"count": 8, "length": 4, "states": 3}),
    "connect4-unsorted": (CONNECT4, {"tuples": [[40, 3, 17, 22], [0], [24, 18, 21]]}),
    "connect4-not-symmetric": (CONNECT4, {"count": 8, "length": 4, "symmetric": False}),
    "connect4-one-table": (CONNECT4, {"count": 8, "length": 4, "table_per_player": False}),
    "tictactoe": (TICTACTOE, {"tuples": [[2, 1, 0], [0, 4, 8], [3, 4, 5], list(range(9))], "states": 3}),
}


@pytest.fixture(scope="module", params=FEATURES)
def case(request):
    """Game, constructor's words, features."""
    game, words = FEATURES[request.param]
    return game, words, NTuples(game, **words)


def random_boards(game, count=40, seed=0):
    """All positions of some random games, as lists."""
    rng, games = np.random.default_rng(seed), []
    for _ in range(count):
        games.append([game.board])
        while not games[-1][-1].over():
            games[-1].append(games[-1][-1].play(int(rng.choice(games[-1][-1].moves()))))
    return games


def cell_states(game, board, n_states):
    """States by cell number: the stones people see, and in Connect-4 the lowest empty cell of each column."""
    states = np.empty(game.n_cells, int)
    states[game.grid] = game.cells(board)
    if n_states == 4:
        for column in states.reshape(7, 6):
            empty = (column == 0).nonzero()[0]
            column[empty[:1]] = 3
    return states


def plain_indices(game, board, tuples, states=4, symmetric=True, table_per_player=True):
    """k = sum_j s[a_j] P^j for every tuple in every symmetric image, tables one after the other."""
    s = cell_states(game, board, states)
    begins = np.cumsum([0, *(states ** len(cells) for cells in tuples)])
    indices = []
    for permutation in game.symmetries if symmetric else game.symmetries[:1]:
        for begin, cells in zip(begins, tuples, strict=False):
            indices.append(begin + sum(s[permutation[a]] * states**j for j, a in enumerate(cells)))
    return np.array(indices) + (begins[-1] if table_per_player and board.player() < 0 else 0)


def test_indices_are_those_of_the_definition(case):
    game, words, features = case
    words = {k: v for k, v in words.items() if k not in ("count", "length", "tuples")}
    for board in itertools.chain(*random_boards(game)):
        indices = features.indices(board)
        assert indices.tolist() == plain_indices(game, board, features.tuples, **words).tolist()
        assert 0 <= indices.min() <= indices.max() < features.size


def test_sizes(case):
    game, words, features = case
    images = len(game.symmetries) if words.get("symmetric", True) else 1
    rows = sum(words.get("states", 4) ** len(cells) for cells in features.tuples)
    assert features.n_features == images * len(features.tuples)
    assert features.size == rows * (2 if words.get("table_per_player", True) else 1)
    assert len(features.rows) == len(set(features.rows.tolist())), "every compact row is a row of its own"


def test_compact_rows_are_the_same_rows(case):
    game, _, features = case
    compact, rows = features.compact, np.zeros(features.n_features, np.int32)
    for board in itertools.chain(*random_boards(game, 10)):
        compact.active(board, rows)
        assert 0 <= rows.min() <= rows.max() < compact.table_size
        first = compact.second if board.player() < 0 else 0
        assert features.rows[first + rows].tolist() == features.indices(board).tolist()


def test_steps_lead_from_board_to_board(case):
    game, _, features = case
    before, after = np.zeros((2, features.n_features), np.int32)
    for boards in random_boards(game, 10, seed=1):
        for board in boards[:-1]:
            features.compact.active(board, before)
            for move in board.moves().tolist():
                features.compact.active(board.play(move), after)
                assert (before + features.compact.step(board, move)).tolist() == after.tolist()


def test_tables_of_the_players(case):
    _, words, features = case
    table = np.arange(len(features.rows))
    first, second = (features.compact.tables(table, player) for player in (1, -1))
    assert len(first) == len(second) == features.compact.table_size
    assert first[0] == 0
    assert second[0] == (len(table) // 2 if words.get("table_per_player", True) else 0)


def test_every_stone_changes_the_indices_and_old_boards_keep_theirs(case):
    game, _, features = case
    whole = NTuples(game, [[cell] for cell in range(game.n_cells)], states=3)
    for boards in random_boards(game, 5, seed=2):
        indices = [features.indices(board) for board in boards]
        assert all((a != b).any() for a, b in itertools.pairwise(map(whole.indices, boards)))
        assert [features.indices(board).tolist() for board in boards] == [row.tolist() for row in indices]


def test_mirrored_boards_read_the_same_rows():
    features = NTuples(CONNECT4, count=12, length=5)
    for board in itertools.chain(*random_boards(CONNECT4, 20)):
        assert sorted(features.indices(board)) == sorted(features.indices(CONNECT4.mirror(board)))
    empty = features.indices(CONNECT4.board)
    assert empty[:12].tolist() == empty[12:].tolist(), "each row stands twice: x = 2"


def test_all_images_of_tictactoe_read_the_same_rows():
    features = NTuples(TICTACTOE, [[0, 1, 2], [0, 4, 8]], states=3)
    board = TICTACTOE.play([0, 4, 1])
    for s in TICTACTOE.symmetries:
        image = TICTACTOE.play([s.index(move) for move in (0, 4, 1)])
        assert sorted(features.indices(image)) == sorted(features.indices(board))


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published tuples are not here")
def test_published_tuples_have_381593_realisable_rows():
    features = NTuples(CONNECT4, str(PUBLISHED))
    assert (len(features.tuples), features.n_features, features.size) == (70, 140, 9_175_040)
    assert features.tuples[0] == [0, 6, 7, 12, 13, 14, 19, 21]
    assert features.compact.table_size == 381_593
    assert len(features.rows) == len(np.unique(features.rows)) == 763_186


# ---- tuples from a file


def test_files(tmp_path):
    file = tmp_path / "my tuples.txt"
    file.write_text("# mine\n0 1 2  # edge\n\n3,4, 5\r\n8\n")
    assert read_tuples(str(file)) == [[0, 1, 2], [3, 4, 5], [8]]
    assert NTuples(TICTACTOE, str(file), states=3).tuples == [[0, 1, 2], [3, 4, 5], [8]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n2 x\n", r"t.txt, line 2: '2 x' is not a list of cell numbers"),
        ("0 -1\n", r"t.txt, line 1: '0 -1' is not a list"),
        ("0 1.5\n", r"t.txt, line 1: '0 1.5' is not a list"),
        ("\0\1PK\n", r"t.txt, line 1: .* is not a list"),
        ("# nothing\n", r"t.txt contains no tuples"),
        ("0 42\n", r"tuple \[0, 42\] leaves the board; cells are 0 to 41"),
    ],
)
def test_bad_files(tmp_path, text, message):
    (tmp_path / "t.txt").write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        NTuples(CONNECT4, str(tmp_path / "t.txt"))
    assert str(error.value).startswith("features.tuples")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_files_that_cannot_be_read(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"features.tuples: no such file /"):
        read_tuples(name)


# ---- words that make no sense


@pytest.mark.parametrize(
    ("game", "words", "message"),
    [
        (CONNECT4, {"tuples": [[0, 42]]}, r"features.tuples: tuple \[0, 42\] leaves the board; cells are 0 to 41"),
        (CONNECT4, {"tuples": [[0, 1], [-1, 5]]}, r"tuple \[-1, 5\] leaves the board"),
        (TICTACTOE, {"tuples": [[9]], "states": 3}, r"tuple \[9\] leaves the board; cells are 0 to 8"),
        (CONNECT4, {"tuples": [[3, 4, 3]]}, r"features.tuples: tuple \[3, 4, 3\] names a cell twice"),
        (CONNECT4, {"tuples": []}, r"features.tuples is empty; at least one tuple is needed"),
        (CONNECT4, {"tuples": [[]]}, r"features.tuples has a tuple without cells"),
        (CONNECT4, {"tuples": [list(range(20))]}, r"\(20 cells, 1,099,511,627,776 rows\) need 8,192.0 GiB"),
        (CONNECT4, {"length": 42, "count": 1}, r"features"),
        (CONNECT4, {"length": 20}, r"\(20 cells, 1,099,511,627,776 rows\) need .* GiB"),
        (CONNECT4, {"length": 43}, r"features.length is 43; a tuple has 1 to 42 cells"),
        (CONNECT4, {"length": 0}, r"features.length is 0; a tuple has 1 to 42 cells"),
        (CONNECT4, {"count": 0}, r"features.count is 0; at least 1 tuple is needed"),
        (CONNECT4, {"count": 43, "length": 1}, r"features.count is 43, but only 42 different walks of 1 cells"),
        (TICTACTOE, {"length": 10, "states": 3}, r"features.length is 10; a tuple has 1 to 9 cells"),
        (TICTACTOE, {"tuples": [[0]]}, r"features.states is 4; tic-tac-toe cells have 3 states"),
        (CONNECT4, {"tuples": [[0]], "states": 2}, r"features.states is 2; Connect-4 cells have 3 or 4 states"),
    ],
)
def test_bad_words(game, words, message):
    with pytest.raises(ValueError, match=message) as error:
        NTuples(game, **words)
    assert "\n" not in str(error.value)


# ---- random walks


def connected(cells, grid):
    """Whether the cells hang together over the eight neighbours."""
    places = {tuple(np.argwhere(grid == cell)[0]) for cell in cells}
    reached, edge = set(), {next(iter(places))}
    while edge:
        reached |= edge
        edge = {(r + i, c + j) for r, c in edge for i in (-1, 0, 1) for j in (-1, 0, 1)} & places - reached
    return reached == places


@pytest.mark.parametrize(("game", "count", "length"), [(CONNECT4, 70, 8), (CONNECT4, 42, 1), (TICTACTOE, 5, 7)])
def test_random_walks(game, count, length):
    walks = random_walks(game.grid, count, length, np.random.default_rng(3))
    assert len(walks) == len(set(map(tuple, walks))) == count
    for walk in walks:
        assert walk == sorted(set(walk))
        assert len(walk) == length
        assert set(walk) <= set(range(game.n_cells))
        assert connected(walk, game.grid)
    assert walks == random_walks(game.grid, count, length, np.random.default_rng(3))
    assert walks != random_walks(game.grid, count, length, np.random.default_rng(4))


def test_walks_follow_the_seed():
    first, again, other = (NTuples(CONNECT4, count=9, length=4, seed=seed) for seed in (1, 1, 2))
    assert first.tuples == again.tuples != other.tuples


def test_random_walks_start_and_turn_everywhere():
    walks = random_walks(CONNECT4.grid, 131, 2, np.random.default_rng(5))  # all pairs of neighbours there are
    assert len(walks) == 36 + 35 + 2 * 30
