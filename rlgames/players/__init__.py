"""Players: they choose moves; one file each."""

from rlgames.players.greedy import GreedyPlayer
from rlgames.players.minimax import Minimax
from rlgames.players.perfect import Perfect, perfect_of, perfect_or_minimax, perfect_player
from rlgames.players.player import Player, Solution
from rlgames.players.random_player import RandomPlayer

__all__ = [
    "GreedyPlayer",
    "Minimax",
    "Perfect",
    "Player",
    "RandomPlayer",
    "Solution",
    "perfect_of",
    "perfect_or_minimax",
    "perfect_player",
]
