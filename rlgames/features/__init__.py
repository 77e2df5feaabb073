"""Features: what the network sees of a board, a fixed number of table rows, some of which may coincide."""
