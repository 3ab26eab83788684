"""Scenarios that are asked of a run: families of failures, variants of the mesh, and the plan of numbered scenarios."""
