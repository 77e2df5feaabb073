"""Learners: episode loops that read like the pseudo-code."""
