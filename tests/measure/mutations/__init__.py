"""Spoil one thing of the credit rule at a time, in a copy, and see whether random plays notice."""
