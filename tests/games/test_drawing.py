from xml.etree import ElementTree

import numpy as np
import pytest

from rlgames.games.connect4 import Connect4
from rlgames.games.drawing import BOARD, CELL, FIRST, MARK, SECOND, Circle, Line, Picture, Rect, Text, row
from rlgames.games.tictactoe import TicTacToe
from rlgames.training.raster import pixels

CONNECT4, TICTACTOE = Connect4(), TicTacToe()


def colour(picture, x, y):
    """The colour at a place of the picture, as #rrggbb."""
    return "#{:02x}{:02x}{:02x}".format(*pixels(picture, scale=1, margin=0)[round(y), round(x)])


@pytest.mark.parametrize("board", [CONNECT4.play("44353"), TICTACTOE.play("159")], ids=["connect4", "tictactoe"])
def test_boards_are_well_formed_svg(board):
    root = ElementTree.fromstring(board._repr_svg_())
    assert root.tag.endswith("svg")
    assert float(root.get("width")) in (3 * CELL, 7 * CELL)


def test_stones_lie_where_they_fell():
    picture = CONNECT4.picture(CONNECT4.play("4435"))
    middle = CELL / 2
    assert colour(picture, 3 * CELL + middle, 5 * CELL + middle) == FIRST  # column 4, bottom
    assert colour(picture, 3 * CELL + middle, 4 * CELL + middle) == SECOND
    assert colour(picture, 2 * CELL + middle, 5 * CELL + middle) == FIRST
    assert colour(picture, 0 * CELL + middle, 5 * CELL + middle) == "#ffffff"
    assert colour(picture, 1, 5 * CELL) == BOARD


def test_values_of_moves_are_shown_in_their_colour():
    picture = CONNECT4.picture(CONNECT4.board, {0: 1.0, 6: -1.0})
    texts = [shape.text for shape in picture.shapes if isinstance(shape, Text)]
    assert texts == [*"1234567", "+1.00", "-1.00"]
    assert picture.height == 7 * CELL
    y = 6.6 * CELL
    good, bad = (pixels(picture, scale=1, margin=0)[round(y), round(x)] for x in (5, 6 * CELL + 5))
    assert good[1] > good[0]
    assert bad[0] > bad[1]
    board = TICTACTOE.play("5")
    texts = [s.text for s in TICTACTOE.picture(board, {0: 0.25}).shapes if isinstance(s, Text)]
    assert sorted(texts) == sorted(["+0.25", *"2346789"])


def test_cells_of_a_tuple_are_marked():
    rings = [s for s in CONNECT4.picture(CONNECT4.board, cells=[0, 6, 13]).shapes if s[-2:-1] == (MARK,)]
    assert [(s.x, s.y) for s in rings] == [(20, 220), (60, 220), (100, 180)]


def test_pictures_in_a_row():
    one = Picture(10, 20, [Rect(0, 0, 10, 20, "#ff0000")])
    both = row([one, Picture(5, 5, [Rect(0, 0, 5, 5, "#0000ff")])], gap=2)
    assert (both.width, both.height) == (17, 20)
    assert colour(both, 14, 2) == "#0000ff"
    assert row([one], ["a title"]).height > 20
    assert row([]).width == 0


def test_pixels_of_every_shape():
    shapes = [Rect(0, 0, 40, 40, "#00ff00"), Circle(10, 10, 5, "#ff0000"), Line(0, 30, 40, 30, "#0000ff", 4)]
    image = pixels(Picture(40, 40, shapes), scale=2, margin=3)
    assert image.shape == (86, 86, 3)
    assert image.dtype == np.uint8
    assert image[0, 0].tolist() == [255, 255, 255]
    assert image[3 + 20, 3 + 20].tolist() == [255, 0, 0]
    assert image[3 + 60, 3 + 20].tolist() == [0, 0, 255]
    assert image[3 + 40, 3 + 60].tolist() == [0, 255, 0]
    with_text = pixels(Picture(40, 40, [Text(20, 20, "X", 20)]))
    assert (with_text < 200).any()


def test_text_is_escaped():
    ElementTree.fromstring(Picture(9, 9, [Text(1, 1, "<&>")]).svg())
