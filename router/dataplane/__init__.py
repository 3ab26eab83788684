"""The hot path: what is done for each message."""
