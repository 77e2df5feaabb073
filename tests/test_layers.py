"""Who may import whom: the sentence games -> features -> network -> learner -> optimizer -> trainer -> evaluation."""

import ast
import functools
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rlgames"
FILES = sorted(PACKAGE.rglob("*.py"))
ALLOWED = {
    # shared words
    "compiled": set(),
    "episodes": set(),
    "interrupts": set(),
    "schedules": set(),
    "policy": {"compiled"},
    "traces": {"compiled"},
    # the sentence: none of the first four knows another
    "games": {"compiled"},
    "features": {"compiled"},
    "networks": set(),
    "optim": {"compiled", "traces"},
    "agents": {"compiled", "networks", "optim", "policy", "traces"},
    "learners": {"compiled", "episodes", "interrupts", "policy", "schedules", "traces"},  # the rest they are handed
    "search": {"compiled", "policy"},
    "players": {"compiled", "interrupts", "policy", "search"},
    "evaluation": {"interrupts", "players"},
    "chess": {"compiled", "evaluation", "games", "interrupts", "networks", "optim", "players", "search"},
    # a run
    "build": set(),
    "console": {"build", "interrupts"},
    "training": {
        *("agents", "build", "compiled", "console", "episodes", "evaluation", "features", "games", "learners", "optim"),
        *("interrupts", "networks", "players", "schedules"),
    },
    "testing": {
        "agents",
        "compiled",
        "episodes",
        "features",
        "games",
        "learners",
        "networks",
        "optim",
        "schedules",
        "traces",
    },
    "lineup": {"build", "chess", "players", "training"},
    "__main__": {"console"},
}
CONTRACTS = [  # in the order of the sentence; every part may know those of the parts before it
    *("games.game", "features.features", "networks.network", "agents.agent", "learners.learner"),
    *("players.player", "evaluation.evaluation"),
]
PROGRAMS = {
    "train",
    "evaluate",
    "play",
    "match",
    "suite",
    "uci",
    "tournament",
    "info",
    "notebook",
    "check",
}  # know everything
RUN = PROGRAMS | {"build", "console", "training", "lineup", "__main__"}  # what only a run knows
HYDRA = PROGRAMS | {"build", "console", "lineup"}
OMEGACONF = HYDRA | {"training"}


def part(file):
    """``games`` for rlgames/games/connect4.py, ``train`` for rlgames/train.py."""
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(file):
    """All modules that ``file`` imports, wherever it does, but for those that only type checkers see."""
    tree = ast.parse(file.read_text())
    types = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    unseen = {id(node) for branch in types for node in ast.walk(branch)}
    for node in (node for node in ast.walk(tree) if id(node) not in unseen):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            yield from ([f"rlgames.{name.name}" for name in node.names] if node.module == "rlgames" else [node.module])


def ours(file):
    modules = [module.removeprefix("rlgames.") for module in imports(file) if module.startswith("rlgames.")]
    return {module.split(".")[0] for module in modules if module not in CONTRACTS}


def name(file):
    return str(file.relative_to(PACKAGE))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_layers(file):
    if name(file) == "__init__.py":
        assert list(imports(file)) == ["sys", "importlib", "rlgames.interrupts"], "importing rlgames costs nothing"
    elif part(file) not in PROGRAMS:
        assert part(file) in ALLOWED, f"say in {Path(__file__).name} what {part(file)} may import"
        assert ours(file) <= ALLOWED[part(file)] | {part(file)}


@pytest.mark.parametrize("file", FILES, ids=name)
def test_contracts_of_what_comes_before(file):
    folders = [contract.split(".")[0] for contract in CONTRACTS]
    if part(file) in folders:
        known = {module.removeprefix("rlgames.") for module in imports(file)} & set(CONTRACTS)
        assert known <= set(CONTRACTS[: folders.index(part(file)) + 1])


def test_who_is_allowed_what_is_who_does_it():
    """No row allows what nobody uses, and only what belongs to a run knows runs."""
    used = {row: set() for row in ALLOWED}
    for file in FILES:
        used.get(part(file), set()).update(ours(file) - {part(file)})
    assert used == ALLOWED
    assert all(row in RUN or not allowed & RUN for row, allowed in ALLOWED.items())


def test_no_circle_and_no_long_chain():
    """Between the names at the top; the longest chain is what a newcomer has to know to read the last of it."""

    @functools.cache
    def height(row):
        return 1 + max((height(other) for other in imported[row]), default=0)

    imported = {part(file): set() for file in FILES}
    for file in FILES:
        imported[part(file)] |= (ours(file) & imported.keys()) - {part(file), "__init__"}
    assert max(height(row) for row in imported) <= 10  # a circle is a RecursionError


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
        own = f"rlgames.{part(file)}.{file.stem.partition('_')[0]}_"  # q.py may use q_table.py
        assert {s for s in siblings if not s.startswith(own)} <= {
            "rlgames.games.game",
            "rlgames.games.drawing",
            "rlgames.learners.learner",
        }


@pytest.mark.parametrize("file", FILES, ids=name)
def test_functions_are_short(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{node.name} has more than 60 lines"
