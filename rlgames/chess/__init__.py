"""Chess: rules on bitboards, an evaluation of named terms, a compiled search, engines, and matches between them."""
