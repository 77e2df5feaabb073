"""Rules of games: each file has a board as a value with compiled methods, and a class that describes it."""
