"""The perfect player against known values, and the file of solved positions."""

import logging
import multiprocessing
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.players import Minimax, Perfect, perfect, perfect_or_minimax, solved
from rlgames.players.solved import APPLICATION, SolvedPositions, cache_folder
from rlgames.players.solver import _canonical, last_ply
from tests.support import DRAW, moves_of, random_boards

GAME, TTT = Connect4(), TicTacToe()


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    pytest.importorskip("bitbully", reason="the perfect player needs the extra rlgames[solver]")
    return Perfect(GAME, cache=str(tmp_path_factory.mktemp("solved")))


@pytest.fixture(autouse=True)
def _warnings_reach_caplog(caplog):
    caplog.set_level(logging.WARNING, logger=solved.log.name)


# ---- the perfect player: values


def test_scores_of_the_empty_board(player):
    assert player.solve(GAME.board) == (1, (3,))
    assert player.solver.scores(GAME.board) == {0: -2, 1: -1, 2: 0, 3: 1, 4: 0, 5: -1, 6: -2}


def test_scores_after_one_stone(player):
    assert [player.solve(GAME.board.play(move)).value for move in range(7)] == [2, 1, 0, -1, 0, 1, 2]


def test_scores_of_the_centre_stack(player):
    assert [player.solve(GAME.play([3] * n)).value for n in range(7)] == [1, -1, 1, -1, 1, -1, 1]
    assert set(player.solve(GAME.play([3] * 5)).moves) == set(range(7))


def test_known_positions(player):
    assert player.solve(moves_of("1 1 5 6 3 3 4 0 4 2 2 6")) == (7, (3,))
    value, moves = player.solve(moves_of("3 6 4 6 6 1 6 1 1 2 1 2"))
    assert value == 4
    assert set(moves) == {1, 2, 4, 6}


def test_best_moves_equal_the_scores_of_all_moves(player):
    rng = np.random.default_rng(1)
    for board in random_boards(GAME, 200, range(15, 42), rng) + random_boards(GAME, 20, [3, 7, 9, 11], rng):
        scores = player.solver.scores(board)
        value = max(scores.values())
        assert player.solve(board) == (value, tuple(m for m in scores if scores[m] == value)), GAME.text(board)


@pytest.mark.parametrize(
    ("score", "ply", "last"), [(18, 0, 7), (18, 1, 8), (-18, 0, 8), (1, 0, 41), (-1, 1, 41), (1, 1, 42)]
)
def test_last_ply(score, ply, last):
    assert last_ply(score, ply) == last


def test_last_ply_is_where_perfect_play_ends(player):
    distant, rng = player.playing("distant"), np.random.default_rng(2)
    for board in random_boards(GAME, 10, [16, 17, 18], rng):
        value, ply = player.solve(board).value, board.ply
        while not board.over():
            board = board.play(distant.move(board, rng))
        assert board.ply == (last_ply(value, ply) if value else 42)


# ---- the perfect player: choice of moves


def test_wins_and_draws_are_kept(player):
    assert player.candidates(GAME.board) == (3,)
    after = GAME.play("2")  # the second player's only winning reply in the second column
    assert player.candidates(after) == player.solve(after).moves
    assert player.solve(GAME.play("3")).value == 0
    assert player.candidates(GAME.play("3")) == player.solve(GAME.play("3")).moves


def test_lost_positions_are_played_at_random_or_distant(player):
    board = GAME.play("4")
    assert set(player.candidates(board)) == set(range(7))
    assert player.playing("distant").candidates(board) == (3,)
    seen = {player.move(board, np.random.default_rng(seed)) for seed in range(100)}
    assert seen == set(range(7))


@pytest.mark.parametrize(
    ("text", "plies", "random", "distant"),
    [
        ("61422", {1: 3, 2: 3, 3: 25, 4: 3, 5: 31, 6: 3, 7: 25}, "357", "5"),
        ("171441272", {1: 23, 2: 23, 3: 1, 4: 9, 5: 23, 6: 23, 7: 23}, "12567", "12567"),
        ("434752163", {1: 3, 2: 9, 3: 3, 4: 3, 5: 9, 6: 3, 7: 3}, "25", "25"),  # every loss is quick
    ],
)
def test_no_quick_loss_at_random(player, text, plies, random, distant):
    board = GAME.play(text)
    scores = player.solver.scores(board)
    assert {move + 1: last_ply(scores[move], board.ply) - board.ply - 1 for move in scores} == plies
    assert sorted(player.candidates(board)) == GAME.parse(random)
    assert sorted(player.playing("distant").candidates(board)) == GAME.parse(distant)


