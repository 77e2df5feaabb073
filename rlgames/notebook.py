"""A board to click on, for notebooks: ``PlayBoard(restore("runs/connect4/...").parts)``; needs ipywidgets."""

from typing import Any

from ipywidgets import HTML, Button, GridBox, HBox, Layout, VBox

from rlgames.games.game import Game
from rlgames.play import Opponent, perfect_hint
from rlgames.training.assemble import Parts

SIZE = "40px"  # size of a move's button, the same as of a cell in the picture


class PlayBoard(VBox):  # type: ignore[misc]
    """A game against an agent: click a move; undo, new, swap, values, hint and perfect work as in the terminal.

    Args:
        parts: of the agent, from ``assemble`` or from ``restore(...).parts``.
        human: +1 or -1, your side.
        values: whether the board shows what the agent thinks of your moves.
        temperature: see ``rlgames.play.Opponent``.
        greedy: True: the agent plays its best move; False: it draws its move.

    Attributes:
        boards: the positions of the game so far.

    Raises:
        ValueError: for a side that is neither +1 nor -1, or a bad temperature.
    """

    def __init__(
        self, parts: Parts, human: int = 1, values: bool = False, temperature: float = 0.1, greedy: bool = True
    ) -> None:
        if human not in (1, -1):
            raise ValueError(f"human is {human!r}; it must be 1 (you move first) or -1")
        if not isinstance(parts.game, Game):
            raise ValueError(f"the board draws games of cells, not {parts.game.name}")
        super().__init__()
        self.game: Game[Any] = parts.game
        self.human, self.values = human, values
        self.opponent = Opponent(parts, temperature, greedy)
        self.boards = [self.game.board]
        self.picture, self.message = HTML(), HTML()
        self.moves = [
            self._button(label, lambda _, move=move: self.play(move)) for move, label in enumerate(self.game.labels)
        ]
        for button in self.moves:
            button.layout.width = button.layout.height = SIZE
        columns = self.game.n_moves if self.game.n_moves < self.game.n_cells else self.game.grid.shape[1]
        grid = Layout(grid_template_columns=f"repeat({columns}, {SIZE})", grid_gap="0")
        actions = (self.undo, self.new, self.swap, self.show_values, self.hint, self.perfect)
        names = ("undo", "new", "swap", "values", "hint", "perfect")
        self.actions = {
            name: self._button(name, lambda _, act=act: act()) for name, act in zip(names, actions, strict=True)
        }
        self.children = [
            GridBox(self.moves, layout=grid),
            self.picture,
            HBox(list(self.actions.values())),
            self.message,
        ]
        self._go_on()

    def play(self, move: int) -> None:
        """Make your move and let the agent reply; an illegal move only shows a message."""
        board = self.boards[-1]
        if move not in board.moves():
            self.message.value = "the game is over" if board.over() else f"{self.game.labels[move]} is not free"
            return
        self.boards.append(board.play(move))
        self._go_on()

    def undo(self) -> None:
        """Take back your last move."""
        turns = [n for n, board in enumerate(self.boards[:-1]) if board.player() == self.human]
        if turns:
            del self.boards[turns[-1] + 1 :]
        self._go_on()

    def new(self) -> None:
        """Start a new game."""
        self.boards = [self.game.board]
        self._go_on()

    def swap(self) -> None:
        """Change sides."""
        self.human = -self.human
        self._go_on()

    def show_values(self) -> None:
        """Show or hide what the agent thinks of your moves."""
        self.values = not self.values
        self._go_on()

    def hint(self) -> None:
        """Say what the agent would play."""
        if not self.boards[-1].over():
            self.message.value = f"hint: {self.game.labels[self.opponent.think(self.boards[-1]).best]}"

    def perfect(self) -> None:
        """Say what a perfect player would play."""
        if not self.boards[-1].over():
            self.message.value = perfect_hint(self.game, self.boards[-1])

    def _go_on(self) -> None:
        """Let the agent move if it is its turn, then redraw."""
        board, says = self.boards[-1], "your move"
        if not board.over() and board.player() != self.human:
            move = self.opponent.move(board)
            board, says = board.play(move), f"the agent plays {self.game.labels[move]}"
            self.boards.append(board)
        if board.over():
            says = {self.human: "you win", 0: "a draw", -self.human: "the agent wins"}[board.winner()]
        thoughts = self.opponent.think(board) if self.values and not board.over() else None
        values = dict(zip(thoughts.moves, thoughts.values, strict=True)) if thoughts else None
        self.picture.value, self.message.value = self.game.picture(board, values).svg(), says
        for move, button in enumerate(self.moves):
            button.disabled = move not in board.moves()

    def _button(self, text: str, act: Any) -> Any:
        button = Button(description=text, layout=Layout(width="auto", margin="0"))
        button.on_click(act)
        return button
