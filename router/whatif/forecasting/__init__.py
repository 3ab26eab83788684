"""Forecasts: from the history of a live mesh's counters to demands, their trend, and when links will be full."""
