"""Notebooks run from top to bottom, are kept without outputs, and boards can be clicked on."""

import json
import runpy

import pytest

from rlgames.build import load
from rlgames.training.assemble import assemble
from tests.support import PROJECT

NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))
strip = runpy.run_path(str(PROJECT / "scripts" / "strip_notebooks.py"))["stripped"]


@pytest.mark.notebook
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebooks_run(file, tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    notebook = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(notebook, timeout=280, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    shown = {kind for output in outputs for kind in output.get("data", ())}
    assert {"image/png", "image/svg+xml"} & shown
    if "quickstart" in file.name:
        assert "application/vnd.jupyter.widget-view+json" in shown
        assert "(0, 0)" in [output["data"].get("text/plain") for output in outputs if "data" in output]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebooks_are_kept_without_outputs(file):
    text = file.read_text(encoding="utf-8")
    assert text == strip(text), "python scripts/strip_notebooks.py"


def test_stripping_takes_outputs_away_and_leaves_the_text():
    cell = {
        "cell_type": "code",
        "id": "x",
        "metadata": {"a": 1},
        "outputs": [{}],
        "execution_count": 3,
        "source": ["1+1"],
    }
    kept = json.loads(strip(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 2})))
    assert kept["cells"] == [
        {"cell_type": "code", "id": "cell-0", "metadata": {}, "outputs": [], "execution_count": None, "source": ["1+1"]}
    ]


@pytest.fixture
def board():
    pytest.importorskip("ipywidgets")
    from rlgames.notebook import PlayBoard

    def make(*words, **options):
        return PlayBoard(assemble(load(*words, "engine=eager")), **options)

    return make


TICTACTOE, CONNECT4 = ("learner=q", "game=tictactoe"), ("game=connect4", "features.length=2")


def test_a_click_plays_and_the_agent_answers(board):
    widget = board(*TICTACTOE)
    assert [button.description for button in widget.moves] == list("123456789")
    widget.moves[4].click()
    assert len(widget.boards) == 3
    assert widget.moves[4].disabled
    assert widget.picture.value.count("<line") == 2 + 2 + 2  # the grid, and the cross
    assert widget.message.value.startswith("the agent plays")
    widget.play(4)
    assert (widget.message.value, len(widget.boards)) == ("5 is not free", 3)


def test_the_actions_of_the_board(board):
    widget = board(*CONNECT4, human=-1)
    assert len(widget.boards) == 2  # the agent began
    widget.actions["values"].click()
    assert widget.picture.value.count("<text") == 14  # labels and values
    widget.actions["hint"].click()
    assert widget.message.value.startswith("hint: ")
    widget.moves[0].click()
    assert len(widget.boards) == 4
    widget.actions["undo"].click()
    assert len(widget.boards) == 2
    widget.actions["swap"].click()
    assert (widget.human, len(widget.boards)) == (1, 3)
    widget.actions["new"].click()
    assert len(widget.boards) == 1


def test_perfect_play_on_the_board(board):
    widget = board(*TICTACTOE)
    widget.actions["perfect"].click()
    assert widget.message.value == "perfect play: draw 1 2 3 4 5 6 7 8 9"


def test_the_end_of_a_game(board):
    widget = board(*TICTACTOE)
    widget.opponent.move = lambda board: int(board.moves()[-1])
    for move in (0, 1, 2):
        widget.moves[move].click()
    assert widget.message.value == "you win"
    assert all(button.disabled for button in widget.moves)
    widget.play(5)
    assert widget.message.value == "the game is over"
    widget.actions["hint"].click()
    assert widget.message.value == "the game is over"


def test_a_side_is_one_or_the_other(board):
    with pytest.raises(ValueError, match="human is 0"):
        board(*TICTACTOE, human=0)
