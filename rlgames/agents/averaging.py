"""The mean of the weights over part of a run: it plays more steadily than the last weights, which follow every game.

The idea is Polyak & Juditsky's (1992); torch calls it stochastic weight averaging.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from rlgames.agents.agent import Agent


class Average:
    """The mean of a network's weights at every call of ``add``; learning does not see it.

    Args:
        network: the network whose weights are averaged.
        agent: the agent of ``rlgames.agents`` that plays with them.
        decay: factor by which each sample discounts those before it; None: all samples count the same.

    Raises:
        ValueError: for an agent that keeps its weights elsewhere.
    """

    def __init__(self, network: nn.Module, agent: Agent[Any], decay: float | None = None) -> None:
        if not agent.afterstates:
            raise ValueError("average_from is for learner=td; leave it out here")
        self._network, self._agent = network, agent
        forgetting = None if decay is None else get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
        self._mean = AveragedModel(network, multi_avg_fn=forgetting)

    @property
    def samples(self) -> int:
        """Number of samples in the mean."""
        return int(self._mean.n_averaged)

    def add(self) -> None:
        """Add the current weights as a sample."""
        self._mean.update_parameters(self._network)

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Inside, network and agent use the mean weights, if there is a sample. Nothing may be learned inside."""
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
    def _set(self, weights: Iterable[Tensor]) -> None:
        for param, value in zip(self._network.parameters(), weights, strict=True):
            param.copy_(value)
        self._agent.forget()

    def state_dict(self) -> dict[str, Any]:
        """The mean, under the names of the network's own state, and the number of samples."""
        return {"network": self._mean.module.state_dict(), "samples": self.samples}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what ``state_dict`` returned."""
        self._mean.module.load_state_dict(state["network"])
        self._mean.n_averaged.fill_(state["samples"])
