"""Alpha-beta search for chess, compiled; ``engine`` is its interface."""

from rlgames.chess.search.engine import Limits, Result, Search

__all__ = ["Limits", "Result", "Search"]
