"""What a score is that a search with a window found: the value itself, or one that the value is not below or above."""

EXACT, LOWER, UPPER = 1, 2, 3
