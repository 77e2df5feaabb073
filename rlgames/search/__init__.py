"""Alpha-beta search for chess: ``alphabeta`` is compiled, ``engine`` its face for Python."""

from rlgames.search.engine import Limits, Result, Search

__all__ = ["Limits", "Result", "Search"]
