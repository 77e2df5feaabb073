"""Conformance kits: whether a game, features, a network, a rule or a learner keeps its contract.

Each kit returns None if all is well, and else raises a ``ContractError``: one sentence that says what is wrong, and
where.

    from rlgames.testing import check_game

    check_game(MyGame())

``python -m rlgames.check game=mine`` runs the kits for all parts of a configuration.
"""

from rlgames.testing.contract import ContractError, name_of
from rlgames.testing.features import check_features
from rlgames.testing.game import check_game
from rlgames.testing.learner import check_learner
from rlgames.testing.network import check_network
from rlgames.testing.rule import check_rule

__all__ = ["ContractError", "check_features", "check_game", "check_learner", "check_network", "check_rule", "name_of"]
