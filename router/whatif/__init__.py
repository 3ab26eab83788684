"""What-if: what would happen to a mesh if routers or links failed, traffic grew or subscribers moved: the offline half.

A model (`model`) is read by `formats`, put into arrays for the `kernel`, and played through `scenarios` by the
`pipeline`, which writes tables; `analysis` answers from these, `report` shows the answers. `telemetry` watches a live
mesh, `convergence` runs its twin. `tests/test_layering.py` has who may import whom.
"""