def test_after_ten_stones_both_modes_are_the_same(player):
    distant, rng = player.playing("distant"), np.random.default_rng(3)
    boards = [b for b in random_boards(GAME, 60, [11, 17], rng) if player.solve(b).value < 0]
    assert boards
    for board in boards:
        assert player.candidates(board) == distant.candidates(board) == player.solve(board).moves


def test_bad_words(player):
    with pytest.raises(ValueError, match="plays connect4 only, not tictactoe"):
        Perfect(TTT)
    with pytest.raises(ValueError, match="'fast'; allowed are random and distant"):
        player.playing("fast")
    with pytest.raises(ValueError, match=r"opponent.depth is 0; it must be at least 1"):
        Minimax(GAME, 0)


def test_a_finished_game_has_no_perfect_move(player):
    with pytest.raises(ValueError, match="the game is over after 42 moves"):
        player.move(moves_of(DRAW), np.random.default_rng(0))


# ---- solved positions


def test_mirrored_positions_have_mirrored_answers(player):
    for board in random_boards(GAME, 300, range(16, 25), np.random.default_rng(4)):
        value, moves = player.solve(board)
        mirrored = GAME.mirror(board)
        assert _canonical(board)[0] == _canonical(mirrored)[0]
        fresh = player.solver._search(mirrored)
        assert player.solve(mirrored) == fresh == (value, fresh.moves)
        assert {6 - move for move in fresh.moves} == set(moves)


def test_keys_tell_positions_and_sides_apart():
    boards = set(random_boards(GAME, 3000, range(12), np.random.default_rng(5)))
    assert len({_canonical(b)[0] for b in boards}) == len({min(b, GAME.mirror(b)) for b in boards})


def test_a_second_process_reads_what_the_first_found(player, monkeypatch):
    board = GAME.play("12345671234567")
    found = player.solve(board)
    player.solver._kept.flush()
    again = Perfect(GAME, cache=str(player.solver._kept.file.parent))
    monkeypatch.setattr(again.solver, "_search", lambda board: pytest.fail("solved again"))
    assert again.solve(board) == found
    assert {6 - m for m in again.solve(GAME.mirror(board)).moves} == set(found.moves)


def test_a_wrong_row_is_not_believed(player, tmp_path):
    board = GAME.play("12345671234567")
    other = Perfect(GAME, cache=str(tmp_path))
    other.solver._kept.put(_canonical(board)[0], 3, 0)  # no best move
    assert other.solve(board) == player.solve(board)


@pytest.mark.parametrize("column", ["value", "moves", "checksum", "position"])
def test_a_changed_number_is_not_believed(tmp_path, caplog, column):
    file = tmp_path / "s.sqlite"
    store = SolvedPositions(file, "s")
    store.put(7, 5, 1)
    store.flush()
    with sqlite3.connect(file) as connection:
        connection.execute(f"UPDATE solved SET {column} = {column} + 2")
    store = SolvedPositions(file, "s")
    assert store.get(9 if column == "position" else 7) is None
    assert store.get(1) is None
    assert len(caplog.records) == 1
    assert "set aside as s.damaged" in caplog.text
    SolvedPositions(file, "s").put(7, 5, 1)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("seed", range(3))
def test_no_flipped_bit_gives_a_wrong_answer(tmp_path, seed):
    file, rng = tmp_path / "s.sqlite", np.random.default_rng(seed)
    store, right = SolvedPositions(file, "s"), {int(key): (int(key) % 18, 1) for key in rng.integers(2**49, size=60)}
    for key, found in right.items():
        store.put(key, *found)
    store.flush()
    content = file.read_bytes()
    for bit in rng.choice(8 * len(content), 150, replace=False):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        store = SolvedPositions(file, "s")
        assert all(store.get(key) in (None, found) for key, found in right.items()), bit


