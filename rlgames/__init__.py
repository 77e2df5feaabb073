"""Learn board games from nothing: games -> features -> network -> learner -> optimizer -> trainer -> evaluation."""

import sys

__version__ = "0.1.0"

if sys.argv[:1] == ["-m"] and any(word.startswith("rlgames.") for word in sys.orig_argv):
    from rlgames.interrupts import Interruptible  # of a program, before all else: signals may come while it imports

    Interruptible(program=True).__enter__()
