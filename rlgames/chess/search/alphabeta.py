"""Alpha-beta search with iterative deepening; its value is the evaluation at the end of its best line.

Principal variation search: the first move gets the full window, the others a null window and the full one only
if they prove better. The hash table never cuts off positions in the full window, so the principal variation reaches
the quiet position whose evaluation is the value of the root: the leaf of TD-Leaf.

Scores in compiled code are for the side to move, in 1 / ``PAWN`` pawns; mate in n plies is MATE - n.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlgames.chess.board import Board, checkers, drawn, generate, legal_moves, pass_move, play, sides
from rlgames.chess.evaluation import PAWN, Coefficients, interpolate, pawn_sum, phase, piece_sum
from rlgames.chess.pieces import views
from rlgames.chess.search.memory import (
    MOST_KEYS,
    MOST_PLIES,
    PAWN_ENTRIES,
    State,
    entry_bound,
    entry_depth,
    entry_move,
    entry_score,
    store,
)
from rlgames.chess.search.ordering import MOST_HISTORY, choices, order, pick, rank_of, remember_quiet
from rlgames.chess.search.tree import board_of, note
from rlgames.compiled import compilable, compile_function
from rlgames.search.bounds import EXACT, LOWER, UPPER

MATE, INFINITE = 1 << 30, 1 << 31
MOST_SCORE = 1 << 29  # evaluations are clipped here (1365 pawns)
WINDOW = PAWN // 3  # half the width of the first aspiration window
MATE_SCORE = MATE - MOST_PLIES  # scores above are mates


class Found(NamedTuple):
    """What a search found.

    Attributes:
        move: the best move.
        score: of the position for the side to move, in 1 / ``PAWN`` pawns.
        leaf: the last position of the principal variation.
        is_evaluation: whether the score is the evaluation of ``leaf`` (for the side to move at the root), not
            a mate or a draw.
        nodes: positions searched.
        depth: of the last iteration that gave an answer.
    """

    move: int
    score: int
    leaf: Board
    is_evaluation: bool
    nodes: int
    depth: int


@compile_function
def static(s: Any, b: Board) -> int:
    """The evaluation for the side to move; sums over pawns are cached."""
    v, w = views(b)
    c = Coefficients(s.packed)
    white, black = v.pawns & v.own, v.pawns & v.their
    place = (white * 0x1E3779B97F4A7C15 + black * 0x12F51AFD7ED558CD >> 40) & (PAWN_ENTRIES - 1)
    if s.pawns[place, 0] != white or s.pawns[place, 1] != black:
        pawns, passed_white, passed_black = pawn_sum(c, c, v, w)
        s.pawns[place, 0], s.pawns[place, 1], s.pawns[place, 2] = white, black, pawns
        s.pawns[place, 3], s.pawns[place, 4] = passed_white, passed_black
    total = piece_sum(c, c, v, w, s.pawns[place, 3], s.pawns[place, 4]) + s.pawns[place, 2]
    score = min(max(interpolate(total, phase(b)), -MOST_SCORE), MOST_SCORE)
    return -score if b.ply & 1 else score  # type: ignore[no-any-return]


@compilable
def repeated(s: Any, b: Board, ply: int) -> bool:
    """Whether ``b`` occurred before: once since the root, or twice in the game before it.

    A side that can repeat once can repeat twice; moves before the root do not prove that it can.
    """
    here, count = s.root + ply, 0
    for k in range(here - 4, max(here - b.clock, 0) - 1, -2):
        if s.keys[k] == b.key:
            count += 1
            if k >= s.root or count > 1:
                return True
    return False


@compilable
def end_line(s: Any, ply: int, judged: int, score: int) -> int:
    """``score``, with the principal variation ending at ``ply``; in an evaluation if ``judged`` is 1."""
    s.length[ply], s.judged[ply] = 0, judged
    return score


@compilable
def extend_line(s: Any, ply: int, move: int) -> None:
    """The principal variation at ``ply`` is ``move`` and what follows it."""
    n = s.length[ply + 1]
    s.line[ply, 0] = move
    for k in range(n):
        s.line[ply, k + 1] = s.line[ply + 1, k]
    s.length[ply], s.judged[ply] = n + 1, s.judged[ply + 1]


@compilable
def must_stop(s: Any) -> bool:
    """Whether the search must unwind; never before there is an answer."""
    if (s.stop and s.best_depth > 0) or s.nodes >= s.node_limit:
        s.aborted = 1
    return s.aborted != 0  # type: ignore[no-any-return]


@compile_function
def quiescence(s: Any, b: Board, checks: int, ply: int, alpha: int, beta: int) -> int:
    """The score after promotions and captures that lose no material; in check, after all moves."""
    s.nodes += 1
    if drawn(b):
        return end_line(s, ply, 0, 0)
    check = checks != 0
    best = -MATE + ply if check and ply < MOST_PLIES - 1 else static(s, b)
    end_line(s, ply, 0 if check else 1, best)
    if ply == MOST_PLIES - 1 or (best >= beta and not check) or must_stop(s):
        return best
    alpha = max(alpha, best)
    n = generate(b, checks, s.moves[ply], not check)
    order(s, b, ply, n, 0)
    for k in range(n):
        picked = pick(s, b, ply, k, n)
        if not check and rank_of(picked) < 0:
            break
        move = picked & 0x7FFF
        after = play(b, move)
        score = -quiescence(s, after, checkers(after), ply + 1, -beta, -alpha)
        if s.aborted:
            break
        if score > best:
            best = score
            if score > alpha:
                alpha = score
                extend_line(s, ply, move)
            if score >= beta:
                break
    return best


@compile_function
def negamax(s: Any, table: npt.NDArray[np.int64], b: Board, depth: int, ply: int, alpha: int, beta: int) -> int:
    """The score after ``depth`` half-moves, exact between ``alpha`` and ``beta``, else a bound."""
    checks = checkers(b)
    check = checks != 0
    depth += check
    if ply > 0 and repeated(s, b, ply):
        s.nodes += 1
        return end_line(s, ply, 0, 0)
    if depth <= 0 or ply == MOST_PLIES - 1:
        return quiescence(s, b, checks, ply, alpha, beta)  # type: ignore[no-any-return]
    s.nodes += 1
    end_line(s, ply, 0, 0)
    if must_stop(s) or (ply > 0 and drawn(b)):
        return 0
    here = b.key ^ (s.n_roots if ply == 0 else 0)  # results for a subset of moves are kept apart
    key, found = table[here & (len(table) - 1), 0], table[here & (len(table) - 1), 1]
    hint = entry_move(found) if key == here else 0
    if key == here and beta - alpha == 1 and known(s, found, depth, ply, alpha, beta):
        return from_table(entry_score(found), ply)
    if may_pass(s, b, check, depth, ply, beta - alpha) and static(s, b) >= beta:
        s.passed[ply], s.keys[s.root + ply] = 1, b.key
        score = -negamax(s, table, pass_move(b), depth - 3 - depth // 6, ply + 1, -beta, 1 - beta)
        s.passed[ply] = 0
        if score >= beta and abs(score) < MATE_SCORE:
            return end_line(s, ply, 0, beta)
    n = choices(s, b, checks, ply)
    if n == 0:
        return -MATE + ply if check else 0
    order(s, b, ply, n, hint)
    s.keys[s.root + ply] = b.key
    best, best_move, lowest = -INFINITE, 0, alpha
    for k in range(n):
        picked = pick(s, b, ply, k, n)
        move = picked & 0x7FFF
        after = play(b, move)
        if k > 0:
            less = reduction(s, after, depth, k, check, rank_of(picked))
            score = -negamax(s, table, after, depth - 1 - less, ply + 1, -alpha - 1, -alpha)
            if less and score > alpha:
                score = -negamax(s, table, after, depth - 1, ply + 1, -alpha - 1, -alpha)
        if k == 0 or (alpha < score < beta and beta - alpha > 1):
            score = -negamax(s, table, after, depth - 1, ply + 1, -beta, -alpha)
        if s.aborted:
            return 0
        if score > best:
            best, best_move = score, move
            if score > alpha:
                alpha = score
                extend_line(s, ply, move)
                if ply == 0 and score < beta:
                    keep_line(s, score, depth - check)
            if score >= beta:
                if (b.white | b.black) >> (move >> 6 & 63) & 1 == 0 and move >> 12 == 0:
                    remember_quiet(s, b, ply, depth, move)
                break
    bound = LOWER if best >= beta else EXACT if best > lowest else UPPER
    store(table, here, s.age, best_move, depth, bound, to_table(best, ply))
    if s.noting:
        note(s, b, depth, bound, best)
    return best


@compilable
def may_pass(s: Any, b: Board, check: bool, depth: int, ply: int, width: int) -> bool:
    """Whether to try if the position is good enough even after a null move; not where zugzwang is likely."""
    own, _ = sides(b)
    quiet = not check and width == 1 and s.passed[ply - 1] == 0
    return s.selective != 0 and depth >= 3 and ply > 0 and quiet and own & ~(b.pawns | b.kings) != 0


@compilable
def reduction(s: Any, after: Board, depth: int, k: int, check: bool, rank: int) -> int:
    """How much less deeply to search move number ``k`` at first: late quiet moves that give no check."""
    if not s.selective or check or depth < 3 or k < 4 or rank > MOST_HISTORY or checkers(after):
        return 0
    return 1 + (k > 12 and depth > 4)


@compilable
def known(s: Any, entry: int, depth: int, ply: int, alpha: int, beta: int) -> bool:
    """Whether the hash table decides if the score lies above ``alpha`` or below ``beta``."""
    if s.table_use == 0 or entry_depth(entry) < depth or (s.table_use == 1 and entry_depth(entry) > depth):
        return False
    score, bound = from_table(entry_score(entry), ply), entry_bound(entry)
    return bound == EXACT or (bound == LOWER and score >= beta) or (bound == UPPER and score <= alpha)


@compilable
def to_table(score: int, ply: int) -> int:
    """Mates count from the current position in the hash table, and from the root in the search."""
    return score + ply if score > MATE_SCORE else score - ply if score < -MATE_SCORE else score


@compilable
def from_table(score: int, ply: int) -> int:
    """The inverse of ``to_table``."""
    return score - ply if score > MATE_SCORE else score + ply if score < -MATE_SCORE else score


@compilable
def keep_line(s: Any, score: int, depth: int) -> None:
    """The principal variation at the root is the best answer so far."""
    s.best_score, s.best_depth, s.best_judged, s.best_length = score, depth, s.judged[0], s.length[0]
    for k in range(s.length[0]):
        s.best_line[k] = s.line[0, k]


@compile_function
def find_quiet(state: State, rows: npt.NDArray[np.int64], quiet: npt.NDArray[np.bool_]) -> None:
    """Write into ``quiet`` where the side to move is not in check and no capture beats the evaluation."""
    s = state.memory[0]
    s.node_limit, s.aborted = INFINITE << 20, 0
    for n in range(len(rows)):
        b, none = board_of(rows[n]), np.int64(0)
        value = static(s, b)
        quiet[n] = checkers(b) == 0 and quiescence(s, b, none, none, value, value + 1) <= value


@compile_function
def search_position(state: State, b: Board, keys: npt.NDArray[np.int64], n_keys: int, nodes: int, depth: int) -> Found:
    """Search ``b``, in which there must be a legal move.

    Args:
        state: the memory.
        b: the position.
        keys: keys of the earlier positions of the game, in order, for draws by repetition.
        n_keys: how many of them count.
        nodes: stop after this many positions, but not before depth 1 is done; 0: no limit.
        depth: stop after this depth in half-moves; 0: no limit.
    """
    s, most = state.memory[0], min(depth if depth > 0 else MOST_PLIES, MOST_PLIES // 2)
    begin(s, b, keys, n_keys)
    score = 0
    for d in range(1, most + 1):
        s.node_limit = nodes if nodes > 0 and d > 1 else INFINITE << 20
        low, high = (-INFINITE, INFINITE) if d < 4 else (score - WINDOW, score + WINDOW)
        while True:
            s.noted = 0
            value = negamax(s, state.table, b, d, np.int64(0), low, high)
            if s.aborted or low < value < high:
                break
            low, high = (-INFINITE, high) if value <= low else (low, INFINITE)
        if s.aborted:
            break
        s.half, s.kept = 1 - s.half, s.noted
        if abs(value) > MATE_SCORE and MATE - abs(value) <= d:
            break
        score = value
    leaf = b
    for k in range(s.best_length):
        leaf = play(leaf, s.best_line[k])
    return Found(s.best_line[0], s.best_score, leaf, s.best_judged != 0, s.nodes, s.best_depth)


@compilable
def begin(s: Any, b: Board, keys: npt.NDArray[np.int64], n_keys: int) -> None:
    """Prepare a search of ``b``."""
    s.root = min(n_keys, b.clock, MOST_KEYS)
    for k in range(s.root):
        s.keys[k] = keys[n_keys - s.root + k]
    s.nodes, s.aborted, s.kept, s.age = 0, 0, 0, s.age + 1 & 127
    for ply in range(MOST_PLIES):
        s.killers[ply, 0], s.killers[ply, 1], s.passed[ply] = 0, 0, 0
    for k in range(4096):
        s.history[0, k], s.history[1, k] = s.history[0, k] // 8, s.history[1, k] // 8
    s.best_line[0] = s.roots[0] if s.n_roots > 0 else legal_moves(b)[0]
    s.best_length, s.best_score, s.best_judged, s.best_depth = 0, 0, 0, 0