def test_answers_of_another_solver_are_not_given(tmp_path):
    first, second = (SolvedPositions(tmp_path / "s.sqlite", name) for name in ("a 1", "a 2"))
    first.put(7, 1, 1)
    first.flush()
    assert first.get(7) == (1, 1)
    assert second.get(7) is None


def damage_garbage(file):
    file.write_bytes(b"no database at all " * 200)


def damage_tail(file):
    store = SolvedPositions(file, "s")
    for key in range(3000):
        store.put(key, 1, 1)
    store.flush()
    file.write_bytes(file.read_bytes()[:4096] + b"x" * 30_000)


def damage_foreign(file):
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE solved (recipe TEXT)")


@pytest.mark.parametrize("damage", [damage_garbage, damage_tail, damage_foreign])
def test_a_damaged_file_is_set_aside(damage, tmp_path, caplog):
    file = tmp_path / "my folder" / "s.sqlite"
    file.parent.mkdir()
    damage(file)
    content = file.read_bytes()
    store = SolvedPositions(file, "s")
    for key in range(250):
        assert store.get(key) is None
        store.put(key, 1, 1)
    store.flush()
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "set aside as s.damaged" in caplog.text
    assert file.with_suffix(".damaged").read_bytes() == content
    SolvedPositions(file, "s").put(1, 2, 3)  # the next one starts anew
    assert len(caplog.records) == 1


def test_a_read_only_file_is_read(tmp_path, caplog):
    file = tmp_path / "s.sqlite"
    writer = SolvedPositions(file, "s")
    writer.put(1, 2, 3)
    writer.flush()
    store = SolvedPositions(file, "s")
    store.get(1)
    store._connection.execute("PRAGMA query_only = ON")  # file modes do not stop an administrator
    for key in range(2, 400):
        store.put(key, 1, 1)
    store.flush()
    assert store.get(1) == (2, 3)
    assert len(caplog.records) == 1
    assert "readonly" in caplog.text


def test_a_folder_that_cannot_be_made(tmp_path, caplog, player):
    (tmp_path / "file").write_text("in the way")
    other = Perfect(GAME, cache=str(tmp_path / "file"))
    for board in random_boards(GAME, 5, [18], np.random.default_rng(6)):
        assert other.solve(board) == player.solve(board)
    assert len(caplog.records) == 1
    assert "solved positions are not kept" in caplog.text


def fill(file, first, barrier):
    store = SolvedPositions(file, "s")
    barrier.wait()
    for key in range(first, first + 2000):
        store.put(key, key % 18, 1)
        assert store.get(key) == (key % 18, 1)
    store.flush()
    assert store._writes


def test_processes_write_at_once(tmp_path):
    context = multiprocessing.get_context()
    barrier = context.Barrier(2)
    workers = [context.Process(target=fill, args=(tmp_path / "s.sqlite", first, barrier)) for first in (0, 1000)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    store = SolvedPositions(tmp_path / "s.sqlite", "s")
    assert all(store.get(key) == (key % 18, 1) for key in range(3000))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_has_a_connection_of_its_own(tmp_path):
    file = tmp_path / "s.sqlite"
    store = SolvedPositions(file, "s")
    store.put(1, 1, 1)
    store.flush()
    store.put(2, 2, 2)  # not written yet: the parent's to write

    def work():
        before = store._connection
        assert store.get(1) == (1, 1)
        assert store._connection is not before
        assert store.get(2) is None
        store.put(3, 3, 3)
        store.flush()

    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0
    store.flush()
    assert [store.get(key) for key in (1, 2, 3)] == [(1, 1), (2, 2), (3, 3)]
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_where_the_file_lies(monkeypatch):
    monkeypatch.delenv("RLGAMES_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/rlgames")
    monkeypatch.setenv("RLGAMES_CACHE", "/elsewhere")
    assert cache_folder() == Path("/elsewhere")
    assert cache_folder("/here") == Path("/here")


# ---- without the library


def test_without_the_library_minimax_plays(monkeypatch, caplog):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("rlgames.players.solver.import_module", missing)
    perfect._notice.cache_clear()
    players = [perfect_or_minimax(GAME, depth=4) for _ in range(3)]
    assert all(isinstance(p, Minimax) and p.depth == 4 for p in players)
    assert len(caplog.records) == 1
    assert 'pip install "rlgames[solver]"' in caplog.text
