"""Search in any game: ``lookahead`` for n-tuples, ``plain`` for any network."""
