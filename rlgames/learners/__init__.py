"""Learners: episode loops that read like the articles' pseudocode."""
