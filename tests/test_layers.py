"""Who may import whom: the sentence games -> features -> network -> learner -> optimizer -> trainer -> evaluation."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rlgames"
FILES = sorted(PACKAGE.rglob("*.py"))
SHARED = {"compiled", "episodes", "policy", "schedules", "td_errors", "traces", "views"}  # plain functions and values
ALLOWED = {
    "code_cache": set(),
    "compiled": {"code_cache"},
    "views": set(),
    "files": set(),
    "policy": {"compiled", "views"},
    "episodes": set(),
    "schedules": set(),
    "traces": {"compiled"},
    "bitboards": {"compiled"},
    "games": {"compiled", "bitboards"},
    "features": {"compiled", "bitboards"},
    "search": {
        "compiled",
        "bitboards",
        "games",
        "features",
        "policy",
        "views",
    },  # compiled, so it must know whose moves and evaluation
    "network": set(),
    "optim": {"code_cache", "compiled", "traces"},
    "q_table": {"compiled"},
    "td_errors": set(),
    "learners": SHARED | {"q_table", "search_agent"},  # the rest they are handed
    "players": {"compiled", "policy", "search", "features"},
    "evaluation": {"players"},
    "ratings": set(),
    "exhaustive": {"players", "evaluation"},
    # chess between engines
    "elo": {"evaluation"},
    "contest": {"games", "search"},
    "pgn": {"bitboards", "contest", "games"},
    "openings": {"contest", "games"},
    "pairs": {"contest", "features", "openings", "pgn", "players"},
    "match_evaluation": {"contest", "elo", "openings", "pairs", "pgn", "players"},
    "self_play": {"contest", "features", "openings", "pgn", "players"},
    "search_agent": {"contest", "optim", "search"},
    "thinker": {"contest", "games", "search"},
    "agents": {"compiled", "network", "optim", "policy", "traces"},
    # the program
    "averaging": set(),
    "checkpoint": None,
    "records": None,
    "progress": set(),
    "cli": None,
    "build": set(),
    "trainer": None,
    "study": None,
    "train": None,
    "evaluate": None,
    "play": None,
    "match": None,
    "suite": None,
    "uci": None,
    "tournament": None,
    "lineup": None,
    "terminal": set(),
    "raster": set(),
    "dashboard": None,
    "notebook": None,
    "usage": None,
    "info": None,
    "__main__": set(),
}
PROGRAM = {part for part, allowed in ALLOWED.items() if allowed is None} | {
    "build",
    "progress",
    "terminal",
    "raster",
    "__main__",
}
HYDRA = {"build", "cli", "usage", "train", "evaluate", "play", "tournament", "match", "suite", "uci"}
OMEGACONF = HYDRA | {"trainer", "checkpoint", "records", "study", "dashboard", "lineup"}


def part(file):
    """``games`` for rlgames/games/connect4.py, ``train`` for rlgames/train.py."""
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(file):
    """All modules that ``file`` imports, wherever it does."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            yield from ([f"rlgames.{name.name}" for name in node.names] if node.module == "rlgames" else [node.module])


def ours(file):
    return {module.split(".")[1] for module in imports(file) if module.startswith("rlgames.")}


def name(file):
    return str(file.relative_to(PACKAGE))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_layers(file):
    if name(file) == "__init__.py":
        assert not list(imports(file)), "importing rlgames costs nothing"
        return
    assert part(file) in ALLOWED, f"say in {Path(__file__).name} what {part(file)} may import"
    allowed = ALLOWED[part(file)]
    assert allowed is None or ours(file) <= allowed | {part(file)}
    assert part(file) in PROGRAM or not ours(file) & PROGRAM


@pytest.mark.parametrize("file", FILES, ids=name)
def test_only_the_program_knows_hydra(file):
    roots = {module.split(".")[0] for module in imports(file)}
    assert "hydra" not in roots or part(file) in HYDRA
    assert "omegaconf" not in roots or part(file) in OMEGACONF


@pytest.mark.parametrize("file", FILES, ids=name)
def test_games_and_learners_do_not_know_one_another(file):
    """Nor do learners: one file is read alone, with the base it stands on."""
    if part(file) in ("games", "learners"):
        siblings = {module for module in imports(file) if module.startswith(f"rlgames.{part(file)}.")}
        family = f"rlgames.{part(file)}.{file.stem.partition('_')[0]}_"  # chess.py may use chess_text.py
        assert {s for s in siblings if not s.startswith(family)} <= {"rlgames.games.game", "rlgames.games.drawing"}


@pytest.mark.parametrize("file", FILES, ids=name)
def test_files_and_functions_are_short(file):
    lines = file.read_text().splitlines()
    assert len(lines) <= 320
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{node.name} has more than 60 lines"


def test_the_list_of_parts_is_up_to_date():
    assert set(ALLOWED) <= {part(file) for file in FILES}
