"""Agents: value and learning, twice. ``Eager`` is plain torch, easy to read; ``Fused`` compiles the same steps.

Both offer what learners and players call:

* ``sums(board, moves)``: the sum of weights, before the output unit, of the board after each of ``moves``;
* ``unit(f)``: the value of such a sum;
* ``best(board)``: the best move and the value it leads to;
* ``begin()``: starts a game and ends all traces;
* ``learn(board, target, after, gamma)``: moves the value of ``board`` one step of the rule towards ``target``; returns
  the TD error. Rules that look ahead need the next board and how much of its value is in ``target``;
* ``explored(board)``: notes an exploratory move in ``board``: nothing is learned, but traces continue (or end);
* ``target(reward)``: a reward from -1 to +1 on the scale of the output unit;
* ``set_lr(lr)``.

All values are from the first player's view. ``Batched`` does the same for many boards at once, as tensors, with methods
of its own, which ``rlgames.learners.td_batched`` calls.
"""

from rlgames.agents.batched import Batched
from rlgames.agents.eager import Eager
from rlgames.agents.fused import Fused

__all__ = ["Batched", "Eager", "Fused"]
