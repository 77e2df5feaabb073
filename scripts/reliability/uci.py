"""Lines to the chess engine, good and bad: every "go" has a legal answer, "isready" too, and "quit" ends."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import chess

from reliability.cases import Case, FoundError
from reliability.processes import Lab, Process, command_line

SESSIONS, LINES = 10, 200  # by default 2,000 lines
PATIENCE = 60.0  # seconds for an answer
POSITIONS = (
    *(chess.STARTING_FEN, "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"),
    *("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", "8/8/8/8/8/5k2/7P/R5K1 w - - 99 80"),
    *("rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3", "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"),
    *("R6k/6pp/8/8/8/8/8/K7 b - - 0 1", "8/P7/8/8/8/8/7k/K7 w - - 0 1"),
)
BAD = (
    *("", " ", "\t", "xyzzy", "go go go", "position", "position fen", "position fen 8/8/8", "position moves e2e4"),
    *("stop", "position startpos moves e2e5", "position startpos moves e2e4 zz"),
    *("position fen 8/8/8/8/8/8/8/8 w - - 0 1", "position fen kkkkkkkk/8/8/8/8/8/8/KKKKKKKK w KQkq e3 -1 -1"),
    *("setoption", "setoption name", "setoption value 3", "setoption name Hash value -1"),
    *("setoption name Hash value abc", "setoption name Hash value 99999999999999999999"),
    *("setoption name MultiPV value 0", "setoption name Nothing value 1", "setoption name Clear Hash value x"),
    *("ponderhit", "debug maybe", "register later", "ucinewgame now", "é ♞ \u202e", "\x00\x01", "a" * 20_000),
    *("position startpos " + "x " * 5_000,),
)
GOOD = (
    *("uci", "ucinewgame", "debug on", "debug off", "setoption name Clear Hash", "setoption name Hash value 1"),
    *("setoption name Hash value 16", "setoption name MultiPV value 1", "setoption name MultiPV value 5"),
    *("setoption name Move Overhead value 0", "setoption name Move Overhead value 30"),
)
GO = (
    *("go depth 1", "go depth 3", "go nodes 1", "go nodes 200", "go movetime 1", "go movetime 30", "go mate 1"),
    *("go movetime 0", "go wtime 100 btime 100", "go wtime 1000 btime 1000 winc 10 binc 10 movestogo 3"),
    *("go wtime -5 btime -5", "go depth 0", "go wtime 0 btime 0", "go depth -3"),
    *("go nodes 99999999999999999999 movetime 20", "go movetime -1", "go depth abc nodes 9", "go perft 2 nodes 5"),
    *("go movestogo 0 wtime 90 btime 90", "go searchmoves zz depth 1", "go depth 99999999999 movetime 20"),
)


class Conversation:
    """A process of the engine, and what it should make of what it is told.

    Attributes:
        lines: that were sent.
        boards: the positions that the engine may have; more than one after a position that it may refuse.
    """

    def __init__(self, process: Process, rng: random.Random) -> None:
        self.process, self.rng = process, rng
        self.lines: list[str] = []
        self.boards = [chess.Board()]
        self._read = 0

    def send(self, line: str) -> None:
        """Tell the engine.

        Raises:
            FoundError: if it is not there any more.
        """
        self.lines.append(line)
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            self.fail("crash", f"the engine is gone: {self.process.end(5).last_line()}", error)

    def answer(self, start: str) -> str:
        """The next line of the engine that begins so.

        Raises:
            FoundError: if there is none in time.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            out = self.process.texts()[0]
            complete = out[self._read : out.rfind("\n") + 1]
            for line in complete.splitlines(keepends=True):
                self._read += len(line)
                if line.startswith(start):
                    return line.strip()
            if not self.process.runs():
                break
            time.sleep(0.005)
        return self.fail("no answer", f"{start} did not come within {PATIENCE:.0f} s after {self.lines[-1][:60]!r}")

    def fail(self, verdict: str, detail: str, error: Exception | None = None) -> str:
        """End here."""
        raise FoundError(verdict, f"line {len(self.lines)}: {detail}") from error

    def position(self) -> None:
        """Send a position and legal moves, and know it."""
        board = chess.Board(self.rng.choice(POSITIONS))
        words = "startpos" if board.fen() == chess.STARTING_FEN else f"fen {board.fen()}"
        moves = []
        for _ in range(self.rng.choice((0, 0, 1, 4, 30))):
            legal = list(board.legal_moves)
            if legal and not board.is_insufficient_material() and board.halfmove_clock < 100:
                moves.append(self.rng.choice(legal))
                board.push(moves[-1])
        self.send(f"position {words}{' moves ' * bool(moves)}{' '.join(move.uci() for move in moves)}")
        self.boards = [board]

    def bad(self) -> None:
        """Send nonsense; after a bad position the engine may have the one before it or what it could read."""
        line = self.rng.choice(BAD)
        if self.rng.random() < 0.3:  # letters of a good line in a wrong order or number
            letters = list(self.rng.choice((*GOOD, "position startpos moves e2e4 e7e5")))
            letters[self.rng.randrange(len(letters))] = self.rng.choice("abc 09-")
            line = "".join(letters)
        if line.split()[:1] not in (["go"], ["quit"]):
            self.send(line)
            if line.startswith("position startpos"):
                self.boards += [board_after(line)]

    def go(self) -> None:
        """Let it think and check the answer.

        Raises:
            FoundError: if it is no legal move.
        """
        line, board = self.rng.choice(GO), self.boards[0]
        endless, wanted = self.rng.random() < 0.15, []
        if endless:
            line = self.rng.choice(("go infinite", "go ponder wtime 1000 btime 1000"))
        elif len(self.boards) == 1 and any(board.legal_moves) and self.rng.random() < 0.2:
            wanted = self.rng.sample([move.uci() for move in board.legal_moves], 1)
            line = f"go depth 2 searchmoves {' '.join(wanted)}"
        self.send(line)
        if endless:
            self.ready()
            self.send("stop")
        move = self.answer("bestmove").split()[1:2]
        if not any(legal(move, board) for board in self.boards) or (wanted and move != wanted):
            self.fail("illegal move", f"{line}: bestmove {' '.join(move)} at {board.fen()}")

    def ready(self) -> None:
        """Ask whether it is there, which it must answer while it thinks too."""
        self.send("isready")
        self.answer("readyok")


