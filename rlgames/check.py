"""Check whether parts keep their contracts: ``python -m rlgames.check game._target_=mygame.TicTacToe``."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from rlgames.build import CONF, build, ready
from rlgames.console import cli

# torch, numpy and numba are imported where needed, so that --help answers at once.


def check(cfg: DictConfig, words: list[str] | None = None) -> Iterator[tuple[str, str, bool]]:
    """Run the kits of ``rlgames.testing`` for all parts of ``cfg``.

    Args:
        cfg: the configuration; see conf/check.yaml.
        words: of the command line.

    Yields:
        For each part its name, what there is to say about it, and whether it is broken.

    Raises:
        ValueError: for an invalid configuration, or a part that cannot be built.
    """
    from rlgames.testing import ContractError

    broken = set[str]()
    for part, needs, name, kit in _kits(ready(cfg, words or [])):
        missing = [need for need in needs if need in broken]
        if missing:
            yield part, f"not checked, because {missing[0]} is broken", False
            continue
        if kit is None:
            yield part, f"{name} has no kit", False
            continue
        try:
            kit()
        except ContractError as error:
            broken.add(part)
            yield part, str(error), True
            if part == "game":  # all others would stand on it
                return
        else:
            yield part, f"{name} keeps the contract", False


def _kits(cfg: DictConfig) -> Iterator[tuple[str, tuple[str, ...], str, Callable[[], None] | None]]:
    """For each part of ``cfg``: what it is, the parts that must be right first, its name, and its kit, if any."""
    from rlgames import testing
    from rlgames.games.game import Game, Rules
    from rlgames.optim import StepSize

    game: Any = build(cfg, "game")
    own = isinstance(game, Rules) and not isinstance(game, Game)  # chess
    yield "game", (), testing.name_of(game), None if own else lambda: testing.check_game(game, cfg.seed)
    features: Any = None
    network: Any = None
    if cfg.features is not None:
        features = build(cfg, "features", game=game)
        make = lambda **kept: build(cfg, "features", game=game, **kept)  # noqa: E731
        yield (
            "features",
            ("game",),
            testing.name_of(features),
            lambda: testing.check_features(features, game, make, cfg.seed),
        )
    if cfg.network is not None:
        network = build(cfg, "network", features=features)
        yield (
            "network",
            ("game", "features"),
            testing.name_of(network),
            lambda: testing.check_network(network, features, game, cfg.seed),
        )
    optimizer = None
    if cfg.optimizer is not None:
        optimizer = lambda params: build(cfg, "optimizer", params=params)  # noqa: E731
        rule = type(optimizer(network.parameters()))
        hyper = {str(key): value for key, value in cfg.optimizer.items() if not str(key).startswith("_")}
        step_size = issubclass(rule, StepSize)
        yield "optimizer", (), rule.__name__, (lambda: testing.check_rule(rule, **hyper)) if step_size else None
    learner: Any = build(cfg, "learner", game=game)
    kit = lambda: testing.check_learner(learner, game, features, network, optimizer)  # noqa: E731
    yield "learner", ("game", "features", "network", "optimizer"), testing.name_of(learner), kit


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="check")
def main(cfg: DictConfig) -> None:
    """Check as the command line describes; the exit status is 1 if a part is broken."""
    status = 0
    try:
        for part, sentence, broken in check(cfg, list(HydraConfig.get().overrides.task)):
            print(f"{part}: {' '.join(sentence.split())}", flush=True)
            status |= broken
    except Exception as error:
        cli.report(error, "check")
        status = 1
    if status:
        sys.exit(1)


cli.callable_module(__name__, check)

if __name__ == "__main__":
    cli.run(main, "check")
