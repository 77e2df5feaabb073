"""What the score of a windowed search says about the value: the score is equal to it, a lower or an upper bound."""

EXACT, LOWER, UPPER = 1, 2, 3
