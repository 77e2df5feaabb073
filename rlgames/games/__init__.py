"""Rules of games: pure functions on small values."""
