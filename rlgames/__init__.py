"""Learn board games from nothing by self-play: games -> features -> network -> learner -> optimizer -> trainer -> evaluation."""

__version__ = "0.1.0"
