"""Agents: value and learning, twice. ``Eager`` is plain torch for everyone to read; ``Fused`` compiles the same steps.

Both offer what learners and players call:

* ``sums(board, moves)``: for the boards after each of ``moves``, the sum of weights before the output unit;
* ``unit(f)``: the value that belongs to such a sum;
* ``best(board)``: the best move and the value it leads to;
* ``begin()``: a game begins, all traces end;
* ``learn(board, target, after, gamma)``: one step of the rule from the value of ``board`` towards ``target``; returns
  the TD error. Rules that look ahead want the next board and how much of its value is in ``target``;
* ``explored(board)``: a move was made in ``board`` that nothing is learned from, except that traces go on (or end);
* ``target(reward)``: a reward from -1 to +1 on the scale of the output unit;
* ``set_lr(lr)``.

Values are the first player's throughout. ``Batched`` does the same for many boards at once, as tensors, by methods of
its own, which ``rlgames.learners.td_batched`` calls.
"""

from rlgames.agents.batched import Batched
from rlgames.agents.eager import Eager
from rlgames.agents.fused import Fused

__all__ = ["Batched", "Eager", "Fused"]
