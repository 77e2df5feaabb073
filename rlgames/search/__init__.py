"""Search for any game: ``lookahead`` for n-tuples, ``eager`` for any network."""
