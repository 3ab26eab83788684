"""Answers from a model or a run: limits, differences, availability, causes, what would help."""
