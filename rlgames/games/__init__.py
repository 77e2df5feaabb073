"""Game rules: each file has a board, a value with compiled methods, and a class that describes it."""
