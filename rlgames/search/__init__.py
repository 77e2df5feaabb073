"""Alpha-beta search: ``alphabeta`` for chess, compiled, with ``engine`` as its face; ``lookahead`` for n-tuples."""

from rlgames.search.engine import Limits, Result, Search

__all__ = ["Limits", "Result", "Search"]
