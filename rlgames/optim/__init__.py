"""Step-size rules as torch optimizers, one file per family."""

from rlgames.optim.step_size import StepSize, Transition
from rlgames.optim.tcl import TCL, TCLEXP, TCLPL, TCLDelta
from rlgames.optim.tdl import TDL

__all__ = ["TCL", "TCLEXP", "TCLPL", "TDL", "StepSize", "TCLDelta", "Transition"]
