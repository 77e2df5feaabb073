"""Agents: value and learning, twice. ``Eager`` is plain torch, easy to read; ``Fused`` compiles the same steps.

``rlgames.agents.agent`` says what learners and players may ask of them. All values are from the first player's view.
``Batched`` does the same for many boards at once, as tensors, with methods of its own, which
``rlgames.learners.td_batched`` calls.
"""

from rlgames.agents.agent import Agent
from rlgames.agents.batched import Batched
from rlgames.agents.eager import Eager
from rlgames.agents.fused import Fused

__all__ = ["Agent", "Batched", "Eager", "Fused"]
