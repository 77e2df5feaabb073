"""The mean of the weights over a part of a run: steadier in play than the last weights, which follow every game.

The idea is that of Polyak & Juditsky (1992); torch has it as stochastic weight averaging.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Average:
    """The mean of what a network's weights were whenever ``add`` was called; learning goes on without it.

    Args:
        network: whose weights.
        agent: the agent of ``rlgames.agents`` that plays with them.
        decay: what one sample leaves of the weight of those before it; None: all samples count the same.

    Raises:
        ValueError: for an agent that keeps its weights elsewhere.
    """

    def __init__(self, network: Any, agent: Any, decay: float | None = None) -> None:
        if not hasattr(agent, "forget"):
            raise ValueError("average_from is for learner=td; leave it out here")
        self._network, self._agent = network, agent
        forgetting = None if decay is None else get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
        self._mean = AveragedModel(network, multi_avg_fn=forgetting)

    @property
    def samples(self) -> int:
        """How many the mean is of."""
        return int(self._mean.n_averaged)

    def add(self) -> None:
        """Take the weights as they are now for a sample."""
        self._mean.update_parameters(self._network)

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Inside, network and agent have the mean weights, if there is a sample. Nothing may be learned there."""
        if not self.samples:
            yield
            return
        last = [param.detach().clone() for param in self._network.parameters()]
        self._set(self._mean.module.parameters())
        try:
            yield
        finally:
            self._set(last)

    @torch.no_grad()
    def _set(self, weights: Any) -> None:
        for param, value in zip(self._network.parameters(), weights, strict=True):
            param.copy_(value)
        self._agent.forget()

    def state_dict(self) -> dict[str, Any]:
        """The mean, under the names of the network's own state, and the number of samples."""
        return {"network": self._mean.module.state_dict(), "samples": self.samples}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what ``state_dict`` returned."""
        self._mean.module.load_state_dict(state["network"])
        self._mean.n_averaged.fill_(state["samples"])
