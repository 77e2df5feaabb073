"""Training: a run from its parts to its records: assembled, trained, saved, shown, and collected in studies."""