def board_after(line: str) -> chess.Board:
    """The position that ``position startpos ...`` describes, up to the first word that is no legal move."""
    board = chess.Board()
    for word in line.split()[3:]:
        try:
            board.push_uci(word)
        except ValueError:
            break
    return board


def legal(move: list[str], board: chess.Board) -> bool:
    """Whether ``move`` may be played on ``board``; where no move is, whether it says so."""
    if not move or not any(board.legal_moves):
        return move in (["0000"], ["(none)"])
    try:
        return chess.Move.from_uci(move[0]) in board.legal_moves
    except ValueError:
        return False


def talk(conversation: Conversation) -> Iterator[None]:
    """Say something again and again."""
    kinds = ("position", "bad", "go", "ready")
    while True:
        kind = conversation.rng.choices((*kinds, "good"), (25, 20, 25, 10, 20))[0]
        if kind == "good":
            conversation.send(conversation.rng.choice(GOOD))
        else:
            getattr(conversation, kind)()
        yield


def cases(lab: Lab, everything: bool) -> list[Case]:
    """Sessions of 200 lines: 10, or 50."""

    def case(number: int) -> Case:
        return Case("uci", f"session {number}", lambda folder: session(lab, number, folder))

    return [case(number) for number in range(SESSIONS * (5 if everything else 1))]


def compile_search(lab: Lab, place: Path) -> None:
    """Let an engine make the machine code; a fork, in which other modules are imported, may make another one."""
    with lab.start("uci", [], place) as process:
        process.stdin.write(b"go nodes 5\n")
        process.end(600).inspect()


def session(lab: Lab, number: int, folder: Path) -> str:
    """Talk to an engine for 200 lines; they are left in the folder, as ``lines.txt``.

    Raises:
        FoundError: if it does not answer as it should, or does not end.
    """
    lab.reference("engine", lambda place: compile_search(lab, place))
    with lab.start("uci", [], folder) as process:
        conversation = Conversation(process, random.Random(f"{lab.seed} {number}"))
        try:
            for _ in talk(conversation):
                if len(conversation.lines) >= LINES:
                    break
            conversation.send("quit")
            done = process.end(20).sound()
        finally:
            text = "".join(f"{line}\n" for line in conversation.lines)
            (folder / "lines.txt").write_text(text, encoding="utf-8")
    if done.status:
        raise FoundError("exit status", f"{done.status} after quit")
    moves = sum(line.startswith("go") for line in conversation.lines)
    return f"{moves} moves; {command_line('uci', [])} < lines.txt"
