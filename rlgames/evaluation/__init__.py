"""Evaluation: how strong an agent is, by matches, by proof, and as Elo."""
