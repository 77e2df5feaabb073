"""Learn board games from nothing: games -> features -> network -> learner -> optimizer -> trainer -> evaluation.

What people call from Python is here, imported when it is first used: ``rlgames.train(rlgames.load("optimizer=idbd"))``.
"""

import sys

__version__ = "0.1.0"

FACE = {  # what stays, and where it is
    "load": "build",
    "train": "train",
    "evaluate": "evaluate",
    "restore": "training.restore",
    "PlayBoard": "notebook",
    "Board": "games.game",
    "Game": "games.game",
    "Features": "features.features",
    "Network": "networks.network",
    "StepSize": "optim",
    "Agent": "agents.agent",
    "Learner": "learners.learner",
    "Player": "players.player",
    "Evaluation": "evaluation.evaluation",
    "compilable": "compiled",
    "value": "compiled",
    "testing": "testing",
}
__all__ = [*FACE, "__version__"]


def __getattr__(name: str) -> object:
    if name not in FACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{FACE[name]}")
    return module if FACE[name] == name else getattr(module, name)  # a program is called as if it were its function


def __dir__() -> list[str]:
    return sorted({*globals(), *FACE})


if sys.argv[:1] == ["-m"] and any(word.startswith("rlgames.") for word in sys.orig_argv):
    from rlgames.interrupts import Interruptible  # of a program, before all else: signals may come while it imports

    Interruptible(program=True).__enter__()
