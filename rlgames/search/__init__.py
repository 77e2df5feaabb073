"""Search for any game: ``lookahead`` for n-tuples, ``plain`` for any network."""
