"""``torch.optim.Optimizer`` that starts fast."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])


def _undecorated(method: F) -> F:
    """``method`` without torch's decorator; ``method`` itself in a torch that does not decorate it."""
    return getattr(method, "__wrapped__", method)


class Optimizer(torch.optim.Optimizer):
    """An optimizer whose methods start at once.

    torch decorates these methods so that its compiler leaves them alone. The first call of any of them imports that
    compiler, torch._dynamo: 1.1 CPU-seconds for nothing, as it compiles nothing here.
    """

    add_param_group = _undecorated(torch.optim.Optimizer.add_param_group)
    load_state_dict = _undecorated(torch.optim.Optimizer.load_state_dict)
    state_dict = _undecorated(torch.optim.Optimizer.state_dict)
    zero_grad = _undecorated(torch.optim.Optimizer.zero_grad)
