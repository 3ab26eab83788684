"""What would happen to a mesh if routers or links failed, traffic grew or subscribers moved: the offline half.

A model (`model.py`) comes from one of the `sources`, is kept in a folder (`store.py`) and played through scenarios.
"""
