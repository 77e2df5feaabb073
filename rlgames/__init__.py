"""Learn board games from nothing: games -> features -> network -> learner -> optimizer -> trainer -> evaluation."""

__version__ = "0.1.0"
