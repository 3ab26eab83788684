"""Counters of a live mesh's links, read again and again, and the stream of loads made of them."""
