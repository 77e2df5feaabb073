"""Rules of games: each file is a board as a value, with compiled methods, and a class that describes it (see ``game``)."""
