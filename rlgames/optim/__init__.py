"""Step-size rules as torch optimizers, one file per family."""

from rlgames.optim.alpha_bounds import AlphaBounds
from rlgames.optim.auto_tidbd import AutoTIDBD
from rlgames.optim.autostep import Autostep
from rlgames.optim.idbd import IDBD, IDBDnl
from rlgames.optim.k1 import ELK1, K1
from rlgames.optim.obgd import AdaptiveObGD, ObGD
from rlgames.optim.rprop import IRpropMinus, IRpropPlus, RpropMinus, RpropPlus
from rlgames.optim.smd import SMD
from rlgames.optim.step_size import DivergenceError, StepSize
from rlgames.optim.swift_td import SwiftTD
from rlgames.optim.tcl import TCL, TCLEXP, TCLPL, TCLDelta
from rlgames.optim.tdl import TDL
from rlgames.optim.tidbd import TIDBD, OrdinaryTIDBD
from rlgames.optim.transition import Transition

__all__ = [
    "ELK1",
    "IDBD",
    "K1",
    "SMD",
    "TCL",
    "TCLEXP",
    "TCLPL",
    "TDL",
    "TIDBD",
    "AdaptiveObGD",
    "AlphaBounds",
    "AutoTIDBD",
    "Autostep",
    "DivergenceError",
    "IDBDnl",
    "IRpropMinus",
    "IRpropPlus",
    "ObGD",
    "OrdinaryTIDBD",
    "RpropMinus",
    "RpropPlus",
    "StepSize",
    "SwiftTD",
    "TCLDelta",
    "Transition",
]
